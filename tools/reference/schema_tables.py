"""The fields of a JSON Schema as tables: name, value, default, meaning."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from typing import Any

from export_core.base.field_docs import field_docs
from tools.field_docs import types_in
from tools.reference.markdown import code, table

_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
}
ELSEWHERE = {"Verdict": "verdicts", "Judgement": "judgements", "Stage": "stages", "Mode": "modes"}
"""Enumerations that verdicts.md has, by the name of its section."""


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """The type that a schema is about."""
    definition: dict[str, Any] = schema["$defs"][_name(schema)]
    return definition


def fields(definition: dict[str, Any]) -> str:
    """The table of one type."""
    required = definition.get("required", ())
    rows = [
        (code(name), words(field), "" if name in required else default(field), field.get("description", ""))
        for name, field in definition["properties"].items()
    ]
    if any(value for _, _, value, _ in rows):
        return table(("field", "value", "default", "what"), rows)
    return table(("field", "value", "what"), [(name, value, about) for name, value, _, about in rows])


def members(kind: type[enum.Enum]) -> str:
    """The values of an enumeration, with their meaning."""
    docs = field_docs(kind)
    return table(("value", "what"), [(code(member.value), docs[member.name]) for member in kind])


def nested(schemas: list[tuple[dict[str, Any], type]], level: int = 3) -> str:
    """A section for each type inside of the whole ones, each once, by name."""
    parts: dict[str, str] = {}
    for schema, kind in schemas:
        classes = {part.__name__: part for part in types_in(kind)}
        for name in set(_references(schema["$defs"])) - ELSEWHERE.keys():
            definition = schema["$defs"][name]
            about = " ".join(definition.get("description", "").split())
            rows = fields(definition) if "properties" in definition else ""
            if name in classes and issubclass(kind_of_values := classes[name], enum.Enum):
                rows = members(kind_of_values)
            parts[name] = f"{'#' * level} {name}\n\n{about}\n\n{rows}"
    return "\n".join(parts[name] for name in sorted(parts))


def default(field: dict[str, Any]) -> str:
    """The default of a field as JSON; empty for a type with defaults of its own."""
    value = field.get("default")
    return "" if value and isinstance(value, dict) else code(json.dumps(value))


def words(field: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in field:
        name = _name(field)
        return (
            f"[{ELSEWHERE[name]}](verdicts.md#{ELSEWHERE[name]})" if name in ELSEWHERE else f"[{name}](#{name.lower()})"
        )
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(words, field["anyOf"])))
    if "enum" in field:
        return ", ".join(code(str(value)) for value in field["enum"])
    if field.get("type") == "array":
        if "prefixItems" in field:
            return f"list of {', '.join(map(words, field['prefixItems']))}"
        return f"list of {words(field['items'])}" if field.get("items") else "list"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object with names, each {words(field['additionalProperties'])}"
    if "format" in field:
        return {"date": "day", "date-time": "time"}[field["format"]]
    return _WORDS.get(field.get("type", ""), "any value")


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield _name(part)
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _references(inner)
