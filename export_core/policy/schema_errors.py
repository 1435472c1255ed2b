"""The errors of a policy against its types: which keys are unknown, missing, or hold a value of a wrong type.

msgspec makes the `Policy`, and says what is wrong in an English sentence about the first error. This module finds every
error, each with its key. It walks through the JSON Schema that msgspec makes of the same types, which editors use too.
"""

import datetime
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from export_core.base.platforms import PLATFORMS, similar_platform
from export_core.base.text import QUOTED_AS_WRITTEN, close_match, did_you_mean, plural, shortened
from export_core.base.tolerances import LEVELS
from export_core.policy.entries import WRITTEN
from export_core.policy.feature_keys import Key
from export_core.policy.model import policy_schema

_TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "object": ("a table", dict),
    "array": ("a list", list),
    "string": ("text", str),
    "integer": ("a whole number", int),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", bool),
    "null": ("", type(None)),  # which is to leave the key out
}
"""The name of a type of JSON Schema in messages, and the type in Python."""

_MONTHS = (
    " A month has 28 to 31 days, and a window has the same length whenever it begins: write 180 days for the 6 months "
    "of JAX, which counts them so itself, and 30 days for 1 month."
)


def schema_problems(data: Any) -> list[tuple[Key, str]]:
    """Return a pair of key and message for everything in a policy file that the types of the policy do not allow."""
    schema = policy_schema()
    return list(_problems(schema, data, (), schema["$defs"]))


def _problems(schema: Any, value: Any, key: Key, tables: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    if "$ref" in schema:
        schema = tables[schema["$ref"].rpartition("/")[2]]
    # The alternatives of a value have different types, so that only one of them can be meant.
    meant = next((kind for kind in schema.get("anyOf", [schema]) if _has_type(kind, value)), None)
    if meant and isinstance(value, dict):
        yield from _problems_of_table(meant, value, key, tables)
    elif meant and isinstance(value, list):
        yield from ((key, problem) for problem in _wrong_length(meant, len(value)))
        kinds = meant.get("prefixItems") or itertools.repeat(meant["items"])
        for number, (kind, item) in enumerate(zip(kinds, value, strict=False)):
            yield from _problems(kind, item, (*key, number), tables)
    elif not meant or not _is_allowed(meant, value):
        problem = _wrong_value(schema, meant or {}, value)
        if key[:1] == ("windows",) and re.search(r"\b(month|year)s?\b", str(value)):
            problem += _MONTHS
        elif key[:1] == ("tolerances",) and not meant and schema.get("type") == "object":
            problem += LEVELS
        yield key, problem


def _problems_of_table(
    schema: Any, table: dict[str, Any], key: Key, tables: Mapping[str, Any]
) -> Iterator[tuple[Key, str]]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    unknown = [name for name in table if name not in known] if others is False else []
    for name, value in table.items():
        if name not in unknown:
            yield from _problems(known.get(name, others), value, (*key, name), tables)
    for name in unknown:
        match = _similar(name, known)
        hint = f"Did you mean `{match}`?" if match else f"Known keys here: {', '.join(known)}."
        if key[:1] == ("tolerances",) and not match:
            hint += LEVELS
        yield (*key, name), f"unknown key. {hint}"
    # A misspelled key is already reported as an unknown one, with the hint: it is not missing as well.
    misspelled = {_similar(name, schema.get("required", ())) for name in unknown}
    missing = [f"`{name}`" for name in schema.get("required", ()) if name not in table and name not in misspelled]
    if missing:
        yield key, f"lacks the key{'s' if missing[1:] else ''} {', '.join(missing)}."


def _has_type(schema: Any, value: Any) -> bool:
    # YAML and TOML have dates where JSON has text. A date with a time is a `datetime`, which is a `date` too.
    if schema.get("format") == "date" and type(value) is datetime.date:
        return True
    kind = schema.get("type", "string")  # an enum of words has no type
    # Python's True and False are integers too.
    return isinstance(value, _TYPES[kind][1]) and (kind == "boolean" or not isinstance(value, bool))


def _is_allowed(schema: Any, value: Any) -> bool:
    """Return whether a value of the right JSON type also fits the other limits of its schema."""
    if schema.get("format") == "date" and isinstance(value, str):
        try:
            return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value) and datetime.date.fromisoformat(value))
        except ValueError:
            return False
    return not (
        ("enum" in schema and value not in schema["enum"])
        or ("pattern" in schema and not re.search(schema["pattern"], value))
        or ("maxLength" in schema and len(value) > schema["maxLength"])
        or ("minimum" in schema and value < schema["minimum"])
    )


