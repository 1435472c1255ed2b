"""Functions over several devices: meshes with and without devices, collectives, and one-device artifacts on many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@pytest.fixture
def grid():
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))


@pytest.mark.export_compat(mesh={"data": 2}, in_specs=(P("data"),))
def test_two_devices(export_golden, numbers):
    export_golden(jax.jit(lambda x: 2 * jnp.sin(x) + 1), numbers(4))


@pytest.mark.export_compat(mesh={"data": 2, "model": 2}, in_specs=(P("data", None), P(None, "model")))
def test_four_devices(export_golden, numbers):
    export_golden(jax.jit(jnp.matmul), numbers(4, 3), numbers(3, 2))


@pytest.mark.export_compat(mesh={"data": 2}, in_specs=(P("data"),), vjp_order=1)
def test_derivative(export_golden, numbers):
    export_golden(jax.jit(lambda x: (jnp.sin(x) * x).sum(1)), numbers(4, 2))


@pytest.mark.export_compat(mesh={"data": 2}, in_specs=(P("data"),), symbolic_shapes=None)
def test_reduction_over_devices(export_golden, numbers):
    export_golden(jax.jit(lambda x: (x - x.mean(0), x.max())), numbers(4, 2))


@pytest.mark.export_compat
def test_mesh_with_devices(export_golden, numbers, grid):
    export_golden(jax.jit(lambda x: x.T @ x), jax.device_put(numbers(4, 4), NamedSharding(grid, P("x", "y"))))


@pytest.mark.export_compat
def test_constraint_inside(export_golden, numbers, grid):
    def transposed(x):
        return jax.lax.with_sharding_constraint(x.T, NamedSharding(grid, P("y", "x"))) + 1

    export_golden(jax.jit(transposed), jax.device_put(numbers(4, 4), NamedSharding(grid, P("x", None))))


@pytest.mark.export_compat
def test_output_shardings(export_golden, numbers, grid):
    wanted = (NamedSharding(grid, P("y")), NamedSharding(grid, P()))
    function = jax.jit(lambda x: (x * 2, x.sum()), out_shardings=wanted)
    export_golden(function, jax.device_put(numbers(4, 2), NamedSharding(grid, P("x"))))


@pytest.mark.export_compat
def test_shard_map(export_golden, numbers, grid):
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    summed = shard_map(lambda x: jax.lax.psum(x, "x"), mesh=grid, in_specs=P("x", "y"), out_specs=P(None, "y"))
    export_golden(jax.jit(summed), jax.device_put(numbers(4, 4), NamedSharding(grid, P("x", "y"))))


@pytest.mark.export_compat(spread_over=4)
def test_one_device_artifact_on_four(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.cos(x) - x.mean()), numbers(8))
