"""A primitive whose lowering changes from one custom-call target to another, as its source was on each day of it."""

import jax.core
import jax.ffi
import numpy as np
from jax._src.lib import version as jaxlib_version  # a tuple of numbers
from jax.extend.core import Primitive
from jax.interpreters import mlir

scale_p = Primitive("scale")
scale_p.def_abstract_eval(lambda x, *, factor: jax.core.ShapedArray(x.shape, x.dtype))


def scale(x, factor):
    """`factor * x`, for float32."""
    return scale_p.bind(x, factor=factor)


def _old(ctx, x, *, factor):
    return jax.ffi.ffi_lowering("my_scale_v1")(ctx, x, factor=np.float32(factor))


def _new(ctx, x, *, factor):
    return jax.ffi.ffi_lowering("my_scale_v2")(ctx, x, factor=np.float32(factor), offset=np.float32(0))


FIRST_JAXLIB = (0, 9, 1)  # that has my_scale_v2


def _new_where_nobody_else_reads_it(ctx, x, *, factor):
    needs_old = ctx.is_forward_compat() or jaxlib_version < FIRST_JAXLIB
    return (_old if needs_old else _new)(ctx, x, factor=factor)


def _new_where_jaxlib_has_it(ctx, x, *, factor):
    return (_old if jaxlib_version < FIRST_JAXLIB else _new)(ctx, x, factor=factor)


LOWERING = {
    "D-1": _old,
    "D": _new_where_nobody_else_reads_it,
    "D+21": _new_where_jaxlib_has_it,
    "RELEASE": _new,  # or later: once FIRST_JAXLIB is the minimum jaxlib
}


def use_lowering(day):
    """Lower as the source of that day does."""
    mlir.register_lowering(scale_p, LOWERING[day])
