"""The operations of jax.lax, many in one function: what no larger program of these cases happens to use."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.lax.windowed_reductions import _select_and_scatter as select_and_scatter
from jax.ad_checkpoint import checkpoint_name
from jax.extend.random import threefry_2x32


def primitive(name):
    """Return a primitive without a function of jax.lax around it; None where this release lacks it."""
    return getattr(lax, f"{name}_p", None)


def known(*names):
    """Return those functions of jax.lax that this release has."""
    return [getattr(lax, name) for name in names if hasattr(lax, name)]


@pytest.fixture
def positive(numbers):
    return 0.1 + np.abs(numbers(2, 4))


@pytest.mark.export_compat
def test_trigonometry(export_golden, numbers):
    bounded = (lax.acos, lax.asin, lax.atan, lax.asinh, lax.atanh, lax.sinh, lax.cosh)

    def f(x):
        return [g(x) for g in bounded], lax.acosh(1 + abs(x)), lax.atan2(x, x[::-1])

    export_golden(jax.jit(f), numbers(8))


@pytest.mark.export_compat
def test_powers_and_logarithms(export_golden, positive):
    def f(x):
        own = [g(x) for g in (lax.log, lax.expm1, lax.rsqrt, lax.cbrt, lax.logistic, lax.exp2)]
        return own, lax.pow(x, x[::-1])

    export_golden(jax.jit(f), positive)


@pytest.mark.export_compat
def test_polynomial_and_log2(export_golden, positive):
    if not hasattr(lax, "polynomial"):
        pytest.skip(f"jax {jax.__version__} has no jax.lax.polynomial")
    export_golden(jax.jit(lambda x: (lax.log2(x), lax.polynomial(x, [1.0, 2.0, 3.0]))), positive)


@pytest.mark.export_compat
def test_special_functions(export_golden, positive):
    def f(x):
        y = x[::-1]
        first = [g(x) for g in (lax.digamma, lax.erfc, lax.bessel_i0e, lax.bessel_i1e)]
        second = [g(x, y) for g in (lax.igamma, lax.igammac, lax.igamma_grad_a)]
        return first, second, lax.zeta(1 + x, y), lax.polygamma(jnp.ones_like(x), y), lax.betainc(x, y, x / 2)

    export_golden(jax.jit(f), positive)


@pytest.mark.export_compat(rtol=2e-5)
def test_log_gamma(export_golden, positive):
    """jax 0.12 writes another approximation than 0.10. 2 is added, since the function is 0 at 1 and 2."""
    export_golden(jax.jit(lambda x: lax.lgamma(2.05 + x)), positive)


@pytest.mark.export_compat(constant=["result[0][4]", "result[1][0]", "result[1][1]", "result[2][0]"])
def test_rounding_and_comparing(export_golden, numbers):
    def f(x):
        x = 3 * x
        y = x[::-1]
        own = [g(x) for g in (lax.floor, lax.ceil, lax.round, lax.sign, lax.is_finite)]
        two = [g(x, y) for g in (lax.eq, lax.ne, lax.lt, lax.le, lax.min, lax.rem, lax.nextafter)]
        total = [primitive(name).bind(x, y) for name in ("eq_to", "le_to", "lt_to")]
        return own, two, total, lax.clamp(-1.0, x, 1.0), lax.reduce_precision(x, 5, 10)

    export_golden(jax.jit(f), numbers(8))


@pytest.mark.export_compat(constant=["result[2][1]"])
def test_bits(export_golden):
    def f(x, shift):
        own = [g(x) for g in (lax.clz, lax.population_count, lax.bitwise_not)]
        shifted = [g(x, shift) for g in (lax.shift_left, lax.shift_right_arithmetic, lax.bitwise_xor, lax.rem)]
        sums = [g(x, (0,)) for g in known("reduce_xor", "reduce_and", "reduce_or")]
        return own, shifted, sums, *[g(x, x * 65537) for g in known("mulhi")]

    export_golden(jax.jit(f), np.array([1, -5, 1 << 20, 77, -(1 << 30)], np.int32), np.array([1, 2, 3, 4, 5], np.int32))


@pytest.mark.export_compat
def test_complex_parts(export_golden, numbers):
    def f(x, y):
        z = lax.complex(x, y)
        return lax.real(z), lax.imag(z), lax.conj(z) * z, abs(z)

    export_golden(jax.jit(f), numbers(4), numbers(4, offset=3))


@pytest.mark.export_compat
def test_reductions(export_golden, numbers):
    def f(x):
        least_and_most = [lax.argmax(x, 0, jnp.int32), lax.argmin(x, 1, jnp.int32), jnp.min(x, 0), jnp.prod(x, 1)]
        logical = [jnp.any(x > 0, 0), jnp.all(x > 0, 1)]
        sums = [g(x, axis=1) for g in (lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)]
        own = lax.reduce(x, np.float32(1), lambda a, b: a * b + a, (1,))
        return least_and_most, logical, sums, own

    export_golden(jax.jit(f), numbers(3, 4))


@pytest.mark.export_compat
def test_windows(export_golden, numbers):
    def pooled(x, init, operation):
        return lax.reduce_window(x, np.float32(init), operation, (2, 2), (1, 2), "VALID")

    def f(x):
        maximum, average = lambda x: pooled(x, -np.inf, lax.max), lambda x: pooled(x, 0, lax.add)
        slopes = [jax.grad(lambda x, g=g: (g(x) ** 2).sum())(x) for g in (maximum, average)]
        tangent = jax.jvp(maximum, (x,), (x * 2,))[1]
        other = pooled(x, 1, lambda a, b: a * b + b)
        scattered = select_and_scatter(x, lax.ge, (2, 2), (1, 1), ((0, 0), (0, 0)), x[1:, 1:], np.float32(0), lax.add)
        return maximum(x), average(x), pooled(x, np.inf, lax.min), slopes, tangent, other, scattered

    export_golden(jax.jit(f), numbers(4, 6))


@pytest.mark.export_compat
def test_scatter(export_golden, numbers):
    def f(x, rows):
        at, values = x.at[rows], x[:2] + 1
        ways = [at.set, at.add, at.multiply, at.min, at.max, *([at.subtract] if hasattr(at, "subtract") else [])]
        return [way(values) for way in ways], at.apply(jnp.sin), at.get(mode="fill", fill_value=-1.0)

    export_golden(jax.jit(f), numbers(4, 3), np.array([3, 1], np.int32))


@pytest.mark.export_compat
def test_slices_and_joins(export_golden, numbers):
    def f(x, start):
        moved = lax.dynamic_update_slice(x, lax.dynamic_slice(x, (start, 0), (2, 2)), (0, start))
        padded = lax.pad(x, np.float32(0), ((1, -1, 1), (0, 2, 0)))
        parts = lax.split(x, (1, 3), axis=0) if hasattr(lax, "split") else ()
        return moved, padded, parts, jnp.tile(x, (2, 1)), jnp.stack([x, -x]), *[g(x, (2, 1)) for g in known("tile")]

    export_golden(jax.jit(f), numbers(4, 3), np.int32(1))


@pytest.mark.export_compat
def test_identities_that_compilers_respect(export_golden, numbers):
    """Copies, barriers, tokens, names of intermediate values, a value that must not be removed."""

    def f(x):
        token = lax.after_all(lax.create_token(x))
        kept, y = lax.optimization_barrier((x + 1, jnp.copy(x) * 2))
        if hasattr(lax, "dce_sink"):
            lax.dce_sink(y)
        del token
        return checkpoint_name(kept, "kept"), jax.device_put(y), lax.stop_gradient(y)

    export_golden(jax.jit(f), numbers(4))


@pytest.mark.export_compat
def test_linear_solve_with_own_rules(export_golden, numbers):
    def solve(diagonal, b):
        return lax.custom_linear_solve(lambda x: diagonal * x, b, lambda _, b: b / diagonal, symmetric=True)

    export_golden(
        jax.jit(lambda d, b: (solve(d, b), jax.grad(lambda b: solve(d, b).sum())(b))), 2 + numbers(3), numbers(3)
    )


@pytest.mark.export_compat(constant=["result[0]", "result[1]"])  # the seed is in the program
def test_random_generators(export_golden):
    def f(key, seed):
        state, bits = lax.rng_bit_generator(
            jnp.zeros(4, jnp.uint32) + 7, (3,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
        )
        typed = jax.random.fold_in(jax.random.key(seed), 5)
        draws = [jax.random.gamma(key, 2.0, (3,)), jax.random.bernoulli(key, 0.3, (5,))]
        return state, bits, jax.random.key_data(typed), jax.random.wrap_key_data(key), draws, jax.random.clone(typed)

    export_golden(jax.jit(f), jax.random.PRNGKey(7), np.int32(3))


@pytest.mark.export_compat(constant=["result"])
def test_uniform_in_xla(export_golden):
    """The generator of XLA itself is not seeded, so that only its range can be compared."""
    export_golden(jax.jit(lambda a, b: lax.rng_uniform(a, b, (64,)) < b), np.float32(2), np.float32(5))


@pytest.mark.export_compat
def test_threefry_itself(export_golden):
    export_golden(jax.jit(threefry_2x32), np.array([3, 7], np.uint32), np.arange(6, dtype=np.uint32))


@pytest.mark.export_compat
@pytest.mark.parametrize("implementation", ["threefry4x32", "philox2x32", "philox4x32"])
def test_random_implementations(export_golden, implementation):
    """Generators of 0.12. No artifact can have their keys as arguments."""

    def f(seed):
        key = jax.random.key(seed, impl=implementation)
        return jax.random.bits(jax.random.fold_in(key, 3), (3,)), jax.random.normal(jax.random.split(key)[1], (2,))

    try:
        jax.random.key(0, impl=implementation)
    except ValueError:
        pytest.skip(f"jax {jax.__version__} has no {implementation}")
    export_golden(jax.jit(f), np.int32(5))
