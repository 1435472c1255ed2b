"""The tolerance of a dtype between two platforms, and how a policy or marker sets it."""

import subprocess
import sys

import numpy as np
import pytest

from export_core.base.tolerances import (
    COARSE,
    DEFAULT_RTOL,
    FLOATS,
    PLATFORM_RTOL,
    PLATFORMS,
    Tolerance,
    default_rtol,
    read_amount,
    tolerance_for,
)
from export_core.policy import PolicyError, load_policy

NOTHING = Tolerance()


def test_the_default_tolerance_is_that_of_the_dtype():
    assert tolerance_for("float32", NOTHING) == (1e-5, None, None, "float32", {})
    assert tolerance_for("float8_e5m2", NOTHING).rtol == COARSE


@pytest.mark.parametrize("pair", [("tpu",), ("cpu", "tpu"), ("tpu", "cpu"), ("cuda", "tpu")])
def test_the_coarser_of_two_platforms_sets_the_default(pair):
    assert default_rtol("float32", pair) == 1e-2
    assert default_rtol("float64", pair) == DEFAULT_RTOL["float64"]


def test_platform_defaults_exceed_those_of_the_dtypes():
    for platform, by_dtype in PLATFORM_RTOL.items():
        assert platform in PLATFORMS
        assert all(rtol > DEFAULT_RTOL[dtype] for dtype, rtol in by_dtype.items())


@pytest.mark.parametrize(
    ("golden", "policy", "held"),
    [
        (NOTHING, Tolerance(rtol=0.5), Tolerance(0.5)),
        (NOTHING, Tolerance(rtol=0.0), Tolerance(0.0)),  # a policy may be finer than the default
        (NOTHING, Tolerance(atol=0.5), Tolerance(1e-2, 0.5)),
        (NOTHING, Tolerance(ulp=4), Tolerance(0.0, None, 4)),
        (Tolerance(rtol=1e-6), NOTHING, Tolerance(1e-6)),  # an explicit tolerance counts on every platform
        (Tolerance(rtol=1e-6), Tolerance(rtol=0.5), Tolerance(0.5)),
        (Tolerance(rtol=0.5), Tolerance(rtol=1e-6), Tolerance(0.5)),
        (Tolerance(rtol=1e-6, atol=0.1), Tolerance(atol=0.2, ulp=2), Tolerance(1e-6, 0.2, 2)),
        (Tolerance(ulp=8), Tolerance(ulp=4), Tolerance(0.0, None, 8)),
        (Tolerance(ulp=8, atol=0.1), NOTHING, Tolerance(0.0, 0.1, 8)),
    ],
)
def test_the_wider_of_golden_and_policy_tolerance_applies(golden, policy, held):
    tolerances = {"tpu": {"float32": policy, "float64": Tolerance(rtol=9.0)}, "cuda": {"float32": Tolerance(rtol=9.0)}}
    for platforms in (("cpu", "tpu"), ("tpu", "cpu")):
        allowed = tolerance_for("float32", golden, platforms, tolerances)
        assert Tolerance(allowed.rtol, allowed.atol, allowed.ulp) == held


LINE = "export_compat.yaml:12"


@pytest.mark.parametrize(
    ("golden", "policy", "sources", "words"),
    [
        (NOTHING, NOTHING, {}, "rtol 0.01, atol 7 (default of float32)"),
        (Tolerance(rtol=1e-3), NOTHING, {}, "rtol 0.001, atol 7 (golden)"),
        (Tolerance(rtol=1e-3), NOTHING, {"rtol": "marker"}, "rtol 0.001, atol 7 (marker)"),
        (Tolerance(rtol=1e-3, atol=7), NOTHING, {"rtol": LINE}, f"rtol 0.001 ({LINE}), atol 7 (golden)"),
        (
            Tolerance(rtol=1e-3),
            NOTHING,
            {"rtol": {"float32": LINE, "float64": "golden"}},
            f"rtol 0.001, atol 7 ({LINE})",
        ),
        (Tolerance(rtol=1e-3), Tolerance(rtol=0.5), {"rtol": LINE}, "rtol 0.5, atol 7 (tolerances.tpu)"),
        (Tolerance(rtol=0.5), Tolerance(rtol=0.5), {"rtol": LINE}, f"rtol 0.5, atol 7 ({LINE})"),
        (Tolerance(ulp=4), NOTHING, {"ulp": LINE}, f"4 ulp ({LINE})"),
        (Tolerance(atol=7, ulp=4), NOTHING, {"ulp": LINE}, f"rtol 0, atol 7 (golden), or 4 ulp ({LINE})"),
    ],
)
def test_a_tolerance_in_words_names_who_set_rtol_and_atol(golden, policy, sources, words):
    allowed = tolerance_for("float32", golden, ("tpu", "cpu"), {"tpu": {"float32": policy}}, sources)
    assert allowed.in_words(7.0) == words


