"""One artifact for several platforms, and what happens where it was not exported for."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

EVERY = ["cpu", "cuda", "rocm", "tpu"]


@pytest.mark.export_compat(platforms=EVERY)
def test_every_platform(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.sort(jnp.cos(x @ x.T), axis=0)), numbers(3, 4))


@pytest.mark.export_compat(platforms=["cuda", "cpu"], vjp_order=1)
def test_derivative_lowered_by_platform(export_golden, numbers):
    def summed(x):
        return lax.platform_dependent(x, cpu=jnp.tanh, default=lambda x: jnp.tanh(x) + 1).sum(1)

    export_golden(jax.jit(summed), numbers(2, 3))


@pytest.mark.export_compat(platforms=EVERY)
def test_lowered_by_platform(export_golden, numbers):
    def shifted(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x * 2, default=lambda x: x - 1)

    export_golden(jax.jit(shifted), numbers(4))


@pytest.mark.export_compat(platforms=["cpu", "cuda"])
def test_targets_of_each_platform(export_golden, numbers):
    export_golden(jax.jit(lambda x: tuple(lax.linalg.qr(x, full_matrices=False))[1] ** 2), numbers(3, 2))


@pytest.mark.export_compat(platforms=["tpu"], refused_on=["cpu"])
def test_refused_on_another_platform(export_golden, numbers):
    export_golden(jax.jit(jnp.cos), numbers(4))


@pytest.mark.export_compat(platforms=["tpu"], disabled_checks={"platform": "cosine is lowered the same everywhere"})
def test_run_on_another_platform_all_the_same(export_golden, numbers):
    export_golden(jax.jit(jnp.cos), numbers(4))
