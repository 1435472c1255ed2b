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
"""The kernel's keys, and those that features add."""
ENTRY = "KnownFailure"
"""The entry whose fields others share: who answers for it, and until when."""

IN_SCHEMA = {"RuntimeRelease"}
"""What only the schema describes: releases of runtimes that are not jaxlib, which somebody measures."""


def key(name: str) -> str:
    """A key with its example and what is inside of it."""
    schema = schemas.schema("policy")
    field = whole(schema)["properties"][name]
    about = line(f"**{code(name)}**", field, schema["$defs"], default(field)).removeprefix("- ")
    parts = [about, f"```yaml\n{_examples()[name].strip()}\n```\n"]
    for inner in dict.fromkeys(name for name in _types_in(field, schema["$defs"]) if name not in IN_SCHEMA):
        parts.append(section(schema, inner, level=4) if inner in LINKS else _entry(schema, inner))
    return "\n".join(parts)


def keys() -> Iterator[str]:
    """The names of all keys."""
    yield from whole(schemas.schema("policy"))["properties"]


def _entry(schema: dict[str, Any], name: str) -> str:
    """The fields of an entry or a table, without those that are as in a known failure."""
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
    """The types that a field refers to, and those that they refer to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield name_of(part)
            yield from _types_in(types[name_of(part)], types)
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _types_in(inner, types)


@functools.cache
def _examples() -> dict[str, str]:
    """The text of each key with what is indented below it."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    found = re.findall(r"^(\w+):.*(?:\n[ -].*)*", text, re.MULTILINE)
    parts = re.findall(r"^\w+:.*(?:\n[ -].*)*", text, re.MULTILINE)
    return dict(zip(found, parts, strict=True))


def _part(name: str) -> tuple[str, Callable[[], str]]:
    return f"policy key {name}", lambda: key(name)


PARTS = dict(map(_part, keys()))