@pytest.mark.parametrize(
    ("value", "whole", "expected"),
    [
        (0, False, 0.0),
        (np.float32(0.5), False, 0.5),
        ({"float32": 1, "bfloat16": 0.25}, False, {"bfloat16": 0.25, "float32": 1.0}),
        (np.int64(3), True, 3),
        ({"float8_e5m2": 1}, True, {"float8_e5m2": 1}),
    ],
)
def test_a_tolerance_may_be_one_number_or_a_number_for_each_dtype(value, whole, expected):
    found = read_amount(value, whole=whole)
    assert found == expected
    assert {type(each) for each in (found.values() if isinstance(found, dict) else [found])} <= {int, float}


@pytest.mark.parametrize(
    ("value", "whole", "message"),
    [
        (-1, False, "expected a finite number of 0 or more, found -1."),
        ("1e-3", False, "expected a finite number of 0 or more, found '1e-3'."),
        (True, True, "expected a whole number of 0 or more, found True."),
        (1.0, True, "expected a whole number of 0 or more, found 1.0."),
        ({}, False, "expected at least one dtype with its tolerance, found none."),
        ({"float32": -1}, False, "float32: expected a finite number of 0 or more, found -1."),
        ({"flaot32": 1}, False, "flaot32: expected a floating-point dtype such as float32. Did you mean 'float32'?"),
        ({"int32": 1}, True, "int32: expected a floating-point dtype such as float32."),
        ({np.float32: 1}, False, "<class 'numpy.float32'>: expected a floating-point dtype such as"),
    ],
)  # fmt: skip
def test_a_malformed_tolerance_is_refused_with_the_reason(value, whole, message):
    with pytest.raises(ValueError) as raised:
        read_amount(value, whole=whole)
    assert str(raised.value).startswith(message)


def test_every_float_dtype_of_jax_can_have_a_tolerance():
    from export_core.artifact.envelope.schema import DTYPES

    assert {name for name in DTYPES if "float" in name or "complex" in name} - {"float0"} == set(FLOATS)


def test_a_policy_sets_tolerances_by_platform_and_dtype(tmp_path):
    path = tmp_path / "export_compat.yaml"
    path.write_text(
        "rtol: {float32: 1e-4}\natol: 1e-6\ntolerances: {tpu: {float32: {rtol: 1e-2}, bfloat16: {ulp: 2}}}\n"
    )
    policy = load_policy(path)
    assert (policy.rtol, policy.atol) == ({"float32": 1e-4}, 1e-6)
    assert policy.tolerances == {"tpu": {"float32": Tolerance(rtol=1e-2), "bfloat16": Tolerance(ulp=2)}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rtol: -1", "rtol: expected a finite number of 0 or more, found -1.0."),
        ("atol: {int8: 1}", "atol: int8: expected a floating-point dtype"),
        ("tolerances: {gpu: {}}", "tolerances.gpu: expected a platform of cpu, cuda, rocm, tpu."),
        ("tolerances: {tpu: {float: {}}}", "tolerances.tpu.float: expected a floating-point dtype"),
        (
            "tolerances: {tpu: {float32: {ulp: -2}}}",
            "tolerances.tpu.float32.ulp: expected a whole number of 0 or more, found -2.",
        ),
        ("tolerances: {tpu: {float32: {rotl: 2}}}", "tolerances.tpu.float32.rotl: unknown key. Did you mean `rtol`?"),
    ],
)  # fmt: skip
def test_a_policy_with_a_wrong_tolerance_is_refused(tmp_path, text, message):
    path = tmp_path / "export_compat.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError) as raised:
        load_policy(path)
    assert message in str(raised.value)


def test_reading_a_markers_tolerances_needs_no_numpy():
    code = "import sys, export_core.base.tolerances; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
