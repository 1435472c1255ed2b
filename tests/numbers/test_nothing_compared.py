"""Goldens whose comparison can never fail."""

import msgspec
import numpy as np
import pytest
from making import files, golden, write_golden

from export_core.base.tolerances import Tolerance
from export_core.goldens import Check, Comparison, GoldenStore, Options
from export_core.goldens.arrays import Leaf, key_leaf, leaf_of, to_npz
from export_core.goldens.store import OUTPUTS
from export_core.numbers.nothing_compared import calls_without_values, nothing_compared, other_leaf
from export_core.numbers.user_code import UserCode

OWN = """
def anything(expected, actual):
    return None

def same_sum(expected, actual):
    return None if expected[0].sum() == actual[0].sum() else "another sum"
"""
ZEROS = "its comparison accepts zeros in place of every output"
NAN, EMPTY = np.full(2, np.nan, np.float32), np.zeros((0, 3), np.float32)


def stored(root, *arrays, **changes):
    content = {**files(), OUTPUTS: to_npz(map(leaf_of, arrays))} if arrays or changes.pop("empty", False) else files()
    return write_golden(GoldenStore(root), golden(**changes).manifest, content)


@pytest.mark.parametrize(
    ("arrays", "changes", "why"),
    [
        ((), {"empty": True}, "the function has no outputs"),
        ((EMPTY,), {}, "its outputs have no values"),
        ((NAN, EMPTY), {}, "all values of its outputs are NaN"),
        ((), {"comparison": Comparison("shape")}, "its comparison looks at shapes and dtypes alone"),
        ((), {"comparison": Comparison(rtol=1.0)}, ZEROS),
        ((), {"comparison": Comparison(atol={"float32": 1e30})}, ZEROS),
        ((), {"comparison": Comparison("own:anything")}, ZEROS),
    ],
)
def test_the_reason_why_a_golden_compares_nothing_is_found(tmp_path, arrays, changes, why):
    assert found(tmp_path, stored(tmp_path / "golden", *arrays, **changes)) == why


@pytest.mark.parametrize(
    ("arrays", "changes"),
    [
        ((), {}),
        ((), {"comparison": Comparison("exact")}),
        ((), {"comparison": Comparison(rtol=0.45)}),
        ((), {"comparison": Comparison("own:same_sum")}),
        ((), {"comparison": Comparison("own:not_there")}),
        ((NAN, np.arange(2)), {"comparison": Comparison(rtol=1.0)}),
        ((np.zeros(3, np.float32),), {"comparison": Comparison(atol=1e-3)}),
    ],
)
def test_a_golden_with_one_compared_number_compares_something(tmp_path, arrays, changes):
    assert found(tmp_path, stored(tmp_path / "golden", *arrays, **changes)) == ""


def found(folder, made):
    (folder / "own.py").write_text(OWN)
    user_code = UserCode(folder)
    try:
        return nothing_compared(made, "cpu", {}, user_code)
    finally:
        user_code.close()


def test_a_tolerance_for_cuda_that_accepts_all_is_not_applied_on_cpu(tmp_path):
    made, tolerances = stored(tmp_path), {"cuda": {"float32": Tolerance(rtol=1e30)}}
    assert nothing_compared(made, "cpu", tolerances) == ""
    assert nothing_compared(made, "cuda", tolerances) == ZEROS


def test_a_golden_without_outputs_compares_nothing():
    made = golden(options=Options(("tpu",), without_outputs="no TPU here"))
    assert nothing_compared(made, "tpu", {}) == "the golden has no outputs (no TPU here)"


def test_outputs_of_further_calls_but_not_of_vjps_count_as_compared(tmp_path):
    (made,) = (stored(tmp_path, NAN),)
    (made.folder / "more.npz").write_bytes(files()[OUTPUTS])
    for order, is_nothing in ((0, False), (1, True)):
        checks = (Check("more", vjp=order, outputs="more.npz"),)
        more = msgspec.structs.replace(made.manifest, checks=checks)
        assert bool(nothing_compared(type(made)(more, made.folder), "cpu", {})) is is_nothing


FLOAT0 = Leaf("float0", np.zeros(2, bool))


@pytest.mark.parametrize(
    ("order", "leaves", "why"),
    [
        (1, [FLOAT0, FLOAT0], "vjp1: no number is compared, since derivatives by integers and booleans have none"),
        (0, [leaf_of(EMPTY)], "call1 (exported.also): no number is compared, since its outputs have no values"),
        (1, [FLOAT0, leaf_of(NAN)], ""),
        (0, [leaf_of(np.zeros(1))], ""),
    ],
)
def test_calls_without_a_compared_number_are_found(tmp_path, order, leaves, why):
    made = stored(tmp_path)
    (made.folder / "more.npz").write_bytes(to_npz(leaves))
    checks = (Check("vjp1" if order else "call1", vjp=order, outputs="more.npz"),)
    remarks = calls_without_values(type(made)(msgspec.structs.replace(made.manifest, checks=checks), made.folder))
    assert [text.startswith(why) for text in remarks] == ([True] if why else [])


def test_uncompared_outputs_are_found_though_derivatives_are_compared(tmp_path):
    made = stored(tmp_path / "golden", comparison=Comparison("own:anything"))
    (made.folder / "vjp1.npz").write_bytes(files()[OUTPUTS])
    manifest = msgspec.structs.replace(made.manifest, checks=(Check("vjp1", vjp=1, outputs="vjp1.npz"),))
    assert found(tmp_path, type(made)(manifest, made.folder)) == ZEROS


@pytest.mark.parametrize(
    "leaf",
    [
        leaf_of(np.array([0.0, -0.0, 1.5, np.inf])),
        leaf_of(np.array([True, False])),
        leaf_of(np.array([0, 7], np.int8)),
        leaf_of(np.array([0, 1j], np.complex64)),
        key_leaf("key<fry>", np.array([[0, 7]], np.uint32)),
        Leaf("bfloat16", np.array([0, 16256], np.uint16)),
    ],
    ids=str,
)
def test_replacement_values_of_an_array_differ_in_every_element(leaf):
    other = other_leaf(leaf)
    assert str(other) == str(leaf)
    assert other.data.dtype == leaf.data.dtype
    assert not (other.numpy() == leaf.numpy()).any()
