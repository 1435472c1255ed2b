"""What `exact` promises: the same bits, in every dtype, whatever else would let outputs differ."""

import re
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from making import golden
from msgspec import structs
from projects import Project, Projects

from export_core.goldens import Comparison, FactorGroup, GoldenStore
from export_core.goldens.arrays import Leaf, from_npz, key_leaf, leaf_of, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import MANIFEST, OUTPUTS, sha256
from export_core.matrix import MatrixError
from export_core.matrix.comparisons import under_policy
from export_core.numbers import CompareError
from export_core.numbers.compare import Difference, Rules, compare_leaves
from export_core.numbers.elements import bits_of
from export_core.numbers.noise import CallNoise
from export_core.policy import PolicyError

EXACT = Comparison(compare="exact")
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def bits(dtype: str, *words: int) -> Leaf:
    """Return an array of a real dtype whose elements have these bits."""
    meant = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return leaf_of(np.array(words, WORDS[meant.itemsize]).view(meant))


def many(last: float) -> Leaf:
    """Return an array of more elements than are compared at once, with this last one."""
    return leaf_of(np.append(np.zeros(300_000, np.float32), np.float32(last)))


def compare(expected: Leaf | list[Leaf], actual: Leaf | list[Leaf], **rules: Any) -> Difference:
    """Return the difference of outputs that must be equal, or of a single one."""
    want, got = (found if isinstance(found, list) else [found] for found in (expected, actual))
    return compare_leaves(want, got, Rules(rules.pop("comparison", EXACT), **rules))


ONE, NEXT = bits("float32", 0x3F800000), bits("float32", 0x3F800001)  # 1 and its neighbour
KEYS = [[1, 2], [3, 4]]
C64 = np.array([complex(1, 2), complex(-0.0, np.inf)], np.complex64)
GRID = np.arange(6, dtype=np.float32).reshape(2, 3)
MIXED = [leaf_of(GRID), bits("bfloat16", 0x8000), key_leaf("key<fry>", KEYS), leaf_of(np.array([True]))]

