"""Arguments of 64 bits without `jax_enable_x64`: jax takes them in half the bits, and some numbers change."""

import jax
import numpy as np
import pytest

from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks

LARGE = np.array([7, 2**40])


@pytest.mark.parametrize(
    ("args", "kwargs", "where"),
    [
        ((LARGE,), {}, r"argument \[0\] is int64 and holds 1099511627776\. Without jax_enable_x64, jax makes it int32"),
        (
            (np.uint64(2**40),),
            {},
            r"argument \[0\] is uint64 and holds 1099511627776\. Without jax_enable_x64, jax makes it uint32",
        ),
        ((np.int32(1), {"a": LARGE}), {}, r"argument \[1\]\['a'\] is int64"),
        ((), {"x": {"a": LARGE}}, r"argument keyword \['x'\]\['a'\] is int64"),
        (
            (np.array([1, 1e300]),),
            {},
            r"argument \[0\] is float64 and holds 1e\+300\. Without jax_enable_x64, jax makes it float32",
        ),
        ((1e300,), {}, r"argument \[0\] is float64 and holds 1e\+300"),
        (
            (np.array([1j, 1e300j]),),
            {},
            r"argument \[0\] is complex128 and holds .*\. Without jax_enable_x64, jax makes it complex64",
        ),
        ((jax.ShapeDtypeStruct((2,), np.int32),), {"inputs": (LARGE,)}, r"inputs=: value \[0\] is int64"),
    ],
)
def test_a_number_that_half_the_bits_cannot_hold_is_refused(exported, args, kwargs, where):
    with pytest.raises(
        ExportError, match=rf"{where}.*which cannot hold this number\. Enable jax_enable_x64 \(jax\.config\.update\("
    ):
        exported(lambda *args, **kwargs: (args, kwargs), *args, kwargs=kwargs)


def test_the_position_of_a_refused_argument_counts_static_ones(exported):
    with pytest.raises(ExportError, match=r"argument \[1\] is int64"):
        exported(jax.jit(lambda how, x: x, static_argnums=0), "ab", LARGE)


def test_the_error_for_a_too_large_argument_names_the_further_call(exported):
    golden = exported(lambda x: x * 2, np.array([1, 2]))
    with pytest.raises(ExportError, match=r"also\(\) at t\.py:3: argument \[0\] is int64 and holds 1099511627776"):
        add_checks(golden, [ExtraCall((LARGE,), {}, place="also() at t.py:3")])


def test_a_call_that_must_be_refused_may_hold_numbers_beyond_32_bits(exported):
    golden = exported(lambda x: x * 2, np.array([1, 2]))
    assert len(add_checks(golden, [ExtraCall((np.append(LARGE, 1),), {}, "(?i)mismatch")]).manifest.checks) == 1


def test_with_x64_an_integer_above_32_bits_is_not_refused(exported):
    with jax.enable_x64(True):
        golden = exported(lambda x: x * 3, LARGE)
    assert golden.outputs[0].data.tolist() == [21, 3 * 2**40]


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (np.array([0.5, 0.1]), {"float64"}),
        (np.float64(0.1), {"float64"}),
        (np.array([0.1j]), {"complex128"}),
        (np.array([1.5, np.nan, np.inf]), set()),
        (np.array([3, -4]), set()),
        (np.float32(0.1), set()),
        (0.1, set()),
        ([0.1, 0.2], set()),
    ],
    ids=str,
)
def test_only_arrays_whose_numbers_change_count_as_rounded(exported, value, rounded):
    assert exported(lambda x: x, value).rounded == rounded


def test_rounded_arguments_of_further_calls_are_recorded_too(exported):
    golden = exported(lambda x: x * 2, np.array([1.0]))
    assert add_checks(golden, [ExtraCall((np.array([0.1]),), {})]).rounded == {"float64"}
