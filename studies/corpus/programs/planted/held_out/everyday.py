"""Ordinary programs with floats as inputs: blocks of models, losses, filters and simulations as people export them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.planted.held_out import roughly
from studies.corpus.programs.program import (
    APPROXIMATED,
    CONSTANT,
    DROPPED,
    EPSILON,
    HALF,
    LOW,
    OFF_BY_ONE,
    RATIO,
    SWAPPED,
    TABLE,
    TF32,
    Program,
)


def _weights(seed, *shape):
    return normal(seed, *shape) / np.float32(np.sqrt(shape[-2]))


_QUERY, _KEYS = _weights(700, 32, 32), _weights(701, 32, 16)
_VALUES, _OUT = _weights(702, 32, 16), _weights(703, 32, 32)
_UP, _DOWN = _weights(704, 32, 96), _weights(705, 48, 32)


def rotary_cached_block(x, keys, values, *, start=12, base=10000.0, cut=roughly.same, pass_on=roughly.same, entry=1.0):
    """A transformer block reads four new words after twelve cached ones: grouped queries, rotary positions, a gate."""
    places = start + jnp.arange(4)
    norm = lambda x: pass_on(x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6))
    linear = lambda x, w: cut(x) @ cut(w)

    def turn(x):
        angle = (places[:, None] * base ** (-jnp.arange(4) / 4))[:, None]
        one, two = jnp.split(x, 2, axis=-1)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], axis=-1)

    y = norm(x)
    query = turn(linear(y, _QUERY).reshape(4, 4, 8)).reshape(4, 2, 2, 8)
    keys = lax.dynamic_update_slice(keys, turn(linear(y, _KEYS).reshape(4, 2, 8)), (12, 0, 0))
    values = lax.dynamic_update_slice(values, linear(y, _VALUES).reshape(4, 2, 8), (12, 0, 0))
    scores = jnp.einsum("qghd,kgd->ghqk", cut(query), cut(keys)) / np.sqrt(8).item()
    scores = jnp.where(jnp.arange(16) <= 12 + jnp.arange(4)[:, None], scores, -1e9)
    shares = jax.nn.softmax(scores, axis=-1)
    x = x + linear(jnp.einsum("ghqk,kgd->qghd", cut(shares), cut(values)).reshape(4, 32), _OUT)
    gate, up = jnp.split(linear(norm(x), roughly.entry(_UP, entry)), 2, axis=-1)
    return x + linear(pass_on(jax.nn.silu(gate) * up), _DOWN), keys


_SLOTS, _FIRST, _SECOND = _weights(710, 16, 12).reshape(16, 4, 3), _weights(711, 4, 16, 32), _weights(712, 4, 32, 16)


def soft_expert_mixture(x, *, axis=0, exp=jnp.exp, cut=roughly.same, entry=1.0):
    """A soft mixture of four experts with three slots each: slots are means of all words, words means of all slots."""
    unit = x * lax.rsqrt(jnp.sum(x**2, axis=-1, keepdims=True) + 1e-6) * 4
    scores = jnp.einsum("ld,des->les", cut(unit), cut(_SLOTS))

    def shares(axis):
        raised = exp(scores - jnp.max(scores, axis=axis, keepdims=True))
        return raised / jnp.sum(raised, axis=axis, keepdims=True)

    slots = jnp.einsum("les,ld->esd", cut(shares(axis)), cut(x))
    hidden = jax.nn.gelu(cut(slots) @ cut(roughly.entry(_FIRST, entry)), approximate=False)
    return jnp.einsum("les,esd->ld", cut(shares((1, 2))), cut(cut(hidden) @ cut(_SECOND)))


_DENOISE_IN, _DENOISE_TIME, _DENOISE_OUT = _weights(715, 24, 64), _weights(716, 16, 64), _weights(717, 64, 24)
_BETAS = np.linspace(1e-4, 0.02, 50).astype(np.float32)


def denoising_steps(x, noise, *, shift=0, term=1.0, pass_on=roughly.same, entry=1.0):
    """The last ten steps of a small diffusion model."""
    betas = roughly.entry(_BETAS, entry)
    kept = np.cumprod(1 - betas)

    def guess(x, time):
        angle = time * 1000.0 ** (-jnp.arange(8) / 8)
        time = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)])
        return pass_on(pass_on(jax.nn.silu(pass_on(x) @ _DENOISE_IN + time @ _DENOISE_TIME)) @ _DENOISE_OUT)

    def step(x, at):
        time, noise = at
        beta, now, before = jnp.asarray(betas)[time], jnp.asarray(kept)[time], jnp.asarray(kept)[time - 1 + shift]
        mean = (x - beta / jnp.sqrt(1 - now) * guess(x, time)) / jnp.sqrt(1 - beta)
        x = mean + term * jnp.sqrt(beta * (1 - before) / (1 - now)) * noise
        return pass_on(x), None

    return lax.scan(step, x, (jnp.arange(19, 9, -1), noise))[0]


_CONV_ONE, _CONV_TWO = normal(720, 3, 3, 8, 12) / np.float32(8), normal(721, 3, 3, 12, 12) / np.float32(10)
_CONV_DOWN, _CONV_SKIP = normal(722, 3, 3, 12, 12) / np.float32(10), _weights(723, 8, 12)
_CONV_TIME = _weights(724, 16, 12)


def unet_down_block(
    x, time, *, epsilon=1e-5, pad=0, silu=jax.nn.silu, cut=roughly.same, pass_on=roughly.same, entry=1.0
):
    def norm(x):
        groups = x.reshape(*x.shape[:3], 4, -1)
        mean, spread = (f(groups, axis=(1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
        return pass_on(silu(((groups - mean) * lax.rsqrt(spread + epsilon)).reshape(x.shape)))

    def convolve(x, kernel, stride=1, padding="SAME"):
        numbers = ("NHWC", "HWIO", "NHWC")
        kernel = jnp.asarray(kernel, x.dtype)
        return lax.conv_general_dilated(cut(x), cut(kernel), (stride, stride), padding, dimension_numbers=numbers)

    y = convolve(norm(x), _CONV_ONE) + (silu(time) @ _CONV_TIME)[:, None, None]
    y = convolve(norm(y), roughly.entry(_CONV_TWO, entry)) + cut(x) @ cut(_CONV_SKIP)
    return convolve(y, _CONV_DOWN, 2, [(pad, 1 - pad)] * 2), y[:, ::3, ::3]


_FORWARD, _BACKWARD = _weights(730, 16, 40), _weights(731, 16, 40)


def bidirectional_lstm(x, *, bias=1.0, shift=0, tanh=jnp.tanh, entry=1.0):
    """The hidden states of an LSTM in both directions, and the sum of its last cells."""

    def run(x, weights):
        def step(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ weights, 4)
            c = jax.nn.sigmoid(f + bias) * c + jax.nn.sigmoid(i) * tanh(g)
            h = jax.nn.sigmoid(o) * tanh(c)
            return (h, c), h

        (_, c), found = lax.scan(step, (jnp.zeros(10, x.dtype), jnp.zeros(10, x.dtype)), x)
        return c, found

    one, there = run(x, jnp.asarray(roughly.entry(_FORWARD, entry)))
    two, back = run(x[::-1], jnp.asarray(_BACKWARD))
    return jnp.concatenate([there, jnp.roll(back[::-1], shift, 0)], axis=-1), one + two


_ENTER, _LEAVE, _SHORT = _weights(735, 8, 24), _weights(736, 12, 8), _weights(737, 4, 12)
_MADE, _RATES = _weights(738, 12, 20), np.log(np.tile(np.arange(1, 5, dtype=np.float32), (12, 1)))


def selective_scan(x, *, shift=0, term=1.0, exp=jnp.exp, pass_on=roughly.same, entry=1.0):
    """A selective state space model: its rates depend on the input, and an associative scan computes its recurrence."""
    x, gate = jnp.split(x @ _ENTER, 2, axis=-1)
    padded = jnp.pad(x, ((3 + shift, 0), (0, 0)))
    x = pass_on(jax.nn.silu(sum(padded[n : n + len(x)] * _SHORT[n] for n in range(4))))
    rate, write, read = jnp.split(x @ roughly.entry(_MADE, entry), [12, 16], axis=-1)
    rate = jax.nn.softplus(rate - 1.0)
    decay = exp(-rate[..., None] * jnp.exp(_RATES))
    combine = lambda one, two: (one[0] * two[0], two[0] * one[1] + two[1])
    _, state = lax.associative_scan(combine, (decay, (rate * x)[..., None] * write[:, None]))
    y = jnp.einsum("lds,ls->ld", state, read) + term * x
    return pass_on(y * jax.nn.silu(gate)) @ _LEAVE


_NODES, _ENDS = _weights(740, 10, 16), normal(741, 2, 2, 8) / np.float32(2)
_SOURCES = np.concatenate([integers(742, 60, high=20), np.arange(20, dtype=np.int32)])
_TARGETS = np.concatenate([integers(743, 60, high=20), np.arange(20, dtype=np.int32)])


def graph_attention(x, *, slope=0.2, shift=0, exp=jnp.exp, cut=roughly.same):
    """Graph attention with two heads over stored edges, which include an edge from each node to itself."""
    nodes = (cut(x) @ cut(_NODES)).reshape(20, 2, 8)
    sources, targets = jnp.asarray(_SOURCES), jnp.asarray(np.roll(_TARGETS, shift))
    scores = jnp.sum(nodes * _ENDS[0], axis=-1)[sources] + jnp.sum(nodes * _ENDS[1], axis=-1)[targets]
    scores = jnp.where(scores > 0, scores, slope * scores)
    raised = exp(scores - jax.ops.segment_max(scores, targets, 20)[targets])
    shares = raised / jax.ops.segment_sum(raised, targets, 20)[targets]
    return jax.nn.elu(jax.ops.segment_sum(shares[..., None] * nodes[sources], targets, 20)).reshape(20, 16)


_ENCODE, _DECODE = _weights(745, 20, 12), _weights(746, 6, 20)


def variational_loss(x, noise, *, weight=1.0, half=0.5, cut=roughly.same, sigmoid_bias=0.0):
    """The loss of a variational autoencoder, and its gradients in both weight matrices."""

    def loss(weights):
        encode, decode = weights
        mean, spread = jnp.split(cut(x) @ cut(encode), 2, axis=-1)
        logits = cut(mean + jnp.exp(half * spread) * noise) @ cut(decode) + sigmoid_bias
        ink = (x > 0).astype(x.dtype)
        missed = jnp.sum(jax.nn.softplus(logits) - ink * logits, axis=-1)
        away = -0.5 * jnp.sum(1 + spread - mean**2 - jnp.exp(spread), axis=-1)
        return jnp.mean(missed + weight * away)

    return jax.value_and_grad(loss)((jnp.asarray(_ENCODE, x.dtype), jnp.asarray(_DECODE, x.dtype)))


def matern_regression(x, y, places, *, length=0.8, noise=0.05, term=0.5, exp=jnp.exp):
    """Gaussian process regression: likelihood, its gradient in the length scale, and predictions at new places."""

    def kernel(one, two, length):
        square = jnp.sum((one[:, None] - two) ** 2, axis=-1)
        scaled = jnp.sqrt(5 * square + 1e-12) / length
        return (1 + scaled + scaled**2 / 3) * exp(-scaled)

    def likelihood(length):
        factor = jnp.linalg.cholesky(kernel(x, x, length) + noise * jnp.eye(len(x), dtype=x.dtype))
        solved = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return -0.5 * solved @ solved - 2 * term * jnp.sum(jnp.log(jnp.diag(factor))), (factor, solved)

    (found, (factor, solved)), slope = jax.value_and_grad(likelihood, has_aux=True)(jnp.asarray(length, x.dtype))
    across = jax.scipy.linalg.solve_triangular(factor, kernel(x, places, length), lower=True)
    return found, slope, across.T @ solved, 1 - jnp.sum(across**2, axis=0)


_START = normal(750, 24, 12) / np.float32(4)


def lamb_steps(gradients, *, beta=0.999, decay=0.01, count=0, rsqrt=lax.rsqrt, axis=None):
    """Eight steps of the optimizer LAMB with given gradients."""

    def step(carry, at):
        weights, first, second = carry
        time, gradient = at
        first, second = 0.9 * first + 0.1 * gradient, beta * second + (1 - beta) * gradient**2
        first_fair, second_fair = first / (1 - 0.9 ** (time + count)), second / (1 - beta ** (time + count))
        move = first_fair * rsqrt(second_fair + 1e-8) + decay * weights
        norm = lambda x: jnp.sqrt(jnp.sum(x**2, axis=axis, keepdims=True))
        return (weights - 0.02 * norm(weights) / norm(move) * move, first, second), jnp.sum(norm(weights) / norm(move))

    start = jnp.asarray(_START, gradients.dtype)
    times = jnp.arange(1, 9).astype(gradients.dtype)
    (weights, _, _), ratios = lax.scan(step, (start, jnp.zeros_like(start), jnp.zeros_like(start)), (times, gradients))
    return weights, ratios


def ctc_loss(logits, labels, *, skip=True, last=1, exp=jnp.exp, pass_on=roughly.same):
    """The CTC loss of five labels over sixteen frames, and its gradient."""

    def join(*parts):
        stacked = jnp.stack(parts)
        largest = jnp.max(stacked, axis=0)
        return largest + jnp.log(jnp.sum(exp(stacked - largest), axis=0))

    def loss(logits, labels):
        scores = pass_on(jax.nn.log_softmax(logits))
        places = jnp.zeros(11, labels.dtype).at[1::2].set(labels)
        allowed = (places != 0) & (places != jnp.roll(places, 2)) if skip else places != 0

        def step(alpha, scores):
            one = jnp.concatenate([jnp.full(1, -1e30, alpha.dtype), alpha[:-1]])
            two = jnp.where(allowed, jnp.concatenate([jnp.full(2, -1e30, alpha.dtype), alpha[:-2]]), -1e30)
            return jnp.maximum(join(alpha, one, two), -1e30) + scores[places], None

        start = jnp.where(jnp.arange(11) < 2, scores[0][places], -1e30)
        alpha = lax.scan(step, start, scores[1:])[0]
        return -join(alpha[-1], alpha[-2]) if last else -alpha[-1]

    return jax.vmap(jax.value_and_grad(loss))(logits, labels)


_BIQUADS = np.array(
    [
        [1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585],
        [1.0, -2.0, 1.0, -1.99004745483398, 0.99007225036621],
    ],
    np.float32,
)


def loudness(samples, *, hop=120, entry=1.0, pass_on=roughly.same, gain=1.0):
    """The loudness of two audio channels: two recursive filters, then means of overlapping blocks in decibels."""

    def filtered(samples, taps):
        def step(carry, x):
            one, two = carry
            y = taps[0] * x + one
            return (taps[1] * x - taps[3] * y + two, taps[2] * x - taps[4] * y), y

        return lax.scan(step, (jnp.zeros_like(samples[0]), jnp.zeros_like(samples[0])), samples)[1]

    taps = roughly.entry(_BIQUADS, entry)
    weighted = filtered(pass_on(filtered(samples, taps[0])), taps[1])
    blocks = weighted[(jnp.arange(6) * hop)[:, None] + jnp.arange(480)]
    return -0.691 + 10 * jnp.log10(gain * jnp.sum(jnp.mean(blocks**2, axis=1), axis=-1) + 1e-10), weighted[::50]


def atom_descriptors(x, *, cutoff=True, third=0.7463526651802308, cos=jnp.cos, pass_on=roughly.same):
    """Descriptors of each atom's surroundings that rotations do not change, by spherical harmonics, in float64."""
    away = pass_on(x)[None] - pass_on(x)[:, None]
    far = jnp.sqrt(jnp.sum(away**2, axis=-1) + jnp.eye(len(x)))
    a, b, c = jnp.moveaxis(away / far[..., None], -1, 0)
    harmonics = [
        jnp.full_like(a, 0.28209479177387814),
        *(0.4886025119029199 * s for s in (a, b, c)),
        *(1.0925484305920792 * s for s in (a * b, b * c, a * c, (a * a - b * b) / 2)),
        0.31539156525252005 * (3 * c * c - 1),
        *(0.5900435899266435 * s for s in (b * (3 * a * a - b * b), a * (a * a - 3 * b * b))),
        *(s * (5 * c * c - 1) * 0.4570457994644658 for s in (a, b)),
        *(1.445305721320277 * s for s in (2 * a * b * c, (a * a - b * b) * c)),
        0.5 * third * (5 * c**3 - 3 * c),
    ]
    smooth = jnp.where(far < 3, 0.5 + 0.5 * cos(np.pi * far / 3), 0.0) if cutoff else 1.0
    smooth = smooth * (1 - jnp.eye(len(x)))
    radial = jnp.exp(-2 * (far[..., None] - jnp.arange(1, 5) * 0.6) ** 2) * smooth[..., None]
    found = jnp.einsum("ijn,mij->inm", radial, jnp.stack(harmonics))
    orders = np.eye(4)[np.array([0, 1, 1, 1, *[2] * 5, *[3] * 7])]
    return jnp.einsum("inm,ikm,ml->inkl", found, found, orders)