SAME = {
    "float32": (leaf_of(GRID), leaf_of(GRID.copy())),
    "-0.0": (bits("float32", 1 << 31), leaf_of(np.array([-0.0], np.float32))),
    "NaN with its payload": (bits("float32", 0xFFC12345), bits("float32", 0xFFC12345)),
    "signalling NaN": (bits("float64", 0x7FF0000000000001), bits("float64", 0x7FF0000000000001)),
    "infinities": (leaf_of(np.array([np.inf, -np.inf])), leaf_of(np.array([np.inf, -np.inf]))),
    "subnormal": (bits("float32", 1), bits("float32", 1)),
    "complex64": (leaf_of(C64), leaf_of(C64.copy())),
    "int64 beyond 2**53": (leaf_of(np.array([2**53 + 1])), leaf_of(np.array([2**53 + 1]))),
    "bfloat16 NaN": (bits("bfloat16", 0x7FC1), bits("bfloat16", 0x7FC1)),
    "float8_e4m3fnuz NaN": (bits("float8_e4m3fnuz", 0x80), bits("float8_e4m3fnuz", 0x80)),
    "float8_e8m0fnu": (bits("float8_e8m0fnu", 0, 127, 255), bits("float8_e8m0fnu", 0, 127, 255)),
    "int4": (bits("int4", 0xF, 7, 8), bits("int4", 0xF, 7, 8)),
    "keys": (key_leaf("key<fry>", KEYS), key_leaf("key<fry>", KEYS)),
    "float0": (Leaf("float0", np.zeros((2, 3), bool)), Leaf("float0", np.zeros((2, 3), bool))),
    "empty": (leaf_of(np.zeros((0, 3), np.float32)), leaf_of(np.zeros((0, 3), np.float32))),
    "a number": (leaf_of(np.float32(-0.0)), leaf_of(np.float32(-0.0))),
    "no outputs": ([], []),
    "outputs of several dtypes": (MIXED, list(MIXED)),
    "many elements": (many(-0.0), many(-0.0)),
    "another order in memory": (leaf_of(GRID), Leaf("float32", np.asfortranarray(GRID))),
    "every second element": (leaf_of(GRID[:, ::2]), Leaf("float32", GRID[:, ::2])),
}
OTHER = {
    "zero without its sign": (leaf_of(np.array([1, -0.0], np.float32)), leaf_of(np.array([1, 0.0], np.float32))),
    "zero with a sign": (leaf_of(np.array([0.0])), leaf_of(np.array([-0.0]))),
    "a number that is -0.0": (leaf_of(np.float32(-0.0)), leaf_of(np.float32(0.0))),
    "neighbours": (ONE, NEXT),
    "float64 neighbours": (leaf_of(np.array([1.0])), leaf_of(np.array([np.nextafter(1.0, 2)]))),
    "NaN with another payload": (bits("float32", 0x7FC00000), bits("float32", 0x7FC00001)),
    "NaN with another sign": (bits("float32", 0x7FC00000), bits("float32", 0xFFC00000)),
    "float64 NaN with another payload": (bits("float64", 0x7FF8 << 48), bits("float64", (0x7FF8 << 48) + 1)),
    "NaN for a number": (ONE, bits("float32", 0x7FC00000)),
    "another infinity": (leaf_of(np.array([np.inf])), leaf_of(np.array([-np.inf]))),
    "subnormal flushed to zero": (bits("float32", 1), bits("float32", 0)),
    "int32": (leaf_of(np.array([7], np.int32)), leaf_of(np.array([8], np.int32))),
    "int64 beyond 2**53": (leaf_of(np.array([2**53])), leaf_of(np.array([2**53 + 1]))),
    "bool": (leaf_of(np.array([True])), leaf_of(np.array([False]))),
    "sign of an imaginary zero": (leaf_of(np.array([complex(1, 0.0)])), leaf_of(np.array([complex(1, -0.0)]))),
    "sign of a real zero": (leaf_of(np.complex64(complex(0.0, 1))), leaf_of(np.complex64(complex(-0.0, 1)))),
    "NaN in another part": (leaf_of(np.array([complex(np.nan, 0)])), leaf_of(np.array([complex(0, np.nan)]))),
    "NaN in one part for both": (leaf_of(np.array([complex(np.nan, 1)])), leaf_of(np.array([complex(np.nan, np.nan)]))),
    "number beside NaN": (leaf_of(np.array([complex(np.nan, 1)])), leaf_of(np.array([complex(np.nan, 2)]))),
    "float16 zero": (bits("float16", 0), bits("float16", 0x8000)),
    "float16 NaN": (bits("float16", 0x7E00), bits("float16", 0x7E01)),
    "bfloat16 zero": (bits("bfloat16", 0), bits("bfloat16", 0x8000)),
    "bfloat16 NaN": (bits("bfloat16", 0x7FC0), bits("bfloat16", 0xFFC0)),
    "bfloat16 neighbours": (bits("bfloat16", 0x3F80), bits("bfloat16", 0x3F81)),
    "float8_e4m3fn NaN": (bits("float8_e4m3fn", 0x7F), bits("float8_e4m3fn", 0xFF)),
    "float8_e5m2 NaN": (bits("float8_e5m2", 0x7D), bits("float8_e5m2", 0x7E)),
    "float8_e5m2 zero": (bits("float8_e5m2", 0), bits("float8_e5m2", 0x80)),
    "float8_e4m3fnuz NaN for zero": (bits("float8_e4m3fnuz", 0), bits("float8_e4m3fnuz", 0x80)),
    "float8_e8m0fnu": (bits("float8_e8m0fnu", 0), bits("float8_e8m0fnu", 1)),
    "float4 zero": (bits("float4_e2m1fn", 0), bits("float4_e2m1fn", 8)),
    "int4": (bits("int4", 0xF), bits("int4", 7)),
    "keys": (key_leaf("key<fry>", KEYS), key_leaf("key<fry>", [[1, 2], [3, 5]])),
    "keys of another generator": (key_leaf("key<rbg>", [[1, 2, 3, 4]]), key_leaf("key<urbg>", [[1, 2, 3, 4]])),
    "key data for keys": (key_leaf("key<fry>", KEYS), leaf_of(np.array(KEYS, np.uint32))),
    "another number of keys": (key_leaf("key<fry>", KEYS), key_leaf("key<fry>", KEYS[:1])),
    "empty of another shape": (leaf_of(np.zeros((0, 3), np.int8)), leaf_of(np.zeros((3, 0), np.int8))),
    "empty of another dtype": (leaf_of(np.zeros(0, np.float32)), leaf_of(np.zeros(0, np.int32))),
    "float0 of another shape": (Leaf("float0", np.zeros(2, bool)), Leaf("float0", np.zeros(3, bool))),
    "float0 for bool": (Leaf("float0", np.zeros(2, bool)), leaf_of(np.zeros(2, bool))),
    "one element for a number": (leaf_of(np.float32(1)), ONE),
    "transposed": (leaf_of(GRID), leaf_of(GRID.T)),
    "another shape": (leaf_of(GRID), leaf_of(GRID.ravel())),
    "float64 for float32": (leaf_of(GRID), leaf_of(GRID.astype(np.float64))),
    "float16 for bfloat16": (bits("bfloat16", 0), bits("float16", 0)),
    "int8 for int4": (bits("int4", 1), leaf_of(np.array([1], np.int8))),
    "uint32 for int32": (leaf_of(np.array([1], np.int32)), leaf_of(np.array([1], np.uint32))),
    "one of two float8 for the other": (bits("float8_e4m3fn", 0), bits("float8_e4m3", 0)),
    "an output less": ([ONE, ONE], [ONE]),
    "an output more": ([], [ONE]),
    "exchanged outputs": ([ONE, NEXT], [NEXT, ONE]),
    "the last of many elements": (many(0.0), many(-0.0)),
}


