"""What elements that differ have in common: another sign, a factor, an offset, other places of the same array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from export_core.goldens.arrays import Array
from export_core.numbers.moved import other_orders, other_places
from export_core.numbers.places import ENOUGH_BITS, FIXED_PATTERN_BITS, MOST_BITS, NEARLY_ALL, Pattern, Places, claim

_FREE_NUMBER_BITS = 20.0  # what a factor or an offset costs that is fitted to the elements


def pattern_of(places: Places) -> str:
    """The pattern that explains the elements that differ, as text; empty where none does."""
    errors = np.abs(places.got - places.want)
    if np.median(errors / np.abs(places.want)) <= places.close:  # rounding, which many patterns fit
        return ""
    best = Pattern("")
    for pattern in _patterns(places):
        if pattern.share > best.share:
            best = pattern
        if best.share == 1.0:
            return best.text
    if not best.text and places.expected.ndim and places.vary:
        best = next((pattern for pattern in other_orders(places) if pattern.share), best)
    return best.text


def _patterns(places: Places) -> Iterator[Pattern]:
    """The patterns that one number describes, with a share of 0 where they are not claimed.

    Simple ones first: the first of equals is taken.
    """
    yield _zeros(places)
    if not places.vary:
        return
    yield claim(places, "the elements that differ have the wrong sign", -places.want, cost=FIXED_PATTERN_BITS)
    if places.want.dtype.kind == "c":
        yield claim(
            places, "the elements that differ are complex conjugates", np.conj(places.want), cost=FIXED_PATTERN_BITS
        )
    if places.want.size > 2:
        yield from _factors(places)
        yield from _offsets(places)
        if places.expected.ndim:
            yield from other_places(places)


def _zeros(places: Places) -> Pattern:
    # Exactly 0 is no chance in floats; an integer has few values that it can be.
    bits = MOST_BITS if places.eps else np.log2(np.abs(places.want) + 1).mean()
    share = float((places.got == 0).mean())
    denormal = (np.abs(places.want) < places.tiny).all()
    text = "denormals flushed to zero" if denormal else "the elements that differ are zero"
    return Pattern(text, share if share >= NEARLY_ALL and bits * places.want.size >= ENOUGH_BITS else 0.0)


def _factors(places: Places) -> Iterator[Pattern]:
    # The elements that are large beside what is allowed have the exact ratios.
    precise = np.abs(places.want) / places.allowed
    chosen = (precise >= np.median(precise)) & (places.want != 0)
    if not chosen.any():
        return
    factor = _median(places.got[chosen] / places.want[chosen])
    for number, cost in [(_simple(factor), FIXED_PATTERN_BITS), (factor, _FREE_NUMBER_BITS)]:
        if number is not None and number not in (0, -1):
            allowed = places.allowed * max(1.0, abs(number))
            text = f"a constant factor of {number:.6g}"
            yield claim(places, text, number * places.want, cost=cost, allowed=allowed)


def _simple(factor: complex) -> float | None:
    """The small whole number, or one divided by such a number, that a factor is close to."""
    for value, invert in ((factor, False), (1 / factor if factor else 0.0, True)):
        whole = round(value.real) if abs(value) < 1e4 else 0
        if whole not in (0, 1) and abs(value - whole) <= 1e-3 * abs(value):
            return 1 / whole if invert else float(whole)
    return None


def _offsets(places: Places) -> Iterator[Pattern]:
    offset = _median(places.got - places.want)
    cost = _FREE_NUMBER_BITS if places.eps else FIXED_PATTERN_BITS
    yield claim(places, f"a constant offset of {offset:.6g}", places.want + offset, cost=cost)


def _median(values: Array) -> complex:
    if values.dtype.kind == "c":
        return complex(np.median(values.real), np.median(values.imag))
    return float(np.median(values))
