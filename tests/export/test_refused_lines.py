"""A refusal names the line of the user's code that jax cannot export."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from export_core.export import ExportError

X = np.arange(3, dtype=np.float32)


def own_call(x):
    y = jnp.sin(x)
    return jax.ffi.ffi_call("a_call_of_ours", jax.ShapeDtypeStruct(x.shape, x.dtype))(y)  # refused


def without_a_lowering(x):
    return jax.lax.scan(lambda c, _: (jax.lax.platform_dependent(c, tpu=jnp.sin), None), x, length=3)[0]  # refused


def kernel(x):
    return pl.pallas_call(lambda a, o: o.__setitem__(..., a[...]), out_shape=x)(x)  # refused


@pytest.mark.parametrize("function", [own_call, without_a_lowering, kernel])
def test_a_refusal_names_the_line_of_the_user(exported, function):
    with pytest.raises(ExportError, match=r" at \S*test_refused_lines\.py:\d+ in \S+: .*# refused"):
        exported(function, X)
