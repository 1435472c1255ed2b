"""Factorizations: custom calls into LAPACK, and results that are unique only up to signs and phases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.factorizations import FACTORIZATIONS


@pytest.fixture
def symmetric(numbers):
    square = numbers(4, 4)
    return square + square.T


@pytest.mark.export_compat
def test_cholesky(export_golden, numbers):
    square = numbers(4, 4)
    export_golden(jax.jit(jnp.linalg.cholesky), square @ square.T + np.eye(4, dtype=np.float32))


@pytest.mark.export_compat(compare="eigh")
def test_eigh(export_golden, symmetric):
    export_golden(jax.jit(FACTORIZATIONS["eigh"]), symmetric)


@pytest.mark.export_compat(compare="qr")
def test_qr(export_golden, numbers):
    export_golden(jax.jit(FACTORIZATIONS["qr"]), numbers(5, 3))


@pytest.mark.export_compat(compare="svd")
def test_svd(export_golden, numbers):
    export_golden(jax.jit(FACTORIZATIONS["svd"]), numbers(5, 3))


@pytest.mark.export_compat(compare="lu")
def test_lu(export_golden, numbers):
    export_golden(jax.jit(FACTORIZATIONS["lu"]), numbers(5, 3))


@pytest.mark.export_compat(compare="schur")
def test_schur(export_golden, numbers):
    export_golden(jax.jit(FACTORIZATIONS["schur"]), numbers(4, 4))


@pytest.mark.export_compat(compare="eig")
def test_eig(export_golden, numbers):
    export_golden(jax.jit(FACTORIZATIONS["eig"]), numbers(4, 4))


@pytest.mark.export_compat
def test_fft(export_golden, numbers):
    export_golden(jax.jit(lambda x: (jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x)))), numbers(3, 16))
