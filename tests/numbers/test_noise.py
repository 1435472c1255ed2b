"""Comparison by noise: how it is measured, which elements jump, and which errors it allows."""

import tracemalloc
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export_core.base.tolerances import Tolerance
from export_core.goldens import Comparison, Leaf
from export_core.goldens.arrays import leaf_of
from export_core.numbers import compare, noise
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.elements import ulp_distance
from export_core.numbers.noise import (
    FACTOR,
    FACTOR_OF_INPUTS,
    JUMPS,
    NO_NOISE,
    PART,
    SMOOTH,
    ULPS,
    UNITS,
    CallNoise,
    count_undecided,
    moved_by,
    noise_and_jumps,
    noise_with_floors,
    scale_of,
    spread,
)

FLOATS = hnp.arrays(np.float32, st.integers(0, 8), elements=st.floats(width=32))


def judged(expected, actual, noise, *, compare="allclose", tolerances=None, platforms=("cpu",), **how):
    noises = CallNoise((None if noise is None else np.asarray(noise, np.float64),))
    want, got = (leaf_of(np.asarray(values)) for values in (expected, actual))
    return compare_leaves([want], [got], Rules(Comparison(compare, **how), noises, platforms, tolerances or {}))


def float32(*values):
    return np.asarray(values, np.float32)


@given(FLOATS, st.integers(0, 5))
def test_inputs_move_by_at_most_one_ulp(values, seed):
    moved = moved_by(1, leaf_of(values), np.random.default_rng(seed)).numpy()
    finite = np.isfinite(values)
    assert (ulp_distance(values, moved)[finite] <= 1).all()
    stays = ~finite | (values == 0)
    assert moved[stays].tobytes() == values[stays].tobytes()
    assert np.isfinite(moved[finite]).all()


