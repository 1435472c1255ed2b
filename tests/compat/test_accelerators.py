"""What only another platform's lowering calls: cuSOLVER and cuSPARSE, the TPU's own factorizations, kernels of Pallas. A CPU exports it."""

from __future__ import annotations

import contextlib
import inspect

import compat_kernels  # noqa: F401 - the golden keeps a copy
import jax
import jax._src.mesh as jax_mesh
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

EVERY = ["cuda", "rocm", "tpu"]
KERNEL = "the case pins it: readers must go on to take what this writer made"


@pytest.fixture
def symmetric(numbers):
    square = numbers(4, 4)
    return square + square.T


@pytest.mark.export_compat(platforms=EVERY)
def test_cholesky(export_golden, numbers):
    square = numbers(4, 4)
    export_golden(jax.jit(jnp.linalg.cholesky), square @ square.T + np.eye(4, dtype=np.float32))


@pytest.mark.export_compat(platforms=EVERY, compare="eigh")
def test_eigh(export_golden, symmetric):
    export_golden(jax.jit(lambda matrix: tuple(lax.linalg.eigh(matrix))), symmetric)


@pytest.mark.export_compat(platforms=EVERY, compare="qr")
def test_qr(export_golden, numbers):
    export_golden(jax.jit(lambda matrix: tuple(lax.linalg.qr(matrix, full_matrices=False))), numbers(5, 3))


@pytest.mark.export_compat(platforms=EVERY, compare="lu")
def test_lu(export_golden, numbers):
    export_golden(jax.jit(lambda matrix: tuple(lax.linalg.lu(matrix))), numbers(5, 3))


@pytest.mark.export_compat(platforms=["cuda", "rocm"], compare="svd")
def test_svd(export_golden, numbers):
    export_golden(jax.jit(lambda matrix: tuple(lax.linalg.svd(matrix, full_matrices=False))), numbers(5, 3))


@pytest.mark.export_compat(platforms=["cuda"])
def test_tridiagonal_solve(export_golden, numbers):
    lower = np.append(np.float32(0), numbers(3))
    export_golden(
        jax.jit(lax.linalg.tridiagonal_solve),
        *(lower, 3 + numbers(4), np.append(numbers(3, offset=7), np.float32(0)), numbers(4, 2)),
    )


@pytest.mark.export_compat(platforms=["cuda", "rocm"])
def test_random_bits(export_golden):
    export_golden(jax.jit(lambda key: jax.random.bits(key, (3, 4))), jax.random.PRNGKey(7))


@pytest.mark.export_compat(platforms=["tpu"])
def test_approximate_top_k(export_golden, numbers):
    export_golden(jax.jit(lambda x: lax.approx_max_k(x, 3)), numbers(2, 16))


@pytest.mark.export_compat(platforms=EVERY, symbolic_shapes="b, 4", vjp_order=1)
def test_any_batch_with_derivative(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x: jnp.tanh(x @ x.T).sum(1)), numbers(2, 4))
    exported.also(numbers(3, 4))


@pytest.mark.export_compat(platforms=["cuda", "tpu"], mesh={"data": 4}, in_specs=(P("data"),))
def test_sum_over_four_devices(export_golden, numbers):
    export_golden(jax.jit(lambda x: (x * 2).sum(0)), numbers(8, 2))


def doubled(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]


def kernel_on(platform, **options):
    """Return a function that is a kernel of Pallas on one platform, and plain operations elsewhere."""
    pallas = pytest.importorskip("jax.experimental.pallas")

    def call(x):
        return pallas.pallas_call(doubled, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), **options)(x)

    return jax.jit(lambda x: lax.platform_dependent(x, **{platform: call}, default=lambda x: 2 * x))


def described_gpu():
    """Return a context that describes a GPU: since 0.11 Pallas asks for which one it lowers, and none may be here."""
    device = getattr(jax_mesh, "AbstractDevice", None)
    if device is None or "platform" not in device.__dataclass_fields__:
        return contextlib.nullcontext()
    hopper = device(device_kind="NVIDIA H100 80GB HBM3", num_cores=132, platform="gpu")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=hopper))


@pytest.mark.export_compat(platforms=["tpu"])
def test_pallas_on_tpu(export_golden, numbers):
    export_golden(kernel_on("tpu"), numbers(8, 128))


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
@pytest.mark.export_compat(platforms=["cuda"], allow={"__gpu$xla.gpu.triton": KERNEL})
def test_pallas_on_cuda(export_golden, numbers):
    triton = pytest.importorskip("jax.experimental.pallas.triton")
    params = getattr(triton, "CompilerParams", None) or triton.TritonCompilerParams
    with described_gpu():
        export_golden(kernel_on("cuda", compiler_params=params()), numbers(8, 128))


@pytest.mark.export_compat(platforms=["cuda"], allow={"mosaic_gpu_v2": KERNEL}, register=["compat_kernels"])
def test_pallas_on_hopper(export_golden, numbers):
    """Mosaic GPU, which ``pallas.pallas_call`` lowers to only where a GPU is."""
    pytest.importorskip(
        "absl", reason="jax's Mosaic GPU imports it, and jax does not depend on it: pip install absl-py"
    )
    mosaic = pytest.importorskip("jax.experimental.pallas.mosaic_gpu")
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    named = "out_type" if "out_type" in inspect.signature(mosaic.kernel).parameters else "out_shape"
    call = mosaic.kernel(doubled, **{named: out})
    export_golden(jax.jit(lambda x: lax.platform_dependent(x, cuda=call, default=lambda x: 2 * x)), numbers(8, 128))
