"""JSON, as other programs and terminals may have it, and as somebody else may have written it."""

from typing import Any, Literal

import msgspec

from export_core.base.text import printable_json, with_escaped_surrogates


def safe_json(value: object, *, indent: int = -1) -> bytes:
    """Return a value as JSON that is safe to print, on one line unless indented.

    `printable_json` says which letters are escaped.
    """
    data = json_bytes(value)
    if indent >= 0:
        data = msgspec.json.format(data, indent=indent)
    # Nearly all results of a run are plain: reading them letter by letter would take ten times as long as writing them.
    if data.isascii() and b"\x7f" not in data and b"##[" not in data:
        return data
    return printable_json(data.decode()).encode()


def json_bytes(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """Return a value as JSON in UTF-8.

    Names of files that are not UTF-8 are escaped, as `with_escaped_surrogates` says.
    """
    try:
        return msgspec.json.encode(value, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(with_escaped_surrogates(msgspec.to_builtins(value)), order=order)


def decode_json(data: bytes, kind: Any = Any) -> Any:
    """Return a JSON document decoded as a type.

    Raises `msgspec.DecodeError`, also for one that is nested too deeply.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error) from None


def decode_error(error: Exception) -> msgspec.DecodeError:
    """Return the error for a document that msgspec raises no error of its own for, such as one nested too deeply."""
    if isinstance(error, RecursionError):
        return msgspec.DecodeError("it is nested deeper than any such file needs to be")
    return msgspec.DecodeError(f"it cannot be decoded: {error}")
