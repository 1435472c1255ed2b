"""A policy file as plain data, YAML or TOML, with the line of every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from export_core.base.errors import ExportCompatError
from export_core.base.phrases import plural
from export_core.base.untrusted import read_named
from export_core.policy.feature_keys import Key

TABLE = ("tool", "jaxexport")
MOST_NODES = 100_000
"""Values that a file may hold once its aliases are expanded: ten lines of aliases of aliases make billions."""

MOST_PROBLEMS = 20
"""Problems that one error lists: an entry that is copied a hundred times is wrong a hundred times."""


_TOKEN = re.compile(
    r"""
    (?:[ \t\r]+|\#[^\n]*)
    | (?P<token>
        \n
      | [\[\]{}=,.]
      | \"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}\"{0,2}
      | '{3}(?:[^']|'(?!''))*'{3}'{0,2}
      | "(?:[^"\\\n]|\\.)*"
      | '[^'\n]*'
      | [^\s\[\]{}=,\#"'.]+
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""What a TOML text consists of: neither tomllib nor tomlkit says in which line an item is."""


class PolicyError(ExportCompatError):
    """A policy that does not say what it must."""


@dataclass(frozen=True)
class PolicySource:
    """A policy as it was read. `data` is None for a file of comments; `lines` count from 1."""

    file: Path
    data: Any
    lines: Mapping[Key, int]

    def location(self, key: Key) -> str:
        """``export_compat.yaml:12``: the line of this key, or of the nearest one around it."""
        line = self._line(key)
        return f"{self.file}:{line}" if line else str(self.file)

    def error(self, problems: Iterable[tuple[Key, str]]) -> PolicyError:
        """What is wrong with the values of keys, a line for each, in the order of the file."""
        ordered = sorted(problems, key=lambda problem: self._line(problem[0]))
        lines = [
            f"{self.location(key)}: {f'{dotted(key)}: ' if key else ''}{problem}"
            for key, problem in ordered[:MOST_PROBLEMS]
        ]
        if more := len(ordered) - len(lines):
            lines.append(f"{self.file}: {plural(more, 'more problem')}.")
        return PolicyError("\n".join(lines))

    def _line(self, key: Key) -> int:
        return next((self.lines[key[:end]] for end in range(len(key), -1, -1) if key[:end] in self.lines), 0)


def dotted(key: Key) -> str:
    """``known_failures[0].verdict``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def read_source(file: Path) -> PolicySource:
    """Read a policy file: a .toml has the table [tool.jaxexport], all else is YAML. Raises `PolicyError`."""
    try:
        # Editors on Windows put a byte order mark before the first key, which is no TOML.
        text = read_named(file).decode("utf-8-sig")
    except FileNotFoundError:
        raise PolicyError(f"{file}: expected a policy file, found no such file.") from None
    except OSError as error:
        raise PolicyError(f"{file}: cannot read this policy file: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(
            f"{file}:{line}: expected text in UTF-8, found other bytes. Save the file as UTF-8."
        ) from None
    if not text.strip():
        raise PolicyError(
            f"{file}: expected a policy, found an empty file. `jaxexport policy init` writes a first one where there "
            "is none; without a file every key has its default."
        )
    return _toml(file, text) if file.suffix == ".toml" else _yaml(file, text)


def has_table(file: Path) -> bool:
    """Whether a pyproject.toml has a table for us. Raises `PolicyError` for one that names us and is no TOML."""
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
        raise PolicyError(f"{file}: expected a table [{'.'.join(TABLE)}], found none.")
    depth = len(TABLE)
    lines = {key[depth:]: line for key, line in toml_lines(text).items() if key[:depth] == TABLE}
    return PolicySource(file, data, lines)


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Before Python 3.14 the line is only in the message, and an unexpected end has none.
        message, _, position = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", position)
        last = text.rstrip().count("\n") + 1
        raise PolicyError(f"{file}:{line[1] if line else last}: not TOML: {message or error}.") from None


class _Loader(yaml.SafeLoader):
    """YAML as people write numbers: PyYAML takes 1e-4 for text, since YAML 1.1 wants a dot."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _yaml(file: Path, text: str) -> PolicySource:
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines = _Lines(file, loader)
            # Before values are made: constructing them is what aliases without end would exhaust.
            lines.walk(node, ())
            return PolicySource(file, loader.construct_document(node) if node else None, lines.by_key)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        # PyYAML says of a tab only that it "cannot start any token".
        if r"'\t'" in problem:
            problem = "found a tab where YAML takes spaces only"
        raise PolicyError(f"{file}{f':{mark.line + 1}' if mark else ''}: not YAML: {problem}.") from None
    except yaml.YAMLError as error:
        raise PolicyError(f"{file}: not YAML: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise PolicyError(f"{file}: not a policy: it is nested deeper than any policy needs to be.") from None


class _Lines:
    """The line of each key. Also refuses what PyYAML accepts silently: duplicate keys, and aliases without end."""

    def __init__(self, file: Path, loader: _Loader) -> None:
        self.by_key: dict[Key, int] = {}
        self._file = file
        self._loader = loader
        self._nodes = 0
        self._open: list[yaml.Node] = []

    def walk(self, node: yaml.Node | None, key: Key) -> None:
        if node is None:
            return
        # setdefault: the line of a key is that of its name, and its value may start on a later one.
        self.by_key.setdefault(key, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > MOST_NODES or any(node is outer for outer in self._open):
            raise self._error(
                node, f"its aliases make it endless, or longer than {MOST_NODES} values. Write it without them."
            )
        self._open.append(node)
        if isinstance(node, yaml.MappingNode):
            self._table(node, key)
        elif isinstance(node, yaml.SequenceNode):
            for number, element in enumerate(node.value):
                self.walk(element, (*key, number))
        else:
            self._construct(node)
        self._open.pop()

    def _table(self, node: yaml.MappingNode, key: Key) -> None:
        first: dict[str, int] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            text = name.value if isinstance(name, yaml.ScalarNode) else None
            # `<<` merges another table into this one (YAML 1.1), and is no key of its own.
            if text != "<<" and not isinstance(self._construct(name) if text is not None else None, str):
                raise self._error(name, f"expected text as a key, found {text or 'a list or table'}. Put it in quotes.")
            assert text is not None
            if text in first:
                raise self._error(name, f"{dotted((*key, text))}: duplicate key: also in line {first[text]}. Keep one.")
            first[text] = line
            if text != "<<":
                self.by_key[(*key, text)] = line
            self.walk(value, (*key, text))

    def _construct(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError as error:  # 2026-02-30, and numbers with thousands of digits
            raise self._error(
                node, f"expected a value such as 2026-10-25 or 180, found {str(node.value)[:40]}: {error}."
            ) from None

    def _error(self, node: yaml.Node, problem: str) -> PolicyError:
        return PolicyError(f"{self._file}:{node.start_mark.line + 1}: {problem}")


def toml_lines(text: str) -> dict[Key, int]:
    """The line, counted from 1, of each table, key and element of a valid text: ``("tool", "jaxexport", "rtol")``."""
    reader = _TomlLines(text)
    table: Key = ()
    while reader.token:
        if reader.token == "[":
            table = reader.header()
        elif not reader.skip("\n"):
            reader.assignment(table)
    return reader.lines


class _TomlLines:
    """Tells keys and brackets from what is in quotes. The text is valid, so it needs no values and no errors."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Key, int] = {(): 1}
        self._counts: dict[Key, int] = {}  # how many tables an array of tables has so far
        self._tokens = _TOKEN.finditer(text)
        self._next_line = 1
        self.token = ""
        self.next()

    def next(self) -> str:
        """Go on to the next token, which is empty at the end, and return the one before it."""
        before, self.token = self.token, ""
        for match in self._tokens:
            self.line = self._next_line
            self._next_line += match[0].count("\n")
            if match["token"]:
                self.token = match["token"]
                break
        return before

    def skip(self, *tokens: str) -> bool:
        """Go on if the token is one of these; whether it was."""
        return self.token in tokens and bool(self.next())

    def header(self) -> Key:
        """The table of ``[a.b]``, or the new element of ``[[a.b]]``."""
        self.next()
        array = self.skip("[")
        line, names = self.line, self._names()
        while self.skip("]"):
            pass
        key: Key = ()
        for number, name in enumerate(names, 1):
            key = (*key, name)
            self.lines.setdefault(key, line)
            if array and number == len(names):
                self._counts[key] = self._counts.get(key, 0) + 1
            # A header such as [a.b] after [[a]] is about the newest element of a.
            if key in self._counts:
                key = (*key, self._counts[key] - 1)
                self.lines.setdefault(key, line)
        return key

    def assignment(self, table: Key) -> None:
        """A key of a table, with all that is in its value."""
        line, key = self.line, table
        for name in self._names():
            key = (*key, name)
            self.lines.setdefault(key, line)
        self.next()  # =
        self._value(key)

    def _value(self, key: Key) -> None:
        end = {"[": "]", "{": "}"}.get(self.token)
        self.next()
        if end is None:  # a date with a time is two words, a number with a fraction three tokens
            while self.token not in ("", "\n", ",", "]", "}"):
                self.next()
            return
        number = 0
        while not self.skip(end):
            if self.skip("\n", ","):
                continue
            if end == "}":
                self.assignment(key)
            else:
                self.lines[(*key, number)] = self.line
                self._value((*key, number))
                number += 1

    def _names(self) -> list[str]:
        names = [self.next()]
        while self.skip("."):
            names.append(self.next())
        # tomllib itself unquotes a quoted key, with all its escapes.
        return [next(iter(tomllib.loads(f"{name} = 0"))) if name[0] in "\"'" else name for name in names]
