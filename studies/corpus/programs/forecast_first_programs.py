"""50 programs as users write them, of the kinds for which forecasts failed most, written before any was run."""

import jax
import jax.nn
import jax.numpy as jnp
import jax.ops
import jax.scipy.linalg
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from studies.corpus.programs.inputs import normal

pytestmark = pytest.mark.filterwarnings("default")
marked = pytest.mark.export_compat


def newer(*version):
    """Skip the running test if jax is older than this version."""
    if jax.__version_info__ < version:
        pytest.skip(f"needs jax {'.'.join(map(str, version))}")


def shard_map(function, **options):
    """Call shard_map of this jax, which is in one of two modules."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, **options)
    from jax.experimental.shard_map import shard_map as older

    return older(function, **options)


# Narrow types.


@marked
def test_float8_weights_with_scale(export_golden):
    def layer(x, weights, scale):
        return jax.nn.relu(x @ (weights.astype(jnp.bfloat16) * scale))

    weights = jnp.asarray(normal(1, 16, 8)).astype(jnp.float8_e4m3fn)
    export_golden(jax.jit(layer), jnp.asarray(normal(2, 4, 16), jnp.bfloat16), weights, jnp.bfloat16(0.5))


@marked
def test_gradients_stored_as_e5m2(export_golden):
    def stored(gradient):
        largest = jnp.max(jnp.abs(gradient))
        return (gradient / largest).astype(jnp.float8_e5m2), largest

    export_golden(jax.jit(stored), normal(3, 6, 5))


@marked
def test_fnuz_product(export_golden):
    left = jnp.asarray(normal(4, 8, 8)).astype(jnp.float8_e4m3fnuz)
    right = jnp.asarray(normal(5, 8, 8)).astype(jnp.float8_e5m2fnuz)
    dot = jax.jit(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32))
    export_golden(dot, left, right)


@marked
def test_int4_weights(export_golden):
    weights = jnp.asarray(np.random.RandomState(6).randint(-8, 8, (7, 5)), jnp.int4)

    def layer(x, weights, scale):
        return x @ weights.astype(jnp.float32) * scale

    export_golden(jax.jit(layer), normal(7, 3, 7), weights, normal(8, 5))


@marked
def test_uint4_codebook(export_golden):
    codes = jnp.asarray(np.random.RandomState(9).randint(0, 16, (4, 6)), jnp.uint4)
    export_golden(jax.jit(lambda table, codes: table[codes.astype(jnp.int32)]), normal(10, 16, 3), codes)


@marked
def test_bfloat16_causal_attention(export_golden):
    def attention(q, k, v):
        scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(jnp.asarray(q.shape[-1], q.dtype))
        mask = jnp.tril(jnp.ones((q.shape[0], k.shape[0]), bool))
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
        return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v)

    export_golden(jax.jit(attention), *(jnp.asarray(normal(seed, 6, 2, 4), jnp.bfloat16) for seed in (11, 12, 13)))


@marked
def test_float16_layer_norm(export_golden):
    def normed(x, gain, bias):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-3) * gain + bias

    half = [jnp.asarray(x, jnp.float16) for x in (normal(14, 4, 32), normal(15, 32), normal(16, 32))]
    export_golden(jax.jit(normed), *half)


@marked
def test_float16_sum_of_squares(export_golden):
    export_golden(jax.jit(lambda x: jnp.sum(x * x, axis=0)), jnp.asarray(normal(17, 300, 3), jnp.float16))


# Transforms, order, segments, scatters.


@marked
def test_low_pass_by_rfft(export_golden):
    def low_pass(signal):
        spectrum = jnp.fft.rfft(signal)
        kept = jnp.arange(spectrum.shape[-1]) < 5
        return jnp.fft.irfft(spectrum * kept, n=signal.shape[-1])

    export_golden(jax.jit(low_pass), normal(18, 2, 32))


@marked
def test_power_spectrum(export_golden):
    export_golden(jax.jit(lambda x: jnp.abs(jnp.fft.rfft(x * jnp.hanning(24))) ** 2), normal(19, 24))


@marked
def test_circular_convolution_by_fft2(export_golden):
    def convolved(image, kernel):
        return jnp.fft.ifft2(jnp.fft.fft2(image) * jnp.fft.fft2(kernel)).real

    export_golden(jax.jit(convolved), normal(20, 8, 8), normal(21, 8, 8))


@marked
def test_lexicographic_sort(export_golden):
    keys = np.random.RandomState(22).randint(0, 3, 12).astype(np.int32)
    export_golden(jax.jit(lambda k, x: lax.sort((k, x, jnp.arange(12)), num_keys=2)), keys, normal(23, 12))


@marked
def test_argsort_descending_with_ties(export_golden):
    scores = np.array([3, 1, 3, 2, 1, 3, 0, 2], np.int32)
    export_golden(jax.jit(lambda x: jnp.argsort(x, descending=True)), scores)


@marked
def test_router_of_experts(export_golden):
    def route(logits):
        weights, experts = lax.top_k(logits, 2)
        return jax.nn.softmax(weights), experts, jax.nn.one_hot(experts, logits.shape[-1]).sum((0, 1))

    export_golden(jax.jit(route), normal(24, 5, 8))


@marked
def test_messages_of_a_graph(export_golden):
    def step(nodes, senders, receivers):
        total = jax.ops.segment_sum(nodes[senders], receivers, num_segments=4)
        largest = jax.ops.segment_max(nodes[senders], receivers, num_segments=4)
        return jnp.tanh(total), largest

    senders, receivers = np.array([0, 1, 2, 3, 3], np.int32), np.array([1, 2, 3, 0, 1], np.int32)
    export_golden(jax.jit(step), normal(25, 4, 3), senders, receivers)


@marked
def test_histogram_by_scatter_add(export_golden):
    bins = np.random.RandomState(26).randint(0, 9, 40).astype(np.int32)
    export_golden(jax.jit(lambda bins: jnp.zeros(8, jnp.int32).at[bins].add(1, mode="drop")), bins)


@marked
def test_scatter_of_extremes_and_products(export_golden):
    def scattered(x, where, values):
        return x.at[where].min(values), x.at[where].max(values), x.at[where].multiply(values)

    where = np.array([0, 2, 2, 5], np.int32)
    export_golden(jax.jit(scattered), normal(27, 6), where, normal(28, 4))


@marked
def test_cache_of_a_decoder(export_golden):
    def update(cache, new, position):
        cache = lax.dynamic_update_slice(cache, new[None], (position, 0, 0))
        return cache, cache.at[:, 0, 1].set(position.astype(cache.dtype))

    export_golden(jax.jit(update), normal(29, 8, 2, 4), normal(30, 2, 4), np.int32(7))


# Windows and loops.


@marked
def test_pooling(export_golden):
    def pooled(x):
        largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        total = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return largest, total / 4

    export_golden(jax.jit(pooled), normal(31, 1, 7, 7, 2))


@marked(vjp_order=1)
def test_gradient_of_max_pooling(export_golden):
    pooled = jax.jit(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"))
    export_golden(pooled, normal(32, 6, 6))


@marked
def test_running_extremes(export_golden):
    def running(x):
        return lax.cummax(x), lax.cummin(x, reverse=True), lax.cumlogsumexp(x), lax.cumprod(x)

    export_golden(jax.jit(running), normal(33, 10))


@marked
def test_newton_in_a_while_loop(export_golden):
    def root(x):
        def unfinished(state):
            guess, steps = state
            return (jnp.abs(guess * guess - x) > 1e-4 * x) & (steps < 50)

        return lax.while_loop(unfinished, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, jnp.int32(0)))

    export_golden(jax.jit(root), np.float32(7))


@marked
def test_gru_by_scan(export_golden):
    def gru(state, inputs, w, u):
        def step(h, x):
            z, r = jnp.split(jax.nn.sigmoid(x @ w[:, :8] + h @ u[:, :8]), 2)
            n = jnp.tanh(x @ w[:, 8:] + (r * h) @ u[:, 8:])
            h = (1 - z) * n + z * h
            return h, h

        return lax.scan(step, state, inputs)

    export_golden(jax.jit(gru), normal(34, 4), normal(35, 5, 3), normal(36, 3, 12), normal(37, 4, 12))


@marked
def test_switch_between_activations(export_golden):
    branches = [jax.nn.relu, jnp.tanh, jnp.square]
    export_golden(jax.jit(lambda which, x: lax.switch(which, branches, x)), np.int32(2), normal(38, 5))


@marked
def test_linear_recurrence(export_golden):
    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    export_golden(jax.jit(lambda a, b: lax.associative_scan(combine, (a, b))[1]), normal(39, 9), normal(40, 9))


# Linear algebra.


@marked
def test_gaussian_process_mean(export_golden):
    def mean(x, y):
        kernel = jnp.exp(-((x[:, None] - x[None]) ** 2)) + 0.1 * jnp.eye(6)
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(kernel), True), y)

    export_golden(jax.jit(mean), normal(41, 6), normal(42, 6))


@marked
def test_explained_variance(export_golden):
    def variance(x):
        values = jnp.linalg.eigvalsh(x.T @ x / x.shape[0])
        return values / values.sum()

    export_golden(jax.jit(variance), normal(43, 10, 4))


@marked
def test_nuclear_norm(export_golden):
    export_golden(jax.jit(lambda x: jnp.linalg.svd(x, compute_uv=False).sum()), normal(44, 5, 3))


@marked
def test_least_squares_by_qr(export_golden):
    def fit(x, y):
        q, r = jnp.linalg.qr(x)
        return jax.scipy.linalg.solve_triangular(r, q.T @ y)

    export_golden(jax.jit(fit), normal(45, 8, 3), normal(46, 8))


@marked
def test_triangular_solve_of_the_right_side(export_golden):
    lower = np.tril(normal(47, 4, 4)) + 4 * np.eye(4, dtype=np.float32)
    solve = jax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=True, transpose_a=True))
    export_golden(solve, lower, normal(48, 3, 4))


@marked
def test_log_determinant_in_float64(export_golden, x64):
    matrix = np.random.RandomState(49).standard_normal((5, 5))
    export_golden(jax.jit(lambda x: jnp.linalg.slogdet(x @ x.T + jnp.eye(5))[1]), matrix)


# Symbolic shapes.


@marked(symbolic_shapes=("b, t, 4", "b, t, 4"))
def test_einsum_of_a_symbolic_batch(export_golden):
    scores = jax.jit(lambda q, k: jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)))
    export_golden(scores, normal(50, 2, 3, 4), normal(51, 2, 3, 4)).also(normal(52, 3, 5, 4), normal(53, 3, 5, 4))


@marked(symbolic_shapes="2*b, 3", constraints=("b >= 2", "b <= 64"))
def test_pairs_of_a_constrained_batch(export_golden):
    export_golden(jax.jit(lambda x: jnp.diff(x.reshape(-1, 2, 3), axis=1).sum((0, 1))), normal(54, 6, 3))


@marked(symbolic_shapes="n")
def test_positions_of_a_symbolic_length(export_golden):
    def angles(x):
        return jnp.concatenate([jnp.sin(jnp.arange(x.shape[0]) / 10.0), jnp.pad(x, (1, 0))])

    export_golden(jax.jit(angles), normal(55, 5)).also(normal(56, 8))


@marked(symbolic_shapes="b, 6", vjp_order=1)
def test_gradient_of_a_symbolic_loss(export_golden):
    export_golden(jax.jit(lambda x: jnp.mean(jax.nn.logsumexp(x, axis=1))), normal(57, 4, 6))


# Several devices.


@marked(mesh={"data": 4}, in_specs=(P("data"), None))
def test_data_parallel_mean(export_golden):
    export_golden(jax.jit(lambda x, w: jnp.mean(jnp.tanh(x @ w), axis=0)), normal(58, 8, 3), normal(59, 3, 2))


@marked
def test_ring_of_shard_map(export_golden):
    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))

    def ring(x):
        shifted = lax.ppermute(x, "i", [(j, (j + 1) % 4) for j in range(4)])
        return x + shifted, lax.all_gather(x, "i", axis=0, tiled=True).sum(0, keepdims=True)

    function = shard_map(ring, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    export_golden(jax.jit(function), jax.device_put(normal(60, 8, 2), NamedSharding(mesh, P("i"))))


@marked
def test_exchange_of_tokens(export_golden):
    mesh = Mesh(np.array(jax.devices()[:2]), ("e",))

    def exchange(x):
        return lax.psum_scatter(lax.all_to_all(x, "e", 1, 0, tiled=True), "e", tiled=True)

    function = shard_map(exchange, mesh=mesh, in_specs=P("e", None), out_specs=P("e", None))
    export_golden(jax.jit(function), jax.device_put(normal(61, 8, 4), NamedSharding(mesh, P("e"))))


@marked
def test_unreduced_product(export_golden):
    newer(0, 9)
    with jax.set_mesh(jax.make_mesh((2,), ("k",))):
        left, right = jax.device_put(normal(62, 4, 6), P(None, "k")), jax.device_put(normal(63, 6, 2), P("k", None))

        def product(x, y):
            parts = jnp.einsum("ik,kj->ij", x, y, out_sharding=P(None, None, unreduced={"k"}))
            return jax.sharding.reshard(parts, P()) + 1

        export_golden(jax.jit(product), left, right)


# Wide types, donated arguments, checks, derivatives, keys.


@marked
def test_runge_kutta_in_float64(export_golden, x64):
    def step(state, dt):
        def slope(y):
            return jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

        k1 = slope(state)
        k2 = slope(state + dt / 2 * k1)
        k3 = slope(state + dt * (2 * k2 - k1))
        return state + dt / 6 * (k1 + 4 * k2 + k3)

    export_golden(jax.jit(step), np.array([1.0, 0.5]), np.float64(0.01))


@marked
def test_hash_of_int64(export_golden, x64):
    def mixed(x):
        x = (x ^ lax.shift_right_logical(x, jnp.full_like(x, 30))) * jnp.int64(-4658895280553007687)
        return x ^ lax.shift_right_logical(x, jnp.full_like(x, 27))

    export_golden(jax.jit(mixed), np.array([1, -1, 2**40, -(2**62)], np.int64))


@marked
def test_momentum_with_donated_state(export_golden):
    def update(weights, velocity, gradient):
        velocity = 0.9 * velocity + gradient
        return weights - 0.1 * velocity, velocity

    export_golden(jax.jit(update, donate_argnums=(0, 1)), normal(64, 4, 3), normal(65, 4, 3), normal(66, 4, 3))


@marked(platforms=["cuda"], disabled_checks={"platform": "element by element, the same everywhere"})
def test_exported_for_gpus_and_served_here(export_golden):
    export_golden(jax.jit(lambda x: jax.nn.gelu(x) * 2), normal(67, 3, 4))


@marked(vjp_order=2)
def test_two_derivatives_of_a_network(export_golden):
    def loss(w, v, x):
        return jnp.mean((jnp.tanh(x @ w) @ v) ** 2)

    export_golden(jax.jit(loss), normal(68, 3, 4), normal(69, 4), normal(70, 5, 3))


@marked
def test_dropout_and_noise(export_golden):
    def noisy(key, x):
        first, second = jax.random.split(key)
        kept = jax.random.bernoulli(first, 0.8, x.shape)
        return jnp.where(kept, x / 0.8, 0) + 0.1 * jax.random.normal(second, x.shape)

    export_golden(jax.jit(noisy), jax.random.key(3), normal(71, 4, 4))


@marked
def test_integer_arithmetic(export_golden):
    def arithmetic(x, y):
        shifted = lax.shift_right_logical(x, jnp.full_like(x, 3)), x >> 3, x << 2
        return x // y, x % y, lax.rem(x, y), lax.population_count(x), lax.clz(x), *shifted

    x, y = np.array([7, -7, 100, -100, 2**30], np.int32), np.array([3, 3, -7, 9, 1000], np.int32)
    export_golden(jax.jit(arithmetic), x, y)


@marked
def test_powers_and_clamps(export_golden):
    def powers(x, n):
        clamped = jnp.clip(x, -1.5, 1.5)
        return x**3, x**-2.0, jnp.power(x, n), jnp.float_power(x, n), jnp.log1p(jnp.abs(clamped)), jnp.expm1(clamped)

    x, n = np.array([-2.5, -1.0, -0.5, 0.25, 3.0], np.float32), np.array([2, 3, 4, 5, 2], np.float32)
    export_golden(jax.jit(powers), x, n)


@marked
def test_composite_of_a_norm(export_golden):
    newer(0, 5)

    def normed(x, *, eps):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps)

    rms_norm = lax.composite(normed, name="my.rms_norm")
    export_golden(jax.jit(lambda x: rms_norm(x, eps=1e-6) * 2), normal(72, 3, 8))


@marked
def test_filter_of_complex_signals(export_golden):
    def turned(z, angle):
        z = z * jnp.exp(1j * angle)
        return z.conj(), jnp.angle(z), jnp.sqrt(z), z @ z.conj()

    export_golden(jax.jit(turned), (normal(73, 6) + 1j * normal(74, 6)).astype(np.complex64), np.float32(0.3))


@marked
def test_phase_of_complex_rotations(export_golden):
    export_golden(jax.jit(lambda x, y: jnp.cumprod(lax.complex(jnp.cos(x), jnp.sin(y)))), normal(75, 7), normal(76, 7))
