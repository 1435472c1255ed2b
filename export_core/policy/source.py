"""What stands in a policy file, and in which line? YAML and TOML as plain data, with the line of every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from export_core.policy.errors import PolicyError
from export_core.policy.toml_lines import toml_lines

Key = tuple[str | int, ...]
"""Where a value stands: ``("known_failures", 0, "verdict")``."""

TABLE = ("tool", "jaxexport")
MOST_NODES = 100_000
"""Values that a file may hold once its aliases are spelled out: ten lines of aliases of aliases make billions."""


@dataclass(frozen=True)
class Source:
    """A policy as it was read. `data` is None for a file of comments; `lines` count from 1."""

    file: Path
    data: Any
    lines: Mapping[Key, int]

    def place(self, key: Key) -> str:
        """``export_compat.yaml:12``: the line of this key, or of the nearest one around it."""
        line = next((self.lines[key[:end]] for end in range(len(key), -1, -1) if key[:end] in self.lines), None)
        return f"{self.file}:{line}" if line else str(self.file)

    def error(self, key: Key, problem: str) -> PolicyError:
        """What is wrong with the value of a key."""
        return PolicyError(f"{self.place(key)}: {f'{dotted(key)}: ' if key else ''}{problem}")


def dotted(key: Key) -> str:
    """``known_failures[0].verdict``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def read_source(file: Path) -> Source:
    """Read a policy file: a .toml has the table [tool.jaxexport], all else is YAML. Raises `PolicyError`."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
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
            f"{file}: expected a policy, found an empty file. `jaxexport policy init` writes a first one where there is none; "
            "without a file every key has its default."
        )
    return _toml(file, text) if file.suffix == ".toml" else _yaml(file, text)


def has_table(file: Path) -> bool:
    """Whether a pyproject.toml has a table for us. Raises `PolicyError` for one that names us and is no TOML."""
    try:
        text = file.read_bytes()
    except OSError:
        return False
    if TABLE[-1].encode() not in text:
        return False
    tables = _parsed(file, text.decode("utf-8-sig", "replace")).get(TABLE[0], {})
    return isinstance(tables, dict) and TABLE[-1] in tables


def _toml(file: Path, text: str) -> Source:
    data: Any = _parsed(file, text)
    for name in TABLE:
        data = data.get(name) if isinstance(data, dict) else None
    if data is None:
        raise PolicyError(f"{file}: expected a table [{'.'.join(TABLE)}], found none.")
    depth = len(TABLE)
    lines = {key[depth:]: line for key, line in toml_lines(text).items() if key[:depth] == TABLE}
    return Source(file, data, lines)


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        said, _, at = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", at)
        last = text.rstrip().count("\n") + 1
        raise PolicyError(f"{file}:{line[1] if line else last}: not TOML: {said or error}.") from None


class _Loader(yaml.SafeLoader):
    """YAML as people write numbers: PyYAML takes 1e-4 for text, since YAML 1.1 wants a dot."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _yaml(file: Path, text: str) -> Source:
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines = _Lines(file, loader)
            lines.walk(node, ())
            return Source(file, loader.construct_document(node) if node else None, lines.found)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        if r"'\t'" in said:
            said = "found a tab where YAML takes spaces only"
        raise PolicyError(f"{file}{f':{mark.line + 1}' if mark else ''}: not YAML: {said}.") from None
    except yaml.YAMLError as error:
        raise PolicyError(f"{file}: not YAML: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise PolicyError(f"{file}: not a policy: it is nested deeper than any policy needs to be.") from None


class _Lines:
    """Finds the line of each key, and what PyYAML would take in silence: a key that is there twice, aliases without end."""

    def __init__(self, file: Path, loader: _Loader) -> None:
        self.found: dict[Key, int] = {}
        self._file = file
        self._loader = loader
        self._nodes = 0
        self._open: list[yaml.Node] = []

    def walk(self, node: yaml.Node | None, key: Key) -> None:
        if node is None:
            return
        self.found.setdefault(key, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > MOST_NODES or any(node is each for each in self._open):
            raise self._error(
                node, f"its aliases make it endless, or longer than {MOST_NODES} values. Write it without them."
            )
        self._open.append(node)
        if isinstance(node, yaml.MappingNode):
            self._table(node, key)
        elif isinstance(node, yaml.SequenceNode):
            for number, each in enumerate(node.value):
                self.walk(each, (*key, number))
        else:
            self._value(node)
        self._open.pop()

    def _table(self, node: yaml.MappingNode, key: Key) -> None:
        first: dict[str, int] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            said = name.value if isinstance(name, yaml.ScalarNode) else None
            if said != "<<" and not isinstance(self._value(name) if said is not None else None, str):
                raise self._error(name, f"expected text as a key, found {said}. Put it into quotes.")
            assert said is not None
            if said in first:
                raise self._error(
                    name,
                    f"{dotted((*key, said))}: this key is here twice: in line {first[said]} too. Keep one of them.",
                )
            first[said] = line
            if said != "<<":
                self.found[(*key, said)] = line
            self.walk(value, (*key, said))

    def _value(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError as error:  # 2026-02-30, and numbers with thousands of digits
            raise self._error(
                node, f"expected a value such as 2026-10-25 or 180, found {str(node.value)[:40]}: {error}."
            ) from None

    def _error(self, node: yaml.Node, problem: str) -> PolicyError:
        return PolicyError(f"{self._file}:{node.start_mark.line + 1}: {problem}")
