"""Programs with a narrow type beside the outputs, in stored weights, or between these and the inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import normal
from studies.corpus.programs.planted.cancelling import tf32
from studies.corpus.programs.program import APPROXIMATED, CONSTANT, EPSILON, HALF, RATIO, TABLE, TF32, Program

_W1, _W2 = normal(830, 32, 48) / np.float32(6), normal(831, 48, 16) / np.float32(7)
_X = normal(832, 24, 32)


def _half(x, on):
    return x.astype(jnp.float16).astype(x.dtype) if on else x


def _layers(x, w1, w2, *, low=False, half=False, entry=1.0, epsilon=1e-5, ratio=1.0, off=0.0):
    w1 = jnp.asarray(w1).at[3, 4].multiply(entry)
    h = (tf32(x) if low else x) @ (tf32(w1) if low else w1)
    h = (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) / 1e4 + epsilon)
    h = _half(jnp.tanh(h) * (1 + off * jnp.sin(h)), half)
    return ratio * h @ w2


def beside_bfloat16(x, **wrong):
    y = _layers(x, _W1, _W2, **wrong)
    return y, x.astype(jnp.bfloat16)


def beside_float8(x, **wrong):
    y = _layers(x, _W1, _W2, **wrong)
    return y, x.astype(jnp.float8_e4m3fn)


def beside_e8m0(x, **wrong):
    y = _layers(x, _W1, _W2, **wrong)
    scale = jnp.exp2(jnp.floor(jnp.log2(jnp.max(jnp.abs(x), axis=-1))))
    return y, scale.astype(jnp.float8_e8m0fnu)


def beside_float4(x, **wrong):
    y = _layers(x, _W1, _W2, **wrong)
    return y, x.astype(jnp.float4_e2m1fn)


_SCALES = np.exp2(np.floor(np.log2(np.abs(_W1.reshape(32, 6, 8)).max(-1))) - 1).astype(ml_dtypes.float8_e8m0fnu)
_BLOCKS = (_W1.reshape(32, 6, 8) / _SCALES.astype(np.float32)[..., None]).astype(ml_dtypes.float4_e2m1fn)


def mx_weights(x, **wrong):
    """Layers with weights in blocks of float4, each with a scale in float8_e8m0."""
    w1 = (jnp.asarray(_BLOCKS).astype(jnp.float32) * jnp.asarray(_SCALES).astype(jnp.float32)[..., None]).reshape(
        32, 48
    )
    return _layers(x, w1, _W2, **wrong)


_INT4 = np.clip(np.round(_W1 * 20), -8, 7).astype(ml_dtypes.int4)
_F16 = np.full((48,), 1 / 20, np.float16) * (1 + np.arange(48, dtype=np.float16) / 100)


def int4_weights(x, **wrong):
    w1 = jnp.asarray(_INT4).astype(jnp.float32) * jnp.asarray(_F16).astype(jnp.float32)
    return _layers(x, w1, _W2, **wrong)


def float8_weights(x, **wrong):
    return _layers(x, jnp.asarray(_W1.astype(ml_dtypes.float8_e5m2)).astype(jnp.float32), _W2, **wrong)


def double_beside_float(x, *, single=False, ratio=1.0):
    y = jnp.cumsum(jnp.sin(x.astype(jnp.float32).astype(x.dtype) if single else x), axis=0) * ratio
    return y, x.astype(jnp.float32)


def float8_hidden(x, *, ratio=1.0, entry=1.0, scale=1.0):
    """Layers with a hidden activation that is rounded to float8, so that the output depends on the rounding."""
    q = jnp.tanh(x @ (_W1 * scale)).astype(jnp.float8_e4m3fn).astype(jnp.float32)
    return ratio * q @ jnp.asarray(_W2).at[2, 3].multiply(entry)


def float8_products(x, *, ratio=1.0):
    a, b = x.astype(jnp.float8_e4m3fn), _W1.astype(ml_dtypes.float8_e4m3fn)
    return ratio * lax.dot(a, b, preferred_element_type=jnp.float32)


def bfloat16_twice(x, *, ratio=1.0, epsilon=1e-3):
    """Layers with activations that are rounded to bfloat16 and converted back, element by element."""
    h = jnp.tanh(x * 1.7).astype(jnp.bfloat16).astype(jnp.float32)
    h = h * lax.rsqrt(jnp.mean(h * h, axis=-1, keepdims=True) / 100 + epsilon)
    return ratio * (h.astype(jnp.bfloat16).astype(jnp.float32) @ _W1)


def half_chain(x, *, ratio=1.0):
    """An elementwise function computed in float16, with inputs and outputs in float32."""
    h = x.astype(jnp.float16)
    return (jnp.exp(-h * h) * h + h / 3).astype(jnp.float32) * ratio


def bfloat16_model(x, *, ratio=1.0, entry=1.0):
    w1 = jnp.asarray(_W1.astype(ml_dtypes.bfloat16)).at[3, 4].multiply(entry)
    h = jax.nn.gelu(x.astype(jnp.bfloat16) @ w1)
    h = h + 0.3 * jnp.roll(h, 1, axis=-1)
    return (h @ _W2.astype(ml_dtypes.bfloat16) * ratio).astype(jnp.float32)


def float16_model(x, *, ratio=1.0, entry=1.0):
    w1 = jnp.asarray(_W1.astype(np.float16)).at[3, 4].multiply(entry)
    h = jax.nn.gelu(x.astype(jnp.float16) @ w1)
    h = h + 0.3 * jnp.roll(h, 1, axis=-1)
    return (h @ _W2.astype(np.float16) * ratio).astype(jnp.float16)


def float8_out(x, *, ratio=1.0):
    """Layers with outputs in float8."""
    return (ratio * (x @ _W1)).astype(jnp.float8_e4m3fn), (ratio * jnp.tanh(x @ _W1)).astype(jnp.float8_e5m2)


def fake_quantised(x, *, ratio=1.0, entry=1.0):
    """A product with an operand that is rounded to sixteen steps."""
    s = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 7
    return ratio * ((jnp.round(x / s) * s) @ jnp.asarray(_W1).at[3, 4].multiply(entry))


_WRONG = {
    TF32: {"low": True},
    HALF: {"half": True},
    TABLE: {"entry": 1.05},
    EPSILON: {"epsilon": 0.0},
    RATIO: {"ratio": 1.001},
    APPROXIMATED: {"off": 1e-3},
}
_RATIO = {RATIO: {"ratio": 1.01}}

PROGRAMS = (
    Program(beside_bfloat16, (_X,), _WRONG, narrow="beside"),
    Program(beside_float8, (_X,), _WRONG, narrow="beside"),
    Program(beside_e8m0, (_X,), _WRONG, narrow="beside"),
    Program(beside_float4, (_X,), _WRONG, narrow="beside"),
    Program(mx_weights, (_X,), _WRONG, narrow="beside"),
    Program(int4_weights, (_X,), _WRONG, narrow="beside"),
    Program(float8_weights, (_X,), _WRONG, narrow="beside"),
    Program(double_beside_float, (normal(833, 50, 4, dtype=np.float64),), {HALF: {"single": True}, CONSTANT: {"ratio": 1.0000001}}, x64=True, narrow="beside"),
    Program(float8_hidden, (_X,), {**_RATIO, TABLE: {"entry": 1.05}, CONSTANT: {"scale": 1.02}}, narrow="rounded"),
    Program(float8_products, (_X,), _RATIO, narrow="rounded"),
    Program(bfloat16_twice, (_X,), {**_RATIO, EPSILON: {"epsilon": 0.0}}, narrow="rounded"),
    Program(half_chain, (_X,), _RATIO, narrow="half"),
    Program(bfloat16_model, (_X,), {RATIO: {"ratio": 1.05}, TABLE: {"entry": 1.3}}, narrow="half"),
    Program(float16_model, (_X,), {RATIO: {"ratio": 1.01}, TABLE: {"entry": 1.1}}, narrow="half"),
    Program(float8_out, (_X,), {RATIO: {"ratio": 1.1}}, narrow="rounded"),
    Program(fake_quantised, (_X,), {**_RATIO, TABLE: {"entry": 1.05}}, jumps=True),
)  # fmt: skip
