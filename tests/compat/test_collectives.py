"""Collectives over four devices, as `jax.shard_map` makes them."""

import functools
import inspect

import jax
import numpy as np
import pytest
from jax import lax
from jax._src.lax import parallel
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

AXIS = "devices"


def mapped(f, out_specs, *, checked=True, in_specs=None):
    """Return `f` over four devices.

    Args:
        checked: whether jax checks what differs between devices. Without this check, sums are another primitive.
    """
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    keyword = "check_vma" if "check_vma" in inspect.signature(shard_map).parameters else "check_rep"
    mesh = Mesh(np.array(jax.devices()[:4]), (AXIS,))
    return jax.jit(shard_map(f, mesh=mesh, in_specs=in_specs or P(AXIS), out_specs=out_specs, **{keyword: checked}))


@pytest.mark.export_compat(mesh={AXIS: 4}, in_specs=(P(AXIS),))
def test_moved(export_golden, numbers):
    def f(x):
        to_the_next = lax.ppermute(x, AXIS, [(i, (i + 1) % 4) for i in range(4)])
        gathered = lax.all_gather(x, AXIS, tiled=True)
        return to_the_next, gathered * 2, lax.all_to_all(x, AXIS, 1, 0, tiled=True), lax.axis_index(AXIS) * x

    export_golden(mapped(f, P(AXIS)), numbers(8, 4))


@pytest.mark.export_compat(mesh={AXIS: 4}, in_specs=(P(AXIS),), vjp_order=1)
def test_reduced(export_golden, numbers):
    def f(x):
        scattered = lax.psum_scatter(x, AXIS, scatter_dimension=1, tiled=True)
        return scattered, lax.pmean(x, AXIS)

    export_golden(mapped(f, (P(AXIS), P())), numbers(8, 4))


@pytest.mark.export_compat(mesh={AXIS: 4}, in_specs=(P(AXIS),))
def test_same_everywhere(export_golden, numbers):
    # Older releases have it as an inner function.
    gather = getattr(parallel, "all_gather_invariant", functools.partial(lax.all_gather, to="invarying"))

    def f(x):
        return lax.pmax(x, AXIS), lax.pmin(x, AXIS), [gather(x, AXIS, tiled=True)]

    export_golden(mapped(f, P()), numbers(8, 4))


@pytest.mark.export_compat(platforms=["cpu", "cuda", "rocm", "tpu"], mesh={AXIS: 4}, in_specs=(P(AXIS),))
def test_unchecked_on_every_platform(export_golden, numbers):
    def f(x):
        return lax.psum(x, AXIS), lax.all_gather(x, AXIS, axis=1, tiled=True), lax.psum(x, AXIS, axis_index_groups=None)

    export_golden(mapped(f, (P(), P(AXIS), P()), checked=False), numbers(8, 4))


@pytest.mark.export_compat(platforms=["cuda"], mesh={AXIS: 4}, in_specs=(P(AXIS),))
def test_broadcast_of_gpus(export_golden, numbers):
    def elsewhere(x):
        return lax.all_gather(x, AXIS)[2]

    def f(x):
        return lax.platform_dependent(x, cuda=lambda x: lax.pbroadcast(x, (AXIS,), 2), default=elsewhere)

    export_golden(mapped(f, P(AXIS), checked=False), numbers(8, 4))


@pytest.mark.export_compat(platforms=["cuda"], mesh={AXIS: 4}, in_specs=(P(AXIS), None))
def test_broadcast_from_a_chosen_device(export_golden, numbers):
    if not hasattr(parallel, "pbroadcast_dynamic_p"):
        pytest.skip(f"jax {jax.__version__} must know the device when it traces")

    def f(x, source):
        chosen = {"cuda": lambda x, source: lax.pbroadcast(x, (AXIS,), source)}
        return lax.platform_dependent(x, source, **chosen, default=lambda x, source: lax.all_gather(x, AXIS)[source])

    export_golden(mapped(f, P(AXIS), checked=False, in_specs=(P(AXIS), P())), numbers(8, 4), np.int32(2))