@pytest.mark.parametrize(("expected", "actual"), SAME.values(), ids=SAME)
def test_exact_accepts_the_same_bits(expected, actual):
    found = compare(expected, actual)
    assert found.ok, found
    assert found.max_abs_error in (None, 0.0)


@pytest.mark.parametrize(("expected", "actual"), OTHER.values(), ids=OTHER)
def test_exact_refuses_other_bits_types_and_shapes(expected, actual):
    found = compare(expected, actual)
    assert not found.ok
    assert str(found)


def test_exact_names_the_output_and_the_element_that_differs():
    found = compare([ONE, leaf_of(GRID)], [ONE, leaf_of(np.where(GRID == 4, 5, GRID))])
    assert (found.output, found.mismatched, found.total) == (1, 1, 6)
    assert found.worst is not None
    assert found.worst.index == (1, 1)


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ((bits("float32", 0x7FC00000)), bits("float32", 0x7FC00001), "nan (bits 7fc00000), got nan (bits 7fc00001)"),
        ((bits("bfloat16", 0x7FC0)), bits("bfloat16", 0xFFC0), "nan (bits 7fc0), got nan (bits ffc0)"),
        (leaf_of(np.array([0.0])), leaf_of(np.array([-0.0])), "expected 0.0, got -0.0"),
        (
            Leaf("complex64", np.array([0x3F800000, 0x7FC00000], np.uint32).view(np.complex64)),
            Leaf("complex64", np.array([0x3F800000, 0x7FC00001], np.uint32).view(np.complex64)),
            "(1+nanj) (bits 3f800000 7fc00000), got (1+nanj) (bits 3f800000 7fc00001)",
        ),
    ],
)
def test_the_message_shows_how_the_elements_differ(expected, actual, words):
    assert words in str(compare(expected, actual))


