"""Meshes with explicit axes, meshes that only the function has, memories and layouts; options by keyword argument."""

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P


def needs(what, *release):
    """Skip the running test in releases of jax before `release`, the first that has `what`."""
    if jax.__version_info__ < release:
        pytest.skip(f"jax has {what} since {'.'.join(map(str, release))}")


@pytest.fixture
def line():
    """A mesh of four devices on one explicit axis, as `jax.make_mesh` makes it since 0.9."""
    needs("explicit axes as the default", 0, 9)
    return jax.make_mesh((4,), ("a",))


@pytest.fixture
def grid():
    """Four devices on two explicit axes."""
    needs("explicit axes as the default", 0, 9)
    return jax.make_mesh((2, 2), ("x", "y"))


@pytest.fixture
def row():
    """Four devices on an axis that XLA shards over."""
    return Mesh(np.array(jax.devices()[:4]), ("a",))


@pytest.fixture
def host():
    """The memory of the host, of a single device."""
    needs("pinned_host on a CPU", 0, 7)
    return SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")


# --- meshes with explicit axes ----------------------------------------------------------------------------------------


@pytest.mark.export_compat
def test_explicit_axis(export_golden, numbers, line):
    export_golden(jax.jit(lambda x: jnp.sin(x) * 2), jax.device_put(numbers(8, 2), NamedSharding(line, P("a"))))


@pytest.mark.export_compat(vjp_order=1)
def test_reshard(export_golden, numbers, grid):
    with jax.set_mesh(grid):
        x = jax.device_put(numbers(4, 4), P("x", "y"))
        exported = export_golden(jax.jit(lambda x: jax.sharding.reshard(jnp.sin(x), P("y", None))), x)
        exported.also(x + 1)


@pytest.mark.export_compat(mesh={"a": 4}, in_specs=(P("a"),))
def test_marker_mesh_under_set_mesh(export_golden, numbers, line):
    with jax.set_mesh(line):
        export_golden(jax.jit(lambda x: jax.sharding.reshard(x, P()).sum(0)), numbers(8, 2))


@pytest.mark.export_compat
def test_whole_under_set_mesh(export_golden, numbers, line):
    with jax.set_mesh(line):
        export_golden(jax.jit(jnp.cos), numbers(8, 2))


@pytest.mark.export_compat
def test_auto_axes(export_golden, numbers, line):
    with jax.set_mesh(line):
        summed = jax.sharding.auto_axes(lambda x: jnp.cumsum(x, 0), out_sharding=P("a"))
        export_golden(jax.jit(summed), jax.device_put(numbers(8, 2), P("a")))


@pytest.mark.export_compat
def test_two_explicit_meshes(export_golden, numbers, line, grid):
    x = jax.device_put(numbers(4, 4), NamedSharding(line, P("a")))
    y = jax.device_put(numbers(4, 4), NamedSharding(grid, P("x", "y")))
    export_golden(jax.jit(lambda x, y: (x * 2, y + 1)), x, y)


@pytest.mark.export_compat
def test_unreduced_result(export_golden, numbers, line):
    with jax.set_mesh(line):
        x, y = jax.device_put(numbers(3, 4), P(None, "a")), jax.device_put(numbers(4, 3), P("a"))
        export_golden(jax.jit(lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P(unreduced={"a"}))), x, y)


@pytest.mark.export_compat
def test_unreduced_argument(export_golden, numbers, line):
    with jax.set_mesh(line):
        x, y = jax.device_put(numbers(4, 4), P(None, "a")), jax.device_put(numbers(4, 4), P("a"))
        product = jax.jit(lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P(unreduced={"a"})))(x, y)
        export_golden(jax.jit(lambda z: jax.sharding.reshard(z, P("a")) + 1), product)


# --- meshes that only the function has --------------------------------------------------------------------------------


@pytest.mark.export_compat(vjp_order=1)
def test_in_shardings(export_golden, numbers, row):
    shardings = (NamedSharding(row, P("a")), NamedSharding(row, P()))
    exported = export_golden(jax.jit(jnp.matmul, in_shardings=shardings), numbers(4, 3), numbers(3, 2))
    exported.also(numbers(4, 3) + 1, numbers(3, 2))


@pytest.mark.export_compat(vjp_order=1)
def test_constraint_on_whole_arguments(export_golden, numbers, row):
    parts = NamedSharding(row, P("a"))
    export_golden(jax.jit(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), parts)), jnp.asarray(numbers(4, 2)))


