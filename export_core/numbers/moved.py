"""Elements that have the values of other places of the same array: transposed, shifted, in another order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from export_core.goldens.arrays import Array
from export_core.numbers.places import ENOUGH_BITS, FIXED_PATTERN_BITS, MOST_BITS, Indices, Pattern, Places, claim

_MOST_ROWS = 1 << 14
_MOST_SORTED = 1 << 17
_COLUMNS = 8


def other_places(places: Places) -> Iterator[Pattern]:
    """Patterns in which each element is that of another place."""
    shape = places.expected.shape
    for one, other in itertools.combinations(range(len(shape)), 2):
        if shape[one] == shape[other] > 1:
            order = list(range(len(shape)))
            order[one], order[other] = other, one
            text = "transposed" if len(shape) == 2 else f"axes {one} and {other} exchanged"
            yield _moved(places, text, FIXED_PATTERN_BITS, partial(_reordered, order))
    for axis, size in enumerate(shape):
        if size > 2:
            backwards = np.arange(size)[::-1]
            yield _moved_along(places, f"reversed along axis {axis}", FIXED_PATTERN_BITS, axis, backwards)
            yield from _shifts(places, axis)


def _reordered(axes: Sequence[int], at: Indices) -> Indices:
    return tuple(at[axis] for axis in axes)


def _moved(places: Places, text: str, cost: float, source_of: Callable[[Indices], Indices]) -> Pattern:
    """Elements that have the values of other places; so do nearly all that do not differ, which would be elsewhere."""
    for at in (places.others, places.at):
        # An index of -1 is that of no place: beyond an edge.
        source = source_of(at)
        valid = np.all([index >= 0 for index in source], axis=0)
        predicted = places.expected[source]
        valid &= np.isfinite(predicted)
        predicted = np.where(valid, predicted, 0)
        allowed = np.zeros(valid.shape) if places.eps else np.full(valid.shape, 0.5)
        if places.limit is not None:
            allowed = np.maximum(places.limit[at], places.limit[source])
        if at is places.others:
            errors = np.abs(places.actual[at] - predicted)[valid]
            close = np.maximum(allowed, places.close * np.abs(predicted))[valid]
            if np.count_nonzero(errors > close) > 0.1 * errors.size:
                return Pattern(text)
    return claim(places, text, predicted, cost=cost, allowed=allowed, valid=valid)


def _moved_along(places: Places, text: str, cost: float, axis: int, origin: Array) -> Pattern:
    return _moved(places, text, cost, lambda at: (*at[:axis], origin[at[axis]], *at[axis + 1 :]))


def _origins(places: Places, axis: int) -> tuple[int, Array]:
    """For each index of an axis the index whose expected values are nearest to what is there now.

    Of an axis that is very long only a part, which starts at the first number.
    """
    size = places.expected.shape[axis]
    start = int(np.clip(np.median(places.at[axis]) - _MOST_ROWS // 2, 0, max(size - _MOST_ROWS, 0)))
    columns = np.linspace(0, places.want.size - 1, _COLUMNS).astype(np.int64)
    rows = slice(start, start + _MOST_ROWS)
    index: tuple[Any, ...] = (rows, *(there[columns] for number, there in enumerate(places.at) if number != axis))

    def numbers(values: Array) -> Array:
        chosen = np.moveaxis(values, axis, 0)[index]
        chosen = np.where(np.isfinite(chosen), chosen, 0).reshape(len(chosen), -1)
        return chosen.real + 0.7 * chosen.imag  # as good as both for telling rows apart

    expected, actual = numbers(places.expected), numbers(places.actual)
    scale = np.abs(expected).max(axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, expected.shape[1]) / np.where(scale > 0, scale, 1.0)
    keys, wanted = expected @ weights, actual @ weights
    order = np.argsort(keys, kind="stable")
    above = np.clip(np.searchsorted(keys[order], wanted), 0, len(keys) - 1)
    below = np.maximum(above - 1, 0)
    nearer = np.abs(keys[order[below]] - wanted) < np.abs(keys[order[above]] - wanted)
    return start, order[np.where(nearer, below, above)]


def _shifts(places: Places, axis: int) -> Iterator[Pattern]:
    size = places.expected.shape[axis]
    start, origin = _origins(places, axis)
    rows = np.unique(places.at[axis])
    rows = rows[(rows >= start) & (rows < start + len(origin))] - start
    steps, counts = np.unique((rows - origin[rows]) % size, return_counts=True)
    common = steps[np.argsort(-counts, kind="stable")[:3]].tolist()
    for step in dict.fromkeys([*common, 1, size - 1]):
        if step:
            by = step if step <= size // 2 else step - size
            text, cost = f"shifted by {by} along axis {axis}", float(np.log2(4 * size))
            rotated = np.roll(np.arange(size), by)
            yield _moved_along(places, text, cost, axis, rotated)
            # As a shift: its edge is something else.
            rotated[slice(by) if by > 0 else slice(by, None)] = -1
            yield _moved_along(places, text, cost, axis, rotated)


def other_orders(places: Places) -> Iterator[Pattern]:
    """The values in another order: along an axis, or in any order; then other values of the same axis."""
    elsewhere = []
    for axis, size in enumerate(places.expected.shape):
        if not 1 < size <= _MOST_ROWS:
            continue
        _, origin = _origins(places, axis)
        rows = np.unique(places.at[axis])
        is_order = np.unique(origin[rows]).size == rows.size
        text = "the same values in another order" if is_order else "values of other places"
        cost = len(rows) * float(np.log2(size))
        pattern = _moved_along(places, f"{text} along axis {axis}", cost, axis, origin)
        if is_order:
            yield pattern
        else:
            elsewhere.append(pattern)
    yield _any_order(places)
    yield from elsewhere


def _any_order(places: Places) -> Pattern:
    """Whether the array has the expected values, when both are sorted.

    Two samples of one distribution are alike when they are sorted, so all values must be there, and be nearer than such
    samples are. Bits are counted by the gaps between those that differ, and by how often equal ones are among them.
    """
    count = places.expected.size
    if count > _MOST_SORTED:
        return Pattern("")
    want, got = places.expected.reshape(-1), places.actual.reshape(-1)
    # NaN is sorted last.
    order = np.argsort(want, kind="stable")
    want, got = want[order], np.sort(got)
    near = np.zeros(count)
    if places.eps:
        limit = places.close * np.abs(want) if places.limit is None else places.limit.reshape(-1)[order]
        near = np.minimum(limit, 0.01 * np.std(want[np.isfinite(want)]) / np.sqrt(count))
    if not ((np.abs(want - got) <= near) | (want == got) | (np.isnan(want) & np.isnan(got))).all():
        return Pattern("")
    moved = np.sort(places.want)
    smallest = np.maximum(np.max(near), places.close * np.abs(moved[1:])) if places.eps else 0.5
    gaps = np.abs(np.diff(moved))
    apart = gaps > (2 * smallest if places.eps else 0)
    bits = np.log2(np.clip(gaps / smallest, 1.0, 2**MOST_BITS))[apart].sum()
    sizes = np.diff(np.concatenate([[0], np.flatnonzero(apart) + 1, [moved.size]]))
    bits += 0.5 * np.log2(2 * np.pi * sizes[sizes > 1]).sum() if apart.any() else 0.0
    return Pattern("the same values in another order", 1.0 if bits >= ENOUGH_BITS else 0.0)
