"""What a process that makes no kernels of Mosaic GPU needs to compile one: `jax.experimental.mosaic.gpu` sets it when it is imported.

XLA compiles the kernel with CUDA's tools, and links the code that launches it to a library of jax's plugin. It finds both by these
variables only. (That import takes absl-py too, which readers do not have.)
"""

from __future__ import annotations

import importlib.util
import os
import pathlib

import jax._src.lib

tools = getattr(jax._src.lib, "cuda_path", None) or "/usr/local/cuda"
for variable in ("CUDA_ROOT", "MOSAIC_GPU_CUDA_ROOT"):  # the first one up to 0.10.0
    os.environ.setdefault(variable, str(tools))
for plugin in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
    found = importlib.util.find_spec(plugin)
    for folder in (found.submodule_search_locations or ()) if found else ():
        runtime = pathlib.Path(folder) / "libmosaic_gpu_runtime.so"
        if runtime.exists():
            os.environ.setdefault("MOSAIC_GPU_RUNTIME_LIB_PATH", str(runtime))
