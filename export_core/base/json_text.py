"""JSON, as other programs and terminals may have it, and as somebody else may have written it."""

from typing import Any, Literal

import msgspec

from export_core.base.text import printable_json, with_escaped_surrogates


def safe_json(value: object, *, indent: int = -1) -> bytes:
    """A value as JSON, on one line unless indented. See `printable_json`."""
    data = json_bytes(value)
    if indent >= 0:
        data = msgspec.json.format(data, indent=indent)
    # Nearly all results of a run are plain: reading them letter by letter would take ten times as long as writing them.
    if data.isascii() and b"\x7f" not in data and b"##[" not in data:
        return data
    return printable_json(data.decode()).encode()


def json_bytes(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """A value as JSON in UTF-8, also where it quotes the name of a file that is not: see `with_escaped_surrogates`."""
    try:
        return msgspec.json.encode(value, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(with_escaped_surrogates(msgspec.to_builtins(value)), order=order)


def decode_json(data: bytes, kind: Any = Any) -> Any:
    """A JSON document. Raises `msgspec.DecodeError`, also for one that is nested too deeply."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error) from None


def decode_error(error: Exception) -> msgspec.DecodeError:
    """Return the error of a document that msgspec itself has no error for, such as one that nests too deeply."""
    if isinstance(error, RecursionError):
        return msgspec.DecodeError("it is nested deeper than any such file needs to be")
    return msgspec.DecodeError(f"it cannot be decoded: {error}")
