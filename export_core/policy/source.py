"""A policy file as plain data: YAML with the line of every key, or TOML, whose parser does not tell lines."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from export_core.base.errors import ExportCompatError, Problem
from export_core.base.text import plural
from export_core.base.untrusted import read_named
from export_core.base.yaml_text import refusal
from export_core.policy.feature_keys import Key

TABLE = ("tool", "jaxexport")
MOST_NODES = 100_000
"""The most values that a file may hold once its aliases are expanded: ten lines of nested aliases make billions."""

MOST_PROBLEMS = 20  # The most problems that an error lists: an entry that is copied a hundred times has each as often.


class PolicyError(ExportCompatError):
    """An error in a policy."""


@dataclass(frozen=True)
class PolicySource:
    """The content of a policy file, with the line of each key."""

    file: Path
    data: Any  # The content as plain data; None for a file that has only comments.
    lines: Mapping[Key, int]  # The line of each key, from 1; empty for TOML.

    def location(self, key: Key) -> str:
        """Return the file and line of a key, such as ``export_compat.yaml:12``, or of the nearest table around it.

        For TOML, only the file is known.
        """
        line = self._line(key)
        return f"{self.file}:{line}" if line else str(self.file)

    def error(self, problems: Iterable[tuple[Key, str]]) -> PolicyError:
        """Return a `PolicyError` with a line for each problem (key, message), in the order of the file."""
        ordered = sorted(problems, key=lambda problem: self._line(problem[0]))
        shown = [Problem(self.file, text, dotted(key), self._line(key)) for key, text in ordered[:MOST_PROBLEMS]]
        if more := len(ordered) - len(shown):
            shown.append(Problem(self.file, f"{plural(more, 'more problem')}."))
        return PolicyError.about(*shown)

    def _line(self, key: Key) -> int:
        return next((self.lines[key[:end]] for end in range(len(key), -1, -1) if key[:end] in self.lines), 0)


def dotted(key: Key) -> str:
    """Return a key as text, such as ``known_failures[0].verdict``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def read_source(file: Path, what: str = "policy file", command: str = "policy init") -> PolicySource:
    """Return the content of a policy file: of the table [tool.jaxexport] in a .toml, or of a whole YAML file.

    `what` is what messages call the file, and `command` is the command that writes such a file. Raises `PolicyError` if
    the file cannot be read or parsed.
    """
    try:
        # Editors on Windows put a byte order mark before the first key, which is no TOML.
        text = read_named(file).decode("utf-8-sig")
    except FileNotFoundError:
        raise PolicyError.about(Problem(file, f"expected a {what}, found no such file.")) from None
    except OSError as error:
        raise PolicyError.about(Problem(file, f"cannot read this {what}: {error.strerror}.")) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = "expected text in UTF-8, found other bytes."
        raise PolicyError.about(Problem(file, problem, line=line, advice="Save the file as UTF-8.")) from None
    if not text.strip():
        advice = (
            f"`jaxexport {command}` writes a first one where there is none; without a file every key has its default."
        )
        raise PolicyError.about(Problem(file, f"expected a {what}, found an empty one.", advice=advice))
    return _toml(file, text) if file.suffix == ".toml" else _yaml(file, text)


def has_table(file: Path) -> bool:
    """Return whether a pyproject.toml has a table [tool.jaxexport].

    Raises `PolicyError` for a file that contains the name of this table but is not TOML.
    """
    try:
        text = read_named(file)
    except OSError:
        return False
    # Most projects have a pyproject.toml without a table for us: it is not parsed, and its mistakes are not ours.
    if TABLE[-1].encode() not in text:
        return False
    tables = _parsed(file, text.decode("utf-8-sig", "replace")).get(TABLE[0], {})
    return isinstance(tables, dict) and TABLE[-1] in tables


def _toml(file: Path, text: str) -> PolicySource:
    data: Any = _parsed(file, text)
    for name in TABLE:
        data = data.get(name) if isinstance(data, dict) else None
    if data is None:
        raise PolicyError.about(Problem(file, f"expected a table [{'.'.join(TABLE)}], found none."))
    return PolicySource(file, data, {})


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Before Python 3.14 the line is only in the message, and an unexpected end has none.
        message, _, position = str(error).rpartition(" (at ")
        match = re.match(r"line (\d+)", position)
        line = int(match[1]) if match else text.rstrip().count("\n") + 1
        # The key as it stands in this line, since what is around it is not known: tomllib says only where it stopped.
        named = re.match(r"\s*([\w.-]+)\s*=", text.split("\n")[line - 1])
        key, advice = (named[1], "A date is written as 2026-10-25, and text in quotes.") if named else ("", "")
        raise PolicyError.about(Problem(file, f"not TOML: {message or error}.", key, line, advice)) from None


