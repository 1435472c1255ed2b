"""Custom calls that no release promises to keep, exported all the same: each with its reason."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

TARGET = "pytest_jaxexport.scale"
REASON = "nobody calls it: it is there on CUDA only, and stands for a kernel of one's own"


def scaled(x):
    if not hasattr(jax, "ffi"):
        pytest.skip(f"jax {jax.__version__} has no jax.ffi")
    kernel = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct(x.shape, x.dtype))
    return lax.platform_dependent(x, cuda=kernel, default=lambda x: x * 3)


@pytest.mark.export_compat(platforms=["cpu", "cuda"], allow={TARGET: REASON})
def test_allowed_target(export_golden, numbers):
    export_golden(jax.jit(scaled), numbers(4))


@pytest.mark.export_compat(
    platforms=["cpu", "cuda"], allow={TARGET: REASON}, disabled_checks={"ALL": "shows the check"}
)
def test_all_checks_disabled(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.cos(scaled(x))), numbers(4))


@pytest.mark.export_compat(
    platforms=["cpu", "cuda"],
    allow={TARGET: REASON},
    disabled_checks={TARGET: "shows the check", "platform": "shows it too"},
)
def test_several_checks_disabled(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.sin(scaled(x))), numbers(4))


@pytest.mark.skipif(jax.__version_info__ >= (0, 4, 29), reason="only older writers can leave this check out")
@pytest.mark.export_compat(
    symbolic_shapes=("b",),
    constraints=("b >= 2",),
    disabled_checks={"shape_assertions": "it works for one element as well"},
)
def test_without_shape_assertions(export_golden, numbers):
    """The artifact has no assertions, and the readers that knew this check call it with any shape."""
    exported = export_golden(jax.jit(lambda x: x * x.shape[0]), numbers(4))
    exported.also(numbers(1))


@pytest.mark.export_compat(platforms=["cpu", "cuda"], allow={TARGET: REASON})
def test_allowed_target_with_a_side_effect(export_golden, numbers):
    def kernel(x):
        return jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True)(x)

    export_golden(jax.jit(lambda x: lax.platform_dependent(x, cuda=kernel, default=lambda x: x * 3)), numbers(4))
