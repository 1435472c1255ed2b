"""Transformers at real sizes, in jax alone: attention, layers with their training step, decoding, experts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

HEADS, LENGTH, SIZE = 8, 128, 64
x = normal(0, LENGTH, SIZE)
seed = np.uint32(1)


def weights(seed, **shapes):
    """Return weights that the function computes by hashing integers, so that the golden need not store them."""
    made = {}
    for number, (name, shape) in enumerate(shapes.items()):
        bits = jax.lax.iota(jnp.uint32, int(np.prod(shape))) * np.uint32(2654435761) + seed * np.uint32(40503 + number)
        bits = (bits ^ (bits >> 15)) * np.uint32(2246822519)
        even = ((bits ^ (bits >> 13)) >> 8).astype(jnp.float32) / 2**23 - 1
        made[name] = even.reshape(shape) * np.sqrt(3 / shape[-2])
    return made


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attend(q, k, v, mask=None):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else jnp.where(mask, scores, -1e9)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)


def heads(x, seed):
    """Return queries, keys and values of shape 8 x 128 x 64."""
    made = weights(seed, q=(HEADS, SIZE, SIZE), k=(HEADS, SIZE, SIZE), v=(HEADS, SIZE, SIZE))
    return [jnp.einsum("ld,hde->hle", x, made[name]) for name in ("q", "k", "v")]


def rotated(x):
    """Return heads with rotary positions."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[-2])[:, None] / 10000 ** (jnp.arange(half) / half)
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate(
        [left * jnp.cos(angles) - right * jnp.sin(angles), right * jnp.cos(angles) + left * jnp.sin(angles)], -1
    )


@pytest.mark.export_compat
def test_attention(export_golden):
    export_golden(jax.jit(attend), *(normal(number, HEADS, LENGTH, SIZE) for number in range(3)))


@pytest.mark.export_compat(vjp_order=1)
def test_self_attention(export_golden):
    export_golden(jax.jit(lambda x, seed: attend(*heads(x, seed)).mean(0)), x, seed)


@pytest.mark.export_compat(vjp_order=1)
def test_causal_rotary_attention(export_golden):
    def layer(x, seed):
        q, k, v = heads(x, seed)
        return attend(rotated(q), rotated(k), v, jnp.tril(jnp.ones((LENGTH, LENGTH), bool))).mean(0)

    export_golden(jax.jit(layer), x, seed)


