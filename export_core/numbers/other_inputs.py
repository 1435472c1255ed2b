"""Inputs that differ from those of a golden but are of the same kind, and the runs with them.

Floats are in the range of the given ones, integers and booleans are drawn from among them, PRNG keys are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Leaf
from export_core.goldens.arrays import KEYS, Array
from export_core.numbers.elements import to_double

OTHERS = 16  # The most runs in which all inputs are replaced by others of the same kind.
SHRINK = (2.0**-6, 2.0**-12, 2.0**-20)  # Factors for runs with smaller numbers, in which outputs are not saturated.
MOST_ALONE = 32  # The most groups of inputs that change alone; a group is a single input if there are few.
MOST_ROUNDS = 6  # The most times that each input changes alone.
FEWEST = 4  # How many runs are made even if the arrays are large.

FEW_VALUES = 8  # Integers with at most this many different values stay when numbers are made smaller.
SAMPLE = 1 << 12  # Elements by which the different values of an array are counted.
KEY_SIZES = ((2,), (4,))  # Shapes of uint32 arrays that are taken for PRNG keys of the old form.

InputsKind = Literal["other", "small", "alone"]


@dataclass(frozen=True)
class OtherRun:
    """A run of a golden's program in which some inputs differ from those of the golden."""

    name: str  # The name of its variant.
    kind: InputsKind
    changed: tuple[int, ...]  # The numbers of the inputs that differ from the golden's.

    @property
    def is_alone(self) -> bool:
        """Whether the run shows the effect of a single input, or of a single group of inputs."""
        return self.kind == "alone" or len(self.changed) == 1