@pytest.mark.export_compat
def test_shard_map_of_whole_arguments(export_golden, numbers, row):
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    summed = shard_map(lambda x: x - jax.lax.pmean(x, "a"), mesh=row, in_specs=P("a"), out_specs=P("a"))
    export_golden(jax.jit(summed), numbers(8, 2))


@pytest.mark.export_compat
def test_jit_of_pmap(export_golden, numbers):
    needs("no warning of jit-of-pmap", 0, 8)
    export_golden(jax.jit(jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")), numbers(4, 3))


@pytest.mark.export_compat
def test_no_arguments(export_golden, row):
    needs("set_mesh, without which nobody can call it,", 0, 7)
    parts = NamedSharding(row, P("a"))
    export_golden(jax.jit(lambda: jax.lax.with_sharding_constraint(jnp.arange(8.0), parts)))


@pytest.mark.export_compat
def test_two_meshes_the_smaller_first(export_golden, numbers, row):
    grid = Mesh(row.devices.reshape(2, 2), ("x", "y"))
    x = jax.device_put(numbers(4, 4), NamedSharding(row, P("a")))
    y = jax.device_put(numbers(4, 4), NamedSharding(grid, P("x", "y")))
    export_golden(jax.jit(lambda x, y: (x * 2, y + 1)), x, y)


# --- memories and layouts ---------------------------------------------------------------------------------------------


@pytest.mark.export_compat
def test_argument_on_the_host(export_golden, numbers, host):
    export_golden(jax.jit(lambda x: x * 2, in_shardings=host), jax.device_put(numbers(4, 2), host))


def cpu_places_on_the_host():
    """Return whether XLA can place an array in the memory of the host while it runs on a CPU."""
    if jaxlib.version.__version_info__ < (0, 10, 2):
        pytest.skip("XLA cannot run annotate_device_placement on a CPU until 0.10.1")


@pytest.mark.export_compat
def test_result_on_the_host(export_golden, numbers, host):
    cpu_places_on_the_host()
    export_golden(jax.jit(lambda x: x * 2, out_shardings=host), numbers(4, 2))


@pytest.mark.export_compat
def test_sharded_results_on_the_host(export_golden, numbers, row):
    cpu_places_on_the_host()
    on_host = NamedSharding(row, P("a"), memory_kind="pinned_host")
    export_golden(jax.jit(lambda x: (x * 2, x + 1), out_shardings=(on_host, NamedSharding(row, P("a")))), numbers(4, 2))


@pytest.mark.export_compat
def test_layouts(export_golden, numbers):
    needs("these names of layouts", 0, 7)
    from jax.experimental.layout import Format, Layout

    columns = Format(Layout((1, 0)), SingleDeviceSharding(jax.devices()[0]))
    function = jax.jit(lambda x: x * 2, in_shardings=columns, out_shardings=columns)
    export_golden(function, jax.device_put(numbers(3, 4), columns))


# --- options by position and name -------------------------------------------------------------------------------------


@pytest.mark.export_compat(symbolic_shapes={0: "b, 3", "mask": "b"}, constraints=("b >= 2",))
def test_symbolic_keyword(export_golden, numbers):
    exported = export_golden(
        jax.jit(lambda x, *, mask, rate: jnp.where(mask, x.sum(1) * rate, 0)),
        numbers(4, 3),
        mask=np.arange(4) % 2 == 0,
        rate=0.5,
    )
    exported.also(numbers(2, 3), mask=np.ones(2, bool), rate=2.0)
    exported.refused(numbers(1, 3), mask=np.ones(1, bool), rate=2.0, match="b >= 2")


@pytest.mark.export_compat(mesh={"a": 2}, in_specs={0: {"w": P(None, "a"), "b": None}, "x": P("a")})
def test_sharded_trees_and_keywords(export_golden, numbers):
    export_golden(jax.jit(lambda p, *, x: x @ p["w"] + p["b"]), {"w": numbers(3, 4), "b": numbers(4)}, x=numbers(2, 3))


@pytest.mark.export_compat(mesh={"a": 2}, in_specs=(P("a"),), symbolic_shapes="2*b, 3")
def test_symbolic_and_sharded(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.tanh(x) - x.sum(0)), numbers(4, 3)).also(numbers(6, 3))
