"""What a mesh with explicit axes knows of a value: that devices have parts of a sum (unreduced), or of a cotangent (reduced)."""

import jax
import pytest
from jax import lax
from jax._src import partition_spec
from jax.sharding import PartitionSpec as P


@pytest.mark.export_compat
def test_reduced_and_unreduced(export_golden, numbers):
    if jax.__version_info__ < (0, 9):
        pytest.skip("meshes with explicit axes are the default since 0.9.0")

    def f(x):
        whole = lax.pcast(lax.all_gather(x, "a", tiled=True, to="reduced"), "a", to="varying")
        copies = lax.pcast(lax.pcast(lax.psum(x, "a"), "a", to="reduced"), "a", to="varying")
        parts = lax.pcast(x.sum(0), "a", to="unreduced")
        return whole, copies, lax.psum_scatter(parts, "a", tiled=True), lax.psum(parts, "a") + x

    with jax.set_mesh(jax.make_mesh((4,), ("a",))):
        export_golden(jax.jit(jax.shard_map(f, out_specs=P("a"))), jax.device_put(numbers(8, 4), P("a")))


@pytest.mark.export_compat
def test_partial_extremes(export_golden, numbers):
    kinds = getattr(partition_spec, "UnreducedKind", None)
    if kinds is None:
        pytest.skip(f"jax {jax.__version__} knows of partial sums only")

    def f(x):
        extremes = []
        for reduce, combine, kind in ((lax.reduce_max, lax.pmax, kinds.max), (lax.reduce_min, lax.pmin, kinds.min)):
            spec = P(None, unreduced={"a"}, unreduced_kind=kind)
            combined = jax.shard_map(lambda z, combine=combine: combine(z, "a"), in_specs=spec, out_specs=P())
            extremes.append(combined(reduce(x, axes=(0,), out_sharding=spec)))
        return extremes

    with jax.set_mesh(jax.make_mesh((4,), ("a",))):
        export_golden(jax.jit(f), jax.device_put(numbers(8, 4), P("a")))
