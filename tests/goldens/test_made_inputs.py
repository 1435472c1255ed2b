"""Inputs that are made for an artifact from its types alone."""

import hashlib

import numpy as np
import pytest

from export_core.artifact import Aval
from export_core.artifact.envelope.schema import DTYPES
from export_core.artifact.main_check import dimension_names
from export_core.goldens import GoldenError
from export_core.goldens.adopt import _leaf
from export_core.goldens.made_inputs import RULES, made_inputs


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_of_every_dtype_are_made(dtype):
    for aval in (Aval(dtype, shape) for shape in ((), (3, 4), (0, 2))):
        (leaf,), sizes = made_inputs([aval], {})
        assert (str(leaf), sizes) == (str(aval), {})
        assert _leaf("argument", leaf, aval) is leaf
        (again,), _ = made_inputs([aval], {})
        assert again.data.tobytes() == leaf.data.tobytes()


def test_made_arguments_use_successive_random_numbers_of_one_seed():
    (first, second), _ = made_inputs([Aval("float32", (2,)), Aval("complex64", (2,))], {})
    normal = np.random.RandomState(20261122).standard_normal(6).astype("float32")
    assert first.data.tolist() == normal[:2].tolist()
    assert second.data.tolist() == (normal[2:4] + 1j * normal[4:]).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("size", [2, 64])
def test_square_matrices_may_be_made_positive_definite(dtype, size):
    (leaf, vector), _ = made_inputs([Aval(dtype, (3, size, size)), Aval(dtype, (size,))], {}, "positive definite")
    for matrix in leaf.numpy().astype(complex if dtype == "complex64" else float):
        assert (matrix == matrix.conj().T).all()
        assert np.linalg.eigvalsh(matrix).min() > 0.25
    assert (vector.numpy().real > 0).all()


def test_positive_inputs_lie_in_fixed_ranges():
    (real, whole), _ = made_inputs([Aval("float32", (500,)), Aval("int32", (500,))], {}, "positive")
    assert (0.25 <= real.data.min() < 0.3, 0.7 < real.data.max() <= 0.75) == (True, True)
    assert set(whole.data) == set(range(1, 8))


DIGESTS = {"": "e6dfce65", "positive": "6fdaa0b9", "positive definite": "68f9c8e4"}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_for_made_inputs_gives_the_same_values_for_ever(rule):
    """The rules must never change: goldens contain values that they made."""
    avals = [Aval("float32", (4, 4)), Aval("int8", (5,)), Aval("complex64", (2, 3, 3)), Aval("key<fry>", ())]
    data = b"".join(leaf.data.tobytes() for leaf in made_inputs(avals, {}, rule)[0])
    assert hashlib.sha256(data).hexdigest()[:8] == DIGESTS[rule]


def test_symbolic_dimensions_get_sizes_by_name():
    avals = [Aval("float32", ("h", "2*b + 1")), Aval("int8", ("floordiv(w^2, 2)", 3))]
    assert sorted(dimension_names(avals)) == ["b", "h", "w"]
    leaves, sizes = made_inputs(avals, {"h": 7})
    assert sizes == {"b": 2, "h": 7, "w": 3}
    assert [leaf.shape for leaf in leaves] == [(7, 5), (4, 3)]


@pytest.mark.parametrize(
    ("constraints", "given", "sizes"),
    [
        (["b >= 2", "mod(b, 2) == 0"], {}, {"b": 2, "h": 3}),
        (["b >= 3"], {}, {"b": 3, "h": 2}),
        (["2*floordiv(b, 32) == floordiv(b, 16)", "b >= h + 16"], {}, {"b": 32, "h": 2}),
        (["b == h", "h <= 1"], {}, {"b": 1, "h": 1}),
        (["b >= h"], {"b": 9}, {"b": 9, "h": 2}),
        (["b>=h", "mod(h,2)==0", "h  <=  4"], {}, {"b": 3, "h": 2}),  # jax keeps the spaces of its writer
        (["something that jax does not print"], {}, {"b": 2, "h": 3}),
    ],
)
def test_chosen_sizes_satisfy_the_constraints(constraints, given, sizes):
    assert made_inputs([Aval("float32", ("b", "h"))], given, constraints=constraints)[1] == sizes


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "found none among the small sizes that were tried. Give"),
        ({"b": 4}, "found none among the small sizes that were tried with b = 4."),
    ],
)
def test_constraints_that_no_size_satisfies_are_an_error(given, found):
    with pytest.raises(GoldenError) as raised:
        made_inputs([Aval("float32", ("b",))], given, constraints=["b >= 1000000"])
    assert "the artifact's constraints hold (b >= 1000000), " + found in str(raised.value)


@pytest.mark.parametrize(
    ("dim", "sizes", "message"),
    [
        (1 << 40, {}, "expected at most 536,870,912 elements in all inputs, found 1,099,511,627,776"),
        ("b", {"b": 1 << 40}, "expected at most 536,870,912 elements"),
        ("b - 2 + 10000000000000000000000000*(b - 2)", {}, "a shape, found b = 2"),
        ("-".join("b" * 5000), {}, "a shape, found b = 2"),
        ("b - 2", {}, "expected sizes of symbolic dimensions that give float32[b - 2] a shape, found b = 2"),
        ("floordiv(b, 0)", {}, "that give float32[floordiv(b, 0)] a shape"),
        ("__import__('os')", {}, "a shape"),
        ("b", {"c": 1}, "expected sizes of its symbolic dimensions (b), found a size of c"),
        (3, {"c": 1}, "expected sizes of its symbolic dimensions (it has none), found a size of c"),
    ],
)
def test_shapes_that_cannot_be_made_are_refused(dim, sizes, message):
    with pytest.raises(GoldenError) as raised:
        made_inputs([Aval("float32", (dim,))], sizes)
    assert message in str(raised.value)


def test_an_empty_shape_too_large_for_numpy_is_refused():
    with pytest.raises(GoldenError, match="expected at most 536,870,912 elements"):
        made_inputs([Aval("float32", (0, 1 << 70))], {})
