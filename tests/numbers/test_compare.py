"""Comparison of outputs with the writer's: what may differ, by how much, and how a difference is reported."""

import math
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from export_core.base.tolerances import COARSE, DEFAULT_RTOL, Tolerance, tolerance_for
from export_core.goldens import Comparison
from export_core.goldens.arrays import key_leaf, leaf_of
from export_core.numbers.compare import Difference, Rule, Rules, compare_leaves

INF, NAN = math.inf, math.nan


def compared(expected, actual, platforms=(), tolerances=None, **how) -> Difference:
    wanted, found = ([leaf_of(array) for array in side] for side in (_listed(expected), _listed(actual)))
    return compare_leaves(wanted, found, Rules(Comparison(**how), platforms=platforms, tolerances=tolerances or {}))


def _listed(arrays_):
    return arrays_ if isinstance(arrays_, (list, tuple)) else [arrays_]


def f32(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("expected", "actual", "problem"),
    [
        (f32(1), [f32(1), f32(2)], "expected 1 output, got 2"),
        ([], f32(1), "expected 0 outputs, got 1"),
        (f32(1), np.array([1.0]), "output 0: expected float32[1], got float64[1]"),
        (f32(1, 2), f32(1), "output 0: expected float32[2], got float32[1]"),
        ([f32(1), f32(2)], [f32(1), np.float32(2)], "output 1: expected float32[1], got float32[]"),
        (np.array([1], np.int8), np.array([1], ml_dtypes.int4), "output 0: expected int8[1], got int4[1]"),
    ],
)
def test_count_dtype_and_shape_of_outputs_must_agree(expected, actual, problem):
    found = compared(expected, actual)
    assert (found.ok, found.problem, str(found)) == (False, problem, problem)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64", "bool", ml_dtypes.int4, ml_dtypes.uint2])
def test_integers_must_be_equal_at_any_tolerance(dtype):
    ones, other = np.array([1, 1, 1], dtype), np.array([1, 0, 1], dtype)
    assert compared(ones, ones).ok
    found = compared(ones, other, rtol=10.0, atol=10.0)
    assert (found.ok, found.mismatched, found.total, found.max_abs_error) == (False, 1, 3, 1.0)
    assert found.worst.index == (1,)