def noise_of(leaf: Leaf) -> CallNoise:
    """Return noise that would let each element of an output be anything."""
    return CallNoise(outputs=(np.full(leaf.shape, 1e6),))


RELAXED = {
    "noise": (ONE, NEXT, {"noise": noise_of(ONE)}),
    "a jump of an integer": (leaf_of(np.array([1])), leaf_of(np.array([2])), {"noise": noise_of(ONE)}),
    "a jump of a boolean": (leaf_of(np.array([True])), leaf_of(np.array([False])), {"noise": noise_of(ONE)}),
    "a jump of a float8": (bits("float8_e5m2", 0x3C), bits("float8_e5m2", 0x3D), {"noise": noise_of(ONE)}),
    "noise of a signed zero": (bits("float32", 0), bits("float32", 1 << 31), {"noise": noise_of(ONE)}),
    "a reader that is a GPU": (ONE, NEXT, {"platforms": ("cpu", "cuda")}),
    "a writer that is a TPU": (ONE, NEXT, {"platforms": ("tpu", "cpu")}),
    "the policy's tolerances of the platform": (
        *(ONE, NEXT),
        {"platforms": ("cpu", "cpu"), "tolerances": {"cpu": {"float32": {"rtol": 1.0, "atol": 1.0, "ulp": 9}}}},
    ),
    "the same, and noise": (
        *(ONE, NEXT),
        {"platforms": ("tpu",), "noise": noise_of(ONE), "tolerances": {"tpu": {"float32": {"rtol": 1.0}}}},
    ),
}


@pytest.mark.parametrize(("expected", "actual", "rules"), RELAXED.values(), ids=RELAXED)
def test_neither_noise_nor_platform_tolerances_relax_exact(expected, actual, rules):
    assert not compare(expected, actual, **rules).ok
    assert compare(expected, expected, **rules).ok


@pytest.mark.parametrize("amounts", [{"rtol": 1.0}, {"atol": 1.0}, {"ulp": 9}, {"rtol": {"float32": 1.0}}])
def test_a_tolerance_recorded_beside_exact_never_lets_bits_differ(amounts):
    how = structs.replace(EXACT, **amounts)
    try:
        found = compare(ONE, NEXT, comparison=how)
    except CompareError:
        return
    assert not found.ok


def test_exact_compares_factors_by_their_bits():
    values, vectors = leaf_of(np.array([1.0, 2.0], np.float32)), leaf_of(np.eye(2, dtype=np.float32))
    turned = leaf_of(-np.eye(2, dtype=np.float32))
    group = [FactorGroup("eigh", (0, 1))]
    assert compare_leaves([values, vectors], [values, turned], Rules(Comparison()), factors=group).ok
    assert not compare_leaves([values, vectors], [values, turned], Rules(EXACT), factors=group).ok
    assert compare_leaves([values, vectors], [values, vectors], Rules(EXACT), factors=group).ok


def test_float32_signalling_nan_that_becomes_quiet_differs():
    assert not compare(bits("float32", 0x7F800001), bits("float32", 0x7FC00001)).ok


@pytest.mark.parametrize("how", [EXACT, Comparison(), Comparison(rtol=1e-3)], ids=["exact", "noise", "rtol"])
def test_equal_float32_signalling_nan_are_equal(how):
    assert compare(bits("float32", 0x7F800001), bits("float32", 0x7F800001), comparison=how).ok


def test_arrays_that_differ_only_in_byte_order_are_equal():
    assert compare(leaf_of(GRID), Leaf("float32", GRID.astype(">f4"))).ok


