"""The sample of JAX's harnesses has all primitives, is the same in every run, and hardly changes with new harnesses."""

from __future__ import annotations

import types

import pytest

from export_core.export.case import case_id
from studies.corpus.harness_sampling import compared_by, id_of, primitive_of, sample


def harness(primitive, number, **params):
    return types.SimpleNamespace(group_name=primitive, fullname=f"{primitive}_shape={number}[2,3]", params=params)


HARNESSES = [harness(primitive, n) for primitive, count in (("add", 40), ("sort", 3), ("svd", 7)) for n in range(count)]


def names(harnesses):
    return [each.fullname for each in harnesses]


def test_a_sample_takes_primitives_in_turn():
    taken = [each.group_name for each in sample(HARNESSES, 8)]
    assert {name: taken.count(name) for name in ("add", "sort", "svd")} in (
        {"add": 3, "sort": 3, "svd": 2},
        {"add": 3, "sort": 2, "svd": 3},
        {"add": 2, "sort": 3, "svd": 3},
    )


def test_a_smaller_sample_is_the_start_of_a_larger_one():
    assert names(sample(HARNESSES, 20))[:9] == names(sample(HARNESSES, 9))


def test_a_sample_does_not_depend_on_the_order_of_the_list():
    assert names(sample(HARNESSES[::-1], 9)) == names(sample(HARNESSES, 9))


def test_a_new_harness_replaces_at_most_one_of_a_sample():
    before = names(sample(HARNESSES, 9))
    after = names(sample([*HARNESSES, harness("add", 99)], 9))
    assert len(set(before) - set(after)) <= 1


def test_a_sample_has_each_primitive_at_least_once():
    assert {each.group_name for each in sample(HARNESSES, 1)} == {"add", "sort", "svd"}


def test_without_a_count_all_harnesses_are_taken():
    assert sorted(names(sample(HARNESSES))) == sorted(names(HARNESSES))


def test_an_id_is_safe_and_names_the_primitive():
    each = harness("reduce_max", "dtype")
    each.fullname = "reduce_max_shape=f32[2,3]_axes=(0, -1)"
    case = case_id("tests/harnesses.py", (f"test_harness[{id_of(each)}]",), None)
    assert case == "tests.harnesses.test_harness[reduce_max-shape=f32_2_3__axes=_0_1]"
    assert primitive_of(case) == "reduce_max"


def test_only_an_svd_with_factors_is_compared_as_factors():
    assert compared_by(harness("svd", 1, compute_uv=True)) == "svd"
    assert compared_by(harness("svd", 1, compute_uv=False)) == "allclose"
    assert compared_by(harness("add", 1)) == "allclose"


def test_the_installed_jax_has_harnesses_of_all_kinds():
    module = pytest.importorskip("jax._src.internal_test_util.test_harnesses")
    harnesses = module.all_harnesses
    assert len(harnesses) > 5000
    ids = [id_of(each) for each in harnesses]
    assert len(set(ids)) == len(ids)
    primitives = {each.group_name for each in harnesses}
    assert {each.group_name for each in sample(harnesses, 150)} == primitives
    assert {"eig", "eigh", "lu", "qr", "svd", "round"} <= primitives
