"""Parameters of a jaxpr's equations as text, the same in every process: no addresses, paths or hash orders."""

from __future__ import annotations

import enum
import functools
import hashlib
import re
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

LONGEST = 400
"""Characters of a value that are printed. A longer one ends in its length and hash, so that a change still shows."""

MOST_ELEMENTS = 8
"""Elements of an array that are printed. A larger array is shown by its type and a hash of its bytes."""

# What texts of objects have that differs between processes or machines: "<f.g.Name object at 0x7f…>", " at 0x7f…",
# a source file with its line, and the order of a set, which follows the hashes of its elements.
_OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) object at 0x[0-9a-fA-F]+>")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLACE = re.compile(r"""[^\s'"<>()\[\],=]+\.pyi?\b(?::\d+)*(?:, line \d+)?""")
_PLAIN_SET = re.compile(r"\{([^{}:=]*,[^{}:=]*)\}")
_WORD = re.compile(r"[^\s\[\](){},='\"]+")


def value_text(value: Any) -> str:
    """One line for any value without jaxprs in it."""
    text = _text(value)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}… ({len(text)} characters, SHA-256 {_hash(text.encode())})"
    return text


def is_unspecified(value: Any) -> bool:
    """Whether a parameter says nothing, and is not printed.

    That is None, "unspecified", an empty mesh, an empty container, and a container of nothing but these and False.
    """
    if isinstance(value, (tuple, list, Mapping, Set)):
        parts = value.values() if isinstance(value, Mapping) else value
        return all(part is False or is_unspecified(part) for part in parts)
    if value is None or type(value).__name__ in ("UnspecifiedValue", "AUTO"):
        return True
    return type(value).__name__.endswith("Mesh") and bool(getattr(value, "empty", False))


def array_text(value: Any) -> str:
    """A number as ``2.0``, a small array as a list, a larger one by its hash; PRNG keys by their type alone."""
    try:
        array = np.asarray(value)
    except TypeError:
        return f"{value.dtype}{list(value.shape)}"  # NumPy has no PRNG keys
    if array.ndim == 0:
        return str(array.item())
    kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    if array.size <= MOST_ELEMENTS and array.dtype != object:
        return f"{array.tolist()}:{kind}"
    return f"{kind} SHA-256 {_hash(array.tobytes())}"


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):  # before the numbers: an IntEnum is one, and its number says less
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, complex, bytes)):
        return repr(value)
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and not _PLACE.search(value) else repr(_without_places(value))
    if isinstance(value, (tuple, list, Mapping, Set)):
        return _container(value)
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, functools.partial):
        bound = [*map(_text, value.args), *(f"{name}={_text(part)}" for name, part in value.keywords.items())]
        return f"partial({', '.join([_text(value.func), *bound])})"
    if isinstance(name := getattr(value, "__name__", None), str):
        return name
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return array_text(value)
    return _without_places(str(value))


def _container(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_text(key)}: {_text(part)}" for key, part in value.items())) + "}"
    if isinstance(value, Set):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"  # as texts: the elements may have no order
    if hasattr(value, "_fields") and "__str__" in vars(type(value)):
        return _without_places(str(value))
    if hasattr(value, "_fields"):
        named = (f"{name}={_text(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({', '.join(named)})"
    parts = ", ".join(map(_text, value))
    if isinstance(value, list):
        return f"[{parts}]"
    return f"({parts},)" if len(value) == 1 else f"({parts})"


def _without_places(text: str) -> str:
    """The text that a class prints of itself, without what differs between processes and machines."""
    text = _PLACE.sub("<file>", _ADDRESS.sub("", _OBJECT.sub(r"\1", text)))
    text = _PLAIN_SET.sub(lambda match: "{" + ", ".join(sorted(re.split(r",\s*", match[1]))) + "}", text)
    return " ".join(text.split())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
