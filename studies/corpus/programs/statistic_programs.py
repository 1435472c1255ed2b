"""Statistics, sequences and order at real sizes, in jax alone: filters, chains, sorting, sampling."""

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal


@pytest.mark.export_compat(vjp_order=1)
def test_kalman_filter(export_golden):
    """A Kalman filter of 100 observations of two numbers, with a state of four numbers."""
    if jaxlib.version.__version_info__ < (0, 5):
        pytest.skip("a golden by so old a jaxlib is not kept")

    def run(seen, process, noise):
        move = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)
        watch = jnp.eye(2, 4)

        def step(state, z):
            mean, cov = move @ state[0], move @ state[1] @ move.T + process * jnp.eye(4)
            spread = watch @ cov @ watch.T + noise * jnp.eye(2)
            gain = jnp.linalg.solve(spread, watch @ cov).T
            off = z - watch @ mean
            likelihood = -0.5 * (off @ jnp.linalg.solve(spread, off) + jnp.linalg.slogdet(spread)[1])
            mean, cov = mean + gain @ off, cov - gain @ watch @ cov
            return (mean, cov), (mean, likelihood)

        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)[1]

    seen = np.cumsum(normal(0, 100, 2, scale=0.2), 0, dtype=np.float32)
    export_golden(jax.jit(run), seen, np.float32(0.05), np.float32(0.3))


@pytest.mark.export_compat(vjp_order=1)
def test_ctc_loss(export_golden):
    """The CTC loss of four padded sequences of 64 frames with 12 labels, by a scan over frames."""

    def loss(logits, labels, lengths):
        log_shares = jax.nn.log_softmax(logits)
        states = jnp.zeros((4, 25), jnp.int32).at[:, 1::2].set(labels)
        skips = jnp.pad((states[:, 2:] != states[:, :-2]) & (states[:, 2:] != 0), ((0, 0), (2, 0)))

        def step(alpha, share):
            before = jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=-1e5)
            skipped = jnp.where(skips, before[:, :-2], -1e5)
            alpha = jax.nn.logsumexp(jnp.stack([alpha, before[:, 1:-1], skipped]), 0)
            alpha = alpha + jnp.take_along_axis(share, states, 1)
            return alpha, alpha

        start = jnp.full((4, 25), -1e5).at[:, 0].set(0.0)
        _, alphas = jax.lax.scan(step, start, jnp.swapaxes(log_shares, 0, 1))
        ends = jnp.take_along_axis(alphas[-1], jnp.stack([2 * lengths, 2 * lengths - 1], -1), 1)
        return -jax.nn.logsumexp(ends, -1)

    labels, lengths = 1 + integers(1, 4, 12, high=19), np.array([12, 9, 5, 3], np.int32)
    export_golden(jax.jit(loss), normal(0, 4, 64, 20), labels, lengths)


@pytest.mark.export_compat(vjp_order=1)
def test_hidden_markov_model(export_golden):
    """The likelihood of 64 observations in a hidden Markov model, by an associative scan of logsumexp."""

    def likelihood(transition, emission, seen):
        log_moves, log_shows = jax.nn.log_softmax(transition), jax.nn.log_softmax(emission)
        steps = log_moves[None] + log_shows[:, seen].T[:, None]

        def joined(a, b):
            return jax.nn.logsumexp(a[..., :, :, None] + b[..., None, :, :], -2)

        return jax.nn.logsumexp(jax.lax.associative_scan(joined, steps), (1, 2))

    export_golden(jax.jit(likelihood), normal(0, 6, 6), normal(1, 6, 10), integers(2, 64, high=10))


@pytest.mark.export_compat
def test_viterbi_path(export_golden):
    def decode(scores, moves):
        def step(best, score):
            each = best[:, None] + moves
            return each.max(0) + score, each.argmax(0)

        best, back = jax.lax.scan(step, scores[0], scores[1:])
        last = best.argmax()
        path = jax.lax.scan(lambda now, back: (back[now], now), last, back, reverse=True)
        return best.max(), path

    export_golden(jax.jit(decode), normal(0, 120, 16), normal(1, 16, 16))


@pytest.mark.export_compat(vjp_order=1)
def test_order_statistics(export_golden):
    def order(x):
        places = jnp.searchsorted(jnp.sort(x[0]), x[1])
        return jnp.sort(x, -1), jnp.argsort(-x, -1), jnp.median(x, 0), jnp.quantile(x, jnp.array([0.1, 0.9]), 1), places

    export_golden(jax.jit(order), normal(0, 32, 128))


@pytest.mark.export_compat
def test_sorting_by_several_keys(export_golden):
    """A stable sort by keys with ties, and groups, counts and the first of each group, as in a database."""

    def arrange(keys, values):
        first, second, third = jax.lax.sort((keys % 7, keys % 5, values), num_keys=2)
        unique, counts = jnp.unique(keys, return_counts=True, size=64, fill_value=-1)
        sums = jnp.zeros(64).at[keys].add(jnp.round(values * 8) / 8)
        return first, second, third, unique, counts, sums, jax.lax.top_k(values, 9), jnp.histogram(values, 16)[0]

    export_golden(jax.jit(arrange), integers(0, 2000, high=64), normal(1, 2000))


