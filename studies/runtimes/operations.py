"""A test of runtimes that are not jaxlib with small programs, one for each operation and dtype.

`nox -s operations` exports the programs with the installed jax into .nox/operations. It runs each program in every
reader's environment, by the reader's worker half in a new process, and writes the results into operations.json. From
operations.json and record.json it makes export_core/knowledge/data/measured.json. A program that has run in a reader is
not run there again until its result is removed from operations.json and from .nox/operations.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".nox" / "operations"
READERS = (
    *(f"litert=={version}" for version in ("2.3.0", "2.1.2")),
    *(f"iree=={version}[--iree-input-demote-f64-to-f32=false]" for version in ("3.13.0", "3.9.0", "3.6.0")),
)
"""The readers in which the programs run. By default IREE computes float64 in float32; the flag only turns that off."""
READERS_OF_CALLS = ("pjrt==0.12.0.1",)
"""The readers in which only the programs with a custom call run, since XLA treats all operations and types alike.

The interpreter is not one of them: it ends its process by a signal at a call that it does not know."""
RECORD = Path(__file__).with_name("operations.json")
FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ALL = (*FLOATS, *INTEGERS, "bool", "complex64")
NARROW = (
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e4m3"),
    *("float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4"),
)
EPSILONS = {"float16": 2e-3, "bfloat16": 2e-2}
SECONDS = 60


# --- the programs -----------------------------------------------------------------------------------------------------


def programs():
    """Yield each program: its name, a function, the arguments, and their symbolic shapes or None."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    def numbers(dtype, *shape, low=0.25):
        """Return an array of positive numbers that are exact in every dtype; neighbours in it differ."""
        data = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 + 1) * low
        return (
            data.astype(bool) if dtype == "bool" else jnp.asarray(data * (1 if dtype[0] in "fbc" else 4)).astype(dtype)
        )

    def vector(dtype):
        return numbers(dtype, 6)

    def matrix(dtype):
        return numbers(dtype, 4, 6)

    unary = {
        "abs": lax.abs, "neg": lax.neg, "sign": lax.sign, "floor": lax.floor, "ceil": lax.ceil, "exp": lax.exp,
        "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "round_away": lax.round,
        "expm1": lax.expm1, "log": lax.log, "log1p": lax.log1p, "sqrt": lax.sqrt, "rsqrt": lax.rsqrt, "cbrt": lax.cbrt,
        "sin": lax.sin, "cos": lax.cos, "tan": lax.tan, "tanh": lax.tanh, "logistic": lax.logistic, "erf": lax.erf,
        "erf_inv": lambda x: lax.erf_inv(x / 2), "lgamma": lax.lgamma, "is_finite": lax.is_finite, "asinh": lax.asinh,
        "atan": lax.atan, "sinh": lax.sinh, "reduce_precision": lambda x: lax.reduce_precision(x, 5, 6),
        "square": lax.square, "exp2": lax.exp2, "digamma": lax.digamma, "erfc": lax.erfc,
    }  # fmt: skip
    for (name, function), dtype in itertools.product(unary.items(), FLOATS):
        yield f"{name}[{dtype}]", function, (vector(dtype),), None
    for (name, function), dtype in itertools.product(
        {"abs": lax.abs, "neg": lax.neg, "sign": lax.sign, "not": lax.bitwise_not, "clz": lax.clz,
         "popcnt": lax.population_count}.items(), INTEGERS,
    ):  # fmt: skip
        yield f"{name}[{dtype}]", function, (vector(dtype),), None
    yield "not[bool]", lax.bitwise_not, (vector("bool"),), None
    for name in ("exp", "log", "abs", "neg", "real", "imag", "conj", "tanh", "sqrt"):
        yield f"{name}[complex64]", getattr(lax, name), (vector("complex64"),), None
    yield "complex[float32]", lax.complex, (vector("float32"), vector("float32")), None
    binary = {"add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "maximum": lax.max,
              "minimum": lax.min}  # fmt: skip
    for (name, function), dtype in itertools.product(binary.items(), (*FLOATS, *INTEGERS)):
        yield f"{name}[{dtype}]", function, (vector(dtype), vector(dtype)[::-1]), None
    for name, dtype in itertools.product(("add", "sub", "mul", "div"), ("complex64",)):
        yield f"{name}[{dtype}]", binary[name], (vector(dtype), vector(dtype)[::-1]), None
    for (name, function), dtype in itertools.product(
        {"pow": lax.pow, "atan2": lax.atan2, "nextafter": lax.nextafter}.items(), FLOATS
    ):
        yield f"{name}[{dtype}]", function, (vector(dtype), vector(dtype)[::-1]), None
    bits = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}
    for (name, function), dtype in itertools.product(bits.items(), (*INTEGERS, "bool")):
        yield f"{name}[{dtype}]", function, (vector(dtype), vector(dtype)[::-1]), None
    shifts = {"shift_left": lax.shift_left, "shift_right_logical": lax.shift_right_logical,
              "shift_right_arithmetic": lax.shift_right_arithmetic}  # fmt: skip
    for (name, function), dtype in itertools.product(shifts.items(), INTEGERS):
        yield f"{name}[{dtype}]", function, (vector(dtype), numbers(dtype, 6) // 16 + 1), None
    ordered = (*FLOATS, *INTEGERS[:4], *INTEGERS[5:])
    for name, dtype in itertools.product(("eq", "ne", "lt", "le", "gt", "ge"), (*ordered, "bool", "complex64")):
        if dtype in ordered or name in ("eq", "ne"):
            yield f"{name}[{dtype}]", getattr(lax, name), (vector(dtype), vector(dtype)[::-1]), None
    for source, target in itertools.permutations((*FLOATS, *INTEGERS, "bool"), 2):
        yield f"convert[{source}-{target}]", lambda x, t=target: x.astype(t), (vector(source),), None
    yield "convert[float32-complex64]", lambda x: x.astype("complex64"), (vector("float32"),), None
    moved = {
        "reshape": lambda x: lax.reshape(x, (3, 8)), "transpose": lambda x: lax.transpose(x, (1, 0)),
        "broadcast": lambda x: lax.broadcast_in_dim(x, (2, 4, 6), (1, 2)), "slice": lambda x: lax.slice(x, (1, 2), (3, 5)),
        "slice_strided": lambda x: lax.slice(x, (0, 0), (4, 6), (2, 3)), "rev": lambda x: lax.rev(x, (1,)),
        "pad": lambda x: lax.pad(x, lax.full_like(x, 1, shape=()), ((1, 1, 0), (0, 2, 0))),
        "pad_negative": lambda x: lax.pad(x, lax.full_like(x, 1, shape=()), ((-1, 1, 0), (0, -2, 0))),
        "pad_interior": lambda x: lax.pad(x, lax.full_like(x, 1, shape=()), ((0, 0, 1), (0, 0, 0))),
        "concatenate": lambda x: lax.concatenate((x, x), 0), "gather": lambda x: x[jnp.array([2, 0, 1])],
        "gather_points": lambda x: x[jnp.array([2, 0, 1]), jnp.array([0, 5, 1])],
        "dynamic_slice": lambda x: lax.dynamic_slice(x, (1, 2), (2, 3)), "select": lambda x: jnp.where(x == x, x, x),
        "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (1, 2)),
        "scatter": lambda x: x.at[jnp.array([2, 0])].set(x[:2]), "scatter_points": lambda x: x.at[1, 2].set(x[0, 0]),
        "constant": lambda x: jnp.full((3,), 2, x.dtype), "tile": lambda x: jnp.tile(x, (2, 1)),
        "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][::-1]), (0, x))[1],
        "scan": lambda x: lax.scan(lambda c, y: (y, c), x[0], x)[1], "fori": lambda x: lax.fori_loop(0, 3, lambda i, y: y[::-1], x),
        "cond": lambda x: lax.cond(x[0, 0] == x[1, 0], lambda y: y, lambda y: y[::-1], x),
        "fori_add": lambda x: lax.fori_loop(0, 3, lambda i, y: y + x, x),
        "while_of_number": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (0, x[0, 0])),
        "case": lambda x: lax.switch(x[0, 0].astype("int32"), [lambda y: y, lambda y: y + y, lambda y: y * y], x),
    }  # fmt: skip
    for (name, function), dtype in itertools.product(moved.items(), ALL):
        yield f"{name}[{dtype}]", function, (matrix(dtype),), None
    for dtype in (*FLOATS, *INTEGERS):
        one = matrix(dtype)
        for name in ("sum", "max", "min", "prod", "argmax", "argmin", "cumsum", "cumprod", "cummax", "sort", "argsort"):
            yield (
                f"{name}[{dtype}]",
                lambda x, n=name: getattr(jnp, n, None)(x, axis=1) if n != "cummax" else lax.cummax(x, 1),
                (one,),
                None,
            )
        yield f"sort_pairs[{dtype}]", lambda x: lax.sort((x[:, 0], jnp.arange(4)), num_keys=1), (one,), None
        yield f"top_k[{dtype}]", lambda x: lax.top_k(x, 3), (one,), None
        yield f"top_k_of_vector[{dtype}]", lambda x: lax.top_k(x, 2), (vector(dtype),), None
        yield f"clamp[{dtype}]", lambda x: lax.clamp(x[0, 0], x, x[0, 3]), (one,), None
        yield f"iota[{dtype}]", lambda x: x + lax.iota(x.dtype, 6), (one,), None
        yield f"dot[{dtype}]", lambda x: lax.dot(x, x.T), (one,), None
        yield f"dot_batch[{dtype}]", lambda x: jnp.einsum("bij,bjk->bik", x, x), (numbers(dtype, 2, 3, 3),), None
        for name, reducer in (("add", lax.add), ("max", lax.max), ("min", lax.min), ("mul", lax.mul)):
            start = {"add": 0, "mul": 1}.get(name)
            yield (
                f"reduce_window_{name}[{dtype}]",
                lambda x, r=reducer, s=start: lax.reduce_window(x, jnp.asarray(x[0, 0] if s is None else s, x.dtype), r, (2, 2), (2, 2), "VALID"),
                (one,), None,
            )  # fmt: skip
            scatter = {"add": "add", "max": "max", "min": "min", "mul": "multiply"}[name]
            yield (
                f"scatter_{name}[{dtype}]",
                lambda x, s=scatter: getattr(x.at[jnp.array([2, 0, 2])], s)(x[:3], mode="promise_in_bounds"),
                (one,), None,
            )  # fmt: skip
            # Updates by a part of x itself are other programs for a compiler that updates in place, as IREE does.
            yield (
                f"scatter_{name}_of_another[{dtype}]",
                lambda x, y, s=scatter: getattr(x.at[jnp.array([2, 0, 2])], s)(y, mode="promise_in_bounds"),
                (one, numbers(dtype, 3, 6)), None,
            )  # fmt: skip
        yield (
            f"conv[{dtype}]",
            lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
            (numbers(dtype, 1, 2, 5, 5), numbers(dtype, 3, 2, 3, 3)),
            None,
        )
    for name, dtype in itertools.product(("any", "all"), ("bool",)):
        yield f"{name}[{dtype}]", lambda x, n=name: getattr(jnp, n)(x, axis=1), (matrix(dtype),), None
    for name, dtype in itertools.product(("and", "or", "xor"), INTEGERS):
        yield (
            f"reduce_{name}[{dtype}]",
            lambda x, n=name: getattr(lax, f"reduce_{n}")(x, axes=(1,)),
            (matrix(dtype),),
            None,
        )
    for dtype, wide in (("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")):
        yield (
            f"dot[{dtype}-{wide}]",
            lambda x, w=wide: lax.dot(x, x.T, preferred_element_type=w),
            (matrix(dtype),),
            None,
        )
    for dtype in NARROW:
        wide = "float32" if dtype[0] == "f" else "int32"
        narrow = jnp.asarray([[1, 2, 4], [1, 4, 2]]).astype(dtype)
        yield f"convert[{dtype}-{wide}]", lambda x, w=wide: x.astype(w), (narrow,), None
        yield f"convert[{wide}-{dtype}]", lambda x, d=dtype: x.astype(d), (narrow.astype(wide),), None
        yield f"reshape[{dtype}]", lambda x: x.reshape(3, 2), (narrow,), None
        yield f"transpose[{dtype}]", lambda x: x.T, (narrow,), None
        yield f"dot[{dtype}-{wide}]", lambda x, w=wide: lax.dot(x, x.T, preferred_element_type=w), (narrow,), None
    image, kernel = numbers("float32", 1, 6, 6, 4), numbers("float32", 3, 3, 4, 4)
    dims = ("NHWC", "HWIO", "NHWC")
    for name, options in {
        "nhwc": {}, "strided": {"window_strides": (2, 2)}, "dilated": {"rhs_dilation": (2, 2)},
        "input_dilated": {"lhs_dilation": (2, 2)}, "valid": {"padding": "VALID"},
    }.items():  # fmt: skip
        own = {"window_strides": (1, 1), "padding": "SAME", **options}
        own["padding"] = ((1, 1), (1, 1)) if "lhs_dilation" in own else own["padding"]
        yield (
            f"conv_{name}[float32]",
            lambda x, k, o=own: lax.conv_general_dilated(x, k, dimension_numbers=dims, **o),
            (image, kernel),
            None,
        )
    yield (
        "conv_depthwise[float32]",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims, feature_group_count=4),
        (image, numbers("float32", 3, 3, 1, 4)), None,
    )  # fmt: skip
    yield (
        "conv_grouped[float32]",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims, feature_group_count=2),
        (image, numbers("float32", 3, 3, 2, 4)), None,
    )  # fmt: skip
    yield "conv_transpose[float32]", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), (image, kernel), None
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # noqa: E731
    yield "max_pool[float32]", pool, (image,), None
    sums = lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # noqa: E731
    yield "avg_pool[float32]", lambda x: sums(x) / 4, (image,), None
    pool_gradient = jax.grad(lambda x: pool(x).sum())
    distinct = (np.arange(144) * 37 % 144).reshape(image.shape).astype(np.float32)
    yield "max_pool_gradient[float32]", pool_gradient, (image,), None
    yield "max_pool_gradient_without_ties[float32]", pool_gradient, (distinct,), None
    yield "softmax[float32]", jax.nn.softmax, (matrix("float32"),), None
    yield (
        "layer_norm[float32]",
        lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5),
        (matrix("float32"),),
        None,
    )
    yield "gelu[float32]", jax.nn.gelu, (matrix("float32"),), None
    yield (
        "segment_sum[float32]",
        lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1]), 2),
        (matrix("float32"),),
        None,
    )
    yield "embedding[float32]", lambda x, i: x[i], (matrix("float32"), np.array([[1, 2], [0, 3]], np.int32)), None
    yield (
        "take_along_axis[float32]",
        lambda x, i: jnp.take_along_axis(x, i, 1),
        (matrix("float32"), np.array([[1], [2], [0], [3]], np.int32)),
        None,
    )
    yield "one_hot[int32]", lambda i: jax.nn.one_hot(i, 5), (np.array([1, 2], np.int32),), None
    for kind in ("fft", "ifft", "rfft", "irfft"):
        argument = vector("float32") if kind == "rfft" else vector("complex64")
        yield f"{kind}[float32]", lambda x, k=kind: getattr(jnp.fft, k)(x), (argument,), None
    for size in (8, 16):
        yield f"rfft_of_{size}[float32]", jnp.fft.rfft, (numbers("float32", size),), None
        for kind in ("fft", "ifft", "irfft"):
            yield f"{kind}_of_{size}[float32]", getattr(jnp.fft, kind), (numbers("complex64", size),), None
    yield (
        "rng_bits[uint32]",
        lambda k: lax.rng_bit_generator(k, (4,), dtype="uint32")[1],
        (np.arange(4, dtype=np.uint32),),
        None,
    )
    yield "bitcast[float32]", lambda x: lax.bitcast_convert_type(x, "int32"), (vector("float32"),), None
    yield "bitcast[int32]", lambda x: lax.bitcast_convert_type(x, "float32"), (vector("int32"),), None
    yield "barrier[float32]", lax.optimization_barrier, (vector("float32"),), None
    yield (
        "rng_bits[uint64]",
        lambda k: lax.rng_bit_generator(k, (4,), dtype="uint32")[1],
        (np.arange(2, dtype=np.uint64),),
        None,
    )
    # Nobody can compare the numbers of this generator, only that they are within their limits.
    yield "rng_uniform[float32]", lambda x: lax.rng_uniform(np.float32(0), x, (4,)) <= x, (np.float32(1),), None
    yield (
        "random_bits[uint32]",
        lambda k: jax.random.bits(jax.random.wrap_key_data(k), (4,)),
        (np.zeros(2, "uint32"),),
        None,
    )
    yield (
        "reduce_own[float32]",
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)),
        (matrix("float32"),),
        None,
    )
    for name, reducer, start in (
        ("own", lambda a, b: a * b + b, 1.0),
        ("of_larger_size", lambda a, b: jnp.where(jnp.abs(a) >= jnp.abs(b), a, b), 0.0),
    ):
        yield (
            f"reduce_window_{name}[float32]",
            lambda x, r=reducer, s=start: lax.reduce_window(x, np.float32(s), r, (2, 2), (2, 2), "VALID"),
            (matrix("float32"),),
            None,
        )
    yield (
        "pool_tangent[float32]",
        lambda x: jax.jvp(lambda x: pool(x), (x,), (x * 2,))[1],
        (image,), None,
    )  # fmt: skip
    yield "composite[float32]", lax.composite(lambda x: x * x, name="own.square"), (vector("float32"),), None
    yield (
        "ragged_dot[float32]",
        lax.ragged_dot,
        (matrix("float32"), numbers("float32", 2, 6, 3), np.array([1, 3])),
        None,
    )
    for name, function in {"mul": lambda x: x * 2, "rev": lambda x: x[::-1], "abs": jnp.abs}.items():
        yield f"{name}[complex128]", function, (vector("complex64").astype("complex128"),), None
    for dtype in ("float32", "bfloat16", "float16", "int32"):
        for name, function in {"max": lax.approx_max_k, "min": lax.approx_min_k}.items():
            if dtype != "int32":
                yield f"approx_{name}_k[{dtype}]", lambda x, f=function: f(x, 3), (vector(dtype),), None
                yield f"approx_{name}_k_of_matrix[{dtype}]", lambda x, f=function: f(x, 3), (matrix(dtype),), None
    yield "cholesky[float32]", jnp.linalg.cholesky, (np.eye(3, dtype=np.float32) * 2,), None
    yield (
        "solve_triangular[float32]",
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b),
        (np.eye(3, dtype=np.float32) * 2, np.ones((3, 1), np.float32)),
        None,
    )
    symbolic = {
        "add": lambda x: x + x, "mul_const": lambda x: x * 2, "max": lambda x: jnp.maximum(x, 0), "exp": jnp.exp,
        "reshape_rows": lambda x: x.reshape(x.shape[0], 2, 3), "reshape_all": lambda x: x.reshape(-1),
        "flatten": lambda x: x.reshape(x.shape[0], -1), "transpose": lambda x: x.T, "sum_rows": lambda x: x.sum(1),
        "sum_all": lambda x: x.sum(), "mean_batch": lambda x: x.mean(0), "softmax": jax.nn.softmax, "slice": lambda x: x[:, 1:3],
        "slice_batch": lambda x: x[1:], "concatenate": lambda x: jnp.concatenate([x, x], 1), "iota": lambda x: x + jnp.arange(x.shape[0])[:, None],
        "concatenate_batch": lambda x: jnp.concatenate([x, x]), "broadcast": lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 2, 6)),
        "select": lambda x: jnp.where(x > 1, x, 0), "pad": lambda x: jnp.pad(x, ((0, 0), (1, 1))), "gather": lambda x: x[:, jnp.array([2, 0])],
        "first": lambda x: x[0], "last": lambda x: x[-1], "cumsum": lambda x: jnp.cumsum(x, 1), "sort": lambda x: jnp.sort(x, 1),
        "dot": lambda x: x @ jnp.ones((6, 2), x.dtype), "dot_self": lambda x: x @ x.T, "ones": lambda x: jnp.ones((x.shape[0], 2), x.dtype),
        "dim": lambda x: x * x.shape[0], "argmax": lambda x: jnp.argmax(x, 1), "scan": lambda x: lax.scan(lambda c, y: (c + y, c), x[:, 0], x.T)[1],
        "layer_norm": lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5), "rev": lambda x: x[:, ::-1],
        "mask": lambda x: jnp.where(x > 1, x.shape[0], 0), "top_k": lambda x: lax.top_k(x, 2), "fft": lambda x: jnp.fft.rfft(x)[:, 0].real,
        "approx_max_k": lambda x: lax.approx_max_k(x, 2), "min_rows": lambda x: x.min(1), "mean_rows": lambda x: x.mean(1),
        "dense": lambda x: jax.nn.relu(x @ jnp.ones((6, 2), x.dtype) + 1), "convert": lambda x: x.astype("int32"), "tanh": jnp.tanh,
    }  # fmt: skip
    # Every operation by elements, since shapes that are not known are broadcast by other operations.
    symbolic |= {name: function for name, function in unary.items() if name not in symbolic}
    symbolic |= {f"{name}_by_rows": lambda x, f=function: f(x, x[:, ::-1]) for name, function in binary.items()}
    for name, function in symbolic.items():
        yield f"symbolic_{name}[float32]", function, (matrix("float32"),), ("b, 6",)
    yield (
        "symbolic_conv[float32]",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims),
        (image, kernel),
        ("b, 6, 6, 4", None),
    )
    yield "symbolic_max_pool[float32]", pool, (image,), ("b, 6, 6, 4",)
    yield "symbolic_sum_pool[float32]", sums, (image,), ("b, 6, 6, 4",)
    yield "symbolic_any[bool]", lambda x: x.any(1), (matrix("bool"),), ("b, 6",)
    yield "symbolic_select[bool]", lambda x: jnp.where(x, 1.0, 0.0), (matrix("bool"),), ("b, 6",)
    for name in ("uniform", "bits"):
        yield (
            f"symbolic_random_{name}[float32]",
            lambda x, k, n=name: getattr(jax.random, n)(jax.random.wrap_key_data(k), x.shape) + x.astype("uint32" if n == "bits" else x.dtype),
            (matrix("float32"), np.zeros(2, "uint32")), ("b, 6", None),
        )  # fmt: skip
    yield (
        "symbolic_batch_dot[float32]",
        lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
        (numbers("float32", 2, 3, 3),) * 2,
        ("b, 3, 3", "b, 3, 3"),
    )