def other_runs(inputs: Sequence[Leaf], used: Sequence[int], most: int) -> Iterator[tuple[OtherRun, Sequence[Leaf]]]:
    """Yield descriptions of runs with changed inputs of a golden, each with the inputs of the run.

    There are at most `most` runs, or `FEWEST` if that is more. Only the inputs that the program takes are changed, at
    the indexes `used`.
    """
    used = [number for number in used if inputs[number].data.size and inputs[number].dtype != "float0"]
    groups = [group.tolist() for group in np.array_split(np.asarray(used, int), min(len(used), MOST_ALONE) or 1)]
    most = max(most, FEWEST)
    others, small = min(OTHERS, most - 1), min(len(SHRINK), max(most - OTHERS, 1))
    # Several times where there are few inputs: a single change may have no effect by chance.
    rounds = min((most - others - small) // max(len(groups), 1), max(MOST_ALONE // max(len(groups), 1), 1), MOST_ROUNDS)

    def run(kind: InputsKind, name: str, change: Mapping[int, Leaf]) -> tuple[OtherRun, Sequence[Leaf]]:
        changed = {number: leaf for number, leaf in change.items() if not same(leaf, inputs[number]).all()}
        leaves = [changed.get(number, leaf) for number, leaf in enumerate(inputs)]
        return OtherRun(name, kind, tuple(changed)), leaves

    for turn in range(others):
        yield run("other", f"other {turn}", {number: _other(inputs[number], turn, number) for number in used})
    for turn in range(small):
        yield run("small", f"small {turn}", {number: _smaller(inputs[number], SHRINK[turn]) for number in used})
    for turn in range(rounds):
        for index, group in enumerate(groups):
            change = _changed if turn < 2 else _other
            leaves = {number: change(inputs[number], turn, number) for number in group}
            yield run("alone", f"alone {turn} {index}", leaves)


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def _other(leaf: Leaf, turn: int, seed: int) -> Leaf:
    """Return a leaf with other elements, in the range of those in `leaf` and with their signs.

    A leaf with the same value in all elements may be a mask or padding. It is returned unchanged if the value is zero,
    an integer or a boolean.

    Each turn changes a leaf in another way, since no change suits every function: a count does not depend on the order
    of numbers, a correlation does not depend on their size, and few changes preserve that a matrix is positive
    definite.
    """
    random = np.random.default_rng([turn, seed])
    if _is_key(leaf):
        return Leaf(leaf.dtype, random.integers(0, 1 << 32, leaf.data.shape, np.uint32))
    if leaf.data.size == 1:
        return _other_scalar(leaf, turn)
    if leaf.dtype not in FLOATS:
        return _drawn(leaf, random, again=turn % 2 == 1)
    values = to_double(leaf.numpy())
    if not np.isfinite(values).any() or not values.any():
        return leaf
    factors = random.uniform(0.5, 0.9, values.shape)
    recipe = ("scaled", "mixed", "permuted", "drawn")[turn % 4]
    if recipe == "scaled":
        return _as(leaf, values * random.uniform(0.5, 0.9))
    if has_one_value(values):
        return _as(leaf, values * factors)
    if _is_symmetric(values):
        # Rows and columns in one order, and sums of two such matrices: it stays symmetric, and positive definite.
        order = random.permutation(values.shape[-1])
        turned = values[..., order, :][..., order]
        part = {"mixed": 0.3, "drawn": 0.7}.get(recipe, 1.0)
        return _as(leaf, values + part * (turned - values) if np.isfinite(values).all() else turned)
    if recipe == "mixed" and not _has_two_values(values):
        partner = random.permutation(values.reshape(-1)).reshape(values.shape)
        with np.errstate(invalid="ignore"):
            mixed = values + (factors - 0.4) * (partner - values)
        return _as(leaf, np.where((partner != 0) & np.isfinite(mixed), mixed, values))
    drawn = _drawn(leaf, random, again=recipe == "drawn")
    if (
        recipe == "drawn"
        and values.dtype.kind != "c"
        and values.min() < 0 < values.max()
        and not _has_two_values(values)
    ):
        return _as(leaf, -to_double(drawn.numpy()))
    return drawn


def _other_scalar(leaf: Leaf, turn: int) -> Leaf:
    """Return a different number for a leaf of one element.

    A float is multiplied by a factor near 1, an integer becomes a neighbour, a boolean its opposite.
    """
    if leaf.dtype == "bool":
        return Leaf(leaf.dtype, leaf.data ^ (turn % 2 == 0))
    if leaf.dtype in FLOATS:
        values = to_double(leaf.numpy())
        factor = (0.75, 0.5, 1.25, 0.9)[turn % 4]
        return _as(leaf, values * factor if values.any() else values + (0.0, 0.5)[turn % 2])
    return _next_integer(leaf, down=turn % 2 == 0)


def _next_integer(leaf: Leaf, *, down: bool) -> Leaf:
    """Return a leaf whose elements are all the integer before or after its first element, with the same sign."""
    values = leaf.numpy()
    first = int(values.reshape(-1)[0])
    smallest, largest = limits(leaf.dtype)
    step = -1 if first < 0 or (down and first > 1) else 1
    step = step if smallest <= first + step <= largest else -step
    return Leaf(leaf.dtype, np.full_like(values, first + step).view(leaf.data.dtype))


def limits(dtype: str) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type."""
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _drawn(leaf: Leaf, random: np.random.Generator, *, again: bool) -> Leaf:
    """Return a leaf with its elements in another order or, if `again` is true, drawn from them so that some repeat."""
    flat = leaf.data.reshape(-1)
    return Leaf(leaf.dtype, (random.choice(flat, flat.size) if again else random.permutation(flat)).reshape(leaf.shape))


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def _smaller(leaf: Leaf, factor: float) -> Leaf:
    """Return a leaf with its numbers multiplied by `factor`, which is less than 1.

    Scalars are returned unchanged, since other numbers may be divided by them. So are integers with few different
    values.
    """
    if leaf.data.size == 1 or leaf.dtype == "bool" or leaf.dtype in KEYS:
        return leaf
    if leaf.dtype in FLOATS:
        return _as(leaf, to_double(leaf.numpy()) * factor)
    values = leaf.numpy()
    if len(np.unique(values.reshape(-1)[:SAMPLE].astype(_wide(leaf.dtype)))) <= FEW_VALUES:
        return leaf
    return Leaf(leaf.dtype, np.trunc(values.astype(np.float64) * factor).astype(values.dtype).view(leaf.data.dtype))


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def _changed(leaf: Leaf, turn: int, seed: int) -> Leaf:
    """Return a leaf in which each element is changed so much that all that depends on the leaf should change too."""
    random = np.random.default_rng([100 + turn, seed])
    if _is_key(leaf):
        return Leaf(leaf.dtype, random.integers(0, 1 << 32, leaf.data.shape, np.uint32))
    if leaf.dtype == "bool":
        return Leaf(leaf.dtype, ~leaf.data)
    if leaf.dtype in FLOATS:
        values = to_double(leaf.numpy())
        size = np.abs(np.where(np.isfinite(values), values, 0.0)).max() or 1.0
        factors = (-2.0, 0.01)[turn] if values.size == 1 else random.choice((-2.0, 0.01, 3.0), values.shape)
        with np.errstate(invalid="ignore"):
            return _as(leaf, np.where(values == 0, size * np.sign(factors), values * factors))
    values, places = np.unique(leaf.numpy().astype(_wide(leaf.dtype)), return_inverse=True)
    if len(values) == 1:
        return _next_integer(leaf, down=turn == 1)
    # Each number becomes the next larger one that occurs.
    following = np.roll(values, -1)[places.reshape(leaf.shape)].astype(leaf.numpy().dtype)
    return Leaf(leaf.dtype, following.view(leaf.data.dtype))


def _wide(dtype: str) -> str:
    return "uint64" if dtype.startswith("u") else "int64"


def _as(leaf: Leaf, values: Array) -> Leaf:
    """Return values in double precision as a leaf that has the dtype of `leaf`."""
    with np.errstate(all="ignore"):
        return Leaf(leaf.dtype, np.asarray(values, leaf.numpy().dtype).view(leaf.data.dtype))


def _is_key(leaf: Leaf) -> bool:
    return leaf.dtype in KEYS or (leaf.dtype == "uint32" and leaf.shape in KEY_SIZES)


def _is_symmetric(values: Array) -> bool:
    square = values.ndim > 1 and values.shape[-1] == values.shape[-2] > 1
    return square and bool(np.allclose(values, values.conj().swapaxes(-1, -2), rtol=1e-3, equal_nan=True))


def has_one_value(values: Array) -> bool:
    """Return whether all elements are equal. NaN equals NaN."""
    flat = values.reshape(-1)
    return bool(equal(flat, flat[:1]).all())


def _has_two_values(values: Array) -> bool:
    """Return whether an array has at most two different values, so that it may be a mask."""
    flat = values.reshape(-1)
    rest = flat[~equal(flat, flat[:1])]
    return not rest.size or has_one_value(rest)


def equal(one: Array, other: Array) -> Array:
    """Return which elements are equal. NaN equals NaN, and the two zeros are equal."""
    with np.errstate(invalid="ignore"):
        return np.asarray((one == other) | ((one != one) & (other != other)))


def same(one: Leaf, other: Leaf) -> Array:
    """Return which elements of two leaves are equal, as `equal` compares them."""
    return equal(one.numpy(), other.numpy())