def _wrong_length(schema: Any, found: int) -> Iterator[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", found)
    if least == most != found:
        yield f"expected {plural(least, 'value')}, found {found}."
    elif found < least:
        choices = ", ".join(schema["items"].get("enum", ()))
        at_least = 'at least one name or glob, found none. ["*"] means all.'
        yield f"expected {f'some of {choices}, found none.' if choices else at_least}"


def _wrong_value(schema: Any, meant: Any, value: Any) -> str:
    if "minimum" in meant:
        return f"expected a number of {meant['minimum']} or more, found {value}."
    if meant.get("pattern") == WRITTEN:
        text = value.strip()
        return f"expected your own text in the place of {text[:40]!r}." if text else "expected text, found none."
    if len(str(value)) > meant.get("maxLength", math.inf):
        return f"expected text of at most {meant['maxLength']} characters, found {len(value)}."
    expected = _expected(schema)
    hint = ""
    if "pattern" in meant and (meaning := meant.get("description")):
        hint = f" {meaning}"
    elif isinstance(value, str) and (lists := [kind for kind in schema.get("anyOf", [schema]) if "items" in kind]):
        hint = _as_list(lists[0]["items"], value)
    elif isinstance(value, str):
        choices = schema.get("enum", ())
        hint = similar_platform(value) if set(choices) == {*PLATFORMS} else did_you_mean(value, choices)
    elif "text" in expected and isinstance(value, float):  # how it was written is lost
        hint = f" Put it {QUOTED_AS_WRITTEN}."
    elif "text" in expected and isinstance(value, (int, datetime.date)):
        hint = " Put it in quotes."
    return f"expected {' or '.join(expected)}, found {_shown(value)}.{hint}"


def _expected(schema: Any) -> list[str]:
    """Return texts on what a value may be; none for null, since a policy file leaves the key out instead."""
    if "anyOf" in schema:
        return [words for alternative in schema["anyOf"] for words in _expected(alternative)]
    if "enum" in schema:
        return [f"one of {', '.join(schema['enum'])}"]
    if schema.get("format") == "date":
        return ["a date such as 2026-10-25"]
    if "examples" in schema:
        return [f"text such as {schema['examples'][0]!r}"]
    words, _ = _TYPES[schema["type"]]
    if items := schema.get("items"):
        words += f" {_items(items)}"
    return [words] if words else []


def _items(schema: Any) -> str:
    """Return what the values of a list may be, in words that follow "a list" in a message."""
    if "enum" in schema:
        return f"with some of {', '.join(schema['enum'])}"
    return "of tables" if "$ref" in schema else "of texts"


def _as_list(items: Any, value: str) -> str:
    """Return a hint that shows a text as a list, if a list of `items` was expected; "" if the text is no such item."""
    if "enum" not in items:
        return f' Write ["{value}"].' if items.get("type") == "string" else ""
    match = close_match(value.lower(), items["enum"])
    return (
        f' {"Write" if match == value else "Did you mean"} ["{match}"]{"." if match == value else "?"}' if match else ""
    )


def _similar(name: str, known: Iterable[str]) -> str:
    return close_match(name.lower().replace("-", "_"), known)


def _shown(value: Any) -> str:
    """Return a value as a policy file spells it, and not as Python does."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = str(value) if isinstance(value, (datetime.date, datetime.time)) else repr(value)
    return shortened(text, 60)
