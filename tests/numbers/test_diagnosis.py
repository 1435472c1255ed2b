"""Diagnosis of differences: planted patterns are recognised, not confused, and not found where there are none."""

import time
import zlib

import ml_dtypes
import numpy as np
import precision_programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from export_core.base.tolerances import ROUNDING
from export_core.goldens import Comparison
from export_core.goldens.arrays import leaf_of
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.diagnosis import Diagnosis, diagnose

NAN, INF = np.nan, np.inf
BFLOAT16 = ml_dtypes.bfloat16


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def narrowed(values, dtype):
    """Return the values rounded to a narrower type, in their own type."""
    if values.dtype.kind == "c":
        return narrowed(values.real, dtype) + 1j * narrowed(values.imag, dtype)
    if dtype == "tf32":
        return ((values.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
    return values.astype(dtype).astype(values.dtype)


def product(one, other, dtype=np.float32):
    """Return the float32 product of factors rounded to a type."""
    one, other = narrowed(one, dtype), narrowed(other, dtype)
    return (one.astype(np.float64) @ other.astype(np.float64)).astype(np.float32)


ARRAYS = {
    "matrix": lambda rng: normal(rng, 24, 24),
    "tall": lambda rng: normal(rng, 100, 7),
    "vector": lambda rng: normal(rng, 300),
    "batch": lambda rng: normal(rng, 6, 20, 11),
    "product": lambda rng: product(normal(rng, 32, 64), normal(rng, 64, 32)),
    "softmax": lambda rng: softmax(3 * normal(rng, 20, 31)),
    "gradient": lambda rng: normal(rng, 40, 16) * np.exp(3 * normal(rng, 40, 1) - 8),
    "mixed scales": lambda rng: np.concatenate([np.float32([1e4]), normal(rng, 200)]),
    "double": lambda rng: rng.standard_normal((25, 24)),
    "complex": lambda rng: normal(rng, 18, 20) + 1j * normal(rng, 18, 20),
    "bfloat16": lambda rng: normal(rng, 30, 20).astype(BFLOAT16),
    "integers": lambda rng: rng.integers(-1000, 1000, (26, 26), dtype=np.int32),
    "bytes": lambda rng: rng.integers(0, 100, (40, 40), dtype=np.uint8),
}
SINGLE = [name for name in ARRAYS if name not in ("double", "bfloat16", "integers", "bytes")]
SIGNED = [name for name in ARRAYS if name != "bytes"]
FLOATING = [name for name in SIGNED if name != "integers"]


def garbage(rng, values):
    return (rng.standard_normal(values.shape) * np.std(values.astype(complex))).astype(values.dtype)


def negated_small(rng, values):
    return np.where(np.abs(values) < np.median(np.abs(values)), -values, values)


def rounding(rng, values):
    size = {"float64": 3e-15, "bfloat16": 1e-2}.get(values.dtype.name, 2e-6)
    return (values * (1 + size * rng.standard_normal(values.shape))).astype(values.dtype)


WRONG_SIGN = "the elements that differ have the wrong sign"
# For each pattern: the expected diagnosis, how the pattern is planted, and in which arrays.
PLANTED = {
    "sign": (WRONG_SIGN, lambda rng, x: -x, SIGNED),
    "signs of small ones": (WRONG_SIGN, negated_small, SIGNED),
    "zeros": ("the elements that differ are zero", lambda rng, x: x * 0, ARRAYS),
    "factor": ("a constant factor of 2", lambda rng, x: (x * 2).astype(x.dtype), ARRAYS),
    "factor close to 1": ("a constant factor of 1 + 1e-07", lambda rng, x: x * (1 + 1e-7), ("double",)),
    "factor below 1": ("a constant factor of 1 - 2e-08", lambda rng, x: x * (1 - 2e-8), ("double",)),
    "offset": ("a constant offset of 3", lambda rng, x: x + x.dtype.type(3), ARRAYS),
    "transposed": ("transposed", lambda rng, x: x.T, ("matrix", "product", "integers", "bytes")),
    "bfloat16": ("rounded to bfloat16", lambda rng, x: narrowed(x, BFLOAT16), [*SINGLE, "double"]),
    "float16": ("rounded to TensorFloat-32 or float16", lambda rng, x: narrowed(x, np.float16), [*SINGLE, "double"]),
    "float32": ("rounded to float32", lambda rng, x: narrowed(x, np.float32), ("double",)),
    "rounding": ("rounding: errors of both signs", rounding, FLOATING),
    "garbage": ("no pattern: errors as large", garbage, ARRAYS),
    "beyond": (
        "beyond the range: up to ",
        lambda rng, x: (x.astype(np.float64) * 0 + rng.uniform(1e9, 2e9, x.shape)).astype(x.dtype),
        ("double", "integers"),
    ),
}
PAIRS = [(pattern, name) for pattern, (_, _, names) in PLANTED.items() for name in names]


def limits(values):
    """Return possible limits of errors: by noise, by a tolerance relative to the largest element, and none."""
    if values.dtype.kind in "iu":
        return [None]
    sizes, step = np.abs(values.astype(complex)), float(ml_dtypes.finfo(values.dtype).eps)
    return [8 * step * sizes, 2 * step * (sizes + sizes.max()), None]


def planted_in(pattern, name, seed=0):
    """Return expected and actual values, the actual ones with a pattern."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{pattern} {name}".encode())])
    values = ARRAYS[name](rng)
    return values, np.asarray(PLANTED[pattern][1](rng, values))


def looks(expected, actual, limit=None):
    return diagnose(np.asarray(expected), np.asarray(actual), limit).looks_like


@pytest.mark.parametrize(("pattern", "name"), PAIRS)
def test_a_planted_error_pattern_is_recognised(pattern, name):
    expected, actual = planted_in(pattern, name)
    text = PLANTED[pattern][0].format(last=expected.ndim - 1)
    diagnoses = [diagnose(expected, actual, limit) for limit in limits(expected)]
    assert {diagnosis.looks_like.startswith(text) for diagnosis in diagnoses if diagnosis != Diagnosis()} == {True}


def test_no_planted_error_pattern_is_named_as_another_pattern():
    """Count the confusions of every pattern in every array."""
    confused, named_wrongly, total = [], 0, 0
    for pattern, name in PAIRS:
        for seed in range(1, 6):
            expected, actual = planted_in(pattern, name, seed)
            diagnosis = diagnose(expected, actual, limits(expected)[0])
            text = PLANTED[pattern][0].format(last=expected.ndim - 1)
            total += diagnosis != Diagnosis()
            if diagnosis != Diagnosis() and not diagnosis.looks_like.startswith(text):
                confused.append((pattern, name, diagnosis.looks_like))
                named_wrongly += not diagnosis.looks_like.startswith(("no pattern", *[""] * (not diagnosis.looks_like)))
    assert len(confused) <= 0.01 * total, confused
    assert named_wrongly == 0, confused


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        (np.float32([1e-39, 2e-40, 3e-39]), np.zeros(3, np.float32), "denormals flushed to zero"),
        (np.float32([NAN, 1, 2, NAN]), np.float32([0, 1, 2, 0]), "NaN replaced by zeros"),
        (np.float32([INF, 1, INF]), np.float32([3.4e38, 1, 3.4e38]), "infinities replaced by a number"),
        (np.float32([1e5, 1, 2]), np.float32([INF, 1, 2]), "as if computed in float16: numbers beyond 65504"),
        (np.complex64([1 + 2j, 3j]), np.complex64([1 - 2j, -3j]), "the elements that differ are complex conjugates"),
        (np.float32([1.5, 2, 3]), np.float32([-1.5, 2, 3]), WRONG_SIGN),
    ],
)
def test_each_rarer_error_pattern_is_recognised(expected, actual, text):
    assert looks(expected, actual).startswith(text)


@pytest.mark.parametrize("planted", [-1, 2, 1.5])
@pytest.mark.parametrize("value", [2.0, 0.25])
def test_arrays_of_equal_values_show_no_pattern(planted, value):
    values = np.full((5, 5), value, np.float32)
    assert looks(values, values * np.float32(planted)) == ""
    assert looks(0 * values, values) == ""


def computed(dtype):
    """Compute one product in full precision and in a narrower type. For float32, the full precision is double."""
    rng = np.random.default_rng(2)
    if dtype == "softmax of bfloat16":
        logits = 3 * normal(rng, 20, 31)
        return softmax(logits), softmax(narrowed(logits, BFLOAT16))
    if dtype == np.float32:
        one, other = rng.standard_normal((40, 64)), rng.standard_normal((64, 40))
        return one @ other, (one.astype(dtype) @ other.astype(dtype)).astype(np.float64)
    one, other = normal(rng, 40, 128), normal(rng, 128, 30)
    return product(one, other), product(one, other, dtype)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (BFLOAT16, "as if computed in bfloat16: errors of about 2^-9"),
        ("tf32", "as if computed in TensorFloat-32 or float16: errors of about 2^-12"),
        ("softmax of bfloat16", "as if computed in bfloat16: errors of about 2^-7 of each value"),
        (np.float32, "float32"),
    ],
)
def test_computing_in_a_narrower_type_is_recognised(dtype, text):
    assert text in looks(*computed(dtype))


NARROW_NAMES = {"bfloat16": "bfloat16", "float16": "TensorFloat-32 or float16", "tf32": "TensorFloat-32 or float16"}


def test_a_changed_constant_is_never_diagnosed_as_a_narrower_type():
    """Count the programs with a changed constant whose differences are said to be lost precision: none of 330."""
    programs = precision_programs.changed_constants()
    found = {name: looks(want, got, 1e-6 * np.abs(want.astype(float))) for name, want, got in programs}
    assert len(found) == 330
    assert {name: text for name, text in found.items() if not text.startswith(("no pattern", "a constant "))} == {}


def test_at_least_75_of_90_programs_in_a_narrow_type_are_recognised():
    """Count the computations in narrow types that are named: 75 of 90, each with its own type or with none."""
    found = {}
    for name, want, got in precision_programs.narrow_computations():
        found[name] = looks(want, got, 1e-6 * np.abs(want.astype(float)))
    named = {name: text for name, text in found.items() if not text.startswith("no pattern")}
    assert len(named) >= 75, found
    types = {name: text for name, text in named.items() if not text.startswith("as if precision was lost: ")}
    assert len(types) >= 60
    assert {n: t for n, t in types.items() if f" {NARROW_NAMES[n.rpartition(' ')[2]]}" not in t} == {}


def test_repeated_rounding_is_recognised_by_the_bits_of_the_values():
    values = normal(np.random.default_rng(2), 40)
    power = narrowed(values, BFLOAT16)
    for _ in range(4):
        power = narrowed(power * narrowed(values, BFLOAT16), BFLOAT16)
    text = looks(values**5, power)
    assert text == "as if computed in bfloat16: the values have at most its 8 bits"


def test_rounding_to_float32_is_not_diagnosed_in_float32_outputs():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((20, 20))
    assert "float32" in diagnose(values, narrowed(values, np.float32), None).looks_like
    assert "float32" not in diagnose(values, narrowed(values, np.float32), None, "float32").looks_like


def test_oscillating_states_at_a_wrong_time_show_no_pattern():
    """A wrong time makes an error of position that follows from the speed, and one of speed from the position."""
    phases = np.random.default_rng(2).uniform(0, 6, 200)
    states, later = (np.float32(np.stack([np.cos(t), -3 * np.sin(t)], 1)) for t in (phases, phases + 0.01))
    assert looks(states, later, 1e-6 * np.abs(states.astype(float))).startswith("no pattern: errors of about")


@pytest.mark.parametrize("scale", [1.0, 8e307])
def test_doubles_near_overflow_are_diagnosed_like_small_doubles(scale):
    """Their sums and squares are infinite."""
    values = np.random.default_rng(2).uniform(0.1, 1, (40, 2))
    other = values * (1 + np.random.default_rng(3).choice([-1, 1], values.shape) * 0.002)
    text = "as if computed in bfloat16: errors of about 2^-9 of each value"
    assert looks(values * scale, other * scale, 1e-9 * np.abs(values) * scale) == text


def test_one_slightly_wrong_element_shows_no_pattern():
    values = normal(np.random.default_rng(2), 30, 30)
    off = values.copy()
    off[3, 4] *= np.float32(1.001)
    assert [looks(values, off, limit) for limit in limits(values)] == ["", "", ""]


def test_another_constant_in_a_formula_shows_no_pattern():
    values = normal(np.random.default_rng(2), 300)
    gelu, other = (0.5 * values * (1 + np.tanh(0.7978845 * (values + c * values**3))) for c in (0.0447, 0.04471))
    assert looks(gelu, other, 1e-7 * np.abs(gelu)).startswith("no pattern: errors of about")


def test_errors_as_large_as_the_values_are_not_diagnosed_as_rounding():
    rng = np.random.default_rng(2)
    expected, actual = (np.concatenate([np.float32([1e6]), normal(rng, 200)]) for _ in range(2))
    assert looks(expected, actual, 1e-6 * np.abs(expected.astype(float))).startswith("no pattern: errors as large")


def test_a_partial_transposition_is_not_diagnosed():
    values = normal(np.random.default_rng(2), 6, 6)
    some = np.where(np.arange(36).reshape(6, 6) % 7 < 2, values.T, values)
    assert "transposed" not in looks(values, some, 1e-6 * np.abs(values))


def test_exchanged_axes_of_a_batch_are_named():
    values = normal(np.random.default_rng(2), 3, 8, 8)
    assert looks(values, values.swapaxes(1, 2)) == "axes 1 and 2 exchanged"


def test_the_histogram_counts_every_element_once():
    assert diagnose(np.ones(10), -np.ones(10), None).histogram == ""
    expected = np.ones(20)
    actual = expected + np.array([0.0] * 10 + [0.5] * 3 + [5] * 2 + [50, 500, 5000, NAN, INF])
    assert diagnose(expected, actual, np.ones(20)).histogram == (
        "errors in units of what is allowed: ≤1: 13 · 1–10: 2 · 10–100: 1 · 100–1000: 1 · >1000: 1 · not finite: 2"
    )
    steps = (expected.view(np.int64) + np.arange(20)).view(np.float64)
    assert diagnose(expected, steps, None).histogram == "errors in units of the last place: ≤1: 2 · 1–10: 9 · 10–100: 9"
    assert diagnose(np.zeros(20, int), np.arange(20), None).histogram == "errors: ≤1: 2 · 1–10: 9 · 10–100: 9"


def test_diagnosing_a_million_elements_is_fast():
    """It takes 50 ms of a core that runs nothing else."""
    values = normal(np.random.default_rng(2), 1000, 1000)
    wrong = garbage(np.random.default_rng(3), values)
    for shape in ((1000, 1000), (1_000_000,), (10, 100, 1000)):
        started = time.process_time()
        assert looks(values.reshape(shape), wrong.reshape(shape), 1e-6 * np.abs(values).astype(float).reshape(shape))
        assert time.process_time() - started < 0.3


NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint2")
DTYPES = ("bool", "int8", "uint64", "int32", "float16", "float32", "float64", "complex64", "complex128")
ANY = st.one_of(
    *(
        arrays.arrays(np.dtype(dtype), shape, fill=st.nothing())
        for dtype in DTYPES
        for shape in ((), (0,), (1,), (3,), (4, 4), (2, 0, 3), (2, 3, 2))
    )
)


@settings(max_examples=400)
@given(ANY, st.sampled_from([None, 0.0, 1e-6, NAN, INF, -1.0]))
def test_diagnosing_any_arrays_does_not_raise(expected, allowed):
    for actual in (expected, np.flip(expected), np.zeros_like(expected), np.ones_like(expected)):
        limit = None if allowed is None else np.full(expected.shape, allowed)
        kind = diagnose(expected, actual, limit)
        assert isinstance(kind.looks_like, str)
        assert len(kind.lines) <= 2


@pytest.mark.parametrize("dtype", NARROW)
def test_diagnosing_narrow_dtypes_does_not_raise(dtype):
    bits = np.random.default_rng(2).integers(0, 256, (2, 8, 9), dtype=np.uint8)
    # Integers wrap in each ml_dtypes. A float that is out of range is 0 with a warning since 0.7.0, and wrapped before.
    numbers = bits if "int" in dtype else bits.astype(np.float32)
    expected, actual = (values.astype(getattr(ml_dtypes, dtype)) for values in numbers)
    for limit in (None, np.full((8, 9), 0.5)):
        assert len(diagnose(expected, actual, limit).lines) <= 2


@settings(max_examples=100)
@given(arrays.arrays(np.float32, (4, 7), elements=st.floats(-1e3, 1e3, width=32)), st.sampled_from(["none", "noise"]))
def test_equal_arrays_have_no_diagnosis(values, how):
    limit = None if how == "none" else 1e-6 * np.abs(values.astype(float))
    assert diagnose(values, values.copy(), limit) == Diagnosis()


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.sampled_from(sorted(ARRAYS)))
def test_random_numbers_are_never_diagnosed_as_a_pattern(seed, name):
    rng = np.random.default_rng(seed)
    expected = ARRAYS[name](rng)
    for limit in limits(expected):
        assert looks(expected, garbage(rng, expected), limit).startswith("no pattern: errors as large")


def rounded(values):
    """Return the values with errors of both signs in the last bit."""
    signs = np.random.default_rng(5).choice([-1, 1], values.shape)
    return (values.astype(np.float64) * (1 + signs * 2.0**-22)).astype(np.float32)


def kind_of(expected, actual):
    leaves = [[leaf_of(array) for array in side] for side in (expected, actual)]
    return compare_leaves(*leaves, Rules(Comparison(rtol=1e-8))).kind


def test_rounding_is_diagnosed_only_if_every_wrong_output_fits_it():
    values = normal(np.random.default_rng(2), 100)
    assert kind_of([values] * 3, [rounded(values), values, rounded(values)]).startswith(ROUNDING)
    assert kind_of([values] * 2, [rounded(values), -values]) == WRONG_SIGN


def test_nan_beside_rounding_is_not_called_rounding():
    values = normal(np.random.default_rng(2), 100)
    assert kind_of([values], [np.where(np.arange(100) == 7, np.nan, rounded(values)).astype(np.float32)]) == ""


def test_the_message_of_a_difference_has_its_diagnosis():
    values = normal(np.random.default_rng(2), 30)
    difference = compare_leaves([leaf_of(values)], [leaf_of(-values)], Rules(Comparison()))
    lines = str(difference).splitlines()
    assert lines[1] == f"  looks like: {WRONG_SIGN}"
    assert lines[2].startswith("  errors in units of what is allowed: ")
    assert lines[3].startswith("  largest error at ")
