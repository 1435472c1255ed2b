"""Every custom-call target of the stable list that an export here can make: LAPACK's of each dtype, those of GPUs, dynamic shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.lax.linalg import geqrf

EVERY = ["cpu", "cuda", "rocm", "tpu"]
ON_GPU = ["cuda", "rocm"]


@pytest.fixture
def setting():
    """A function that changes a setting of jax for one test."""
    before = {}

    def change(name, value):
        if name not in jax.config.values:
            pytest.skip(f"jax {jax.__version__} has no {name}")
        before[name] = jax.config.values[name]
        jax.config.update(name, value)

    yield change
    for name, value in before.items():
        jax.config.update(name, value)


def lapack(a):
    """Call every factorization of LAPACK; return the results that do not depend on its choice of signs and phases."""
    adjoint = a.conj().T
    spd = a @ adjoint + 4 * jnp.eye(4, dtype=a.dtype)
    lower = lax.linalg.cholesky(spd)
    u, s, vt = lax.linalg.svd(a, full_matrices=False)
    q, r = lax.linalg.qr(a, full_matrices=False)
    triangular, vectors = lax.linalg.schur(spd)
    packed, taus = lax.linalg.hessenberg(a)
    _, diagonal, beside, *_ = lax.linalg.tridiagonal(spd)
    first, last = (jnp.zeros(4, a.dtype).at[i].set(a[0, 0]) - a[0, 0] for i in (0, 3))
    return {
        "potrf, trsm": lax.linalg.triangular_solve(lower, a, left_side=True, lower=True),
        "gesdd": (s, (u * s) @ vt),
        "geqrf, orgqr": (abs(r), q @ r),
        "getrf": lax.linalg.lu(spd[::-1]),  # no pivot is close to another candidate
        "syevd": lax.linalg.eigh(spd)[1],
        "geev": jnp.sort(lax.linalg.eig(spd, compute_left_eigenvectors=False)[0].real),
        "gees": vectors @ triangular @ vectors.conj().T,
        "gehrd": (abs(jnp.diagonal(packed, -1)), abs(lax.linalg.householder_product(packed[1:, :3], taus))),
        "sytrd": (diagonal, abs(beside)),
        "gtsv": lax.linalg.tridiagonal_solve(first, jnp.diagonal(spd), last, a),
    }


@pytest.mark.export_compat(constant=["result['getrf'][1]", "result['getrf'][2]"])  # the pivots
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_lapack(export_golden, numbers, dtype, setting):
    setting("jax_enable_x64", dtype in ("float64", "complex128"))
    a = numbers(4, 4) + (1j * numbers(4, 4, offset=5) if dtype.startswith("complex") else 0)
    export_golden(jax.jit(lapack), a.astype(dtype))


@pytest.mark.export_compat(allow={"lapack_sgeqp3_ffi": "LAPACK's manual says what it does"})
def test_lapack_with_pivoting(export_golden, numbers):
    def f(x):
        return jnp.abs(jax.scipy.linalg.qr(x, pivoting=True, mode="r")[0]), jnp.abs(jnp.triu(geqrf(x)[0]))

    export_golden(jax.jit(f), numbers(4, 3))


def on(platform):
    """Return a parameter whose test exports for one platform.

    In an export for several, jax lowers each branch for all of them, and some algorithms have one platform only.
    """
    return pytest.param(platform, marks=pytest.mark.export_compat(platforms=[platform]), id=platform)


@pytest.mark.parametrize("platform", [on("cuda"), on("rocm")])
def test_gpu_singular_values(export_golden, numbers, platform):
    """Each algorithm has a target of its own on a GPU; the algorithms of a CPU have other targets."""
    algorithms = lax.linalg.SvdAlgorithm
    chosen = [algorithms.QR, algorithms.JACOBI]
    if platform == "rocm" and hasattr(algorithms, "DIVIDE_AND_CONQUER"):
        chosen.append(algorithms.DIVIDE_AND_CONQUER)

    def by_each(x):
        return [lax.linalg.svd(x, compute_uv=False, algorithm=algorithm) for algorithm in chosen]

    def plain(x):
        return [lax.linalg.svd(x, compute_uv=False)] * len(chosen)

    export_golden(jax.jit(lambda x: lax.platform_dependent(x, **{platform: by_each}, default=plain)), numbers(5, 3))


@pytest.mark.export_compat(platforms=ON_GPU)
def test_gpu_tridiagonal_form(export_golden, numbers):
    square = numbers(4, 4)
    export_golden(
        jax.jit(lambda matrix: (lambda d, e: (d, abs(e)))(*lax.linalg.tridiagonal(matrix)[1:3])), square + square.T
    )


@pytest.mark.export_compat(platforms=ON_GPU)
def test_gpu_random_bits(export_golden, setting):
    setting("jax_threefry_gpu_kernel_lowering", True)
    export_golden(jax.jit(lambda key: jax.random.bits(key, (3, 4))), jax.random.PRNGKey(7))


@pytest.mark.export_compat(platforms=["cuda", "rocm", "tpu"])
def test_memory_of_the_host(export_golden, numbers):
    if not hasattr(jax, "memory"):
        pytest.skip(f"jax {jax.__version__} has no jax.memory")

    def f(x):
        on_host = jax.device_put(x * 2, jax.memory.Space.Host)
        return jax.device_put(on_host, jax.memory.Space.Device) + 1

    export_golden(jax.jit(f), numbers(4))


@pytest.mark.export_compat(platforms=EVERY, symbolic_shapes="b, 4")
def test_dynamic_windows(export_golden, numbers):
    def f(x):
        whole = lax.reduce_window(x, np.float32(0), lax.add, (x.shape[0], 2), (1, 1), "VALID")
        return whole, lax.cumsum(x), lax.cummax(x), lax.cumlogsumexp(x)

    export_golden(jax.jit(f), numbers(3, 4)).also(numbers(5, 4))


@pytest.mark.export_compat(platforms=EVERY, symbolic_shapes="b")
def test_dynamic_top_k(export_golden, numbers):
    def f(x):
        return lax.top_k(x, x.shape[0] // 2), lax.approx_max_k(x, x.shape[0])[0]

    export_golden(jax.jit(f), numbers(6)).also(numbers(9))


@pytest.mark.export_compat(platforms=EVERY, symbolic_shapes=(None, "b, 4"))
def test_dynamic_random_bits(export_golden, numbers):
    key = jax.random.key(7, impl="rbg")
    exported = export_golden(jax.jit(lambda key, x: jax.random.uniform(key, x.shape)), key, numbers(2, 4))
    exported.also(key, numbers(3, 4))


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 4"))
def test_dynamic_threefry(export_golden, numbers):
    key = jax.random.key(7)
    exported = export_golden(jax.jit(lambda key, x: jax.random.uniform(key, x.shape)), key, numbers(2, 4))
    exported.also(key, numbers(3, 4))


@pytest.mark.export_compat(constant=["result[2]"])  # its pivots are given
def test_small_factorizations(export_golden, numbers):
    """Factorizations for which jax has no custom-call target of LAPACK."""
    a, factor = numbers(4, 3), np.eye(4, dtype=np.float32) * 5

    def f(a, factor):
        product = lax.linalg.symmetric_product(a, factor, alpha=2.0, beta=0.5)
        updated = lax.linalg.cholesky_update(factor, a[:, 0])
        pivots = lax.linalg.lu_pivots_to_permutation(jnp.array([2, 3, 3], jnp.int32), 4)
        return jnp.tril(product), updated, pivots

    export_golden(jax.jit(f), a, factor)


@pytest.mark.export_compat(platforms=["tpu"])
def test_product_with_reflectors(export_golden, numbers):
    if not hasattr(lax.linalg, "ormqr"):
        pytest.skip(f"jax {jax.__version__} has no jax.lax.linalg.ormqr")
    packed, taus = np.tril(numbers(4, 3)), np.abs(numbers(3))
    export_golden(jax.jit(lambda a, taus, c: lax.linalg.ormqr(a, taus, c)), packed, taus, numbers(4, 2))