def test_errors_of_integers_beyond_float_precision_are_exact():
    found = compared(np.array([2**62, -(2**63)]), np.array([2**62 + 1, 2**63 - 1]))
    assert (found.ok, found.max_abs_error, found.worst.index) == (False, float(2**64 - 1), (1,))
    found = compared(np.array([2**63], np.uint64), np.array([2**63 + 1], np.uint64))
    assert (found.ok, found.max_abs_error) == (False, 1.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_nan_and_infinity_equal_only_themselves(dtype):
    specials = np.array([NAN, INF, -INF, 1], dtype)
    same = compared(specials, specials)
    assert (same.ok, same.max_abs_error) == (True, 0.0)
    for position, other in [(0, 1), (1, -INF), (1, NAN), (1, 1), (2, INF), (3, NAN), (3, INF)]:
        changed = specials.copy()
        changed[position] = other
        found = compared(specials, changed, rtol=1.0, atol=1.0)
        assert not found.ok, (position, other)
        assert (found.worst.index, found.max_abs_error) == ((position,), INF)


@pytest.mark.parametrize(
    ("expected", "actual", "line"),
    [
        ([1, 2, 3], [1, NAN, NAN], "NaN where a number was expected at 2 places"),
        ([1, NAN, 3], [1, 2, 3], "a number where NaN was expected at 1 place"),
        ([1, 2, 3], [1, INF, -INF], "an infinity where a number was expected at 2 places"),
        ([INF, 1, 1], [1, 1, 1], "a number where an infinity was expected at 1 place"),
        ([INF, 1, INF], [-INF, 1, INF], "another infinity where an infinity was expected at 1 place"),
        ([NAN, 1, 1], [INF, 1, 1], "an infinity where NaN was expected at 1 place"),
        ([INF, 1, 1], [NAN, 1, 1], "NaN where an infinity was expected at 1 place"),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_unequal_nan_and_infinity_are_counted_in_one_line(dtype, expected, actual, line):
    found = compared(np.array(expected, dtype), np.array(actual, dtype), rtol=1e9, ulp=2**40)
    assert (found.ok, found.masks) == (False, (line,))
    assert str(found).splitlines()[1] == f"  {line}"
    assert found.mismatched == sum(str(one) != str(other) for one, other in zip(expected, actual, strict=True))


def test_each_kind_of_nan_or_infinity_is_reported_once():
    assert compared(f32(1, NAN), f32(2, NAN)).masks == ()
    assert len(compared(f32(1, NAN, INF), f32(NAN, 1, -INF)).masks) == 3
    assert compared(f32(1, NAN), f32(NAN, NAN), compare="exact").masks == (
        "NaN where a number was expected at 1 place",
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_nan_and_infinity_equal_only_themselves(dtype):
    specials = np.array([complex(NAN, 1), complex(INF, NAN), complex(INF, -INF), complex(1, -INF), 2j], dtype)
    assert compared(specials, specials).ok
    for position, other in [
        (0, 1),
        (1, 1),
        (2, complex(INF, INF)),
        (2, NAN),
        (3, complex(1, INF)),
        (4, complex(0, INF)),
    ]:
        changed = specials.copy()
        changed[position] = other
        found = compared(specials, changed)
        assert (found.ok, found.mismatched, found.worst.index) == (False, 1, (position,)), (position, other)


@pytest.mark.parametrize("dtype", [*DEFAULT_RTOL, "float8_e4m3fn", "float8_e5m2"])
def test_without_atol_errors_are_relative_to_the_largest_element(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rtol = DEFAULT_RTOL.get(dtype, COARSE)
    for scale in (1.0, 2.0**-6):
        expected = np.array([scale, 0.0]).astype(kind)
        assert compared(expected, np.array([scale, scale * rtol * 0.9]).astype(kind)).ok
        assert not compared(expected, np.array([scale, scale * rtol * 1.5]).astype(kind)).ok


def test_differences_of_small_values_are_found():
    assert not compared(f32(1e-6, 2e-6), f32(1e-6, 3e-6)).ok
    assert not compared(f32(0.0), f32(1e-30)).ok
    assert compared(f32(0.0, INF, NAN), f32(0.0, INF, NAN)).ok, "what is not finite is no measure"


def test_given_tolerances_are_used_and_reported():
    expected, actual = f32(1, 100), f32(1.05, 104)
    assert compared(expected, actual, rtol=0.05, atol=0.0).ok is True
    found = compared(expected, actual, rtol=0.0, atol=1.0)
    assert (found.ok, found.mismatched, found.tolerance) == (False, 1, "rtol 0, atol 1 (golden)")
    assert compared(expected, actual, rtol=0.0, atol=4.0).ok


def test_a_tolerance_for_one_dtype_leaves_other_defaults():
    half = np.array([1.0, 1.0], ml_dtypes.bfloat16)
    expected, actual = [f32(1, 1), half], [f32(1, 1.001), half * half.dtype.type(1.1)]
    assert not compared(expected, actual).ok
    assert compared(expected, actual, rtol={"float32": 1e-2}).output == 1
    assert compared(expected, actual, rtol={"bfloat16": 0.2}).output == 0
    assert compared(expected, actual, rtol={"float32": 1e-2, "bfloat16": 0.2}).ok
    assert compared(expected, actual, atol={"float32": 1e-2, "bfloat16": 0.2}).ok


@pytest.mark.parametrize(
    ("platforms", "ok"), [((), False), (("cpu", "cpu"), False), (("cpu", "tpu"), True), (("tpu", "cpu"), True)]
)
def test_imprecise_platforms_have_a_wider_default_tolerance(platforms, ok):
    assert compared(f32(1, 1), f32(1, 1.005), platforms).ok is ok
    assert not compared(np.array([1.0]), np.array([1.005]), platforms).ok, "float64 is not multiplied so"


def test_the_policys_tolerance_applies_to_its_platform():
    policy = {"tpu": {"float32": Tolerance(rtol=0.1)}, "cpu": {"float32": Tolerance(rtol=0.0, atol=0.0)}}
    far, near = f32(1.05), np.nextafter(f32(1), 2)
    assert compared(f32(1), far, ("cpu", "tpu"), policy).ok
    assert compared(f32(1), far, ("cpu", "tpu"), policy, rtol=1e-6).ok, "the marker was written on another platform"
    assert not compared(f32(1), far, ("cpu", "cpu"), policy).ok
    assert not compared(f32(1), near, ("cpu", "cpu"), policy).ok
    assert not compared(f32(1), near, ("cpu", "tpu"), policy, compare="exact").ok


def test_ulp_alone_replaces_the_default_tolerance():
    one = f32(1.0, 1e-20)
    four = (one.view(np.int32) + 4).view(np.float32)
    assert compared(one, four, ulp=4).ok
    found = compared(one, four, ulp=3)
    assert (found.ok, found.mismatched, found.max_ulp, found.tolerance) == (False, 2, 4, "3 ulp (golden)")
    assert not compared(f32(0.0, 1.0), f32(1e-8, 1.0), ulp=4).ok, "no tolerance relative to the largest element"


def test_a_tolerance_in_ulps_allows_that_many_units():
    step = np.float32(2**-23)
    expected, actual = f32(1, 1, 1), f32(1, 1 + step, 1 + 3 * step)
    rule = Rule("float32", tolerance=tolerance_for("float32", Tolerance(ulp=4)))
    assert rule.compare(expected, actual).limit.tolist() == [0, 4 * step, 4 * step]


def test_an_element_passes_by_ulps_or_by_rtol_and_atol():
    one = f32(1000.0, 0.0)
    assert compared(one, f32(np.nextafter(one[0], 2e3), 1e-8), ulp=1, atol=1e-7).ok
    assert not compared(one, f32(1000.001, 1e-8), ulp=1, atol=1e-7).ok
    found = compared(one, f32(1001, 1), ulp={"float32": 1}, atol=1e-7)
    assert (found.ok, found.tolerance) == (False, "rtol 0, atol 1e-07, or 1 ulp (golden)")
    assert compared(one, f32(1001, 1), ulp={"float64": 1}, rtol=1e-3).ok, "the limit is for another dtype"


def test_max_ulp_counts_only_finite_pairs():
    assert compared(f32(1, INF, NAN), f32(np.nextafter(f32(1), 2)[0], -INF, 1)).max_ulp == 1
    assert compared(f32(NAN), f32(NAN)).max_ulp is None
    assert compared(np.array([1]), np.array([2])).max_ulp is None
    assert compared([f32(1), np.array([1])], [f32(1), np.array([1])]).max_ulp == 0


def test_infinity_is_not_next_to_the_largest_number():
    largest = np.finfo(np.float32).max
    assert not compared(f32(largest), f32(INF), ulp=1).ok
    assert not compared(f32(INF), f32(largest), ulp=1, rtol=0.5).ok


def test_a_difference_shows_how_many_elements_differ_and_by_how_much():
    expected = np.arange(20, dtype=np.float32).reshape(4, 5)
    actual = expected.copy()
    actual[1:3] += np.float32(0.5)
    actual[3, 4] += 7
    found = compared([f32(0), expected], [f32(0), actual])
    assert (found.output, found.of_type, found.mismatched, found.total) == (1, "float32[4,5]", 11, 20)
    assert (found.max_abs_error, found.max_rel_error) == (7.0, pytest.approx(7 / 19))
    assert (found.worst.index, found.worst.expected, found.worst.actual) == ((3, 4), "19.0", "26.0")
    assert [row.index for row in found.rows] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]
    assert str(found).splitlines() == [
        "output 1 float32[4,5]: 11 of 20 elements differ (max abs error 7, max rel error 0.368, max ulp 3670016; "
        "allowed rtol 1e-05, atol 0.00019 (default of float32))",
        "  no pattern: errors of about 6e-02 of the values",
        "  errors in units of what is allowed: ≤1: 9 · >1000: 11",
        "  largest error at [3, 4]: expected 19.0, got 26.0",
        *(f"  first at [1, {i}]: expected {5 + i}.0, got {5.5 + i}" for i in range(5)),
    ]


def test_details_of_a_difference_are_those_of_the_first_wrong_output():
    found = compared([f32(1), f32(1), f32(1)], [f32(1), f32(2), f32(9)])
    assert (found.output, found.max_abs_error, found.worst.actual) == (1, 8.0, "2.0")


def test_each_line_of_a_message_has_the_errors_of_its_own_output():
    found = compared([f32(1, 2), f32(1, 2), f32(100, 2)], [f32(1, 2), f32(1.5, 2), f32(100, 9)])
    first, *_, last = str(found).splitlines()
    assert first.startswith("output 1 float32[2]: 1 of 2 elements differ (max abs error 0.5, max rel error 0.5,")
    assert last == "also out of tolerance: 1 other output, the largest error in output 2 float32[2]: max abs error 7"
    assert found.max_abs_error == 7, "of all outputs"


def test_each_output_that_differs_has_its_path():
    sides = [[leaf_of(array) for array in arrays] for arrays in ([f32(1), f32(1)], [f32(2), f32(9)])]
    found = compare_leaves(*sides, Rules(Comparison()), named="{0} (result[{0}])".format)
    first, *_, last = str(found).splitlines()
    assert first.startswith("output 0 (result[0]) float32[1]: 1 of 1 elements differ")
    assert last.endswith("the largest error in output 1 (result[1]) float32[1]: max abs error 8")


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("how", ["allclose", "exact"])
def test_arrays_of_every_shape_equal_themselves(dtype, how):
    for shape in ((), (0,), (2, 0, 3), (3,)):
        array = np.ones(shape, dtype)
        found = compared(array, array, compare=how)
        assert (found.ok, found.max_abs_error, found.max_rel_error) == (True, 0.0, 0.0), shape
    other = compared(np.ones((), dtype), np.zeros((), dtype), compare=how)
    assert (other.ok, other.worst.index, other.mismatched, other.total) == (False, (), 1, 1)


def test_compare_exact_compares_bits():
    assert compared(f32(0.0), f32(-0.0)).ok
    found = compared(f32(1.0, 0.0), f32(1.0, -0.0), compare="exact")
    assert (found.ok, found.mismatched, found.total, found.tolerance) == (False, 1, 2, "equal bits (golden)")
    assert found.worst.index == (1,), "it differs, though its error is zero"
    payload = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert not compared(f32(NAN), payload, compare="exact").ok
    assert compared(payload, payload, compare="exact").ok
    assert not compared(f32(1), np.nextafter(f32(1), 2), compare="exact").ok


def test_prng_keys_and_float0_must_be_equal():
    one, other = np.array([[1, 2], [3, 4]], np.uint32), np.array([[1, 2], [3, 5]], np.uint32)
    for how in ("allclose", "exact"):
        same = compare_leaves([key_leaf("key<fry>", one)], [key_leaf("key<fry>", one)], Rules(Comparison(how)))
        found = compare_leaves(
            [key_leaf("key<fry>", one)], [key_leaf("key<fry>", other)], Rules(Comparison(how, 9.0, 9.0))
        )
        assert (same.ok, found.ok, found.of_type) == (True, False, "key<fry>[2]")
    assert compared(np.zeros(3, [("float0", np.void, 0)]), np.zeros(3, [("float0", np.void, 0)])).ok


@settings(max_examples=300)
@given(
    arrays.arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)),
    arrays.arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)),
    st.floats(0, 1),
    st.floats(0, 100),
)
def test_the_limit_is_atol_plus_rtol_times_expected(expected, actual, rtol, atol):
    within = np.abs(actual - expected) <= atol + rtol * np.abs(expected)
    found = compared(expected, actual, rtol=rtol, atol=atol)
    assert found.ok == bool(within.all())
    if not found.ok:
        assert found.mismatched == int((~within).sum())
        assert found.max_abs_error == np.abs(actual - expected).max()