@pytest.mark.export_compat(vjp_order=1)
def test_attention_in_blocks(export_golden):
    """Attention whose softmax is accumulated block by block, as kernels do it."""

    def layer(x, seed):
        q, k, v = heads(x, seed)

        def block(carry, keys_values):
            top, total, out = carry
            keys, values = keys_values
            scores = jnp.einsum("hqd,hkd->hqk", q, keys) / np.sqrt(SIZE)
            new_top = jnp.maximum(top, scores.max(-1))
            shrink, weight = jnp.exp(top - new_top), jnp.exp(scores - new_top[..., None])
            out = out * shrink[..., None] + jnp.einsum("hqk,hkd->hqd", weight, values)
            return (new_top, total * shrink + weight.sum(-1), out), None

        blocks = [jnp.moveaxis(a.reshape(HEADS, 4, LENGTH // 4, SIZE), 1, 0) for a in (k, v)]
        start = (jnp.full((HEADS, LENGTH), -1e30), jnp.zeros((HEADS, LENGTH)), jnp.zeros_like(q))
        (_, total, out), _ = jax.lax.scan(block, start, tuple(blocks))
        return (out / total[..., None]).mean(0)

    export_golden(jax.jit(layer), x, seed)


@pytest.mark.export_compat
def test_decoding_with_a_cache(export_golden):
    """Greedy decoding of sixteen tokens in a while loop, with keys and values in a cache."""
    vocabulary = 256

    def decode(prompt, seed):
        made = weights(seed, embed=(vocabulary, SIZE), q=(SIZE, SIZE), k=(SIZE, SIZE), v=(SIZE, SIZE))
        made["embed"] *= np.sqrt(vocabulary)

        def more(state):
            return state[0] < 24

        def step(state):
            place, tokens, keys, values = state
            vector = normalized(made["embed"][tokens[place]])
            keys = jax.lax.dynamic_update_slice(keys, (vector @ made["k"])[None], (place, 0))
            values = jax.lax.dynamic_update_slice(values, (vector @ made["v"])[None], (place, 0))
            scores = jnp.where(jnp.arange(32) <= place, keys @ (vector @ made["q"]) / 8, -1e9)
            logits = made["embed"] @ (jax.nn.softmax(scores) @ values + vector)
            token = jnp.where(place < 7, tokens[place + 1], jnp.argmax(logits).astype(jnp.int32))
            return place + 1, tokens.at[place + 1].set(token), keys, values

        start = (0, jnp.zeros(32, jnp.int32).at[:8].set(prompt), jnp.zeros((32, SIZE)), jnp.zeros((32, SIZE)))
        return jax.lax.while_loop(more, step, start)[1:]

    export_golden(jax.jit(decode), integers(0, 8, high=vocabulary), seed)


def layer(params, x):
    """Return the output of a transformer layer of width 64 with 4 heads."""
    split = [(normalized(x) @ params[name]).reshape(-1, 4, 16).swapaxes(0, 1) for name in ("q", "k", "v")]
    x = x + attend(*split).swapaxes(0, 1).reshape(x.shape) @ params["o"]
    return x + jax.nn.gelu(normalized(x) @ params["up"]) @ params["down"]


shapes = {"q": (SIZE, SIZE), "k": (SIZE, SIZE), "v": (SIZE, SIZE), "o": (SIZE, SIZE)}
shapes |= {"up": (SIZE, 4 * SIZE), "down": (4 * SIZE, SIZE)}


@pytest.mark.export_compat(vjp_order=1)
def test_transformer_layer(export_golden):
    export_golden(jax.jit(lambda x, seed: layer(weights(seed, **shapes), x)), x, seed)


@pytest.mark.export_compat
def test_training_step_with_adam(export_golden):
    """A training step with the gradient and Adam, for weights in bfloat16 and moments in float32."""

    def step(params, moments, count, x, y):
        def loss(params):
            return jnp.mean((layer(jax.tree.map(lambda w: w.astype(jnp.float32), params), x) - y) ** 2)

        value, slope = jax.value_and_grad(loss)(params)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
        second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], slope)
        grown = 1 - 0.9**count, 1 - 0.999**count
        params = jax.tree.map(
            lambda w, m, s: w - (1e-3 * (m / grown[0]) / (jnp.sqrt(s / grown[1]) + 1e-6)).astype(w.dtype),
            *(params, first, second),
        )
        return value, params, jax.tree.map(jnp.linalg.norm, (first, second))

    params = {name: normal(n, *shape, scale=0.1).astype(jnp.bfloat16) for n, (name, shape) in enumerate(shapes.items())}
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    export_golden(jax.jit(step), params, (zeros, zeros), np.float32(1), x, normal(9, LENGTH, SIZE))


@pytest.mark.export_compat(vjp_order=1)
def test_checkpointed_layers(export_golden):
    """Four layers in a scan, which are recomputed for the gradient."""

    def model(x, seed):
        params = weights(seed, **{name: (4, *shape) for name, shape in shapes.items()})
        return jax.lax.scan(jax.checkpoint(lambda x, params: (layer(params, x), None)), x, params)[0]

    export_golden(jax.jit(model), x, seed)


@pytest.mark.export_compat(vjp_order=1)
def test_mixture_of_experts(export_golden):
    """A mixture of experts: each token goes to the two best of eight experts, which take at most 48 tokens each."""

    def experts(x, seed):
        made = weights(seed, gate=(SIZE, 8), up=(8, SIZE, 128), down=(8, 128, SIZE))
        share, chosen = jax.lax.top_k(jax.nn.softmax(x @ made["gate"]), 2)
        wanted = jax.nn.one_hot(chosen, 8).sum(1)
        place = jnp.cumsum(wanted, 0) * wanted - 1
        sent = jax.nn.one_hot(place.astype(jnp.int32), 48) * wanted[..., None]
        hidden = jax.nn.silu(jnp.einsum("ld,lec,edf->ecf", x, sent, made["up"]))
        out = jnp.einsum("ecf,efd,lec->led", hidden, made["down"], sent)
        return jnp.einsum("led,lke,lk->ld", out, jax.nn.one_hot(chosen, 8), share)

    export_golden(jax.jit(experts), x, seed)


@pytest.mark.export_compat(vjp_order=1)
def test_language_model_loss(export_golden):
    """The loss of a small language model for a batch of four: embedding, a layer, and cross entropy."""

    def loss(scale, tokens, seed):
        made = weights(seed, embed=(1000, SIZE), **shapes)
        embed = made.pop("embed") * 30 * scale
        hidden = jax.vmap(lambda tokens: layer(made, embed[tokens]))(tokens)
        logits = jax.nn.log_softmax(normalized(hidden[:, :-1]) @ embed.T)
        return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean((1, 2))

    export_golden(jax.jit(loss), normal(3, SIZE), integers(1, 4, 64, high=1000), seed)


@pytest.mark.export_compat(symbolic_shapes=("b, l, 64", None), vjp_order=1)
def test_symbolic_batch_and_length(export_golden):
    def model(x, seed):
        return jax.vmap(lambda x: layer(weights(seed, **shapes), x))(x)

    export_golden(jax.jit(model), normal(4, 2, 48, SIZE), seed).also(normal(5, 3, 32, SIZE), seed)


@pytest.mark.export_compat(vjp_order=1)
def test_vision_transformer(export_golden):
    """A vision transformer: 8 x 8 patches of a 64 x 64 image, one layer, ten classes."""

    def classify(image, seed):
        made = weights(seed, patch=(8, 8, 3, SIZE), head=(SIZE, 10), **shapes)
        patch = made.pop("patch") / 8
        dims = ("NHWC", "HWIO", "NHWC")
        tokens = jax.lax.conv_general_dilated(image, patch, (8, 8), "VALID", dimension_numbers=dims)
        head = made.pop("head")
        return jax.vmap(lambda x: layer(made, x.reshape(-1, SIZE)).mean(0) @ head)(tokens)

    export_golden(jax.jit(classify), normal(6, 2, 64, 64, 3), seed)
