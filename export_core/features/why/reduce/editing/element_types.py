"""JAX's names of the element types of MLIR. Imports nothing, so that both ends of the editing program have it."""

_DTYPES = {
    "i1": "bool",
    "bf16": "bfloat16",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{sign}i{bits}": f"{word}int{bits}" for sign, word in (("", ""), ("u", "u")) for bits in (2, 4, 8, 16, 32, 64)},
}


def dtype_of(element: str) -> str:
    """JAX's name of an element type of MLIR: the narrow floats by their letters, such as f8E4M3FN."""
    if element in _DTYPES:
        return _DTYPES[element]
    letters = element.lstrip("f").lower()
    bits, _, form = letters.partition("e")
    return f"float{bits}_e{form}"
