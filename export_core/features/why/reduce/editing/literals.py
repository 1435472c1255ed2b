"""Arrays as Python writes them, bit for bit: constants of a module, arguments of a program."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

SMALL = 16
"""Elements that an array may have to be written in full; one of equal elements may have any number."""

Array = np.ndarray[Any, np.dtype[Any]]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """A dtype by JAX's name. Raises `TypeError` where ml_dtypes lacks it."""
    return np.dtype(getattr(ml_dtypes, name, name))


def dtype_text(name: str) -> str:
    """A dtype as it is written: NumPy's own, or one of jnp."""
    return f"jnp.{name}" if hasattr(ml_dtypes, name) else "np.bool_" if name == "bool" else f"np.{name}"


def array_text(array: Array) -> str:
    """The expression that makes an array; empty where it is large, or has a NaN that cannot be written."""
    size, name = array.itemsize, array.dtype.name
    data = array.tobytes()
    if array.size and array.ndim and data == data[:size] * array.size:
        text = f"np.full({array.shape}, {_element(array.flat[0], name)}, {dtype_text(name)})"
    elif array.size <= SMALL:
        text = f"np.array({_nested(array, name)}, {dtype_text(name)})"
        text += f".reshape({array.shape})" if not array.size else ""
    else:
        return ""
    made = eval(text, {"np": np, "jnp": ml_dtypes})
    return text if made.tobytes() == data else ""


def dense_elements(text: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements in the text of MLIR's `dense<TEXT>`, which has one for all or each of them."""
    wanted = numpy_dtype(dtype)
    part = np.empty(0, wanted).real.dtype if dtype.startswith("complex") else wanted
    words = re.findall(r"[-+.\w]+", text)
    elements = np.array([_part(word, part) for word in words], part).view(wanted)
    return np.full(shape, elements[0], wanted) if elements.size == 1 else elements.reshape(shape)


def _part(word: str, dtype: np.dtype[Any]) -> Any:
    if word in ("true", "false"):
        return word == "true"
    if word.startswith("0x"):  # the bits of a number that has no decimal form
        return np.array(int(word, 16), f"u{dtype.itemsize}").view(dtype)[()]
    return float(word) if re.search(r"float", dtype.name) else int(word)


def _nested(array: Array, name: str) -> str:
    if not array.ndim:
        return _element(array[()], name)
    return f"[{', '.join(_nested(part, name) for part in array)}]"


def _element(value: Any, name: str) -> str:
    if name == "bool":
        return str(bool(value))
    if "int" in name:
        return str(int(value))
    if name.startswith("complex"):
        return f"complex({_element(value.real, 'float')}, {_element(value.imag, 'float')})"
    return re.sub(r"(nan|inf)", r"np.\1", repr(float(value)))