@pytest.mark.export_compat
def test_random_samples(export_golden):
    def draw(seed):
        keys = jax.random.split(jax.random.key(seed), 6)
        random = jax.random
        return (
            *(random.normal(keys[0], (64,)), random.gamma(keys[1], 2.5, (64,)), random.poisson(keys[2], 4.0, (64,))),
            *(random.categorical(keys[3], jnp.arange(8.0), shape=(64,)), random.permutation(keys[4], 64)),
            random.bits(keys[5], (64,)),
        )

    export_golden(jax.jit(draw), np.uint32(7))


@pytest.mark.export_compat
def test_particle_filter(export_golden):
    """A particle filter of 20 observations with 512 particles and systematic resampling."""

    def run(seed, seen):
        def step(state, z):
            key, particles = state
            key, move, pick = jax.random.split(key, 3)
            particles = 0.9 * particles + 0.5 * jax.random.normal(move, particles.shape)
            weights = jax.nn.softmax(-0.5 * (particles - z) ** 2)
            places = (jnp.arange(512) + jax.random.uniform(pick)) / 512
            kept = jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), places), 511)
            return (key, particles[kept]), weights @ particles

        return jax.lax.scan(step, (jax.random.key(seed), jnp.zeros(512)), seen)[1]

    export_golden(jax.jit(run), np.uint32(2), normal(0, 20))


@pytest.mark.export_compat(vjp_order=1)
def test_option_prices_and_their_greeks(export_golden):
    """The price of a basket of four assets by 1,024 simulated paths of 16 steps, and its derivatives."""

    def price(spot, volatility, strike, seed):
        normals = jax.random.normal(jax.random.key(seed), (16, 1024, 4)) / 4
        growth = jnp.cumsum(volatility * normals - volatility**2 / 32, 0)
        basket = (spot * jnp.exp(growth)).mean((0, 2))
        return jax.nn.relu(basket - strike[:, None]).mean(-1)

    export_golden(
        jax.jit(price),
        100 + normal(0, 4),
        np.array([0.1, 0.2, 0.3, 0.15], np.float32),
        np.array([95, 100, 105], np.float32),
        np.uint32(3),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_hamiltonian_trajectory(export_golden):
    """16 leapfrog steps through the posterior of a logistic regression, and their energies."""

    def trajectory(w, momentum, x, y):
        def potential(w):
            return jnp.sum(jax.nn.softplus(-y * (x @ w))) + 0.5 * w @ w

        def step(state, _):
            w, p = state
            p = p - 0.01 * jax.grad(potential)(w)
            w = w + 0.02 * p
            p = p - 0.01 * jax.grad(potential)(w)
            return (w, p), potential(w) + 0.5 * p @ p

        return jax.lax.scan(step, (w, momentum), None, length=16)

    labels = np.sign(normal(3, 128))
    export_golden(jax.jit(trajectory), normal(0, 16, scale=0.1), normal(1, 16), normal(2, 128, 16), labels)


@pytest.mark.export_compat
def test_edit_distance(export_golden):
    """The edit distance of two texts of 64 letters, in integers."""

    def distance(a, b):
        def row(before, letter):
            index, above = before

            def cell(left, other):
                letter_b, up, corner = other
                value = jnp.minimum(jnp.minimum(left, up) + 1, corner + (letter != letter_b))
                return value, value

            _, rest = jax.lax.scan(cell, index + 1, (b, above[1:], above[:-1]))
            above = jnp.concatenate([jnp.array([index + 1]), rest])
            return (index + 1, above), above[-1]

        return jax.lax.scan(row, (jnp.int32(0), jnp.arange(65)), a)

    export_golden(jax.jit(distance), integers(0, 64, high=4), integers(1, 64, high=4))


@pytest.mark.export_compat
def test_cellular_automaton(export_golden):
    """Thirty generations of the game of Life on 64 x 64, in unsigned bytes."""

    def live(grid):
        def step(_, g):
            around = sum(jnp.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
            return ((around == 3) | ((around == 2) & (g == 1))).astype(jnp.uint8)

        return jax.lax.fori_loop(0, 30, step, grid)

    export_golden(jax.jit(live), integers(0, 64, 64, high=2).astype(np.uint8))


@pytest.mark.export_compat(vjp_order=1)
def test_optimal_transport(export_golden):
    """Fifty Sinkhorn steps between two clouds of 48 points, in logarithms."""

    def transport(a, b):
        cost = jnp.sum((a[:, None] - b) ** 2, -1)

        def step(_, potentials):
            f, g = potentials
            f = -0.5 * jax.nn.logsumexp((g - cost) / 0.5, 1) - 0.5 * np.log(48)
            return f, -0.5 * jax.nn.logsumexp((f[:, None] - cost) / 0.5, 0) - 0.5 * np.log(48)

        f, g = jax.lax.fori_loop(0, 50, step, (jnp.zeros(48), jnp.zeros(48)))
        plan = jnp.exp((f[:, None] + g - cost) / 0.5)
        return jnp.sum(plan * cost), plan.sum(0)

    export_golden(jax.jit(transport), normal(0, 48, 3), normal(1, 48, 3))
