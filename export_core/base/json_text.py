"""JSON that is safe to print, and the reading of JSON that somebody else may have written."""

from typing import Any, Literal

import msgspec

from export_core.base.text import printable_json, with_escaped_surrogates


def safe_json(value: object, *, indent: int = -1) -> bytes:
    """Return a value as JSON that is safe to print, with characters escaped as by `printable_json`.

    The JSON is on one line, unless `indent`, a number of spaces, is 0 or more.
    """
    data = json_bytes(value)
    if indent >= 0:
        data = msgspec.json.format(data, indent=indent)
    # Nearly all results of a run are plain: reading them letter by letter would take ten times as long as writing them.
    if data.isascii() and b"\x7f" not in data and b"##[" not in data:
        return data
    return printable_json(data.decode()).encode()


def json_bytes(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """Return a value as JSON in UTF-8; names of files that are not UTF-8 are escaped by `with_escaped_surrogates`.

    If `order` is "deterministic", sets and the keys of dictionaries are sorted.
    """
    try:
        return msgspec.json.encode(value, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(with_escaped_surrogates(msgspec.to_builtins(value)), order=order)


def as_stored(value: object) -> Any:
    """Return a value as reading it back from JSON gives it: with lists for tuples, and dictionaries for structs."""
    return decode_json(json_bytes(value))


def decode_json(data: bytes, kind: Any = Any) -> Any:
    """Decode a JSON document as the type `kind`.

    Raises `msgspec.DecodeError` if the document is not JSON, is nested too deeply, or is not of that type.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error) from None


def decode_error(error: Exception) -> msgspec.DecodeError:
    """Return a `DecodeError` in place of another error of decoding, such as a RecursionError for deep nesting."""
    if isinstance(error, RecursionError):
        return msgspec.DecodeError("it is nested deeper than any such file needs to be")
    return msgspec.DecodeError(f"it cannot be decoded: {error}")
