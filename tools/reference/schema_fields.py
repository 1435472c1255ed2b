"""Functions that list the fields in a JSON Schema as Markdown: name, value, default, meaning."""

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
"""Enumerations that verdicts.md describes, each with the name of its section there."""
OF_FILES = ("Cause", "Cost", "ListedArtifact", "Origin", "Release", "Timings", "WriterOf")
"""Types that files.md describes: types that users write, and types that programs read from the files of a run."""
OF_POLICY = ("JaxRelease", "JaxlibRelease")
"""Types that policy.md describes under a heading for each. It describes other types below the key that uses them."""
LINKS = {
    **{name: f"[{section}](verdicts.md#{section})" for name, section in VERDICTS.items()},
    **{name: f"[{name}](files.md#{name.lower()})" for name in OF_FILES},
    **{name: f"[{name}](policy.md#{name.lower()})" for name in OF_POLICY},
}


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of the type that a schema is about, or of its items if the type is a list."""
    definition: dict[str, Any] = schema["$defs"][name_of(schema.get("items", schema))]
    return definition


def fields(schema: dict[str, Any], name: str = "") -> str:
    """Return a list with a line for each field of a type.

    Args:
        schema: the schema that defines the type.
        name: the name of the type; if empty, the type that the schema is about.
    """
    properties = (schema["$defs"][name] if name else whole(schema))["properties"]
    return "".join(line(code(key), field, schema["$defs"]) for key, field in properties.items())


def line(name: str, field: dict[str, Any], types: dict[str, Any], *more: str) -> str:
    """Return the line about a field, with its type, unless the type is text.

    Args:
        name: the field's name, as Markdown.
        field: the field in the schema.
        types: the definitions of the schema, by name.
        more: what else to say in parentheses, such as the default.
    """
    kind = words(field, types)
    about = ", ".join(filter(None, ("" if kind == "text" else kind, *more)))
    return f"- {name}{f' ({about})' if about else ''}: {sentences(field.get('description', ''))}\n"


def sentences(text: str) -> str:
    """Return a description on one line of Markdown."""
    return " ".join(text.replace("``", "`").split())


def members(kind: type[enum.Enum]) -> str:
    """Return a table of the values of an enumeration, with their meaning."""
    docs = field_docs(kind)
    return table(("value", "what"), [(code(member.value), docs[member.name]) for member in kind])


def section(schema: dict[str, Any], name: str, level: int = 3) -> str:
    """Return a section about a type: a heading of this level, its description, and its fields."""
    about = sentences(schema["$defs"][name].get("description", ""))
    return f"{'#' * level} {name}\n\n{about}\n\n{fields(schema, name)}"


def default(field: dict[str, Any]) -> str:
    """Return the default of a field as text; "" if the default is empty or absent, or is an object."""
    value = field.get("default")
    nothing = value is None or isinstance(value, dict) or value in ("", [], (), False)
    return "" if nothing else f"default {code(json.dumps(value))}"


def words(field: dict[str, Any], types: dict[str, Any]) -> str:
    """Return in words what the value of a field may be. Null is left out, since it stands for an absent value."""
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
