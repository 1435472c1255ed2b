"""The script that a release runs for test_calling_conventions.py: `convention_programs.py FOLDER [CASE …]`.

It exports programs whose main function has special arguments, with every jax since 0.4.24. An environment variable
chooses the calling convention: JAX_EXPORT_CALLING_CONVENTION_VERSION, or JAX_SERIALIZATION_VERSION before jax 0.4.30.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # before jax starts: no path of this machine in the bytes
os.environ["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"] = ".*"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core, effects
from jax._src.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec

try:
    from jax import export as api
except ImportError:
    from jax.experimental import export as api

SINCE_0_4_30 = hasattr(api.Exported, "serialize")


class Unordered(effects.Effect):
    """An effect that has no token in the module. It is serialized as the name of its class.

    jax's own effects come with callbacks, which cannot be serialized.
    """

    __str__ = __repr__ = lambda self: type(self).__name__
    __eq__ = lambda self, other: type(self) is type(other)  # noqa: E731
    __hash__ = lambda self: hash(type(self).__name__)  # noqa: E731


class OrderedA(Unordered):
    """An ordered effect, which has a token in the module."""


class OrderedB(Unordered):
    """A second ordered effect, which has a token of its own in the module."""


for kind in (Unordered, OrderedA, OrderedB):
    effects.lowerable_effects.add_type(kind)
    effects.control_flow_allowed_effects.add_type(kind)
for kind in (OrderedA, OrderedB):
    effects.ordered_effects.add_type(kind)

effectful = core.Primitive("effectful")
effectful.def_effectful_abstract_eval(lambda x, *, effect: (x, {effect}))


def lower_effectful(context, x, *, effect):
    if type(effect) is not Unordered:
        context.set_tokens_out(mlir.TokenSet({effect: context.tokens_in.get(effect)}))
    return [mlir.hlo.AddOp(x, x).result]


mlir.register_lowering(effectful, lower_effectful)


def both(x):
    return effectful.bind(effectful.bind(x, effect=OrderedA()), effect=OrderedB())


def spec(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def symbolic(text, *which):
    """Return a float32 specification with a symbolic shape for each tuple in `which`.

    Args:
        text: the symbolic dimensions, separated by commas.
        which: for each specification, the numbers of its dimensions in `text`.
    """
    dims = api.symbolic_shape(text)
    return [spec(*(dims[number] for number in numbers)) for numbers in which]


def exported(function, *specs, platforms=None):
    function = function if hasattr(function, "lower") else jax.jit(function)
    keyword = "platforms" if SINCE_0_4_30 else "lowering_platforms"
    return api.export(function, **{keyword: platforms})(*specs)


def sharded(platforms=None):
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    own = NamedSharding(mesh, PartitionSpec("x", "y"))
    function = jax.jit(lambda x, y: (x * y).sum(0) + jnp.cos(x), in_shardings=(own, None))
    return exported(function, spec(4, 8), spec(8), platforms=platforms)


def keys(impl):
    one = jax.eval_shape(lambda: jax.random.key(0, impl=impl))
    three = jax.eval_shape(lambda: jax.random.split(jax.random.key(0, impl=impl), 3))
    return exported(lambda k, many: (jax.random.split(k), many, jax.random.uniform(k)), one, three)


def nested():
    inner = exported(jnp.sin, *symbolic("a, b", (0, 1)), platforms=["cpu", "tpu"])
    call = inner.call if SINCE_0_4_30 else api.call(inner)
    return exported(lambda x: call(x) * 2, *symbolic("w, 2*h", (0, 1)), platforms=["cpu", "tpu"])


TWO = ["cpu", "tpu"]
f32 = spec(4, 8)
CASES = {
    "plain": (lambda: exported(jnp.sin, f32), 3),
    "platforms": (lambda: exported(jnp.sin, f32, platforms=["cpu", "cuda", "rocm", "tpu"]), 1),
    "symbolic": (lambda: exported(lambda x: x @ x.T, *symbolic("b, a", (0, 1))), 2),
    "symbolic_platforms": (lambda: exported(lambda x: x.reshape(-1), *symbolic("w, 2*h", (0, 1)), platforms=TWO), 0),
    "unused_dimensions": (lambda: exported(lambda x, y: jnp.sin(y), *symbolic("a, b", (0,), (1,)), platforms=TWO), 1),
    "ordered": (lambda: exported(both, f32), 0),
    "unordered": (lambda: exported(lambda x: effectful.bind(x, effect=Unordered()), f32), 0),
    "everything": (
        lambda: exported(lambda x, y, z: (both(x), z), *symbolic("w, 2*h", (0, 1)), f32, f32, platforms=TWO), 0,
    ),
    "unused": (lambda: exported(lambda a, b, c: b * 2, f32, f32, spec(3, dtype="int32")), 1),
    "all_unused": (lambda: exported(lambda a, b: jnp.zeros(3), f32, f32), 1),
    "no_arguments": (lambda: exported(lambda: jnp.arange(3.0)), 0),
    "donated": (lambda: exported(jax.jit(lambda a, b: (a + 1, b), donate_argnums=0), f32, f32), 1),
    "float0": (
        lambda: exported(lambda a, b, c: (a + 1, jnp.where(b, c, 0)), spec(4, dtype="int32"), spec(4, dtype="bool"), spec(4)), 2,
    ),
    "literals": (lambda: exported(lambda x: (x, 3, True, 2.5), f32), 0),
    "empty": (lambda: exported(lambda x: x + 1, spec(0, 3)), 0),
    "sharded": (sharded, 1),
    "sharded_platforms": (lambda: sharded(TWO), 1),
    "keys": (lambda: keys("threefry2x32"), 0),
    "keys_rbg": (lambda: keys("rbg"), 0),
    "nested": (nested, 1),
    **{
        f"dtype_{name}": (lambda name=name: exported(lambda x: x.reshape(-1), spec(2, 3, dtype=getattr(jnp, name))), 0)
        for name in (
            "bfloat16", "complex64", "int4", "uint4", "uint8", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
        )
    },
}  # fmt: skip


def main(folder: str, *chosen: str) -> None:
    directory = pathlib.Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    for name in chosen or CASES:
        make, vjp_order = CASES[name]
        try:
            found = make()
            data = found.serialize(vjp_order=vjp_order) if SINCE_0_4_30 else api.serialize(found, vjp_order=vjp_order)
        except Exception as error:  # an old release has no such dtype or key
            if chosen:
                raise
            print(jax.__version__, name, "cannot be made:", type(error).__name__, str(error)[:80])
        else:
            (directory / f"{name}.jaxexport").write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
