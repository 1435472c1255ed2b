"""Arguments of which a case has only the types, as `jax.ShapeDtypeStruct`; their values follow the plugin's rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

Struct = jax.ShapeDtypeStruct


@pytest.mark.export_compat(constant=["args[0]['index']"])  # all are 3 or more: the last element
def test_several_dtypes(export_golden):
    def mixed(tree, flags):
        return tree["x"][tree["index"]] * tree["z"], jnp.where(flags, 1, 2)

    tree = {"x": Struct((4,), np.float32), "index": Struct((3,), np.int32), "z": Struct((), np.complex64)}
    export_golden(jax.jit(mixed), tree, flags=Struct((2, 2), np.bool_))


@pytest.mark.export_compat
def test_random_key(export_golden):
    export_golden(jax.jit(lambda key: jax.random.uniform(key, (3,))), Struct((), jax.random.key(0).dtype))


@pytest.mark.export_compat
def test_symbolic_dimensions(export_golden):
    x, y = jax.export.symbolic_args_specs(
        (Struct((1, 4), np.float32), Struct((4,), np.float32)), ("b, 2*h", "2*h"), constraints=("b >= 3",)
    )
    exported = export_golden(jax.jit(lambda x, y: jnp.tanh(x) @ y), x, y)
    exported.also(Struct((7, 6), np.float32), Struct((6,), np.float32))
    exported.refused(Struct((2, 4), np.float32), Struct((4,), np.float32), match="b >= 3")


@pytest.mark.export_compat
def test_values_of_our_own(export_golden):
    dimensions = jax.export.symbolic_shape("n, n")
    export_golden(jax.jit(jnp.triu), Struct(dimensions, np.float32), inputs=(np.arange(9.0).reshape(3, 3),))


@pytest.mark.export_compat
def test_sharding(export_golden):
    def sharding(*axes):
        return NamedSharding(AbstractMesh((2, 2), ("data", "model")), PartitionSpec(*axes))

    x = Struct((4, 6), np.float32, sharding=sharding("data", None))
    weights = Struct((6, 8), np.float32, sharding=sharding(None, "model"))
    export_golden(jax.jit(jnp.dot), x, weights)
