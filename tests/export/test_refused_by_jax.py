"""What jax itself refuses to export, call or differentiate, with the message that docs/reference/cases.md quotes.

A refusal names the line of the user's code.
"""

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

from export_core.export.errors import ExportError

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "cases.md").read_text(encoding="utf-8").split())
X = np.ones((4, 2), np.float32)


def exported(function, *args):
    return jax.export.export(jax.jit(function))(*args)


def rehydrated(vjp_order=0):
    return jax.export.deserialize(exported(jnp.sin, X).serialize(vjp_order=vjp_order)).call


def over_four_devices():
    return Mesh(np.array(jax.devices()[:4]), ("a",))


def custom_partitioning_over_devices():
    doubled = custom_partitioning(lambda x: x * 2)
    doubled.def_partition(
        infer_sharding_from_operands=lambda *_: None, partition=lambda *_: None, sharding_rule="i j -> i j"
    )
    jax.export.export(jax.jit(doubled, in_shardings=NamedSharding(over_four_devices(), P("a"))))(X)


def an_error_of_checkify():
    exported(checkify.checkify(lambda x: checkify.check(x.sum() > 0, "no sum")), X).serialize()


def a_ragged_exchange():
    def exchange(x):
        return lax.ragged_all_to_all(x[0], jnp.zeros(2, np.float32), *[jnp.zeros(4, jnp.int32)] * 4, axis_name="a")

    exported(jax.shard_map(exchange, mesh=over_four_devices(), in_specs=P("a"), out_specs=P("a")), X)


def a_key_of_a_newer_generator():
    try:
        key = jax.random.key(0, impl="philox4x32")
    except ValueError:
        pytest.skip(f"jax {jax.__version__} has no philox4x32")
    exported(lambda key: key, key).serialize()


def a_reference_that_is_closed_over():
    ref = jax.new_ref(X)
    exported(lambda x: x + ref[...], X)


def a_layout_constraint():
    exported(lambda x: with_layout_constraint(x, Layout((1, 0))), X)


MESSAGES = [
    (NotImplementedError, "", lambda: exported(lambda ref: ref[...], jax.new_ref(X))),
    (ValueError, "Too many leaves for PyTreeDef", a_reference_that_is_closed_over),
    (ValueError, "mutable array references cannot be returned", lambda: exported(jax.new_ref, X)),
    (ValueError, "no compatibility guarantees.*LayoutConstraint", a_layout_constraint),
    (NotImplementedError, "serialization of host_callbacks is not yet implemented", custom_partitioning_over_devices),
    (TypeError, "Serialization is supported only for dictionaries with string keys", an_error_of_checkify),
    (ValueError, "no compatibility guarantees.*ragged_all_to_all", a_ragged_exchange),
    (NotImplementedError, "Batching rule for 'call_exported' not implemented", lambda: jax.vmap(rehydrated())(X[None])),
    (TypeError, "can't apply forward-mode autodiff", lambda: jax.jvp(rehydrated(vjp_order=1), (X,), (X,))),
    (ValueError, "No VJP is available", lambda: jax.grad(lambda x: rehydrated()(x).sum())(X)),
    (KeyError, "key<phx4>", a_key_of_a_newer_generator),
]


@pytest.mark.parametrize(("kind", "message", "refused"), MESSAGES)
def test_jax_refuses_with_the_message_of_the_page(kind, message, refused):
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