@pytest.mark.parametrize("leaf", [leaf_of(GRID), bits("bfloat16", 0x3F80, 0x8001), key_leaf("key<fry>", KEYS)], ids=str)
def test_arrays_stored_in_another_byte_order_are_read_as_equal(leaf):
    (swapped,) = from_npz(
        to_npz([SimpleNamespace(dtype=leaf.dtype, data=leaf.data.astype(leaf.data.dtype.newbyteorder()))])
    )
    assert swapped.data.dtype.isnative
    assert compare(leaf, swapped).ok
    assert bits_of([leaf]) == bits_of([swapped])


REASON = "reason: counted"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("compare: exact, rtol: 0.1", "rtol"),
        ("compare: exact, atol: 0", "atol"),
        ("compare: exact, ulp: 1", "ulp"),
        ("compare: exact, rtol: {float32: 0.1}", "rtol"),
        ("compare: Exact", "Exact"),
        ("compare: 'exact '", "exact "),
        ("compare: equal", "equal"),
        ("compare: 'exact:'", "exact:"),
        ("compare: [exact]", "compare"),
        ("compare: {float32: exact}", "compare"),
        ("compare: exact, outputs: [0]", "outputs"),
        ("compare: exact, platforms: [cpu]", "platforms"),
        ("compare: exact, until: 2027-01-01", "until"),
        ("compare: exact, expires: 2027-01-01", "expires"),
        ("compare: exact, allow: [my_target]", "allow"),
    ],
)
def test_a_rule_with_misspelled_exact_or_a_key_beside_it_is_an_error(load, entry, words):
    with pytest.raises(PolicyError, match=re.escape(words)) as found:
        load(f"numbers:\n  - {{cases: ['*'], {REASON}, {entry}}}\n")
    assert "export_compat.yaml:2" in str(found.value)


RULE = "{{cases: ['{cases}'], writers: ['{writers}'], {reason}, {how}}}"


@pytest.mark.parametrize(
    ("numbers", "recorded", "wanted"),
    [
        ([("*", "*", "compare: exact")], Comparison(rtol=0.5), EXACT),
        ([("*.test_f", "0.9.*", "compare: exact")], Comparison(rtol=0.5), EXACT),
        ([("*", "*-cpu", "compare: exact")], Comparison(), EXACT),
        ([("*", "*-cuda", "compare: exact")], Comparison(rtol=0.5), Comparison(rtol=0.5)),
        ([("*.test_g", "*", "compare: exact")], Comparison(), Comparison()),
        ([("*", "*", "compare: exact"), ("*", "*", "rtol: 0.5")], Comparison(), EXACT),
        ([("*", "*", "rtol: 0.5"), ("*", "*", "compare: exact")], EXACT, Comparison(rtol=0.5)),
        ([("*", "0.8.*", "rtol: 0.5"), ("*", "*", "compare: exact")], Comparison(), EXACT),
        ([("*", "*", "compare: allclose")], EXACT, Comparison()),
    ],
)
def test_the_first_matching_rule_decides_if_a_golden_is_exact(load, numbers, recorded, wanted):
    lines = [RULE.format(cases=cases, writers=writers, reason=REASON, how=how) for cases, writers, how in numbers]
    policy = load("numbers:\n" + "".join(f"  - {line}\n" for line in lines))
    (found,) = under_policy([golden("tests.test_a.test_f", "0.9.2", comparison=recorded)], policy)
    assert found.compared_as.comparison == wanted


QUIRK = """quirks:
  - {{case: tests.test_a.test_f, writer: "0.9.2", {what}, reason: a, owner: me, issue: "7", added: 2026-10-01,
     expires: 2026-12-01}}
"""
AN_EXACT_RULE = f"numbers: [{{cases: ['*'], {REASON}, compare: exact}}]\n"