_ARM = np.array(
    [[0, 0.33, 1.5708], [0.45, 0.02, 0], [0.04, 0, 1.5708], [0, 0.42, -1.5708], [0, 0, 1.5708], [0.08, 0.09, 0]],
    np.float32,
)


def arm_jacobian(angles, *, sin=jnp.sin, cos=jnp.cos, cut=roughly.same, entry=1.0, turn=False):
    """The pose of a hand with six joints, its Jacobian, and how far it is from a singular pose."""
    arm = roughly.entry(_ARM, entry)

    def hand(angles):
        pose = jnp.eye(4, dtype=angles.dtype)
        for angle, (length, offset, twist) in zip(angles, arm, strict=True):
            c, s, ct, st = cos(angle), sin(angle), float(np.cos(twist)), float(np.sin(twist))
            link = jnp.stack(
                [
                    *(c, -s * ct, s * st, length * c),
                    *(s, c * ct, -c * st, length * s),
                    *(jnp.zeros_like(c), jnp.full_like(c, st), jnp.full_like(c, ct), jnp.full_like(c, offset)),
                    *(jnp.zeros_like(c), jnp.zeros_like(c), jnp.zeros_like(c), jnp.ones_like(c)),
                ]
            ).reshape(4, 4)
            pose = cut(link) @ cut(pose) if turn else cut(pose) @ cut(link)
        return pose[:3].ravel(), pose[:3].ravel()

    slope, pose = jax.vmap(jax.jacfwd(hand, has_aux=True))(angles)
    moved = slope[:, 3::4]
    return pose, slope, jnp.sqrt(jax.vmap(lambda m: jnp.sum(jnp.cross(m[:, 0], m[:, 1]) * m[:, 2]) ** 2)(moved))


