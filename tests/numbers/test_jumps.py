"""Elements that jump: found by moves of 64 units, beside those that are only more sensitive than was seen."""

from __future__ import annotations

import numpy as np
import pytest

from export_core.goldens.arrays import leaf_of
from export_core.numbers.noise import (
    JUMPS,
    PART,
    SMOOTH,
    ULPS,
    noise_and_jumps,
    noise_with_floors,
)

ONES = np.ones(4, np.float32)
UNIT = float(noise_with_floors(ONES, np.zeros(4), "float32")[0])


def of(values, near, far):
    return noise_and_jumps(leaf_of(np.asarray(values)), np.asarray(near, float), np.asarray(far, float), "")


def test_an_element_that_moves_in_proportion_has_the_noise_of_one_unit():
    noise, jumping = of(ONES, [0, 0, 0, 0], [ULPS * 3 * UNIT, 0, 0, 0])
    assert jumping == 0
    assert noise == pytest.approx([3 * UNIT, 0, 0, 0])


def test_what_single_units_have_shown_stays():
    assert of(ONES, [1e-3, 0, 0, 0], [ULPS * UNIT, 0, 0, 0])[0].tolist() == [1e-3, 0, 0, 0]


@pytest.mark.parametrize(("times", "jumping"), [(SMOOTH, 0), (JUMPS, 0), (JUMPS * 1.1, 1)])
def test_an_element_that_moves_out_of_proportion_jumps(times, jumping):
    noise, found = of(ONES, [0, 0, 0, 0], [ULPS * times * UNIT, 0, 0, 0])
    assert found == jumping
    expected = {SMOOTH: times * UNIT, JUMPS: 0.0}.get(times, PART * ULPS * times * UNIT)
    assert noise[0] == pytest.approx(expected)


def test_all_that_jump_are_judged_by_what_they_jump_by():
    """A run may show a small jump of an element that has larger ones."""
    noise, jumping = of(ONES, [0, 0, 0, 0], [1.0, 0.1, 0, 0])
    typical = np.sqrt((1.0**2 + 0.1**2) / 2)
    assert jumping == 2
    assert noise == pytest.approx([PART * 1.0, PART * typical, 0, 0])


def test_an_integer_jumps_when_it_ever_moved():
    noise, jumping = of(np.asarray([3, 3, 3]), [0, 2, 0], [0, 0, 4])
    assert jumping == 2
    typical = np.sqrt((2.0**2 + 4.0**2) / 2)
    assert noise == pytest.approx([0, PART * typical, PART * 4])


@pytest.mark.parametrize("missing", ["near", "far", "both"])
def test_an_output_that_must_be_equal_has_no_noise_and_no_jumps(missing):
    near, far = (None if missing in (name, "both") else np.ones(4) for name in ("near", "far"))
    assert noise_and_jumps(leaf_of(ONES), near, far, "") == (None, 0)


def test_jumps_are_told_from_noise_by_the_documented_factors():
    assert (ULPS, SMOOTH, JUMPS, PART) == (64, 16, 128, 0.5)