def write(folder: Path) -> None:
    """Export each program into a folder, with its arguments, and the outputs that the installed jax computes."""
    import jax
    import numpy as np
    from jax import export

    folder.mkdir(parents=True, exist_ok=True)
    with jax.enable_x64(True):
        names: set[str] = set()
        for name, function, arguments, shapes in programs():
            if name in names:  # The second would take the results of the first.
                raise SystemExit(f"expected a name of its own for each program, found two programs {name}")
            names.add(name)
            path = folder / re.sub(r"\W+", "-", name)
            try:
                scope = export.SymbolicScope()
                types = [
                    jax.ShapeDtypeStruct(
                        export.symbolic_shape(shape, scope=scope) if shape else value.shape, value.dtype
                    )
                    for value, shape in zip(arguments, shapes or [None] * len(arguments), strict=True)
                ]
                exported = export.export(jax.jit(function), platforms=("cpu",))(*types)
                expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
            except Exception as error:  # a dtype that jax itself does not take
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
                continue
            call = {
                "module": f"{path}.mlirbc",
                "version": exported.calling_convention_version,
                "platforms": ["cpu"],
                "kept": list(exported.module_kept_var_idx),
                "refine": exported.uses_global_constants,
                "tokens": 0,
                "disabled_checks": [],
                "inputs": [_wire(aval) for aval in exported.in_avals],
                "outputs": [_wire(aval) for aval in exported.out_avals],
                "devices": 1,
                "x64": True,
                "shardy": True,
            }
            Path(call["module"]).write_bytes(exported.mlir_module_serialized)
            content = {
                "name": name,
                "call": call,
                "leaves": [np.asarray(value) for value in arguments],
                "expected": expected,
                "has_calls": "stablehlo.custom_call" in exported.mlir_module(),
            }
            path.with_suffix(".pickle").write_bytes(pickle.dumps(content))


