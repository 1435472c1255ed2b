"""Distances in units in the last place, counted against every number of the narrow dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.base.tolerances import FLOATS
from export_core.numbers.elements import ulp_distance

REAL = [name for name in FLOATS if "complex" not in name]
SMALL = [name for name in REAL if name not in ("float32", "float64")]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def kind(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def numbers_of(name):
    """Every finite number of a narrow dtype, in order; of two zeros one."""
    dtype = kind(name)
    bits = np.arange(2 ** ml_dtypes.finfo(dtype).bits).astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = bits.astype(np.float64)
    return np.unique(values[np.isfinite(values)]).astype(dtype)


@pytest.mark.parametrize("name", SMALL)
def test_a_distance_counts_the_steps_between_narrow_numbers(name):
    numbers = numbers_of(name)
    places = np.arange(len(numbers))
    assert (ulp_distance(numbers[:-1], numbers[1:]) == 1).all()
    for start in (0, len(numbers) // 2, len(numbers) - 1):
        one = np.full(len(numbers), numbers[start])
        assert (ulp_distance(one, numbers) == np.abs(places - start)).all()
        assert (ulp_distance(numbers, one) == np.abs(places - start)).all()


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
def test_distances_over_a_number_in_between_add_up(one, other, third):
    low, middle, high = (np.array(value) for value in sorted((one, other, third)))
    assert int(ulp_distance(low, high)) == int(ulp_distance(low, middle)) + int(ulp_distance(middle, high))


def test_the_two_zeros_are_equal_and_their_neighbours_two_apart():
    smallest = np.finfo(np.float32).smallest_subnormal
    assert ulp_distance(np.array([0.0, -smallest], np.float32), np.array([-0.0, smallest], np.float32)).tolist() == [
        0,
        2,
    ]


def test_the_ends_of_the_longest_line_do_not_overflow():
    largest = np.finfo(np.float64).max
    assert int(ulp_distance(np.array(-largest), np.array(largest))) == 2 * (0x7FF0000000000000 - 1)


@pytest.mark.parametrize(("dtype", "part"), [(np.complex64, np.float32), (np.complex128, np.float64)])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_complex_numbers_are_as_far_as_their_farther_part(dtype, part, shape):
    one = np.full(shape, 1 + 2j, dtype)
    near = part(1).view(f"i{part().itemsize}")
    other = np.full(shape, (near + 3).view(part) + 1j * np.nextafter(part(2), part(3)), dtype)
    found = ulp_distance(one, other)
    assert found.shape == shape
    assert (found == 3).all()
