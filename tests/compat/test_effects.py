"""Effects that can be serialized: tokens of the ordered ones in the calling convention, and names of the others."""

import compat_effects
import jax
import jax.numpy as jnp
import pytest
from jax._src import core
from jax._src.interpreters import mlir
from jax._src.lib.mlir.dialects import hlo

marked = pytest.mark.export_compat(register=("compat_effects",))

noted = core.Primitive("noted")
"""Doubles its argument, and has an effect."""

noted.def_effectful_abstract_eval(lambda x, effect: (x, {effect}))
noted.def_impl(lambda x, effect: x + x)


def _lower_noted(ctx, x, effect):
    if type(effect) is not compat_effects.Unordered:
        token = ctx.tokens_in.get(effect)
        after = hlo.AfterAllOp([token]).result if hasattr(hlo, "AfterAllOp") else token
        ctx.set_tokens_out(mlir.TokenSet({effect: after}))
    return [hlo.AddOp(x, x).result]


mlir.register_lowering(noted, _lower_noted)
UNORDERED, ORDERED, OTHER = compat_effects.Unordered(), compat_effects.Ordered(), compat_effects.OtherOrdered()


@marked
def test_ordered(export_golden, numbers):
    export_golden(jax.jit(lambda x: noted.bind(jnp.sin(noted.bind(x, effect=ORDERED)), effect=ORDERED)), numbers(3))


@marked
def test_unordered(export_golden, numbers):
    export_golden(jax.jit(lambda x: noted.bind(x, effect=UNORDERED)), numbers(3))


@marked
def test_several(export_golden, numbers):
    def all_of_them(x, y):
        return noted.bind(x, effect=ORDERED), noted.bind(y, effect=OTHER), noted.bind(x * y, effect=UNORDERED)

    export_golden(jax.jit(all_of_them), numbers(3), numbers(3, offset=3))


@pytest.mark.export_compat(register=("compat_effects",), platforms=["cpu", "tpu"], symbolic_shapes=("b",))
def test_ordered_beside_platform_and_dimension(export_golden, numbers):
    export_golden(jax.jit(lambda x: noted.bind(x, effect=ORDERED) * x.shape[0]), numbers(3)).also(numbers(5))
