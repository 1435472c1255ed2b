"""A primitive that scales an array, and its lowering on each day: it changes from a custom-call target to a new one."""

import jax.core
import jax.ffi
import numpy as np
from jax._src.lib import version as jaxlib_version  # a tuple of numbers
from jax.extend.core import Primitive
from jax.interpreters import mlir

scale_p = Primitive("scale")
scale_p.def_abstract_eval(lambda x, *, factor: jax.core.ShapedArray(x.shape, x.dtype))


def scale(x, factor):
    """Return `factor * x` for a float32 array."""
    return scale_p.bind(x, factor=factor)


def _old(ctx, x, *, factor):
    return jax.ffi.ffi_lowering("my_scale_v1")(ctx, x, factor=np.float32(factor))


def _new(ctx, x, *, factor):
    return jax.ffi.ffi_lowering("my_scale_v2")(ctx, x, factor=np.float32(factor), offset=np.float32(0))


FIRST_JAXLIB = (0, 9, 1)  # the first with my_scale_v2


def _new_unless_forward_compatible(ctx, x, *, factor):
    needs_old = ctx.is_forward_compat() or jaxlib_version < FIRST_JAXLIB
    return (_old if needs_old else _new)(ctx, x, factor=factor)


def _new_if_jaxlib_has_it(ctx, x, *, factor):
    return (_old if jaxlib_version < FIRST_JAXLIB else _new)(ctx, x, factor=factor)


LOWERING = {
    "D-1": _old,
    "D": _new_unless_forward_compatible,
    "D+21": _new_if_jaxlib_has_it,
    "RELEASE": _new,  # or later: once FIRST_JAXLIB is the minimum jaxlib
}


def use_lowering(day):
    """Register the lowering that the primitive has on a day."""
    mlir.register_lowering(scale_p, LOWERING[day])