def predator_prey(start, rates, *, first=9, pass_on=roughly.same, third=3.0):
    """The equations of predator and prey by Runge-Kutta in float64, and the gradient of the last state in the rates."""

    def run(rates):
        def flow(y):
            return jnp.stack([y[0] * (rates[0] - rates[1] * y[1]), y[1] * (rates[2] * y[0] - rates[3])])

        def step(y, _):
            one = flow(y)
            two = flow(y + 0.025 * one)
            three = flow(y + 0.025 * two)
            four = flow(y + 0.05 * three)
            y = pass_on(y + 0.05 * (one + 2 * two + 2 * three + four) / (3 + third))
            return y, y

        return lax.scan(step, start, None, length=200)[1]

    return run(rates)[first::10], jax.jacrev(lambda rates: run(rates)[-1])(rates)


_RARITY = uniform(760, 32, low=0.5, high=4.0)


def hashed_features(values, names, *, seed=0x9747B28C, bit=31, signed=True, entry=1.0):
    """Features hashed into 32 signed buckets, weighted by rarity and normalized to length 1."""
    mixed = names.astype(jnp.uint32) * np.uint32(0xCC9E2D51) ^ np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    mixed = mixed ^ (mixed >> np.uint32(16))
    sign = jnp.where((mixed >> np.uint32(bit)) & np.uint32(1), -1.0, 1.0) if signed else 1.0
    buckets = (mixed & np.uint32(31)).astype(jnp.int32)
    counts = jnp.log1p(jnp.abs(values))
    summed = jax.vmap(lambda buckets, terms: jnp.zeros(32, terms.dtype).at[buckets].add(terms))(buckets, sign * counts)
    weighted = summed * roughly.entry(_RARITY, entry)
    return weighted * lax.rsqrt(jnp.sum(weighted**2, axis=-1, keepdims=True) + 1e-12)