def test_the_seed_decides_how_inputs_are_moved():
    values = leaf_of(np.linspace(1, 2, 100, dtype=ml_dtypes.bfloat16))
    one, again, other = (moved_by(1, values, np.random.default_rng(seed)).data for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    assert 20 < (one != values.data).sum() < 90
    integers = leaf_of(np.arange(5))
    assert moved_by(1, integers, np.random.default_rng(0)) is integers


def test_the_noise_of_an_element_is_its_largest_move_in_all_runs():
    runs = [[leaf_of(float32(*values))] for values in ((1.0, 2.0, 3.0), (1.5, 2.0, np.inf), (0.75, 2.0, 3.25))]
    (found,) = spread(runs[0], runs[1:])
    assert found.tolist() == [0.5, 0.0, 0.25]
    keys = Leaf("key<fry>", np.arange(6, dtype=np.uint32).reshape(3, 2))
    assert spread([keys], [[keys]]) == (None,), "no number"


def test_a_wrong_sign_beside_a_large_element_is_found():
    """A tolerance relative to the largest element does not find it."""
    expected = float32(1e6, 0.5, -0.25, 0.125)
    wrong = float32(1e6, -0.5, 0.25, -0.125)
    noise = [0.06, 3e-8, 1e-8, 1e-8]
    difference = judged(expected, wrong, noise)
    assert (difference.ok, difference.mismatched) == (False, 3)
    assert judged(expected, wrong, None).ok


def test_rounding_noise_around_zero_passes():
    noise = np.full(256, 8e-9)
    one, other = (np.random.default_rng(seed).normal(0, 4e-9, 256).astype(np.float32) for seed in (0, 1))
    assert judged(one, other, noise).ok
    assert not judged(one, other + np.float32(1e-6), noise).ok


def test_an_element_without_noise_is_lent_noise_only_by_many_others():
    assert judged(float32(0, 1, 1, 1, 1), float32(1e-3, 1, 1, 1, 1), [0.0, 1e-3, 1e-3, 1e-3, 1e-3]).ok
    assert not judged(float32(*[1.0] * 10), float32(1.0, 1.001, *[1.0] * 8), [1e-3, *[0.0] * 9]).ok


@pytest.mark.parametrize(("units", "ok"), [(FACTOR / 2, True), (2 * FACTOR, False)])
def test_an_output_without_noise_may_differ_by_a_few_ulps(units, ok):
    value = np.float32(1.0 + units * np.finfo(np.float32).eps)
    assert judged(float32(1.0), np.asarray([value]), [0.0]).ok is ok


def test_narrow_elements_that_no_noise_run_moved_must_be_equal():
    """One ulp of float4 is half of the value. As noise of every element, it would allow half of each number."""
    expected = np.asarray([1, 2, 4, 6], ml_dtypes.float4_e2m1fn)
    for wrong in (expected.astype(np.float32) / 2, -expected.astype(np.float32), np.zeros(4)):
        assert not judged(expected, wrong.astype(expected.dtype), [0.0] * 4).ok
    assert judged(expected, expected, [0.0] * 4).max_noise_error == 0
    near, far = np.zeros(4), np.array([0, 0, 2.0, 0])  # 64 units turn a 4 into a 6
    noise, jumping = noise_and_jumps(leaf_of(expected), near, far)
    assert jumping == 1
    assert judged(expected, np.asarray([1, 2, 6, 6], expected.dtype), noise).ok
    assert not judged(expected, np.asarray([1, 3, 4, 6], expected.dtype), noise).ok


@pytest.mark.parametrize(
    ("expected", "actual"), [(np.nan, 0.0), (0.0, np.nan), (np.inf, 1.0), (1.0, np.inf), (np.inf, -np.inf)]
)
def test_nan_and_infinity_must_agree_whatever_the_noise(expected, actual):
    difference = judged(float32(expected), float32(actual), [1e30])
    assert (difference.ok, difference.max_noise_error) == (False, np.inf)
    same = judged(float32(expected), float32(expected), [1e30])
    assert (same.ok, same.max_noise_error) == (True, 0)


def test_a_passed_comparison_names_the_tolerance_applied():
    assert judged(float32(1.0), float32(1.0), [0.0]).tolerance == "4 times the noise of each"
    assert judged(float32(1.0), float32(1.0), [0.0], rtol=0.5).tolerance == "rtol 0.5, atol 0.5 (golden)"
    assert judged(float32(1.0), float32(2.0), [0.0], compare="shape").tolerance == "shapes and dtypes"


def test_the_error_is_reported_in_units_of_the_noise():
    difference = judged(float32(1.0, 1.0), float32(1.0, 1.5), [0.01, 0.01])
    assert difference.max_noise_error == pytest.approx(50)
    assert judged(float32(1.0, 1.0), float32(1.0, 2.0), [0.01, 0.01]).max_noise_error == pytest.approx(100)
    assert "max 50 times the noise; allowed 4 times the noise of each)" in str(difference)
    assert "\n  largest error in units of the noise at [1]: expected 1.0, got 1.5" in str(difference)
    assert "\n  largest error at [1]: expected 1.0, got 1.5" in str(judged(float32(1.0, 1.0), float32(1.0, 1.5), None))


@pytest.mark.parametrize(("expected", "actual"), [(0.0, -0.0), (np.nan, -np.nan)])
def test_exact_names_a_differing_element_even_if_its_error_is_zero(expected, actual):
    difference = judged(float32(1.0, expected), float32(1.0, actual), [0.01, 0.01], compare="exact")
    assert (difference.ok, difference.max_noise_error, difference.worst) == (False, 0, difference.rows[0])


OF_FLOAT32 = {"rtol": {"float32": 1e-3}}, {"tolerances": {"cpu": {"float32": Tolerance(rtol=1e-3)}}}


@pytest.mark.parametrize("asked", [{"rtol": 1e-3}, {"atol": 1e-3}, {"ulp": 100}, *OF_FLOAT32])
def test_an_explicit_tolerance_replaces_the_noise(asked):
    off = float32(1.0 + 50 * np.finfo(np.float32).eps)
    assert [judged(float32(1.0), off, [0.0], **how).ok for how in ({}, asked)] == [False, True]
    assert not judged(float32(1.0), float32(1.5), [1.0], **asked).ok


def test_errors_within_the_noise_are_diagnosed_as_rounding():
    difference = judged(float32(1.0, 1.0), float32(1.0, 1.001), [0.001, 0.001], rtol=1e-8, atol=0.0)
    assert not difference.ok
    assert difference.kind == "rounding: within 4 times the noise that the writer measured"
    assert not judged(float32(1.0, 1.0), float32(1.0, 1.1), [0.001, 0.001], rtol=1e-8).kind.startswith("rounding")


def looks_like_rounding(actual, noise=1e-7):
    """Return whether values that should be -7.144494, 2.206535 and 0 bit for bit are said to differ by rounding."""
    difference = judged(float32(-7.144494, 2.206535, 0.0), float32(*actual), [noise] * 3, compare="exact")
    assert not difference.ok
    return difference.kind == "rounding: within 4 times the noise that the writer measured"


@pytest.mark.parametrize("actual", [(-7.1444945, 2.206535, 0.0), (-7.144495, 2.2065353, 1e-8)])
def test_a_few_changed_bits_within_noise_look_like_rounding(actual):
    assert looks_like_rounding(actual)


@pytest.mark.parametrize(
    "actual",
    [(-3.572247, 1.1032675, 0.0), (-7.1444945, 2.2165, 0.0), (-7.1444945, 2.206535, -0.0), (-7.1444945, np.nan, 0.0)],
    ids=["halved", "one is far off", "another zero", "NaN"],
)
def test_changed_bits_beyond_the_noise_are_not_called_rounding(actual):
    assert not looks_like_rounding(actual)


def test_changed_bits_without_measured_noise_are_not_called_rounding():
    difference = judged(float32(-7.144494, 2.206535), float32(-7.1444945, 2.206535), None, compare="exact")
    assert (difference.kind, difference.max_noise_error) == ("", None)


@pytest.mark.parametrize("asked", [{"rtol": {"float64": 1.0}}, {"tolerances": {"cuda": {"float32": Tolerance(1.0)}}}])
def test_a_tolerance_for_another_dtype_does_not_replace_the_noise(asked):
    assert not judged(float32(1.0), float32(1.1), [0.0], **asked).ok


def test_a_comparison_between_platforms_allows_more_noise():
    expected, actual = float32(1.0, 0.5), float32(1.0005, 0.5)
    assert not judged(expected, actual, [0.0, 0.0]).ok
    assert judged(expected, actual, [0.0, 0.0], platforms=("cpu", "cuda")).ok
    assert not judged(expected, float32(1.01, 0.5), [0.0, 0.0], platforms=("cpu", "cuda")).ok


def test_compare_shape_and_exact_ignore_noise():
    others = float32(np.nan), float32(1.0, 2.0), np.float64([1.0])
    assert [judged(float32(1.0), other, [0.0], compare="shape").ok for other in others] == [True, False, False]
    assert not judged(float32(1.0), float32(1.0000001), [1.0], compare="exact").ok


@given(FLOATS, st.floats(0, 1e30))
def test_every_output_agrees_with_itself(values, noise):
    assert judged(values, values, np.full(values.shape, noise)).ok


@given(FLOATS)
def test_the_least_noise_of_a_dtype_never_lowers_measured_noise(values):
    noise = np.abs(np.where(np.isfinite(values), values, 0.0)).astype(np.float64)
    with_floors = noise_with_floors(values, noise, "float32")
    assert (with_floors >= noise).all()
    assert (with_floors > 0).all()


def test_noise_above_a_tenth_of_the_maximum_leaves_elements_undecided():
    def undecided(values, noise):
        return count_undecided(leaf_of(values), np.asarray(noise))

    assert undecided(float32(1.0, -2.0, np.inf, 0), [0.74, 0.05, 0.1, 0.3]) == 2
    assert undecided(float32(1, 1, 1, 1, 1), [0.0, 0.3, 0.3, 0.3, 0.3]) == 5, "lent noise neither"
    assert undecided(float32(0, 0, 0), [0.0, 0.0, 0.0]) == 0, "all runs give zero"
    assert undecided(float32(0, 0, 0), [1e-9, 1e-9, 1e-9]) == 3
    tiny = np.asarray([6e-8, 0], np.float16)
    assert undecided(tiny, [0.0, 0.0]) == 2, "a floor of rounding is as large as denormal numbers"


def test_shared_noise_grows_with_the_number_of_elements():
    """The largest of n draws is about √(2 ln n) standard deviations, here relative to the 34 runs."""

    def judged_by(elements: int) -> float:
        return float(noise_with_floors(np.ones(elements, np.float32), np.ones(elements), "float32")[0])

    assert judged_by(4) == judged_by(34) == 1.0
    assert judged_by(34**2) == pytest.approx(2**0.5)
    assert judged_by(34**4) == pytest.approx(2.0)


def test_a_zero_that_never_moved_may_be_off_by_a_little():
    found = noise_with_floors(float32(8, 0, 0), np.asarray([0, 0, 1e-30]), "float32")
    assert found == pytest.approx([8 * 2**-23 * (1 + 2**-16), 8 * 2**-23 * 2**-16, 1e-30], abs=0)


def test_constants_of_the_noise_rule_are_as_documented():
    assert (FACTOR, FACTOR_OF_INPUTS) == (4, 8)
    assert (ULPS, SMOOTH, JUMPS, PART) == (64, 16, 128, 0.5)
    assert UNITS == ((2.0**-10, 1), (2.0**-7, 0.5), (1, 0))


def test_the_scale_of_outputs_is_their_largest_finite_float():
    arrays = (float32(1, -5, np.inf), float32(2, np.nan), np.asarray([9], np.int32))
    assert [scale_of([leaf_of(array) for array in some]) for some in (arrays, arrays[::-1], arrays[2:])] == [5, 5, 0]


def test_max_noise_error_is_that_of_the_worst_output():
    want, noise = [leaf_of(float32(1, 1))] * 2, np.full(2, 2.0**-10)
    for first, second in ((1, 2), (2, 1), (0, 2), (0, 0)):
        got = [leaf_of(float32(1, 1 + times * 2.0**-10)) for times in (first, second)]
        found = compare_leaves(want, got, Rules(Comparison(), CallNoise((noise, noise))))
        assert found.ok
        assert found.max_noise_error == max(first, second)


def test_only_integers_that_noise_runs_moved_may_differ():
    def integers(*values, noise=(0, 2, 0)):
        return judged(np.asarray((5, 5, 5)), np.asarray(values), noise)

    assert [integers(5, 5, 5).max_noise_error, integers(5, 7, 5).max_noise_error] == [0, 1]
    assert [integers(5, value, 5).ok for value in (13, 14)] == [True, False]
    assert not integers(6, 5, 5).ok
    assert integers(6, 5, 5).max_noise_error == np.inf
    assert integers(5, 6, 5, noise=(0, 1, 0)).ok
    large = np.array([2**60]), np.array([2**60 + 1])  # the same as doubles
    assert not judged(*large, [0]).ok
    assert judged(np.asarray([True, False]), np.asarray([True, True]), [0.0, 0.5]).ok
    assert not judged(np.asarray([True, False]), np.asarray([False, False]), [0.0, 0.5]).ok


# --- elements that jump: found by moves of 64 units -------------------------------------------------------------------

ONES = np.ones(4, np.float32)
UNIT = float(noise_with_floors(ONES, np.zeros(4), "float32")[0])


TYPICAL, OF_INTEGERS = np.sqrt((1.0**2 + 0.1**2) / 2), np.sqrt((2.0**2 + 4.0**2) / 2)


@pytest.mark.parametrize(
    ("near", "far", "expected", "jumping"),
    [
        pytest.param([0, 0], [ULPS * 3 * UNIT, 0], [3 * UNIT, 0], 0, id="moves in proportion"),
        pytest.param([1e-3, 0], [ULPS * UNIT, 0], [1e-3, 0], 0, id="what single units have shown stays"),
        pytest.param([0, 0], [ULPS * SMOOTH * UNIT, 0], [SMOOTH * UNIT, 0], 0, id="smooth"),
        pytest.param([0, 0], [ULPS * JUMPS * UNIT, 0], [0, 0], 0, id="does not jump yet"),
        pytest.param([0, 0], [ULPS * JUMPS * 1.1 * UNIT, 0], [PART * ULPS * JUMPS * 1.1 * UNIT, 0], 1, id="jumps"),
        # A run may show a small jump of an element that has larger ones.
        pytest.param([0, 0, 0], [1.0, 0.1, 0], [PART * 1.0, PART * TYPICAL, 0], 2, id="jump by what all jump by"),
    ],
)
def test_an_element_moved_out_of_proportion_counts_as_jumping(near, far, expected, jumping):
    ones = leaf_of(np.ones(len(near), np.float32))
    found, count = noise_and_jumps(ones, np.asarray(near, float), np.asarray(far, float))
    assert (list(found), count) == (pytest.approx(expected), jumping)


def test_an_integer_that_moved_at_all_counts_as_jumping():
    found, jumping = noise_and_jumps(leaf_of(np.asarray([3, 3, 3])), np.array([0, 2.0, 0]), np.array([0, 0, 4.0]))
    assert (list(found), jumping) == (pytest.approx([0, PART * OF_INTEGERS, PART * 4]), 2)


@pytest.mark.parametrize("missing", ["near", "far", "both"])
def test_an_output_not_measured_in_both_kinds_of_run_has_no_noise(missing):
    near, far = (None if missing in (name, "both") else np.ones(4) for name in ("near", "far"))
    assert noise_and_jumps(leaf_of(ONES), near, far) == (None, 0)


# --- large arrays are compared in pieces ------------------------------------------------------------------------------

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(size=(40, 25)).astype(np.float32)
VALUES[3, :4] = np.nan, np.inf, -np.inf, 0
CLOSE = np.where(np.isfinite(VALUES), np.nextafter(VALUES, np.float32(2)), VALUES)
NOISE = CallNoise((np.abs(RANDOM.normal(size=VALUES.shape)) * 1e-6,))
OFF = VALUES.copy()
OFF[17, 3] += 1

CASES = {
    "equal": (VALUES, VALUES, {"noise": NOISE}),
    "noise": (VALUES, CLOSE, {"noise": NOISE}),
    "no noise at all": (VALUES, CLOSE, {"noise": CallNoise((np.zeros(VALUES.shape),))}),
    "another platform": (VALUES, CLOSE, {"noise": NOISE, "platforms": ("cpu", "tpu")}),
    "default tolerance": (VALUES, CLOSE, {}),
    "ulp": (VALUES, CLOSE, {"comparison": Comparison(ulp=2)}),
    "exact": (VALUES, VALUES, {"comparison": Comparison(compare="exact")}),
    "bfloat16": (VALUES.astype(ml_dtypes.bfloat16), CLOSE.astype(ml_dtypes.bfloat16), {}),
    "integers": (np.arange(1000), np.arange(1000), {}),
    "one is off": (VALUES, OFF, {"noise": NOISE}),
}


def difference(expected, actual, *, comparison=Comparison(), platforms=("cpu", "cpu"), noise=NO_NOISE):  # noqa: B008 - it is frozen
    return compare_leaves([leaf_of(expected)], [leaf_of(actual)], Rules(comparison, noise, platforms))


@pytest.mark.parametrize("name", CASES)
def test_comparing_in_pieces_gives_the_same_difference(name, monkeypatch):
    expected, actual, how = CASES[name]
    whole = difference(expected, actual, **how)
    monkeypatch.setattr(compare, "PIECE", 7)
    monkeypatch.setattr(noise, "PIECE", 7)
    pieces = difference(expected, actual, **how)
    assert replace(pieces, max_noise_error=None) == replace(whole, max_noise_error=None)
    assert pieces.max_noise_error == (whole.max_noise_error and pytest.approx(whole.max_noise_error))
    assert pieces.ok == (name != "one is off")


def test_comparing_large_arrays_needs_little_memory():
    values = RANDOM.random(1 << 22, np.float32)
    how = {"noise": CallNoise((np.full(values.shape, 1e-9),))}
    tracemalloc.start()
    assert difference(values, values.copy(), **how).ok
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * values.nbytes  # of which the copy is one, and the order of the noise two


def test_the_worst_of_the_other_wrong_outputs_is_named():
    want, noise = [leaf_of(float32(1, 1))] * 3, np.full(2, 2.0**-10)
    got = [leaf_of(float32(1, 1 + times * 2.0**-10)) for times in (16, 64, 32)]
    found = compare_leaves(want, got, Rules(Comparison(), CallNoise((noise,) * 3)))
    assert found.others == (
        "also out of tolerance: 2 other outputs, the largest error in output 1 float32[2]: max 64 times the noise"
    )
