"""The errors of a policy against its JSON Schema: which keys are unknown, missing, or hold a value of another type.

msgspec makes the `Policy`, and says what is wrong in an English sentence about the first error. The jsonschema library
checks the same types by the schema that editors have, and gives every error as data: its path, what was expected, what
was found. It takes 0.13 s to import, so this module is loaded only for a policy that msgspec has refused.
"""

import datetime
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

from export_core.base.phrases import close_match, did_you_mean
from export_core.base.tolerances import PLATFORMS, similar_platform
from export_core.policy.entries import WRITTEN
from export_core.policy.feature_keys import Key
from export_core.policy.model import policy_schema

_TYPES = {
    "object": "a table",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_OF_VALUES = ("type", "enum", "anyOf", "format", "pattern")
"""Keywords that describe a whole value. The message of any other, such as the length of a list, is the library's."""

_REMOVED: dict[Key, str] = {("clock",): "no longer a key: windows always count jaxlib build dates. Delete the line."}
_MONTHS = (
    " A month has 28 to 31 days, and a window has the same length whenever it begins: write 180 days for the 6 months "
    "of JAX, which counts them so itself, and 30 days for 1 month."
)


def schema_problems(data: Any) -> list[tuple[Key, str]]:
    """Everything in the data of a policy that the schema does not allow, each problem with its key."""
    validator = _Validator(policy_schema(), format_checker=FormatChecker(["date"]))
    problems = (problem for error in validator.iter_errors(data) for problem in _problems(error))
    return list(dict.fromkeys(problems))  # the library reports a table once for each key that it lacks


def _check_type(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # YAML and TOML have dates where JSON has text. A date with a time is a `datetime`, which is a `date` too.
    if not (schema.get("format") == "date" and type(instance) is datetime.date):
        yield from Draft202012Validator.VALIDATORS["type"](validator, types, instance, schema)


def _is_whole(_: Any, value: object) -> bool:
    """Whether a value is an integer to msgspec: JSON Schema takes 1.0 for one."""
    return isinstance(value, int) and not isinstance(value, bool)


_Validator = extend(
    Draft202012Validator,
    {"type": _check_type},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
)


def _problems(error: ValidationError) -> Iterator[tuple[Key, str]]:
    key: Key = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for name in _unknown(error):
            match = _similar(name, known)
            hint = f"Did you mean `{match}`?" if match else f"Known keys here: {', '.join(known)}."
            yield (*key, name), _REMOVED.get((*key, name)) or f"unknown key. {hint}"
    elif error.validator == "required":
        # A misspelled key is already reported as an unknown one, with the hint: it is not missing as well.
        misspelled = {_similar(name, error.validator_value) for name in _unknown(error)}
        missing = [name for name in error.validator_value if name not in error.instance and name not in misspelled]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            yield key, f"expected the key{'s' if missing[1:] else ''} {names}, found none."
    elif error.validator == "anyOf" and (
        inner := [part for part in error.context if part.relative_path or part.validator_value == WRITTEN]
    ):
        # One of the alternatives is a table, a list or a text, as the value is: what is wrong is inside.
        for part in inner:
            yield from _problems(part)
    else:
        in_months = key[:1] == ("windows",) and re.search(r"\b(month|year)s?\b", str(error.instance))
        yield key, _wrong_value(error) + (_MONTHS if in_months else "")


def _wrong_value(error: ValidationError) -> str:
    value = error.instance
    if error.validator == "minimum":
        return f"expected a number of {error.validator_value} or more, found {value}."
    if error.validator == "minItems" and error.validator_value == 1:
        if choices := error.schema["items"].get("enum"):
            return f"expected some of {', '.join(choices)}, found none."
        return 'expected at least one name or glob, found none. ["*"] is all.'
    if error.validator == "pattern" and error.validator_value == WRITTEN:
        text = value.strip()
        return f"expected your own text in the place of {text[:40]!r}." if text else "expected text, found none."
    expected = _expected(error.schema)
    if error.validator not in _OF_VALUES or not expected:
        return f"{error.message}."
    hint = ""
    if error.validator == "pattern" and (meaning := error.schema.get("description")):
        hint = f" {meaning}"
    elif isinstance(value, str):
        choices = error.schema.get("enum", ())
        hint = similar_platform(value) if set(choices) == {*PLATFORMS} else did_you_mean(value, choices)
    # YAML reads a version such as 0.10 as the number 0.1.
    elif "text" in expected and isinstance(value, (int, float, datetime.date)):
        hint = " Put it in quotes."
    return f"expected {' or '.join(expected)}, found {_shown(value)}.{hint}"


def _expected(schema: Any) -> list[str]:
    """What a value may be, in words; nothing for null, which is to leave the key out."""
    if "anyOf" in schema:
        return [words for alternative in schema["anyOf"] for words in _expected(alternative)]
    if "enum" in schema:
        return [f"one of {', '.join(schema['enum'])}"]
    if schema.get("format") == "date":
        return ["a date such as 2026-10-25"]
    if "examples" in schema:
        return [f"text such as {schema['examples'][0]!r}"]
    return [words] if (words := _TYPES.get(schema.get("type"))) else []


def _unknown(error: ValidationError) -> list[str]:
    return [name for name in error.instance if name not in error.schema["properties"]]


def _similar(name: str, known: list[str]) -> str:
    return close_match(name.lower().replace("-", "_"), known)


def _shown(value: Any) -> str:
    """A value as a policy file has it, rather than as Python does."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = str(value) if isinstance(value, (datetime.date, datetime.time)) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