_CACHE = np.zeros((2, 16, 2, 8), np.float32)
_CACHE[:, :12] = normal(706, 2, 12, 2, 8)
_SOUND = np.sin(np.arange(1200) ** 1.3 / 9)[:, None].astype(np.float32) * np.float32(0.3) + normal(755, 1200, 2) / 20

PROGRAMS = (
    Program(rotary_cached_block, (normal(707, 4, 32), _CACHE[0], _CACHE[1]), {OFF_BY_ONE: {"start": 13}, RATIO: {"base": 10010.0}, TF32: {"cut": roughly.tf32}, HALF: {"pass_on": roughly.half}, TABLE: {"entry": 1.05}}),
    Program(soft_expert_mixture, (normal(713, 24, 16),), {SWAPPED: {"axis": (1, 2)}, APPROXIMATED: {"exp": roughly.exp}, TF32: {"cut": roughly.tf32}, TABLE: {"entry": 1.05}}),
    Program(denoising_steps, (normal(718, 6, 24), normal(719, 10, 6, 24)), {OFF_BY_ONE: {"shift": 1}, RATIO: {"term": 1.001}, HALF: {"pass_on": roughly.half}, TABLE: {"entry": 1.02}}),
    Program(unet_down_block, (normal(725, 2, 12, 12, 8) / np.float32(20), normal(726, 2, 16)), {EPSILON: {"epsilon": 1e-6}, OFF_BY_ONE: {"pad": 1}, APPROXIMATED: {"silu": roughly.silu}, TF32: {"cut": roughly.tf32}, HALF: {"pass_on": roughly.half}, TABLE: {"entry": 1.03}}),
    Program(bidirectional_lstm, (normal(732, 24, 6),), {DROPPED: {"bias": 0.0}, OFF_BY_ONE: {"shift": 1}, APPROXIMATED: {"tanh": roughly.tanh}, TABLE: {"entry": 1.02}}),
    Program(selective_scan, (normal(739, 40, 8),), {OFF_BY_ONE: {"shift": 1}, DROPPED: {"term": 0.0}, APPROXIMATED: {"exp": roughly.exp}, HALF: {"pass_on": roughly.half}, TABLE: {"entry": 1.05}}),
    Program(graph_attention, (normal(744, 20, 10),), {RATIO: {"slope": 0.201}, OFF_BY_ONE: {"shift": 1}, APPROXIMATED: {"exp": roughly.exp}, TF32: {"cut": roughly.tf32}}),
    Program(variational_loss, (normal(747, 16, 20), normal(748, 16, 6)), {RATIO: {"weight": 1.002}, DROPPED: {"half": 1.0}, TF32: {"cut": roughly.tf32}, CONSTANT: {"sigmoid_bias": 1e-3}}),
    Program(matern_regression, (uniform(749, 24, 2, low=-2, high=2), normal(751, 24), uniform(752, 30, 2, low=-2, high=2)), {RATIO: {"length": 0.802}, EPSILON: {"noise": 0.049}, DROPPED: {"term": 1.0}, APPROXIMATED: {"exp": roughly.exp}}, lapack=True),
    Program(lamb_steps, (normal(753, 8, 24, 12) / np.float32(10),), {RATIO: {"beta": 0.998}, DROPPED: {"decay": 0.0}, OFF_BY_ONE: {"count": 1}, APPROXIMATED: {"rsqrt": roughly.rsqrt}, SWAPPED: {"axis": 0}}),
    Program(ctc_loss, (2 * normal(754, 3, 16, 8), np.array([[1, 2, 2, 5, 7], [3, 3, 3, 1, 4], [6, 1, 2, 6, 5]], np.int32)), {DROPPED: {"skip": False}, OFF_BY_ONE: {"last": 0}, APPROXIMATED: {"exp": roughly.exp}, HALF: {"pass_on": roughly.half}}),
    Program(loudness, (_SOUND.astype(np.float32),), {OFF_BY_ONE: {"hop": 121}, TABLE: {"entry": 1.001}, HALF: {"pass_on": roughly.half}, RATIO: {"gain": 1.01}}),
    Program(atom_descriptors, (1.2 * normal(756, 10, 3, dtype=np.float64),), {DROPPED: {"cutoff": False}, RATIO: {"third": 0.7473}, APPROXIMATED: {"cos": roughly.cos}, LOW: {"pass_on": roughly.single}}, x64=True),
    Program(arm_jacobian, (uniform(757, 5, 6, low=-2, high=2),), {APPROXIMATED: {"sin": roughly.sin, "cos": roughly.cos}, TF32: {"cut": roughly.tf32}, TABLE: {"entry": 1.002}, SWAPPED: {"turn": True}}),
    Program(predator_prey, (np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4])), {OFF_BY_ONE: {"first": 8}, LOW: {"pass_on": roughly.single}, RATIO: {"third": 3.01}}, x64=True),
    Program(hashed_features, (normal(758, 4, 60), integers(759, 4, 60, high=5000)), {CONSTANT: {"seed": 0x9747B28D}, OFF_BY_ONE: {"bit": 30}, DROPPED: {"signed": False}, TABLE: {"entry": 1.01}}),
)  # fmt: skip
