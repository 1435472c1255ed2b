"""Inference with constant weights: integer tokens are the only input, unless a program says otherwise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, OFF_BY_ONE, SEED, Program

WORDS, SIZE = 48, 24


def _weights(seed, *shape):
    return normal(seed, *shape) / np.float32(np.sqrt(shape[0]))


_EMBED = normal(540, WORDS, SIZE)
_QKV, _OUT = _weights(541, SIZE, 3 * SIZE), _weights(542, SIZE, SIZE)
_UP, _DOWN = _weights(543, SIZE, 64), _weights(544, 64, SIZE)
_GRU, _LSTM = _weights(545, 2 * SIZE, 3 * SIZE), _weights(546, 2 * SIZE, 4 * SIZE)
_EXPERTS, _ROUTES = _weights(547, SIZE, 6 * SIZE).reshape(SIZE, 6, SIZE), _weights(548, SIZE, 6)
_KERNEL = _weights(549, 3 * SIZE, SIZE).reshape(3, SIZE, SIZE)


def _vectors(tokens):
    return jnp.asarray(_EMBED)[tokens]


def _norm(x, epsilon=1e-5):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + epsilon)


def _positions(length):
    angle = jnp.arange(length)[:, None] * 1000.0 ** (-jnp.arange(SIZE // 2) / (SIZE // 2))
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def _block(x, scale=0.2041241, epsilon=1e-5):
    """A layer of a transformer with two heads."""
    q, k, v = jnp.split(_norm(x, epsilon) @ _QKV, 3, axis=-1)
    split = lambda y: y.reshape(len(y), 2, -1)
    scores = jnp.einsum("qhd,khd->hqk", split(q), split(k)) * scale
    scores = jnp.where(jnp.tril(jnp.ones((len(x), len(x)), bool)), scores, -1e9)
    x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores, axis=-1), split(v)).reshape(x.shape) @ _OUT
    return x + jax.nn.gelu(_norm(x, epsilon) @ _UP) @ _DOWN


def transformer_logits(tokens, *, scale=0.2041241, epsilon=1e-5):
    x = _vectors(tokens) + _positions(len(tokens))
    return _norm(_block(_block(x, scale, epsilon), scale, epsilon)) @ _EMBED.T


def transformer_perplexity(tokens, *, shift=1):
    """The perplexity of each row of a batch."""

    def loss(row):
        logits = jax.nn.log_softmax(transformer_logits(row))
        return -jnp.mean(jnp.take_along_axis(logits[:-shift], row[shift:, None], axis=-1))

    return jnp.exp(jax.vmap(loss)(tokens))


def greedy_decoding(prompt, *, steps=8):
    """Eight words, each the best one, and the last logits. A word jumps if two have almost the same logit."""

    def step(carry, _):
        tokens, at = carry
        logits = transformer_logits(tokens)[at]
        tokens = tokens.at[at + 1].set(jnp.argmax(logits).astype(tokens.dtype))
        return (tokens, at + 1), logits

    start = jnp.zeros(len(prompt) + 8, prompt.dtype).at[: len(prompt)].set(prompt)
    (tokens, _), logits = lax.scan(step, (start, len(prompt) - 1), None, length=steps)
    return tokens, logits[-1]


def cached_step(tokens, *, scale=0.2886751):
    """Six decoding steps that write keys and values into a cache, from words that fill its first places."""
    made = (_vectors(tokens) + _positions(len(tokens))) @ _QKV
    _, keys, values = jnp.split(made, 3, axis=-1)

    def step(carry, word):
        keys, values, place = carry
        query, key, value = jnp.split(_norm(_vectors(word)) @ _QKV, 3)
        keys = lax.dynamic_update_slice(keys, key[None], (place, 0))
        values = lax.dynamic_update_slice(values, value[None], (place, 0))
        weights = jax.nn.softmax(jnp.where(jnp.arange(len(keys)) <= place, keys @ query * scale, -1e9))
        return (keys, values, place + 1), weights @ values

    (keys, _, _), found = lax.scan(step, (keys, values, 4), tokens[:6])
    return keys, found


def tanh_recurrence(tokens, *, gain=1.0):
    """The logits of each step of a plain recurrent network."""

    def step(h, word):
        h = jnp.tanh(gain * (h @ _OUT + _vectors(word)))
        return h, h @ _EMBED.T

    return lax.scan(step, jnp.zeros(SIZE), tokens)[1]


def gated_recurrence(tokens, *, term=1.0):
    def step(h, word):
        z, r, n = jnp.split(jnp.concatenate([h, _vectors(word)]) @ _GRU, 3)
        h = (1 - jax.nn.sigmoid(z)) * h + jax.nn.sigmoid(z) * jnp.tanh(n + term * jax.nn.sigmoid(r) * h)
        return h, h

    return lax.scan(step, jnp.zeros(SIZE), tokens)[1]


def routed_experts(tokens, *, chosen=2):
    """Each word goes to the best two of six experts. The choice jumps if two of them score almost the same."""
    x = _norm(_vectors(tokens) + _positions(len(tokens)))
    share, best = lax.top_k(jax.nn.softmax(x @ _ROUTES), chosen)
    out = jnp.einsum("ld,dke->lke", x, _EXPERTS)
    picked = jnp.take_along_axis(out, best[..., None], axis=1)
    return jnp.sum(picked * (share / jnp.sum(share, axis=-1, keepdims=True))[..., None], axis=1)


def beam_step(tokens, *, penalty=0.7):
    """The best four continuations of four rows. The words jump if two scores are almost the same."""
    logits = jax.vmap(lambda row: jax.nn.log_softmax(transformer_logits(row)[-1]))(tokens)
    before = -jnp.arange(4) * 0.3
    scores, places = lax.top_k((before[:, None] + logits).ravel() / 6**penalty, 4)
    return scores, places // WORDS, places % WORDS


def sampled_words(tokens, *, seed=3, temperature=0.8):
    """Words drawn from the best ten by adding Gumbel noise to logits: a small change of a logit changes a word."""
    logits = jax.vmap(lambda row: transformer_logits(row)[-1])(tokens) / temperature
    worst = lax.top_k(logits, 10)[0][:, -1:]
    noise = jax.random.gumbel(jax.random.key(seed), logits.shape)
    shown = jnp.where(logits >= worst, logits, -1e9)
    return jax.nn.softmax(shown), jnp.argmax(shown + noise, axis=-1)


def nucleus_shares(tokens, *, share=0.9):
    """The likeliest words that together reach a share of the probability. The last word within the share may jump."""
    shares = jax.nn.softmax(transformer_logits(tokens)[-4:] / 3)
    order = jnp.argsort(-shares, axis=-1)
    ranked = jnp.take_along_axis(shares, order, axis=-1)
    kept = jnp.where(jnp.cumsum(ranked, axis=-1) - ranked < share, ranked, 0.0)
    back = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return back / jnp.sum(back, axis=-1, keepdims=True)


def word_influence(tokens, *, scale=0.2041241):
    """The gradient of the last word's best logit with respect to the word vectors; no argument is a float."""

    def best(vectors):
        x = _block(vectors + _positions(len(tokens)), scale)
        return jnp.max(_norm(x[-1]) @ _EMBED.T)

    return jax.grad(best)(_vectors(tokens))


