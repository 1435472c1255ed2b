"""The parts about the keys of a policy: value, default, meaning, an example from the tests, and fields of entries."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools import schemas
from tools.reference.markdown import code
from tools.reference.schema_fields import LINKS, default, line, name_of, section, whole

TESTS = Path(__file__).parents[2] / "tests"
EXAMPLES = (TESTS / "policy" / "everything.yaml", *sorted(TESTS.glob("features/*/policy.yaml")))
"""Policies of the tests that together have an example of each key, whether of the kernel or of a feature."""
ENTRY = "KnownFailure"
"""The type of entry that shares fields, such as its owner and its expiry, with entries of other types."""

IN_SCHEMA = {"RuntimeRelease"}
"""Types that only the schema describes, since a tool writes their entries: releases of runtimes other than jaxlib."""


def key(name: str) -> str:
    """Return the section about a key: its meaning, its example, and the fields of its entries."""
    schema = schemas.schema("policy")
    field = whole(schema)["properties"][name]
    about = line(f"**{code(name)}**", field, schema["$defs"], default(field)).removeprefix("- ")
    parts = [about, f"```yaml\n{_examples()[name].strip()}\n```\n"]
    for inner in dict.fromkeys(name for name in _types_in(field, schema["$defs"]) if name not in IN_SCHEMA):
        parts.append(section(schema, inner, level=4) if inner in LINKS else _entry(schema, inner))
    return "\n".join(parts)


def keys() -> Iterator[str]:
    """Yield the names of all keys of a policy."""
    yield from whole(schemas.schema("policy"))["properties"]


def _entry(schema: dict[str, Any], name: str) -> str:
    """Return a list of the fields of a type; fields that a known failure has too are only named."""
    types = schema["$defs"]
    shared = types[ENTRY]["properties"] if name != ENTRY else {}
    required = types[name].get("required", ())
    lines, as_elsewhere = [], []
    for field_name, field in types[name]["properties"].items():
        if field == shared.get(field_name):
            as_elsewhere.append(code(field_name))
        else:
            more = "required" if field_name in required else default(field)
            lines.append(line(code(field_name), field, types, more))
    if as_elsewhere:
        lines.append(f"- {', '.join(as_elsewhere)}: as in [a known failure](#known-failures)\n")
    return f"{code(name)} has\n\n{''.join(lines)}"


def _types_in(part: Any, types: dict[str, Any]) -> Iterator[str]:
    """Yield the names of all types to which a part of a schema refers, directly or through other types.

    Args:
        part: the part, such as a field.
        types: the definitions of the schema, by name.
    """
    if isinstance(part, dict):
        if "$ref" in part:
            yield name_of(part)
            yield from _types_in(types[name_of(part)], types)
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _types_in(inner, types)


@functools.cache
def _examples() -> dict[str, str]:
    """Return the example of each key, by the key's name: its line, and what is indented below that line."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    found = re.findall(r"^(\w+):.*(?:\n[ -].*)*", text, re.MULTILINE)
    parts = re.findall(r"^\w+:.*(?:\n[ -].*)*", text, re.MULTILINE)
    return dict(zip(found, parts, strict=True))


def _part(name: str) -> tuple[str, Callable[[], str]]:
    return f"policy key {name}", lambda: key(name)


PARTS = dict(map(_part, keys()))
