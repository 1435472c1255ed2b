"""The fields of a JSON Schema as lists: name, value, default, meaning. Each type is described on one page."""

from __future__ import annotations

import enum
import json
from typing import Any

from tools.field_docs import field_docs
from tools.reference.markdown import code, table

_WORDS = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "object",
}
VERDICTS = {
    "Verdict": "verdicts",
    "Judgement": "judgements",
    "Stage": "stages",
    "Mode": "modes",
    "Direction": "directions",
}
"""Enumerations that verdicts.md describes, each with the name of its section."""
OF_FILES = ("Cause", "Cost", "ListedArtifact", "Origin", "Release", "Timings", "WriterOf")
"""Types that files.md describes: those that users write, and those that programs read of a run."""
OF_POLICY = ("JaxRelease", "JaxlibRelease")
"""Types that policy.md describes under their own heading. Those of other keys are below their key."""
LINKS = {
    **{name: f"[{section}](verdicts.md#{section})" for name, section in VERDICTS.items()},
    **{name: f"[{name}](files.md#{name.lower()})" for name in OF_FILES},
    **{name: f"[{name}](policy.md#{name.lower()})" for name in OF_POLICY},
}


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the type that a schema is about; for a list, the type of its items."""
    definition: dict[str, Any] = schema["$defs"][name_of(schema.get("items", schema))]
    return definition


def fields(schema: dict[str, Any], name: str = "") -> str:
    """Return a line for each field of a type; without a name, of the type that the schema is about."""
    properties = (schema["$defs"][name] if name else whole(schema))["properties"]
    return "".join(line(code(key), field, schema["$defs"]) for key, field in properties.items())


def line(name: str, field: dict[str, Any], types: dict[str, Any], *more: str) -> str:
    """Return the line of one field, with its type unless that is text."""
    kind = words(field, types)
    about = ", ".join(filter(None, ("" if kind == "text" else kind, *more)))
    return f"- {name}{f' ({about})' if about else ''}: {sentences(field.get('description', ''))}\n"


def sentences(text: str) -> str:
    """Return a description as a paragraph of Markdown."""
    return " ".join(text.replace("``", "`").split())


def members(kind: type[enum.Enum]) -> str:
    """Return a table of the values of an enumeration, with their meaning."""
    docs = field_docs(kind)
    return table(("value", "what"), [(code(member.value), docs[member.name]) for member in kind])


def section(schema: dict[str, Any], name: str, level: int = 3) -> str:
    """Return the description of a type under its own heading."""
    about = sentences(schema["$defs"][name].get("description", ""))
    return f"{'#' * level} {name}\n\n{about}\n\n{fields(schema, name)}"


def default(field: dict[str, Any]) -> str:
    """Return the default of a field as text; empty for an empty default, or one of a type with fields of its own."""
    value = field.get("default")
    nothing = value is None or isinstance(value, dict) or value in ("", [], (), False)
    return "" if nothing else f"default {code(json.dumps(value))}"


def words(field: dict[str, Any], types: dict[str, Any]) -> str:
    """Return what a value may be, in words. Null is left out: it stands for an absent value."""
    if "$ref" in field:
        name = name_of(field)
        return LINKS.get(name) or (words(types[name], types) if "enum" in types[name] else code(name))
    if "anyOf" in field:
        kinds = dict.fromkeys(words(kind, types) for kind in field["anyOf"])
        return " or ".join(kind for kind in kinds if kind != "null")
    if "enum" in field:
        return ", ".join(code(str(value)) for value in field["enum"] if value != "")
    if field.get("type") == "array":
        if "prefixItems" in field:
            return f"list of {', '.join(words(item, types) for item in field['prefixItems'])}"
        return f"list of {words(field['items'], types)}" if field.get("items") else "list"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"{words(field['additionalProperties'], types)} by name"
    if "format" in field:
        return {"date": "day", "date-time": "time"}[field["format"]]
    return _WORDS.get(field.get("type", ""), "any value")


def name_of(reference: dict[str, Any]) -> str:
    """Return the name of the type that a `$ref` refers to."""
    return str(reference["$ref"]).rpartition("/")[2]