def contrastive_gradient(tokens, *, temperature=0.1):
    """The gradient of a contrastive loss over all pairs in a batch, in a projection that the program holds."""

    def loss(projection):
        vectors = jnp.mean(_vectors(tokens), axis=1) @ projection
        unit = vectors * lax.rsqrt(jnp.sum(vectors**2, axis=-1, keepdims=True) + 1e-6)
        scores = unit @ jnp.roll(unit, 1, axis=0).T / temperature
        return -jnp.mean(jnp.diag(jax.nn.log_softmax(scores)))

    return jax.grad(loss)(_OUT)


_TOKENS, _BATCH = integers(550, 14, high=WORDS), integers(551, 4, 10, high=WORDS)

PROGRAMS = (
    Program(transformer_logits, (_TOKENS,), {CONSTANT: {"scale": 0.2041261}, EPSILON: {"epsilon": 0.0}}),
    Program(transformer_perplexity, (_BATCH,), {OFF_BY_ONE: {"shift": 2}}),
    Program(greedy_decoding, (_TOKENS[:5],), {OFF_BY_ONE: {"steps": 7}}, jumps=True),
    Program(cached_step, (_TOKENS[:12],), {CONSTANT: {"scale": 0.2886780}}),
    Program(tanh_recurrence, (integers(552, 200, high=WORDS),), {CONSTANT: {"gain": 1.00001}}),
    Program(gated_recurrence, (integers(553, 120, high=WORDS),), {DROPPED: {"term": 0.0}}),
    Program(routed_experts, (_TOKENS,), {OFF_BY_ONE: {"chosen": 1}}, jumps=True),
    Program(beam_step, (_BATCH,), {CONSTANT: {"penalty": 0.700007}}, jumps=True),
    Program(sampled_words, (_BATCH,), {SEED: {"seed": 4}, CONSTANT: {"temperature": 0.800008}}, jumps=True),
    Program(nucleus_shares, (_TOKENS,), {OFF_BY_ONE: {"share": 0.8}}, jumps=True),
    Program(word_influence, (_TOKENS,), {CONSTANT: {"scale": 0.2041261}}),
    Program(contrastive_gradient, (_BATCH,), {CONSTANT: {"temperature": 0.100001}}),
)  # fmt: skip
