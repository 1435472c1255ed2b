"""Small programs for the knowledge base: each shows an entry about a runtime that is not jaxlib, and nothing else.

`nox -s knowledge` runs their goldens, in the folder of this file, in the releases that an entry is about. They are not
in tests/compat, whose cases every reader has to run. The newest jax writes the golden of a new program:
`pytest studies/known --goldens studies/known/golden --update-goldens`. jax 0.6.2 writes that of `test_sharded_sum`:
`jaxexport goldens backfill --writers 0.6.2 -- --goldens studies/known/golden studies/known -k test_sharded_sum`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

MILLIONS = 3_000_000
TIGHT = {"rtol": 2e-4, "atol": 0.0}
"""The tolerances of programs whose noise is larger than the error that an entry describes."""


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def seventh_parts(*shape: int) -> Any:
    """Return an array of bfloat16 in which 1/7 to 7/7 take turns."""
    return np.resize(np.arange(1, 8, dtype=np.float32) / 7, shape).astype(jnp.bfloat16)


def repeated(x: Any, *shape: int) -> Any:
    """Return an array of this shape that repeats the number `x`, in a way that no compiler computes in advance.

    So the golden does not contain millions of numbers.
    """
    return x * (lax.broadcasted_iota(np.int32, shape, 0) >= 0).astype(np.float32)


def through(dtype: str) -> Any:
    return lambda x: x.astype(dtype).astype(np.float32)


def windows(x: Any) -> Any:
    """Return the maximum of each pair of neighbours in a vector."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")


FROM_FIRST = np.array([1, 2, 3], np.int32)

