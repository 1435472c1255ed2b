"""Arguments that are `jax.ShapeDtypeStruct`: their values are made by a fixed rule, or given."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.export import symbolic_shape
from jax.sharding import NamedSharding, PartitionSpec

from export_core.export import abstract_inputs
from export_core.export.abstract_inputs import take_inputs, with_values
from export_core.export.arguments import Arguments, leaf_from
from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks, require_values
from export_core.goldens.arrays import from_npz

Struct = jax.ShapeDtypeStruct
X = Struct((2, 3), np.float32)


def values(*args: Any, inputs: Any = None, rule: Any = "", **kwargs: Any) -> list[Any]:
    return with_values("t", Arguments(args, kwargs), inputs, rule).flat()


RULE = {
    "float32": "e29e2e2b",
    "bfloat16": "31c26754",
    "int32": "1c31e835",
    "uint8": "5d5acf23",
    "int4": "5d5acf23",
    "bool": "9279aba8",
    "complex64": "e31f03ad",
    "float8_e4m3fn": "02146c3a",
}
"""The start of a digest of the values of each dtype. The rule must never change: goldens store its values."""


@pytest.mark.parametrize("dtype", RULE)
def test_inputs_made_for_a_dtype_always_have_the_same_values(dtype: str):
    (made,) = values(Struct((3, 4), dtype))
    assert (made.shape, str(made.dtype)) == ((3, 4), dtype)
    assert hashlib.sha256(leaf_from(made).data.tobytes()).hexdigest()[:8] == RULE[dtype]


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_made_random_keys_give_distinct_numbers(implementation: str):
    (keys,) = values(Struct((2,), jax.random.key(0, impl=implementation).dtype))
    draws = jax.vmap(lambda key: jax.random.uniform(key, (3,)))(keys)
    assert len(np.unique(draws)) == 6


def test_arrays_beside_abstract_inputs_are_unchanged():
    array = jnp.ones(3)
    made, given = values({"a": X, "b": array})
    assert made.shape == (2, 3)
    assert given is array


def test_a_static_argument_beside_an_abstract_one_is_found(exported):
    golden = exported(jax.jit(lambda x, n: x * n, static_argnums=1), X, 3)
    assert golden.manifest.signature.inputs == ("float32[2,3]",)


def test_given_inputs_replace_abstract_arguments_in_order(exported):
    golden = exported(jnp.subtract, X, X, kwargs={"inputs": (np.ones((2, 3)), jnp.zeros((2, 3)))})
    assert golden.outputs[0].data.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert not golden.manifest.inputs_made


SQUARE = Struct((2, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("function", "struct", "rule"),
    [
        (jnp.sin, X, ""),
        (jnp.log, X, "positive"),
        (jnp.arcsin, X, "positive"),
        (lambda x: 1 / x, Struct((9,), np.int32), "positive"),
        (jnp.linalg.cholesky, SQUARE, "positive definite"),
        (jnp.linalg.cholesky, Struct((3, 3), np.complex64), "positive definite"),
        (lambda x: jax.scipy.linalg.solve(x, x[0], assume_a="pos"), Struct((4, 4), np.float32), "positive definite"),
        (jnp.log, Struct((20,), jnp.bfloat16), "positive"),
    ],
)
def test_made_inputs_lie_in_the_domain_of_the_function(exported, function: Any, struct: Any, rule: str):
    golden = exported(function, struct)
    assert (golden.manifest.inputs_rule, golden.outside) == (rule, ())
    assert all(np.isfinite(leaf.numpy().astype(complex)).all() for leaf in golden.outputs)
    (made,) = values(struct, rule=rule)
    assert golden.inputs[0].data.tobytes() == leaf_from(made).data.tobytes()


def test_inputs_are_requested_if_all_made_ones_give_nan(exported):
    golden = add_checks(exported(lambda x: jnp.log(-x * x), X), [ExtraCall((X,), {})])
    assert (golden.manifest.inputs_rule, golden.outside) == ("", ("the first call", "call1"))
    message = r"NaN or infinities in the outputs of the first call and call1 for .* inputs=\(array, ...\), one for each"
    with pytest.raises(ExportError, match=message):
        require_values(golden)


def test_given_inputs_may_have_infinite_outputs(exported):
    golden = exported(jnp.log, X, kwargs={"inputs": np.eye(2, 3, dtype=np.float32)})
    assert np.isinf(golden.outputs[0].data).any()
    golden = add_checks(golden, [ExtraCall((X,), {})])
    (outputs,) = from_npz(golden.files["call1.outputs.npz"])
    assert np.isfinite(outputs.data).all()
    require_values(golden)


@pytest.mark.parametrize("inputs", [X, jnp.ones((2, 3))])
def test_a_function_may_have_an_argument_named_inputs(exported, inputs: Any):
    golden = exported(lambda inputs: inputs * 2, kwargs={"inputs": inputs})
    assert golden.manifest.signature.inputs == ("float32[2,3]",)


def test_abstract_values_in_the_keyword_inputs_go_to_the_function():
    assert take_inputs((X,), {"inputs": [X]}) == (None, {"inputs": [X]})


# --- symbolic dimensions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimensions", "constraints", "shape"),
    [
        ("b, 4", (), (2, 4)),
        ("b, 4", ("b >= 5",), (5, 4)),
        ("b, h", (), (2, 3)),
        ("b, 2*h", ("h <= b",), (3, 4)),
        ("b, 3*b + 1", (), (2, 7)),
        ("b, floordiv(b, 3)", (), (3, 1)),
        ("b, max(b, 4)", (), (2, 4)),
        ("b, b^2", (), (2, 4)),
        ("b, 0", (), (2, 0)),
        ("a, b, c, d, e", (), (2, 3, 4, 5, 6)),
        ("a, b", ("a == b",), (2, 2)),
    ],
)
def test_symbolic_dimensions_get_the_smallest_valid_sizes(
    dimensions: str, constraints: tuple[str, ...], shape: tuple[int, ...]
):
    (made,) = values(Struct(symbolic_shape(dimensions, constraints=constraints), np.float32))
    assert made.shape == shape


# --- shardings --------------------------------------------------------------------------------------------------------


def test_an_abstract_mesh_becomes_a_mesh_of_devices(exported):
    mesh = jax.sharding.AbstractMesh((4,), ("a",), axis_types=(jax.sharding.AxisType.Explicit,))
    whole = NamedSharding(mesh, PartitionSpec())
    struct = Struct((8,), np.float32, sharding=NamedSharding(mesh, PartitionSpec("a")))
    golden = exported(lambda x: jax.sharding.reshard(x * 2, whole), struct)  # only explicit axes can be resharded
    assert golden.manifest.options.mesh == {"a": 4}
    assert [len(value.devices()) for value in golden.arguments.flat()] == [4]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "inputs", "message"),
    [
        ((X, X), (np.ones((2, 3)),), "inputs= has 1 value: expected 2, one for each jax.ShapeDtypeStruct"),
        ((X,), (np.ones((2, 4)),), r"expected ShapeDtypeStruct\(shape=\(2, 3\).*, found float32\[2, 4\]"),
        ((X,), (np.ones((1, 2, 3)),), r"inputs=: expected .*, found float32\[1, 2, 3\]"),
        ((Struct(symbolic_shape("b"), np.float32),), (1.0,), r"inputs=: expected .*, found float32\[\]"),
        ((X,), (np.ones((2, 3), np.int32),), r"inputs=: expected .*, found int32\[2, 3\]"),
        ((jax.eval_shape(lambda: 1.0),), None, "has a weak type, .* pass a Python number"),
    ],
)
def test_inputs_of_a_wrong_number_or_type_are_refused(args: Any, inputs: Any, message: str):
    with pytest.raises(ExportError, match=message):
        values(*args, inputs=inputs)


def test_inputs_are_requested_if_no_sizes_are_valid(monkeypatch):
    monkeypatch.setattr(abstract_inputs, "_TRIED", 16)
    struct = Struct(symbolic_shape("a, b, c, d", constraints=("a >= 100",)), np.float32)
    with pytest.raises(ExportError, match=r"found no sizes for a, b, c, d .* pass inputs=\(array, ...\)"):
        values(struct)
