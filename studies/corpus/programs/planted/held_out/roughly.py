"""Functions as an imprecise reader may have them: operands in few bits, and approximations off by 1e-3 to 1e-4."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

_PLACES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(40) + 0.5) / 40)
_POWERS = [float(c) for c in np.polyfit(_PLACES, 2.0**_PLACES, 3)]
_LOGARITHM = [float(c) for c in np.polyfit(1 + _PLACES, np.log2(1 + _PLACES), 4)]


def tf32(x):
    """Round a float32 to the 10 bits of mantissa of TF32."""
    return lax.reduce_precision(x, 8, 10)


def half(x):
    """Round a float32 to float16, in a way that no compiler removes."""
    return lax.reduce_precision(x, 5, 10)


def same(x):
    """Return the argument unchanged, where no error is planted."""
    return x


def exp(x):
    """Take the exponential by a cubic polynomial, off by 1e-4."""
    x = jnp.maximum(x, -80.0) * np.log2(np.e).item()
    whole = jnp.floor(x)
    part = x - whole
    return sum(c * part ** (3 - n) for n, c in enumerate(_POWERS)) * jnp.exp2(whole)


def log(x):
    """Take the logarithm by a polynomial, off by 1e-4."""
    whole = jnp.floor(jnp.log2(x))
    part = x * jnp.exp2(-whole)
    return (sum(c * part ** (4 - n) for n, c in enumerate(_LOGARITHM)) + whole) * np.log(2).item()


def tanh(x):
    """Take the hyperbolic tangent by a fraction, off by 1e-4 near 1.5 and by 1e-3 near 3."""
    x = jnp.clip(x, -3.5, 3.5)
    return x * (945 + x**2 * (105 + x**2)) / (945 + x**2 * (420 + 15 * x**2))


def sigmoid(x):
    return 1 / (1 + exp(-x))


def silu(x):
    return x * sigmoid(x)


def erf(x):
    """Take the error function by a tanh, as in the usual approximation of GELU."""
    return jnp.tanh(1.1283792 * (x + 0.0894299 * x**3))


def sin(x):
    """Take the sine by four terms after a reduction to half a turn, off by 2e-4."""
    turn = jnp.round(x / np.pi)
    x = x - turn * np.pi
    return x * (1 - x**2 / 6 * (1 - x**2 / 20 * (1 - x**2 / 42))) * (1 - 2 * (turn % 2))


def cos(x):
    return sin(x + np.pi / 2)


def rsqrt(x):
    """Take the inverse square root as a processor's instruction gives it before a Newton step: in 12 bits."""
    return lax.reduce_precision(lax.rsqrt(x), 8, 11)


def sqrt(x):
    return x * rsqrt(x)


def single(x):
    """Round a float64 to float32."""
    return lax.reduce_precision(x, 8, 23)


def bf16(x):
    """Round a float32 to bfloat16."""
    return lax.reduce_precision(x, 8, 7)


def entry(table, factor):
    """Return a table in which one entry is multiplied by a factor."""
    table = np.array(table)
    table.flat[table.size // 3] *= factor
    return table
