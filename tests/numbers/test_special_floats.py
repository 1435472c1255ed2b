"""No function that looks at raw floats warns of signalling NaN, infinities or the largest numbers."""

import itertools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from export_core.base.tolerances import FLOATS
from export_core.goldens import Comparison
from export_core.goldens.arrays import Array, Leaf, count_nan, is_finite, leaf_of, nothing_to_compare
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.noise import CallNoise, count_undecided, moved_by, spread
from export_core.numbers.nothing_compared import other_leaf
from export_core.numbers.other_inputs import other_runs
from export_core.numbers.shows_nothing import Seen

pytestmark = pytest.mark.filterwarnings("error")

WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
EXPONENT = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}
PARTS = {"complex64": "float32", "complex128": "float64"}


def special(dtype: str) -> Array:
    """Return NaN of both kinds, infinities, the largest and the smallest numbers, ones and zeros, each with both signs.

    Of a narrow type all numbers, and of a complex one all pairs.
    """
    if dtype in PARTS:
        parts = special(PARTS[dtype])
        pairs = [(one, other) for one, other in itertools.product(range(parts.size), repeat=2)]
        return parts[np.array(pairs).reshape(-1)].view(dtype)
    meant = np.dtype(getattr(ml_dtypes, dtype, dtype))
    word = WORDS[meant.itemsize]
    if dtype not in EXPONENT:
        return np.arange(16 if "float4" in dtype else 256).astype(word).view(meant)
    width = 8 * meant.itemsize
    mantissa = width - 1 - EXPONENT[dtype]
    infinity, one = ((1 << EXPONENT[dtype]) - 1) << mantissa, ((1 << (EXPONENT[dtype] - 1)) - 1) << mantissa
    words = [infinity + 1, infinity + (1 << (mantissa - 1)), infinity, infinity - 1, 1, one, 0]
    return np.array([word_ + sign for word_ in words for sign in (0, 1 << (width - 1))], word).view(meant)


def compared(leaf: Leaf) -> None:
    ways = [*map(Comparison, ("allclose", "exact")), Comparison(rtol=1e-3), Comparison(rtol=1e300), Comparison(ulp=3)]
    noises = [CallNoise(), *(CallNoise(outputs=(np.full(leaf.shape, noise),)) for noise in (0.0, 1e-3, 1e308))]
    for shift, how, noise in itertools.product((0, 1, 3), ways, noises):
        other = Leaf(leaf.dtype, np.roll(leaf.data, shift))
        found = compare_leaves([leaf], [other], Rules(how, noise, ("tpu",)))
        assert found.ok or shift
        assert str(found)


def measured(leaf: Leaf) -> None:
    (noise,) = spread([leaf], [[Leaf(leaf.dtype, np.roll(leaf.data, 1))]])
    assert noise is not None
    count_undecided(leaf, noise)
    moved_by(64, leaf, np.random.default_rng(0))


def counted(leaf: Leaf) -> None:
    assert not (count_nan([leaf]) and is_finite([leaf]))
    assert not nothing_to_compare([leaf])
    assert other_leaf(leaf).shape == leaf.shape


def shown(leaf: Leaf) -> None:
    scalars = [Leaf(leaf.dtype, leaf.data[number : number + 1].reshape(())) for number in range(leaf.data.size)]
    for inputs in ([leaf], *([scalar] for scalar in scalars[:20])):
        runs = list(other_runs(inputs, [0], 20))
        Seen(inputs, [0], inputs, runs, moved=[inputs], calls=[inputs, scalars[:1]]).remarks()


@pytest.mark.parametrize("look", [compared, measured, counted, shown])
@pytest.mark.parametrize("dtype", FLOATS)
def test_comparing_and_measuring_nan_and_infinity_gives_no_warning(dtype: str, look: Callable[[Leaf], None]) -> None:
    look(leaf_of(special(dtype)))
