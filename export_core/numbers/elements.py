"""Elements of arrays in double precision, their distance in units in the last place, and a digest of their bits."""

import hashlib
from collections.abc import Sequence

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Leaf
from export_core.goldens.arrays import Array, narrow_dtypes

DIGEST_BYTES = 8
"""The length of digests. They are only compared among the readers of one golden: 64 bits are enough."""

NEARLY = 16
"""The most units in the last place between inputs that count as equal, since another processor may compute them."""

_PARTS = {"complex64": "float32", "complex128": "float64"}


def finfo(dtype: str) -> "np.finfo[np.floating]":
    """Return the `np.finfo` of a float type, or the `finfo` of `ml_dtypes` for its narrow types."""
    info: np.finfo[np.floating] = narrow_dtypes().finfo(dtype)
    return info


def to_double(values: Array) -> Array:
    """Return values in double precision, real or complex, so that computing with them adds no significant errors."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def largest(values: Array, axes: int) -> Array:
    """Return the largest finite magnitude over the last `axes` axes, as float64; 0 if no element is finite.

    In the result, these axes have the size 1.
    """
    last = tuple(range(-axes, 0))
    magnitudes = np.abs(np.where(np.isfinite(values), values, 0))
    return np.asarray(magnitudes.max(axis=last, keepdims=True, initial=0.0), np.float64)


def ulp_distance(one: Array, other: Array) -> Array:
    """Return the distances between elements of two arrays of one float dtype in units in the last place, as uint64.

    Neighbours have the distance 1, and the two zeros have the distance 0. The distance of complex numbers is the larger
    distance of their parts. An infinity is the neighbour of the largest number. A distance from NaN has no meaning.
    """
    if one.dtype.name in _PARTS:
        dtype = _PARTS[one.dtype.name]
        parts = [np.ascontiguousarray(values).view(dtype).reshape(*values.shape, 2) for values in (one, other)]
        return np.asarray(ulp_distance(parts[0], parts[1]).max(axis=-1, initial=0))
    (steps, negative), (other_steps, other_negative) = _steps_from_zero(one), _steps_from_zero(other)
    # On one side of zero the distance is the difference of their steps, across zero the sum. Both fit: steps have at
    # most 63 bits.
    same_side = np.maximum(steps, other_steps) - np.minimum(steps, other_steps)
    return np.where(negative == other_negative, same_side, steps + other_steps)


def _steps_from_zero(values: Array) -> tuple[Array, Array]:
    """Return how many representable numbers each element is away from zero, and which have the sign bit set.

    In every format but float8_e8m0fnu, the highest bit is the sign. The other bits, read as an integer, count the
    numbers from zero up, since the exponent is in higher bits than the mantissa.
    """
    bits = np.asarray(values, order="C").view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if values.dtype.name.endswith("fnu"):  # float8_e8m0fnu has powers of two only, and no sign
        return bits, np.zeros(values.shape, np.bool_)
    sign = np.uint64(1 << (finfo(values.dtype.name).bits - 1))  # narrow floats are in the low bits of a byte
    return bits & (sign - np.uint64(1)), (bits & sign) != 0


def in_hex(value: np.generic) -> str:
    """Return the bits of a number as hexadecimal digits, the highest first; of both parts of a complex number."""
    width = value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1)
    return " ".join(f"{int(part):0{2 * width}x}" for part in np.frombuffer(value.tobytes(), f"u{width}"))


def bits_of(leaves: Sequence[Leaf]) -> bytes:
    """Return a digest of the dtypes, shapes and bytes of flat outputs, in order.

    The digest depends on payloads of NaN and on signs of zeros, too.
    """
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for leaf in leaves:
        # The text ends the leaf before it: bytes of one array are never taken for those of the next.
        digest.update(f"{leaf};".encode())
        digest.update(np.ascontiguousarray(leaf.data).data)
    return digest.digest()


def nearly_same(new: Leaf | None, old: Leaf | None) -> bool:
    """Return whether two inputs have the same type, and differ at most in the last digits of floats."""
    if new is None or old is None or str(new) != str(old):
        return False
    if bits_of([new]) == bits_of([old]):
        return True
    if old.dtype not in FLOATS:
        return False
    one, other = new.numpy(), old.numpy()
    return bool(((ulp_distance(one, other) <= NEARLY) | (np.isnan(one) & np.isnan(other))).all())


def bits_of_calls(calls: Sequence[bytes]) -> str:
    """Return one digest, as hexadecimal digits, of the digests of several calls; empty if there are no calls."""
    return hashlib.blake2b(b"".join(calls), digest_size=DIGEST_BYTES).hexdigest() if calls else ""
