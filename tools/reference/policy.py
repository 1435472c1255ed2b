"""Every key of a policy: value, default, meaning, an example that the tests load, and the fields of its entries."""

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
"""Policies with an example of each key: those of the kernel, and those that features add."""
ENTRY = "KnownFailure"
"""The entry whose fields others share: its owner, its issue, its expiry."""

IN_SCHEMA = {"RuntimeRelease"}
"""Types that only the schema describes: releases of other runtimes, which a tool measures and nobody writes."""


def key(name: str) -> str:
    """Return the section of a key: its meaning, its example, and the types of its entries."""
    schema = schemas.schema("policy")
    field = whole(schema)["properties"][name]
    about = line(f"**{code(name)}**", field, schema["$defs"], default(field)).removeprefix("- ")
    parts = [about, f"```yaml\n{_examples()[name].strip()}\n```\n"]
    for inner in dict.fromkeys(name for name in _types_in(field, schema["$defs"]) if name not in IN_SCHEMA):
        parts.append(section(schema, inner, level=4) if inner in LINKS else _entry(schema, inner))
    return "\n".join(parts)


def keys() -> Iterator[str]:
    """Yield the names of all keys."""
    yield from whole(schemas.schema("policy"))["properties"]


def _entry(schema: dict[str, Any], name: str) -> str:
    """Return the fields of a type; those that a known failure has too are only named."""
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
    """Yield the types that a field refers to, and those that these refer to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield name_of(part)
            yield from _types_in(types[name_of(part)], types)
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _types_in(inner, types)


@functools.cache
def _examples() -> dict[str, str]:
    """Return the example of each key: its line, and what is indented below it."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    found = re.findall(r"^(\w+):.*(?:\n[ -].*)*", text, re.MULTILINE)
    parts = re.findall(r"^\w+:.*(?:\n[ -].*)*", text, re.MULTILINE)
    return dict(zip(found, parts, strict=True))


def _part(name: str) -> tuple[str, Callable[[], str]]:
    return f"policy key {name}", lambda: key(name)


PARTS = dict(map(_part, keys()))