@pytest.mark.parametrize("amount", ["rtol: 0.1", "atol: 0.1", "ulp: 4"])
@pytest.mark.parametrize(("recorded", "rules"), [(EXACT, ""), (Comparison(), AN_EXACT_RULE)], ids=["golden", "rule"])
def test_a_quirk_cannot_give_exact_a_tolerance(load, amount, recorded, rules):
    one = golden("tests.test_a.test_f", "0.9.2", comparison=recorded)
    with pytest.raises(MatrixError, match="tolerance"):
        under_policy([one], load(rules + QUIRK.format(what=amount)))


def test_a_quirk_that_allows_a_custom_call_does_not_relax_exact(load):
    one = golden("tests.test_a.test_f", "0.9.2", comparison=EXACT)
    (found,) = under_policy([one], load(QUIRK.format(what="allow: [my_target]")))
    assert found.compared_as.comparison == EXACT
    assert "my_target" in found.compared_as.allow


TEST = """
@pytest.mark.export_compat(compare="exact")
def test_{name}(export_golden):
    export_golden(jax.jit({function}), {arguments})
"""
SIGNED, ANGLES = "np.array([1.0, -0.0], np.float32)", "np.arange(1.0, 5.0, dtype=np.float32)"
FUNCTIONS = {
    "zeros": ("lambda x: x * 0", "np.array([1.0, -1.0], np.float32)"),
    "nan": ("lambda x: (x, x[:1])", "np.array([0x7fc12345, 0x3f800000], np.uint32).view(np.float32)"),
    "keys": ("jax.random.wrap_key_data", "np.arange(6, dtype=np.uint32).reshape(3, 2)"),
    "int4": ("lambda x: x.astype(jnp.int4)", "np.array([-1, 7, -8], np.int32)"),
    "bfloat16": ("lambda x: x.astype(jnp.bfloat16)", SIGNED),
    "complex": ("lambda x: jax.lax.complex(x, x)", SIGNED),
    "empty": ("lambda x: (x[:0], x > 0)", SIGNED),
    "weak": ("lambda x: (x, jnp.asarray(2.0) * 3)", SIGNED),
    "sine": ("jnp.sin", ANGLES),
    "unchanged": ("jnp.sin", ANGLES),
}
MORE = f"""
@pytest.mark.export_compat(compare="exact")
def test_call(export_golden):
    exported = export_golden(jax.jit(jnp.sin), {ANGLES})
    exported.also({ANGLES} + 1)

@pytest.mark.export_compat(compare="exact", vjp_order=1)
def test_slope(export_golden):
    export_golden(jax.jit(jnp.sin), {ANGLES})

@pytest.mark.export_compat(rtol=0.5)
class TestClass:
    @pytest.mark.export_compat(compare="exact")
    def test_both(self, export_golden):
        export_golden(jax.jit(jnp.sin), {ANGLES})
"""
"""Exact tests with a further call, with a derivative, and with a tolerance in the marker of their class."""
CHANGED = {
    **{f"test_a.test_{name}": OUTPUTS for name in FUNCTIONS if name != "unchanged"},
    "test_a.test_call": "call1.outputs.npz",
    "test_a.TestClass.test_both": OUTPUTS,
}
"""The file of outputs, by test, in which a bit of each array is changed."""
IMPORTS = "import jax, jax.numpy as jnp, numpy as np, pytest\n"


def one_bit_off(leaf: Leaf) -> Leaf:
    """Return the array with one bit of its first element changed: of a zero its sign, else the lowest one."""
    data = leaf.data.copy()
    first = data.reshape(-1)[:1].view(np.uint8)
    if leaf.dtype == "float32" and not first[:3].any() and first.size:
        first[3] ^= 0x80
    elif first.size:
        first[0] ^= 1
    return Leaf(leaf.dtype, data)


def change(project: Project, case: str, name: str) -> None:
    """Change a bit of each array in a file of a case's only golden."""
    (found,) = GoldenStore(project.goldens).generations(case)
    data = to_npz([one_bit_off(leaf) for leaf in from_npz(found.folder / name)])
    (found.folder / name).write_bytes(data)
    files = {**found.manifest.files, name: sha256(data)}
    (found.folder / MANIFEST).write_bytes(dump_manifest(structs.replace(found.manifest, files=files)))


