"""What a test exports now beside what its golden holds, as people see it: jaxprs, then StableHLO.

Renumbered names are no difference.
"""

from __future__ import annotations

import difflib
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from export_core.artifact import ArtifactError, read_bytes
from export_core.artifact.module_text import TextError, hashed, module_text, without_digits
from export_core.base.untrusted import open_regular, read_regular
from export_core.goldens.manifest import JaxprSummary, Manifest
from export_core.goldens.store import ARTIFACT, JAXPR_TEXT, MODULE_TEXT

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


def source_difference(folder: Path, files_now: Mapping[str, bytes], then: Manifest, now: Manifest) -> list[str]:
    """Lines that show what is exported now beside what a golden holds; none where both listings say the same.

    Args:
        folder: the golden's. Without module.mlir, the modules of both artifacts are compared, if the installed jaxlib
            can print them. A jaxpr that it lacks, as a golden that was added without its source does, is left out.
        files_now: files as `produce` gives them, by name.
        then: the golden's manifest.
        now: today's.
    """
    lines = summary_difference(then.jaxpr, now.jaxpr)
    for name, what, difference in (
        (JAXPR_TEXT, "jaxpr", jaxpr_difference),
        (MODULE_TEXT, "StableHLO", module_difference),
    ):
        old, new = _decoded(_listing(folder / name)), _decoded(files_now.get(name))
        if name == MODULE_TEXT and old is None:  # of both artifacts: two printers would differ everywhere
            name = ARTIFACT
            old, new = _module(_read(folder / name)), _module(files_now.get(name))
        if old is not None and new is not None and (differing := difference(old, new)):
            lines += [f"{what} (- golden, + now; {folder / name}):", *(f"  {line}" for line in differing)]
    # Another jax lowers the same source to other operations: that is no change of the test.
    if lines and then.writer.id != now.writer.id:
        lines.append(
            f"The golden is by jax {then.writer.jax}, this is jax {now.writer.jax}: "
            "part of these differences may be jax's own."
        )
    return lines


def summary_difference(then: JaxprSummary | None, now: JaxprSummary | None) -> list[str]:
    """A line each for primitives, constants and effects that changed: ``primitives: tanh 2 → 3; new: erf 1``."""
    if then is None or now is None:
        return []
    lines = []
    changed = [
        f"{name} {count} → {now.primitives[name]}"
        for name, count in sorted(then.primitives.items())
        if now.primitives.get(name, count) != count
    ]
    new = [f"{name} {count}" for name, count in sorted(now.primitives.items()) if name not in then.primitives]
    gone = [f"{name} {count}" for name, count in sorted(then.primitives.items()) if name not in now.primitives]
    parts = [", ".join(changed), f"new: {', '.join(new)}" if new else "", f"gone: {', '.join(gone)}" if gone else ""]
    if any(parts):
        lines.append(f"primitives: {'; '.join(filter(None, parts))}")
    for what, old, today in (("constants", then.constants, now.constants), ("effects", then.effects, now.effects)):
        if Counter(old) != Counter(today):
            lines.append(f"{what}: golden {_counted(old)}; now {_counted(today)}")
    return lines


def _counted(names: tuple[str, ...]) -> str:
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in Counter(names).items()) or "none"


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _listing(path: Path) -> bytes | None:
    """A listing. Earlier versions of this tool spelled all constants, which may be far longer than the rest."""
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return without_digits(content)
    except OSError:
        return None
    except ValueError:  # an empty file cannot be mapped
        return b""


def _decoded(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _module(artifact: bytes | None) -> str | None:
    """The module of an artifact as text; None where it cannot be read, or not printed here."""
    try:
        return None if artifact is None else module_text(read_bytes(artifact), spelled=False)
    except (ArtifactError, TextError):
        return None


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
    """Lines of a unified diff of two modules, as in `module.mlir`: none when only names, numbers or locations differ.

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