class _Loader(yaml.SafeLoader):
    """A YAML loader that reads 1e-4 as a number; by YAML 1.1, which PyYAML follows, it would be text without a dot."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _yaml(file: Path, text: str) -> PolicySource:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        # Before values are made: constructing them is what aliases without end would exhaust.
        lines = _yaml_lines(file, loader, node)
        return PolicySource(file, loader.construct_document(node) if node else None, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        # PyYAML says of a tab only that it "cannot start any token".
        if r"'\t'" in problem:
            problem = "found a tab where YAML takes spaces only"
        line = mark.line + 1 if mark else 0
        raise PolicyError.about(Problem(file, f"not YAML: {problem}.", line=line)) from None
    except yaml.YAMLError as error:
        raise PolicyError.about(Problem(file, f"not YAML: {' '.join(str(error).split())}.")) from None
    except RecursionError:
        problem = "not a policy: it is nested deeper than any policy needs to be."
        raise PolicyError.about(Problem(file, problem)) from None


def _yaml_lines(file: Path, loader: _Loader, root: yaml.Node | None) -> dict[Key, int]:
    """Return the line of each key in a YAML document.

    Raises `PolicyError` for what PyYAML accepts: duplicate keys, aliases inside their own value, and more than
    `MOST_NODES` values once aliases are expanded.
    """
    lines: dict[Key, int] = {}
    waiting: list[tuple[yaml.Node, Key, tuple[yaml.Node, ...]]] = [(root, (), ())] if root else []
    nodes = 0
    while waiting:
        node, key, around = waiting.pop()
        # setdefault: the line of a key is that of its name, and its value may start on a later one.
        lines.setdefault(key, node.start_mark.line + 1)
        nodes += 1
        if any(node is outer for outer in around):
            raise _yaml_error(file, node, "this alias refers to a value that contains it. Write the value out.")
        if nodes > MOST_NODES:
            problem = f"expected at most {MOST_NODES} values, found more, counting those that aliases repeat."
            raise _yaml_error(file, node, problem)
        parts: list[tuple[str | int, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                text = _yaml_name(file, loader, name, key)
                own = (*key, text)
                if own in lines:
                    problem = f"{dotted(own)}: duplicate key: also in line {lines[own]}. Keep one."
                    raise _yaml_error(file, name, problem)
                lines[own] = name.start_mark.line + 1
                parts.append((text, value))
        elif isinstance(node, yaml.SequenceNode):
            parts += enumerate(node.value)
        else:
            _yaml_value(file, loader, node, key)
        waiting += [(value, (*key, name), (*around, node)) for name, value in reversed(parts)]
    return lines


def _yaml_name(file: Path, loader: _Loader, name: yaml.Node, table: Key) -> str:
    text = name.value if isinstance(name, yaml.ScalarNode) else None
    # `<<` merges another table into this one (YAML 1.1), and is no key of its own.
    if text is None or (text != "<<" and not isinstance(_yaml_value(file, loader, name, table), str)):
        found = "a list or table" if text is None else f"{text or 'nothing'}. Put it in quotes"
        raise _yaml_error(file, name, f"expected text as a key, found {found}.")
    return str(text)


def _yaml_value(file: Path, loader: _Loader, node: yaml.Node, key: Key) -> Any:
    try:
        return loader.construct_object(node)
    # 2026-02-30 and numbers with thousands of digits; the other two are what PyYAML raises for `!!timestamp x`.
    except (ValueError, AttributeError, KeyError) as wrong:
        problem = f"{refusal(node, wrong)}."
        advice = "Correct it, or put it in quotes if it is text."
        line = node.start_mark.line + 1
        raise PolicyError.about(Problem(file, problem, dotted(key), line, advice)) from None


def _yaml_error(file: Path, node: yaml.Node, problem: str) -> PolicyError:
    return PolicyError.about(Problem(file, problem, line=node.start_mark.line + 1))