@pytest.fixture(scope="module")
def exact(projects: Projects) -> SimpleNamespace:
    """Runs of exact tests in a project with wide tolerances: as written, and after a bit of outputs was changed."""
    tests = [TEST.format(name=name, function=f, arguments=x) for name, (f, x) in FUNCTIONS.items()]
    project = projects(test_a=IMPORTS + "".join(tests) + MORE)
    policy = "rtol: 0.5\natol: 0.5\ntolerances: {cpu: {float32: {rtol: 0.5, ulp: 9}}}\n"
    (project.folder / "export_compat.yaml").write_text(policy)
    exact = SimpleNamespace(written=project.pytest("--update-goldens"), first=project.pytest())
    for case, name in CHANGED.items():
        change(project, case, name)
    exact.changed = project.pytest()
    return exact


def test_goldens_of_exact_tests_replay_in_their_own_writer(exact):
    assert exact.written.code == 0, exact.written.text
    assert exact.first.code == 0, exact.first.text
    assert {found.outcome for found in exact.first.tests.values()} == {"passed"}


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_bit_of_an_exact_golden_fails_its_test(exact, name):
    found = exact.changed.tests[name]
    assert found.outcome == "failed", exact.changed.text
    assert found.text.startswith("Other numbers ")


def test_an_exact_golden_without_a_changed_bit_still_passes(exact):
    assert exact.changed.tests["test_a.test_unchanged"].outcome == "passed", exact.changed.text


@pytest.mark.parametrize("compare", ["['exact']", "{'float32': 'exact'}", "'Exact'", "'equal'"])
def test_a_malformed_exact_in_a_marker_is_an_error(projects, compare):
    text = TEST.format(name="f", function="jnp.sin", arguments=ANGLES).replace('"exact"', compare)
    found = projects(test_b=IMPORTS + text).pytest("--update-goldens").tests["test_b.test_f"]
    assert found.outcome == "error"
    assert "@pytest.mark.export_compat compare=" in found.text


@pytest.fixture(scope="module")
def marked(projects):
    """Runs of tests with more than `exact` in their marker: as written, with a bit changed, and with a wide policy."""
    marks = {"derivative": "compare='exact', vjp_order=1", "ulp": "compare='exact', ulp=1"}
    lines = [
        TEST.replace('compare="exact"', m).format(name=n, function="jnp.sin", arguments=ANGLES)
        for n, m in marks.items()
    ]
    project = projects(test_a=IMPORTS + "".join(lines))
    marked = SimpleNamespace(written=project.pytest("--update-goldens"))
    change(project, "test_a.test_derivative", "vjp1.outputs.npz")
    marked.changed = project.pytest()
    (project.folder / "export_compat.yaml").write_text("rtol: 0.5\n")
    marked.wide = project.pytest()
    return marked


def test_a_changed_bit_of_a_derivative_fails_its_test(marked):
    assert marked.changed.tests["test_a.test_derivative"].outcome == "failed"
    assert (
        "vjp1: output 0 (derivative by args[0]) float32[4]: 1 of 4 elements"
        in marked.changed.tests["test_a.test_derivative"].text
    )


def test_the_rule_that_the_summary_suggests_can_be_loaded(marked, load):
    """If the summary of the run suggests a rule, the policy accepts the line."""
    for entry in re.findall(r"numbers: \[(.*)\]", marked.wide.text):
        load(f"numbers: [{entry}]".replace("TODO", "counted"))


def test_a_tolerance_of_the_policy_leaves_an_exact_derivative_exact(marked):
    assert marked.wide.tests["test_a.test_derivative"].outcome == "failed"


def test_exact_with_ulp_in_a_marker_is_an_error(marked):
    assert marked.written.tests["test_a.test_ulp"].outcome == "error"
