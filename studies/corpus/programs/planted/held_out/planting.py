"""Operations into which a program can plant an error: without an argument for that, each is the plain operation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def widened(numbers):
    """Return numbers in few bits as float32, converted by the program and not before."""
    return jnp.asarray(numbers).astype(jnp.float32)


def to_tf32(x, planted):
    """Round an operand of a product to the 10 bits of mantissa of TF32, if `planted`."""
    return lax.reduce_precision(x, 8, 10) if planted else x


def to_half(x, planted):
    """Round to the numbers that float16 has, without a change of type, if `planted`."""
    return lax.reduce_precision(x, 5, 10) if planted else x


def product(a, b, tf32=False):
    """Multiply two matrices; with `tf32`, both are rounded to TF32 first."""
    return to_tf32(a, tf32) @ to_tf32(b, tf32)


def total(x, low=False):
    """Sum over the last axis; with `low`, one term after the other, rounded to 7 bits of mantissa."""
    if not low:
        return jnp.sum(x, axis=-1)
    add = lambda sum_, term: (lax.reduce_precision(sum_ + term, 8, 7), None)
    return lax.scan(add, jnp.zeros_like(x[..., 0]), jnp.moveaxis(x, -1, 0))[0]


def one_off(table, factor=1.0, place=0):
    """Return a table in which one entry is multiplied by `factor`; `place` counts through all axes."""
    table = jnp.asarray(table)
    return table if factor == 1.0 else table.ravel().at[place].multiply(factor).reshape(table.shape)


def exp(x, rough=False):
    """Take the exponential function; with `rough`, by a cubic polynomial that is off by 1e-4."""
    if not rough:
        return jnp.exp(x)
    y = jnp.clip(x * 1.44269504, -120, 120)
    whole = jnp.floor(y)
    f = y - whole
    return jnp.exp2(whole) * (1 + f * (0.6951786 + f * (0.2261697 + f * 0.0781455)))


def softmax(x, rough=False):
    """Take the softmax over the last axis; with `rough`, from the rough exponential function."""
    if not rough:
        return jax.nn.softmax(x, axis=-1)
    weights = exp(x - jnp.max(x, axis=-1, keepdims=True), rough)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


def sigmoid(x, rough=False):
    """Take the logistic function; with `rough`, from the rough exponential function."""
    return 1 / (1 + exp(-x, rough)) if rough else jax.nn.sigmoid(x)


def tanh(x, rough=False):
    """Take the hyperbolic tangent; with `rough`, from the rough exponential function."""
    return 2 * sigmoid(2 * x, rough) - 1 if rough else jnp.tanh(x)


def rsqrt(x, rough=False):
    """Take the inverse square root; with `rough`, by one Newton step from a guess by the bits, off by 1e-3."""
    if not rough:
        return lax.rsqrt(x)
    bits = lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32)
    guess = lax.bitcast_convert_type(0x5F3759DF - (bits >> 1), jnp.float32)
    return guess * (1.5 - 0.5 * x * guess * guess)