def _wire(aval):
    return str(aval.dtype), [size if isinstance(size, int) else None for size in aval.shape], str(aval.dtype)


# --- in a reader's environment ----------------------------------------------------------------------------------------


def run(folder: Path, reader: str, half: Path) -> None:
    """Run every program that has not run in a reader yet, and append a line of JSON with its outcome to a file.

    In one of `READERS_OF_CALLS`, only programs with a custom call run.

    Args:
        folder: the folder of the exported programs and of the file.
        reader: the name of the reader in whose environment this runs.
        half: the reader's worker half.
    """
    spec = importlib.util.spec_from_file_location("half", half)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.warm()
    import ml_dtypes  # noqa: F401

    target = folder / f"{reader}.jsonl"
    known = {name for name, program in json.loads(RECORD.read_text()).items() if reader in program["in"]}
    known |= {json.loads(line)["name"] for line in target.read_text().splitlines()} if target.exists() else set()
    for path in sorted(folder.glob("*.pickle")):
        program = pickle.loads(path.read_bytes())
        if program["name"] in known or (reader in READERS_OF_CALLS and not program["has_calls"]):
            continue
        with target.open("a") as file:
            file.write(json.dumps({"name": program["name"], "said": in_process(module, program)}) + "\n")


def in_process(module, program) -> str:
    """Run a program by a worker half in a forked process; return its outcome as text.

    It is `works`, or tells how the results differ, which error was raised, or which signal ended the process.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        import signal

        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        errors, result = os.memfd_create("stderr"), ""
        os.dup2(errors, 2)
        try:
            found = module.run(program["call"], program["leaves"], lambda stage: None)
            result = difference(found, program["expected"])
        except BaseException as error:
            text = f"{error}\n{os.pread(errors, 20000, 0).decode(errors='replace')}"
            lines = [line for line in text.splitlines() if "error:" in line or "op" in line] or [text]
            result = f"fails: {re.sub(r'^.*?error: ', '', lines[0])[:200]}"
        os.write(writes, result.encode())
        os._exit(0)
    os.close(writes)
    result = os.read(reads, 65536).decode()
    os.close(reads)
    _, status = os.waitpid(child, 0)
    return result or f"signal {os.WTERMSIG(status)}"


def difference(found, expected) -> str:
    """Return `works`, or a text that says how the results differ from the expected results."""
    import numpy as np

    for one, other in zip(found, expected, strict=True):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"gives {one.dtype}{list(one.shape)}"
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        near, far = (np.asarray(value).astype(wide) for value in (one, other))
        tolerance = EPSILONS.get(other.dtype.name, 1e-5) if other.dtype.name not in INTEGERS else 0
        is_close = np.isclose(near, far, rtol=tolerance, atol=tolerance, equal_nan=True)
        if not is_close.all():
            return f"numbers: {near[~is_close].reshape(-1)[:3].tolist()}, not {far[~is_close].reshape(-1)[:3].tolist()}"
    return "works"


# --- the record -------------------------------------------------------------------------------------------------------


def record(folder: Path) -> None:
    """Write operations.json: the operations of each program and its outcome in each reader, also from earlier runs.

    Operations have their element types, custom calls their targets.
    """
    from export_core.artifact import read_bytes
    from export_core.artifact.bytecode.element_types import element_types
    from export_core.knowledge.concerns import CALL

    earlier = json.loads(RECORD.read_text(encoding="utf-8"))
    results: dict[str, dict[str, str]] = {name: program["in"] for name, program in earlier.items()}
    for reader in (*READERS, *READERS_OF_CALLS):
        path = folder / f"{reader}.jsonl"
        for line in map(json.loads, path.read_text().splitlines()) if path.exists() else ():
            results.setdefault(line["name"], {})[reader] = line["said"]
    lines = []
    for path in sorted(folder.glob("*.mlirbc")):
        name = pickle.loads(path.with_suffix(".pickle").read_bytes())["name"]
        if any(text.startswith("signal") for text in results.get(name, {}).values()):
            continue  # a program that ends other software is not recorded
        artifact = read_bytes(path.read_bytes(), str(path))
        operations = {operation: sorted(own) for operation, own in element_types(artifact.module).items()}
        if CALL in operations:
            operations[CALL] = sorted({call.target for call in artifact.custom_calls})
        lines.append(f" {json.dumps(name)}: {json.dumps({'operations': operations, 'in': results.get(name, {})})}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Export the programs, run them in all readers, and write the results."""
    from export_core.readers.environment import ReaderEnvironments
    from export_core.readers.placement import Placement
    from export_core.releases import load_calendar
    from export_core.releases.runtimes import runtime_of, runtime_readers
    from tools import measured_operations

    write(FOLDER)
    calendar = load_calendar()
    with ReaderEnvironments(calendar, notify=print) as environments:
        for reader in (*READERS, *READERS_OF_CALLS):
            (release,) = runtime_readers(reader, calendar)
            environment = environments.build(Placement(release))
            own = [str(FOLDER), reader, str(runtime_of(reader).half)]
            command = [str(environment.python), __file__, "run", *own]
            subprocess.run(command, env=environment.variables, check=True)
    record(FOLDER)
    measured_operations.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        main()
