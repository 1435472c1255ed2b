"""What was read as plain data: dictionaries, lists, texts and numbers that `json` can write."""

from __future__ import annotations

from typing import Any


def as_dict(value: object) -> Any:
    """Turn named tuples, tuples and dicts into what `json` can write; bytes become their hexadecimal digits."""
    # A class whose fields are not what people should see names in `shown` what is.
    fields = value.shown() if hasattr(value, "shown") else getattr(value, "_fields", None)
    if fields is not None:
        return {name: as_dict(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {str(key): as_dict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_dict(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(as_dict(item) for item in value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return value
