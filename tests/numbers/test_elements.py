"""Distances in units in the last place (ulp), and digests of the bits of outputs."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.base.tolerances import FLOATS
from export_core.goldens.arrays import from_npz, key_leaf, leaf_of, to_npz
from export_core.numbers.elements import bits_of, bits_of_calls, ulp_distance

REAL = [name for name in FLOATS if "complex" not in name]
SMALL = [name for name in REAL if name not in ("float32", "float64")]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def kind(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def numbers_of(name):
    """Return every finite number of a narrow dtype in order, with one zero."""
    dtype = kind(name)
    bits = np.arange(2 ** ml_dtypes.finfo(dtype).bits).astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = bits.astype(np.float64)
    return np.unique(values[np.isfinite(values)]).astype(dtype)


@pytest.mark.parametrize("name", SMALL)
def test_a_distance_counts_the_steps_between_narrow_numbers(name):
    numbers = numbers_of(name)
    positions = np.arange(len(numbers))
    assert (ulp_distance(numbers[:-1], numbers[1:]) == 1).all()
    for start in (0, len(numbers) // 2, len(numbers) - 1):
        one = np.full(len(numbers), numbers[start])
        assert (ulp_distance(one, numbers) == np.abs(positions - start)).all()
        assert (ulp_distance(numbers, one) == np.abs(positions - start)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_neighbours_are_one_apart_and_distances_symmetric(dtype, data):
    width = 32 if dtype is np.float32 else 64
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width)
    one, other = np.array(data.draw(numbers), dtype), np.array(data.draw(numbers), dtype)
    with np.errstate(over="ignore"):
        following = np.nextafter(one, dtype(np.inf))
    assert ulp_distance(one, following) == 1
    assert ulp_distance(one, one) == 0
    assert ulp_distance(one, other) == ulp_distance(other, one)
    assert (ulp_distance(one, other) == 0) == (one == other)


@given(FINITE, FINITE, FINITE)
def test_distances_via_a_number_in_between_add_up(one, other, third):
    low, middle, high = (np.array(value) for value in sorted((one, other, third)))
    assert int(ulp_distance(low, high)) == int(ulp_distance(low, middle)) + int(ulp_distance(middle, high))


def test_zeros_are_equal_and_their_neighbours_two_apart():
    smallest = np.finfo(np.float32).smallest_subnormal
    one, other = np.array([0.0, -smallest], np.float32), np.array([-0.0, smallest], np.float32)
    assert ulp_distance(one, other).tolist() == [0, 2]


def test_the_largest_distance_does_not_overflow():
    largest = np.finfo(np.float64).max
    assert int(ulp_distance(np.array(-largest), np.array(largest))) == 2 * (0x7FF0000000000000 - 1)


@pytest.mark.parametrize(("dtype", "part"), [(np.complex64, np.float32), (np.complex128, np.float64)])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_complex_distance_is_that_of_the_worse_part(dtype, part, shape):
    one = np.full(shape, 1 + 2j, dtype)
    near = part(1).view(f"i{part().itemsize}")
    other = np.full(shape, (near + 3).view(part) + 1j * np.nextafter(part(2), part(3)), dtype)
    found = ulp_distance(one, other)
    assert found.shape == shape
    assert (found == 3).all()


# --- digests ----------------------------------------------------------------------------------------------------------

HALVES = np.array([[1.5, -2.0, 0.0]], np.float32)


def digest(*arrays: object) -> bytes:
    return bits_of([leaf_of(array) for array in arrays])


@pytest.mark.parametrize(
    "other",
    [
        (HALVES[:, ::-1],),
        (HALVES.T,),
        (HALVES.astype(np.float64),),
        (HALVES.view(np.uint32),),
        (HALVES, HALVES[:0]),
        (),
        (np.copysign(HALVES, [[1, -1, -1]]).astype(np.float32),),
    ],
    ids=["order", "shape", "dtype", "kind", "one more", "none", "sign of a zero"],
)
def test_different_outputs_have_different_digests(other):
    assert digest(*other) != digest(HALVES)
    quiet, nan = (np.array(bits, np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert digest(quiet) != digest(nan)


def test_a_digest_does_not_depend_on_memory_layout():
    assert digest(np.asfortranarray(np.tile(HALVES, (3, 1)))) == digest(np.tile(HALVES, (3, 1)))


def test_a_digest_depends_on_where_outputs_are_split():
    assert digest(HALVES[0, :1], HALVES[0, 1:]) != digest(HALVES[0, :2], HALVES[0, 2:])


def test_storing_outputs_in_a_file_preserves_their_digest():
    leaves = [leaf_of(np.zeros((2, 0), ml_dtypes.bfloat16)), leaf_of(np.complex64(1j)), leaf_of(np.array([True]))]
    leaves.append(key_leaf("key<fry>", np.arange(2, dtype=np.uint32)))
    assert bits_of(from_npz(to_npz(leaves))) == bits_of(leaves)


def test_calls_without_outputs_have_no_digest():
    assert bits_of_calls([]) == ""
    assert len({bits_of_calls([b"a", b"b"]), bits_of_calls([b"b", b"a"]), bits_of_calls([b"a"])}) == 3
