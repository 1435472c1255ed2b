"""Registers the custom-call targets of the scale library, in whatever process imports this: a writer's or a reader's.

SCALE_LIBRARY is the path of the library, which holds what it held on its day: the old target, both, or the new one.
"""

import ctypes
import os

import jax.ffi

library = ctypes.cdll.LoadLibrary(os.environ["SCALE_LIBRARY"])
for target in ("my_scale_v1", "my_scale_v2"):
    if hasattr(library, target):
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, target)), platform="cpu")