PROGRAMS: dict[str, tuple[Any, ...]] = {
    "product_of_float16": (lambda x, y: x @ y, ones(4, 4000, dtype=np.float16), ones(4000, 4, dtype=np.float16)),
    "product_of_bfloat16": (lambda x, y: x @ y, seventh_parts(4, 4000), seventh_parts(4000, 4)),
    "sum_of_float16": (lambda x: lax.reduce(x, np.float16(0), lax.add, (0,)), ones(4000, dtype=np.float16)),
    "mean_of_millions": (lambda x: jnp.mean(repeated(x, MILLIONS)), np.float32(0.1)),
    "mean_of_millions_of_rows": (lambda x: jnp.mean(repeated(x, MILLIONS, 2), axis=0), np.float32(0.1)),
    "mean_of_millions_of_products": (
        lambda x, y: jnp.mean(repeated(x, MILLIONS, 2) @ y, axis=0),  # a product is stored before it is summed
        np.float32(0.1),
        np.eye(2, dtype=np.float32),
    ),
    "power_of_negative_base": (lax.pow, floats(-2, 0, 2), floats(3, 0, 3)),
    "sine_of_large_angle": (lambda x: (jnp.sin(x), jnp.cos(x)), floats(0.5, 1e30)),
    "argsort_of_ties": (lambda x: lax.sort((x, lax.iota(np.int32, 8)), num_keys=1)[1], np.array([0, 1] * 4, np.int32)),
    "sort_beside_top_k": (lambda x: (lax.top_k(x, 2), lax.sort(x)), np.array([2, 3, 1], np.int32)),
    "arctan2_of_zeros": (lax.atan2, floats(0, -0.0, 1), floats(0, -1, 1)),
    "integer_of_nan": (lambda x: x.astype(np.int32), floats(np.nan, 1e10, 2)),
    "odd_array_of_int4": (lambda x: x.astype("int4")[::-1].astype(np.int8), np.array([1, -2, 3], np.int8)),
    "float8_of_nan": (
        lambda x: lax.bitcast_convert_type(x, jnp.float8_e4m3fn).astype(np.float32),
        np.array([0xFF, 0x38], np.uint8),
    ),
    "float8_beside_smallest_normal": (through("float8_e4m3fn"), floats(0.0153, 1)),
    "remainder_of_negative": (lax.rem, np.array([-5, 5, 5], np.int32), np.array([3, -3, 3], np.int32)),
    "logical_shift_of_signed": (
        lambda x: lax.shift_right_logical(x, np.int32(1)),
        np.array([-8, 8], np.int32),
    ),
    "log1p_of_small": (lambda x: (jnp.log1p(x), jnp.expm1(x)), floats(1e-10, 1e-5)),
    "clamp_of_crossed_limits": (lax.clamp, np.float32(2), floats(0, 3), np.float32(1)),
    "rsqrt_of_zero": (lax.rsqrt, floats(0, 4)),
    "cbrt_of_negative": (lax.cbrt, floats(-8, 8)),
    "maximum_of_nan": (lax.max, floats(np.nan, 1, 2), floats(1, np.nan, 1)),
    "exponential_of_float16": (lax.exp, np.array([11, 0.5], np.float16)),
    "where_infinite": (lambda x, is_kept: jnp.where(is_kept, x, -jnp.inf), ones(2), np.array([True, False])),
    "sqrt_of_infinity": (lax.sqrt, floats(np.inf, 4)),
    "sqrt_of_large": (lax.sqrt, floats(3e38, 4)),
    "sign_of_nan": (lax.sign, floats(np.nan, -2)),
    "logarithm_of_nan": (lambda x: (jnp.exp(x), jnp.log(x)), floats(np.nan, 2)),
    "sort_of_nan": (lax.sort, floats(1, np.nan, -3, np.inf, 2)),
    "update_from_itself": (lambda x, i: x.at[i].set(x[:3], mode="promise_in_bounds"), floats(1, 2, 3, 4), FROM_FIRST),
    "transform_of_24": (jnp.fft.fft, np.arange(24, dtype=np.complex64)),
    "real_transform_of_6": (jnp.fft.rfft, floats(1, 2, 3, 4, 5, 6)),
    "approximate_minimum": (lambda x: lax.approx_min_k(x, 2)[0], floats(3, 1, 2, 5)),
    "scatter_between_axes": (lambda x: x.at[:, 0, 1].set(0), ones(2, 3, 4)),
    "gradient_of_windows_of_ties": (
        lambda x: jax.grad(lambda x: windows(x).sum())(x.astype(np.float32)),  # of integers, which noise does not move
        np.array([0, 0, 1, 2, 3, 3], np.int32),
    ),
}
SYMBOLIC: dict[str, tuple[Any, ...]] = {
    "symbolic_softmax": (jax.nn.softmax, ("b, 6",), ones(3, 6)),
    "symbolic_iota": (lambda x: x + lax.broadcasted_iota(np.int32, x.shape, 1), ("b, c",), ones(3, 6, dtype=np.int32)),
    "symbolic_product": (
        lambda x, y: jnp.einsum("bhd,hdv->bv", x, y),
        ("b, 2, 3", None),
        np.arange(12, dtype=np.float32).reshape(2, 2, 3),
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    ),
}
TOLERANCES = {
    **dict.fromkeys(("exponential_of_float16", "sine_of_large_angle"), TIGHT),
    "product_of_bfloat16": {"rtol": 0.01, "atol": 0.0},  # a unit in the last place is 0.4 % to 0.8 %
}


def _case(name: str, **keywords: Any) -> Any:
    return pytest.param(name, id=name, marks=pytest.mark.export_compat(**keywords))


@pytest.mark.parametrize("name", [_case(name, **TOLERANCES.get(name, {})) for name in PROGRAMS])
def test_program(export_golden: Any, name: str) -> None:
    function, *arguments = PROGRAMS[name]
    export_golden(jax.jit(function), *arguments)


@pytest.mark.parametrize("name", [_case(name, symbolic_shapes=SYMBOLIC[name][1]) for name in SYMBOLIC])
def test_symbolic_program(export_golden: Any, name: str) -> None:
    function, _, *arguments = SYMBOLIC[name]
    export_golden(jax.jit(function), *arguments)


@pytest.mark.export_compat(platforms=["cpu", "cuda"], mesh={"data": 4}, in_specs=(P("data"),))
def test_sharded_sum(export_golden: Any) -> None:
    export_golden(jax.jit(lambda x: (x * 2).sum(0)), ones(8, 2))
