"""YAML: the careful reading of what somebody else may have written, and the writing of YAML for people."""

import datetime
import re
from typing import Any

import msgspec
import yaml

from export_core.base.json_text import decode_error
from export_core.base.text import printable_json

DEEPEST = 100
"""The most levels of lists and tables inside lists and tables that a YAML file may have.

The files of this project have six; libyaml's C loader has no limit of its own.
"""
FEW_MARKS = 2000
"""The number of nesting characters below which a text needs no check of its depth.

Each level of YAML takes one of the characters ``[{-?:``: a text with fewer is shallow enough for any stack.
"""

_PLACE = re.compile(r' in "<(?:byte|unicode) string>", (?:(position \d+)|(line \d+), column \d+)')
"""A place as PyYAML writes it, which calls what it was given a byte string."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_Loader):  # type: ignore[misc]
    """A YAML loader that refuses a table with the same key twice. PyYAML itself takes the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            keys: set[Any] = set()
            for name, _ in node.value:
                if (key := self.construct_object(name)) in keys:
                    raise msgspec.DecodeError(f"expected each key once, found {key!r} again in line {_line(name)}")
                keys.add(key)
        return mapping


def decode_yaml(data: bytes, kind: Any = Any) -> Any:
    """Decode a YAML document as the type `kind`.

    Raises `msgspec.DecodeError` for bad YAML, a wrong type, a repeated key, an alias or nesting deeper than `DEEPEST`.
    """
    try:
        # Counting takes microseconds, and parsing twice would double the time of a matrix whose results are all cached.
        if sum(map(data.count, (b"[", b"{", b"-", b"?", b":"))) > FEW_MARKS or (b"&" in data and b"*" in data):
            _check_shape(data)
        loaded = yaml.load(data, Loader=_UniqueKeys)
        return msgspec.convert(loaded, kind, builtin_types=(datetime.datetime, datetime.date))
    except msgspec.MsgspecError:
        raise
    except yaml.YAMLError as error:
        text = _PLACE.sub(
            lambda place: f" in {place[2]}" if place[2] else f" at {place[1]}", " ".join(str(error).split())
        )
        raise msgspec.DecodeError(text) from None
    except (RecursionError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise (_refused_scalar(data) or decode_error(error)) from None


EXPECTED = {"timestamp": "a date such as 2026-10-25", "int": "a number such as 180", "bool": "true or false"}
"""The form that a value of each type of YAML must have, in words, by the last word of the type's tag."""


def refusal(node: Any, error: Exception) -> str:
    """Return what was expected and what was found for a value that YAML refuses, such as the date 2026-13-31.

    The sentence has no full stop. `error` is the error that PyYAML raised when it decoded `node`.
    """
    expected = EXPECTED.get(node.tag.rpartition(":")[2], "a value such as 2026-10-25 or 180")
    # Of `!!timestamp x`, PyYAML raises an AttributeError or a KeyError of its own, which says nothing.
    why = f": {error}" if isinstance(error, ValueError) else ""
    return f"expected {expected}, found {str(node.value)[:40]}{why}"


def _refused_scalar(data: bytes) -> msgspec.DecodeError | None:
    """Return an error about the first value that PyYAML cannot decode, with its line; None if none is found."""
    try:
        loader = _Loader(data)
        waiting = [loader.get_single_node()]
    except (yaml.YAMLError, RecursionError):
        return None
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            waiting += reversed([part for pair in node.value for part in pair])
            continue
        if isinstance(node, yaml.SequenceNode):
            waiting += reversed(node.value)
            continue
        try:
            loader.construct_object(node)
        except (ValueError, AttributeError, KeyError) as error:
            text = f"in line {_line(node)}: {refusal(node, error)}; correct it, or put it in quotes if it is text"
            return msgspec.DecodeError(text)
        except yaml.YAMLError:
            return None
    return None


def _check_shape(data: bytes) -> None:
    """Raise `msgspec.DecodeError` for nesting deeper than `DEEPEST`, and for aliases.

    With aliases, ten lines can stand for billions of values.
    """
    depth = 0
    # Events come from a parser with a stack of its own: it is the loader behind it that recurses.
    for event in yaml.parse(data, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise msgspec.DecodeError(f"expected no alias, found *{event.anchor} in line {_line(event)}")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise msgspec.DecodeError(
                f"expected lists and tables nested at most {DEEPEST} deep, found deeper ones in line {_line(event)}"
            )


def _line(event: Any) -> int:
    """Return the line, counted from 1, in which a parser's event or a node begins."""
    return int(event.start_mark.line) + 1


class _EscapingDumper(yaml.SafeDumper):
    """A YAML dumper that puts text into double quotes only if one of its characters has to be escaped."""

    def text(self, value: str) -> yaml.ScalarNode:
        """Return a text as a YAML string, quoted if it has unprintable characters or commands of CI systems."""
        style = None if value.isprintable() and "::" not in value and "##[" not in value else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_EscapingDumper.add_representer(str, _EscapingDumper.text)


def yaml_text(value: Any, **options: Any) -> str:
    """Return a value as YAML with unprintable characters escaped; `options` are further options of `yaml.dump`."""
    # PyYAML itself leaves marks of direction as they are. Escapes of JSON are escapes of YAML too.
    return printable_json(yaml.dump(value, Dumper=_EscapingDumper, sort_keys=False, allow_unicode=True, **options))
