"""Calling conventions by number, and exports that give up forward compatibility."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax._src import core
from jax._src.interpreters import mlir
from jax._src.lib.mlir.dialects import hlo

doubled = core.Primitive("doubled")
"""Twice its argument, by an operation of today unless readers of three weeks ago must understand it."""

doubled.def_abstract_eval(lambda x: x)
doubled.def_impl(lambda x: x + x)


def _lower_doubled(ctx, x):
    if ctx.is_forward_compat():
        return [hlo.AddOp(x, x).result]
    return [hlo.MulOp(x, mlir.ir_constant(ctx.avals_in[0].dtype.type(2) * jnp.ones(ctx.avals_in[0].shape))).result]


mlir.register_lowering(doubled, _lower_doubled)


def need_version(version):
    try:
        from jax import export

        known = range(
            export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version + 1
        )
    except ImportError:
        known = range(0)
    if version not in known:
        pytest.skip(f"jax {jax.__version__} writes no calling convention {version}")


@pytest.mark.export_compat(calling_convention_version=9)
def test_version_9(export_golden, numbers):
    need_version(9)
    export_golden(jax.jit(lambda x: jnp.cumsum(jnp.cos(x))), numbers(4))


@pytest.mark.export_compat(calling_convention_version=10)
def test_version_10(export_golden, numbers):
    need_version(10)
    export_golden(jax.jit(lambda x: jnp.cumsum(jnp.cos(x))), numbers(4))


@pytest.mark.export_compat(
    calling_convention_version=9, platforms=["cpu", "tpu"], symbolic_shapes=("b, 2",), vjp_order=1
)
def test_version_9_with_platform_index_and_dimensions(export_golden, numbers):
    def scaled(x):
        return lax.platform_dependent(x, cpu=lambda x: x * 2, default=lambda x: x + 1) * x.shape[0]

    need_version(9)
    export_golden(jax.jit(scaled), numbers(3, 2)).also(numbers(1, 2))


@pytest.mark.export_compat
def test_forward_compatible(export_golden, numbers):
    export_golden(jax.jit(lambda x: doubled.bind(x) + 1), numbers(4))


@pytest.mark.export_compat(ignore_forward_compatibility=True)
def test_for_readers_from_today_on(export_golden, numbers):
    export_golden(jax.jit(lambda x: doubled.bind(x) + 1), numbers(4))
