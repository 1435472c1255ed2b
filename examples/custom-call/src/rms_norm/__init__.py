"""RMS normalization by a custom call. Importing this registers the targets of the installed library."""

import ctypes
from pathlib import Path

import jax.core
import jax.ffi
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

library = ctypes.cdll.LoadLibrary(str(Path(__file__).with_name("targets.so")))
jax.ffi.register_ffi_target("rms_norm_v1", jax.ffi.pycapsule(library.rms_norm_v1), platform="cpu")

rms_norm_p = Primitive("rms_norm")
rms_norm_p.def_abstract_eval(lambda x, *, eps: jax.core.ShapedArray(x.shape, x.dtype))


def rms_norm(x, eps=1e-6):
    """Return each row of `x`, float32, divided by its root mean square."""
    return rms_norm_p.bind(x, eps=eps)


def lower(ctx, x, *, eps):
    return jax.ffi.ffi_lowering("rms_norm_v1")(ctx, x, eps=np.float32(eps))


mlir.register_lowering(rms_norm_p, lower)
