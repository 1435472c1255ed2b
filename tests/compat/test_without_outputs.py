"""What only a TPU or a GPU can run: goldens without outputs, written where neither is."""

from __future__ import annotations

import inspect

import compat_kernels  # noqa: F401 - the golden keeps a copy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

NO_TPU = "Pallas lowers this kernel for TPUs only, and writers have none"
NO_GPU = "it is lowered for CUDA only, and writers have no GPU"


def doubled(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]


def kernel(x):
    pallas = pytest.importorskip("jax.experimental.pallas")
    return pallas.pallas_call(doubled, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


@pytest.mark.export_compat(platforms=["tpu"], without_outputs=NO_TPU)
def test_kernel_for_tpu(export_golden, numbers):
    exported = export_golden(jax.jit(kernel), numbers(8, 128))
    exported.also(numbers(8, 128, offset=5))
    exported.refused(numbers(8, 64))


@pytest.mark.export_compat(platforms=["tpu"], vjp_order=1, without_outputs=NO_TPU)
def test_derivative_for_tpu(export_golden, numbers):
    differentiable = jax.custom_vjp(kernel)
    differentiable.defvjp(lambda x: (kernel(x), None), lambda _, cotangent: (kernel(cotangent),))
    export_golden(jax.jit(lambda x: jnp.sin(differentiable(x))), numbers(8, 128))


@pytest.mark.export_compat(
    platforms=["cuda"],
    allow={"mosaic_gpu_v2": "the case pins it: readers must go on to take what this writer made"},
    register=["compat_kernels"],
    without_outputs=NO_GPU,
)
def test_kernel_for_hopper(export_golden, numbers):
    pytest.importorskip(
        "absl", reason="jax's Mosaic GPU imports it, and jax does not depend on it: pip install absl-py"
    )
    mosaic = pytest.importorskip("jax.experimental.pallas.mosaic_gpu")
    named = "out_type" if "out_type" in inspect.signature(mosaic.kernel).parameters else "out_shape"
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    export_golden(jax.jit(mosaic.kernel(doubled, **{named: out})), numbers(8, 128))


permuted = Primitive("permuted")
permuted.def_abstract_eval(lambda pivots: pivots)
mlir.register_lowering(permuted, jax.ffi.ffi_lowering("cu_lu_pivots_to_permutation"), platform="cuda")


@pytest.mark.export_compat(platforms=["cuda"], without_outputs=NO_GPU)
def test_primitive_for_cuda(export_golden):
    export_golden(jax.jit(permuted.bind), np.array([2, 1, 3, 3], np.int32))
