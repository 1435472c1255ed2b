"""What jax itself refuses to export, call or differentiate, with the message that docs/reference/cases.md quotes.

A refusal names the line of the user's code.
"""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify
from jax.experimental import pallas as pl
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from export_core.export import ExportError

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "cases.md").read_text(encoding="utf-8").split())
X = np.ones((4, 2), np.float32)


def exported(function, *args):
    return jax.export.export(jax.jit(function))(*args)


def rehydrated(vjp_order=0):
    return jax.export.deserialize(exported(jnp.sin, X).serialize(vjp_order=vjp_order))


def over_four_devices(function):
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    return jax.shard_map(function, mesh=mesh, in_specs=P("a"), out_specs=P("a"))


def a_reference_as_argument():
    exported(lambda ref: ref[...], jax.new_ref(X))


def a_reference_that_is_closed_over():
    ref = jax.new_ref(X)
    exported(lambda x: x + ref[...], X)


def a_reference_as_result():
    exported(jax.new_ref, X)


def a_layout_constraint():
    exported(lambda x: with_layout_constraint(x, Layout((1, 0))), X)


def custom_partitioning_over_devices():
    doubled = custom_partitioning(lambda x: x * 2)
    doubled.def_partition(
        infer_sharding_from_operands=lambda *_: None, partition=lambda *_: None, sharding_rule="i j -> i j"
    )
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    jax.export.export(jax.jit(doubled, in_shardings=NamedSharding(mesh, P("a"))))(X)


def an_error_of_checkify():
    def checked(x):
        checkify.check(x.sum() > 0, "no sum")
        return x

    exported(checkify.checkify(checked), X).serialize()


def a_ragged_exchange():
    def exchange(x):
        return lax.ragged_all_to_all(x[0], jnp.zeros(2, np.float32), *[jnp.zeros(4, jnp.int32)] * 4, axis_name="a")

    exported(over_four_devices(exchange), X)


def vmap_of_an_exported_call():
    jax.vmap(rehydrated().call)(X[None])


def forward_mode_of_an_exported_call():
    jax.jvp(rehydrated(vjp_order=1).call, (X,), (X,))


def a_derivative_that_was_not_exported():
    jax.grad(lambda x: rehydrated().call(x).sum())(X)


def a_key_of_a_newer_generator():
    try:
        key = jax.random.key(0, impl="philox4x32")
    except ValueError:
        pytest.skip(f"jax {jax.__version__} has no philox4x32")
    exported(lambda key: key, key).serialize()


MESSAGES = {
    a_reference_as_argument: (NotImplementedError, ""),
    a_reference_that_is_closed_over: (ValueError, "Too many leaves for PyTreeDef"),
    a_reference_as_result: (ValueError, "mutable array references cannot be returned"),
    a_layout_constraint: (ValueError, "no compatibility guarantees.*LayoutConstraint"),
    custom_partitioning_over_devices: (NotImplementedError, "serialization of host_callbacks is not yet implemented"),
    an_error_of_checkify: (TypeError, "Serialization is supported only for dictionaries with string keys"),
    a_ragged_exchange: (ValueError, "no compatibility guarantees.*ragged_all_to_all"),
    vmap_of_an_exported_call: (NotImplementedError, "Batching rule for 'call_exported' not implemented"),
    forward_mode_of_an_exported_call: (TypeError, "can't apply forward-mode autodiff"),
    a_derivative_that_was_not_exported: (ValueError, "No VJP is available"),
    a_key_of_a_newer_generator: (KeyError, "key<phx4>"),
}


@pytest.mark.parametrize("refused", MESSAGES, ids=lambda function: function.__name__)
def test_jax_refuses_with_the_message_of_the_page(refused):
    kind, message = MESSAGES[refused]
    with pytest.raises(kind) as error:
        refused()
    assert re.search(message or "^$", str(error.value), re.DOTALL)
    for part in message.split(".*"):
        assert part in PAGE


THREE = np.arange(3, dtype=np.float32)


def own_call(x):
    y = jnp.sin(x)
    return jax.ffi.ffi_call("a_call_of_ours", jax.ShapeDtypeStruct(x.shape, x.dtype))(y)  # refused


def without_a_lowering(x):
    return jax.lax.scan(lambda c, _: (jax.lax.platform_dependent(c, tpu=jnp.sin), None), x, length=3)[0]  # refused


def kernel(x):
    return pl.pallas_call(lambda a, o: o.__setitem__(..., a[...]), out_shape=x)(x)  # refused


@pytest.mark.parametrize("function", [own_call, without_a_lowering, kernel])
def test_a_refusal_names_the_line_of_the_user(exported, function):
    with pytest.raises(ExportError, match=r" at \S*test_refused_by_jax\.py:\d+ in \S+: .*# refused"):
        exported(function, THREE)
