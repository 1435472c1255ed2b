"""The registration of the scale library's custom-call targets, in the process of a writer or reader that imports this.

The environment variable SCALE_LIBRARY is the path of the library. It has the targets of its day: the old target, both,
or the new target.
"""

import ctypes
import os

import jax.ffi

library = ctypes.cdll.LoadLibrary(os.environ["SCALE_LIBRARY"])
for target in ("my_scale_v1", "my_scale_v2"):
    if hasattr(library, target):
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, target)), platform="cpu")