@given(arrays.arrays(np.complex64, arrays.array_shapes(min_dims=0, max_side=3)), arrays.arrays(np.complex64, (2,)))
def test_comparing_any_complex_numbers_does_not_raise(array, other):
    assert compared(array, array).ok
    found = compared(other, other[::-1].copy())
    assert found.ok or str(found)


def test_calls_without_outputs_agree():
    found = compare_leaves([], [], Rules(Comparison()))
    assert (found.ok, found.max_abs_error, found.max_rel_error, found.mismatched) == (True, 0, 0, 0)


@pytest.mark.parametrize(("found", "ok"), [(None, True), ("not the same set", False)])
def test_a_users_comparator_decides_whether_outputs_agree(found, ok):
    one = leaf_of(np.ones(2, np.float32))
    user_code = SimpleNamespace(compare=lambda *_: found)
    rules = Rules(Comparison("checks:same_set"))
    difference = compare_leaves([one], [leaf_of(np.full(2, 1.5, np.float32))], rules, user_code=user_code)
    assert (difference.ok, difference.problem) == (ok, "" if ok else "checks:same_set: not the same set")
    assert difference.max_abs_error == 0.5


@pytest.mark.parametrize(
    ("changes", "beyond"),
    [
        ({"max_noise_error": 1e9}, True),
        ({"max_noise_error": 5.0}, False),
        ({"max_noise_error": 5.0, "max_abs_error": np.inf}, True),
        ({"max_noise_error": 1e9, "ok": True}, False),
        ({"max_abs_error": np.inf, "ok": True}, False),
    ],
)
def test_only_far_or_garbage_numbers_are_beyond_rounding(changes, beyond):
    assert Difference(**{"ok": False, "max_abs_error": 1e-6, **changes}).is_beyond_rounding is beyond
