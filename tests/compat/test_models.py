"""What people export: a network with its gradients, an attention block, a convolution."""

import jax
import jax.numpy as jnp
import pytest


def mlp(params, x):
    for weights, bias in params[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def mlp_loss(params, x, target):
    return jnp.mean((mlp(params, x) - target) ** 2)


@pytest.mark.export_compat
def test_mlp_with_gradients(export_golden, numbers):
    params = [(numbers(8, 16), numbers(16)), (numbers(16, 4), numbers(4))]
    export_golden(jax.jit(jax.value_and_grad(mlp_loss)), params, numbers(5, 8, offset=3), numbers(5, 4, offset=7))


def attention(weights, x):
    query, key, value = (jnp.einsum("sd,dhk->shk", x, weights[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("qhk,shk->hqs", query, key) / jnp.sqrt(jnp.float32(query.shape[-1]))
    causal = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    probabilities = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("hqs,shk->qhk", probabilities, value)
    normed = (mixed - mixed.mean(-1, keepdims=True)) / jnp.sqrt(mixed.var(-1, keepdims=True) + 1e-5)
    return x + jnp.einsum("qhk,hkd->qd", normed, weights["out"])


@pytest.mark.export_compat(platforms=["cpu", "cuda", "tpu"])
def test_attention(export_golden, numbers):
    weights = {name: numbers(8, 2, 4, offset=start) for start, name in enumerate(("query", "key", "value"))}
    export_golden(jax.jit(attention), {**weights, "out": numbers(2, 4, 8)}, numbers(6, 8))


def convolve(image, kernel):
    strided = jax.lax.conv_general_dilated(
        image, kernel, window_strides=(2, 2), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.lax.reduce_window(strided, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")


@pytest.mark.export_compat
def test_convolution(export_golden, numbers):
    export_golden(jax.jit(convolve), numbers(2, 8, 8, 3), numbers(3, 3, 3, 4))
