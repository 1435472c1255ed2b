"""The difference of two listings, jaxprs or StableHLO, as people see it: renumbered names are no difference."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from export_core.artifact.bytecode.constants import hashed

WIDTH = 200
"""Characters of a line that are shown. jax writes some parameters, and MLIR some attributes, without a break."""

CONTEXT = 2
TOO_LONG = 20_000
"""Lines above which names are not followed: the alignment takes time in the square of what differs."""

_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_JAXPR_BINDER = re.compile(r"(?<!\S)(?!(?:inf|nan):)([a-z]+):(?=[a-z])")
_JAXPR_NAME = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![^\s(])([a-z]+)(?=[ ,):]|$)")
_MLIR_FUNCTION = re.compile(r"func\.func private (@[\w$.-]+)")
_MLIR_NAME = re.compile(r"(%[\w$.-]+|@[\w$.-]+)")
_MLIR_LOCATION = re.compile(r" loc\(")
_MLIR_NESTED = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_MLIR_DENSE = re.compile(r"dense<([^<>]{60,})>|dense_resource<[^<>]*>")


def jaxpr_difference(then: str, now: str, *, most: int = 60) -> list[str]:
    """Lines of a unified diff of two jaxprs, as in `jaxpr.txt`: none when only the names of variables differ.

    Args:
        then: the golden's.
        now: today's. Its variables get the names that the golden has for them; one that the golden lacks is marked:
            ``c'``.
        most: lines to give; a last one says how many were left out.
    """
    old, new = then.splitlines(), now.splitlines()
    return _diff(old, _with_old_names(old, new, _JaxprNames(then), _JaxprNames(now)), most)


def module_difference(then: str, now: str, *, most: int = 40) -> list[str]:
    """The same of two modules as MLIR text, as in `module.mlir`: none when only names, numbers or locations differ.

    Long constants are compared by their hash.
    """
    old, new = _module_lines(then), _module_lines(now)
    return _diff(old, _with_old_names(old, new, _ModuleNames(old), _ModuleNames(new)), most)


class _JaxprNames:
    """The variables of a jaxpr; each is bound once in the whole text."""

    pattern = _JAXPR_NAME

    def __init__(self, text: str) -> None:
        self._bound = frozenset(_JAXPR_BINDER.findall(_QUOTED.sub("''", text)))

    def scope(self, line: str) -> int:
        return 0  # no name is bound twice in the whole text, inner jaxprs included

    def has(self, name: str | None) -> bool:
        return name in self._bound


class _ModuleNames:
    """Values, numbered anew in each function of a module, and its private functions."""

    pattern = _MLIR_NAME

    def __init__(self, lines: Sequence[str]) -> None:
        self._functions = frozenset(_MLIR_FUNCTION.findall("\n".join(lines)))

    def scope(self, line: str) -> int:
        return int(line.lstrip().startswith("func.func"))

    def has(self, name: str | None) -> bool:
        # The target of a custom call starts with @ too, and must not be renamed.
        return name is not None and (name.startswith("%") or name in self._functions)


_Names = _JaxprNames | _ModuleNames
_Name = tuple[int, str]
"""A scope and a name in it."""


def _with_old_names(then: list[str], now: list[str], old: _Names, new: _Names) -> list[str]:
    """The lines of `now` with the names of `then`.

    Lines are paired by what they say without their names; then each name of a line is paired with the one at
    the same position, and the first line that has a name decides, which is mostly the one that binds it.
    """
    if len(then) + len(now) > TOO_LONG:
        return now
    then_names, now_names = _scoped(then, old), _scoped(now, new)
    partner: dict[_Name, _Name] = {}
    taken: set[_Name] = set()
    for left, right in _pairs([_blank(line, old) for line in then], [_blank(line, new) for line in now]):
        if len(then_names[left]) == len(now_names[right]):
            for was, name in zip(then_names[left], now_names[right], strict=True):
                # One to one, and functions (scope 0) only with functions: else two names would become one.
                if name not in partner and was not in taken and (was[0] == 0) == (name[0] == 0):
                    partner[name] = was
                    taken.add(was)
    known = {name for names in then_names for _, name in names}
    return [_rename(line, names, new, partner, known) for line, names in zip(now, now_names, strict=True)]


def _rename(line: str, names: list[_Name], new: _Names, partner: dict[_Name, _Name], known: set[str]) -> str:
    following = iter(names)

    def other(match: re.Match[str]) -> str:
        if not new.has(match[1]):
            return match[0]
        name = next(following)
        if name in partner:
            return partner[name][1]
        return f"{name[1]}'" if name[1] in known else name[1]

    return new.pattern.sub(other, line)


def _scoped(lines: list[str], names: _Names) -> list[list[_Name]]:
    """The names of each line, each with the number of the function it is in. Functions themselves are in scope 0."""
    scope, scoped = 0, []
    for line in lines:
        scope += names.scope(line)
        has = [match[1] for match in names.pattern.finditer(line) if names.has(match[1])]
        scoped.append([(0 if name.startswith("@") else scope, name) for name in has])
    return scoped


def _blank(line: str, names: _Names) -> str:
    return names.pattern.sub(lambda match: "_" if names.has(match[1]) else match[0], line)


def _pairs(then: list[str], now: list[str]) -> Iterator[tuple[int, int]]:
    """Numbers of lines that are equal, and of lines that were replaced by the same number of others."""
    # Without autojunk, which ignores lines that occur often: without their names, many lines of a program are equal.
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and i2 - i1 == j2 - j1):
            yield from zip(range(i1, i2), range(j1, j2), strict=True)


def _module_lines(text: str) -> list[str]:
    """The lines without source locations, and with long constants as hashes."""
    lines = [line for line in text.splitlines() if not line.startswith("#loc")]
    return [_MLIR_DENSE.sub(_hash, _without_location(line)) for line in lines]


def _without_location(line: str) -> str:
    """A line without its locations. They nest as deep as calls do, which a regular expression cannot follow."""
    start = _MLIR_LOCATION.search(line)
    if start is None:
        return line
    depth = 1
    for match in _MLIR_NESTED.finditer(line, start.end()):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return line[: start.start()] + _without_location(line[match.end() :])
    return line


def _hash(match: re.Match[str]) -> str:
    return hashed([match[0].encode()])


def _diff(then: list[str], now: list[str], most: int) -> list[str]:
    lines = list(difflib.unified_diff(then, now, lineterm="", n=CONTEXT))[2:]  # the first two would name two files
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]}… ({len(line) - WIDTH} more characters)" for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[:most], f"… {len(shown) - most} more lines of this difference"]
