"""The program that a release runs for forecast_check.py: `write DIR SEED` exports, `read LIST` loads artifacts.

It runs with every jax. None of its functions is in jax_truth.py, to whose artifacts the rules of the forecast were
fitted.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

UNARY = [
    jnp.exp, jnp.log1p, jnp.sqrt, jnp.cbrt, jnp.arctan, jnp.sinh, jnp.arcsinh, jnp.floor, jnp.sign, jnp.isfinite, jax.nn.softmax,
    jax.nn.gelu, jax.nn.sigmoid, jnp.cumprod, jnp.ravel, jnp.flip, jnp.sort, jnp.argsort, jnp.tan, jnp.exp2, jax.lax.lgamma,
    jax.lax.erf_inv, jnp.var, lambda x: x.astype("bfloat16"), lambda x: x.astype("int8") // 3, lambda x: jnp.where(x > 0, x, -x),
    lambda x: jnp.pad(x, 1), lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2,) * x.ndim, (1,) * x.ndim, "SAME"),
    lambda x: x.at[0].set(1), lambda x: jnp.einsum("i...,i...->...", x, x), lambda x: jnp.fft.fft(x).real,
    lambda x: jnp.round(x).astype("uint8") ^ 5, lambda x: jnp.clip(x, -1, 1), lambda x: jax.lax.rsqrt(x * x + 1),
]  # fmt: skip
DTYPES = ["float32", "float32", "float32", "bfloat16", "float16", "int32", "uint8", "complex64"]


def spec(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def layer(p, x):
    mean = x.mean(-1, keepdims=True)
    return jax.nn.gelu((x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) @ p["w"] + p["b"], approximate=False)


def two_symbols():
    a, b = export.symbolic_shape("a, b")
    return export.export(jax.jit(lambda x, y: jnp.concatenate([x, y]).sum(0)))(spec(a, 3), spec(b, 3))


def sharded():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    own = NamedSharding(mesh, PartitionSpec("data", "model"))
    return export.export(jax.jit(lambda x, w: jnp.cos(x) @ w, in_shardings=(own, None)))(spec(4, 8), spec(8, 2))


FIXED = {
    "layer": lambda: export.export(jax.jit(layer))({"w": spec(8, 8), "b": spec(8)}, spec(2, 8)),
    "solve": lambda: export.export(jax.jit(jnp.linalg.solve))(spec(3, 3), spec(3)),
    "qr": lambda: export.export(jax.jit(jnp.linalg.qr))(spec(3, 3)),
    "switch": lambda: export.export(
        jax.jit(lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.abs], x))
    )(spec(dtype="int32"), spec(5)),
    "while": lambda: export.export(
        jax.jit(lambda s: jax.lax.while_loop(lambda t: t["n"] < 5, lambda t: {"n": t["n"] + 1, "x": t["x"] * 2}, s))
    )({"n": spec(dtype="int32"), "x": spec(3)}),
    "categorical": lambda: export.export(jax.jit(lambda k, x: jax.random.categorical(k, x)))(
        spec(2, dtype="uint32"), spec(4, 8)
    ),
    "associative": lambda: export.export(jax.jit(lambda x: jax.lax.associative_scan(jnp.maximum, x)))(spec(9)),
    "two_symbols": two_symbols,
    "sharded4": sharded,
    "platforms2": lambda: export.export(jax.jit(lambda x: jnp.linalg.det(x @ x.T)), platforms=["cuda", "rocm"])(spec(4, 4)),
    "convention9": lambda: export.export(jax.jit(jnp.arctan2))(spec(3), spec(3)),
}  # fmt: skip


def composed(choose):
    """Return an export of a few random operations in a row, on an argument of a random type."""
    steps = [choose.choice(UNARY) for _ in range(choose.randrange(1, 6))]
    shape = [choose.randrange(1, 9) for _ in range(choose.randrange(1, 4))]
    dtype = choose.choice(DTYPES)

    def program(x):
        for step in steps:
            x = step(x)
        return {"out": x, "kept": (None, [x.shape[0] if x.ndim else 1])}

    return export.export(jax.jit(program))(spec(*shape, dtype=dtype))


def write(folder, seed):
    choose = random.Random(f"{seed} {jax.__version__}")
    made = dict(FIXED)
    made.update({f"composed{number}": lambda: composed(choose) for number in range(10)})
    for name, make in made.items():
        try:
            exported = make()
            try:
                data = exported.serialize(vjp_order=choose.choice((0, 0, 1, 2)))
            except Exception:
                data = exported.serialize()
        except Exception:
            continue  # some compositions do not accept the dtype or shape
        (pathlib.Path(folder) / f"{name}.jaxexport").write_bytes(data)


def load(data):
    exported = export.deserialize(bytearray(data))
    while True:
        if exported.nr_devices <= 0:
            raise ValueError("0 devices")
        exported.mlir_module()
        if not exported.has_vjp():
            return
        exported = exported.vjp()


def read(names):
    errors = {}
    for name in pathlib.Path(names).read_text().splitlines():
        try:
            load(pathlib.Path(name).read_bytes())
            errors[name] = ""
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    print(json.dumps(errors))


if __name__ == "__main__":
    (write if sys.argv[1] == "write" else read)(*sys.argv[2:])
