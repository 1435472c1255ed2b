"""The maker of tests/artifact/data: artifacts, and what jax and jaxlib read in each. A release's Python runs it.

python jax_truth.py DIRECTORY [CASE ...]     writes DIRECTORY/<jax version>/<case>.jaxexport and truth.json
python jax_truth.py --truth DIRECTORY        deserializes every artifact in the directory, and writes truth.json
"""

import json
import os
import pathlib
import sys

os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # before jax starts: no path of this machine in the bytes
os.environ["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"] = ".*"  # for the releases that write one all the same
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import collections
import hashlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

f32 = jax.ShapeDtypeStruct((4, 8), "float32")
square = jax.ShapeDtypeStruct((4, 4), "float32")
Point = collections.namedtuple("Point", ["x", "y"])


def symbolic():
    (b,) = export.symbolic_shape("b")
    return export.export(jax.jit(lambda x: jnp.sin(x) @ x.T))(jax.ShapeDtypeStruct((b, 4), "float32"))


def sharded():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    sharding = NamedSharding(mesh, PartitionSpec("x", None))
    return export.export(jax.jit(lambda x: x * 2.0 + 1.0, in_shardings=(sharding,), out_shardings=sharding))(f32)


def key():
    spec = jax.eval_shape(lambda: jax.random.key(0))
    return export.export(jax.jit(lambda k: jax.random.split(k)))(spec)


def register_point():
    if hasattr(export, "register_namedtuple_serialization"):
        export.register_namedtuple_serialization(Point, serialized_name="tests.Point")


def point():
    register_point()
    return export.export(jax.jit(lambda p: Point(p.x + p.y, [p.y])))(Point(f32, f32))


def many():
    spec = {f"layer{i:03}": {"w": f32, "b": jax.ShapeDtypeStruct((8,), "float32")} for i in range(64)}
    return export.export(jax.jit(lambda t: jax.tree.map(lambda a: a + 1, t)))(spec)


CASES = {
    "sin": lambda: export.export(jax.jit(jnp.sin))(f32),
    "cholesky": lambda: export.export(jax.jit(jnp.linalg.cholesky))(square),
    "eigh": lambda: export.export(jax.jit(lambda x: jnp.linalg.eigh(x)[0]))(square),
    "symbolic": symbolic,
    "platforms": lambda: export.export(jax.jit(lambda x: jnp.tanh(x)), platforms=["cpu", "cuda", "tpu"])(f32),
    "cuda_cholesky": lambda: export.export(jax.jit(jnp.linalg.cholesky), platforms=["cuda"])(square),
    "sharded": sharded,
    "key": key,
    "tree": lambda: export.export(jax.jit(lambda t: {"a": t["b"][0] + 1, "n": (None, [t["c"]])}))({"b": (f32,), "c": f32}),
    "point": point,
    "bfloat16": lambda: export.export(jax.jit(lambda x: x @ x.T))(jax.ShapeDtypeStruct((4, 8), jnp.bfloat16)),
    "top_k": lambda: export.export(jax.jit(lambda x: jax.lax.top_k(x, 2)))(f32),
    "erf": lambda: export.export(jax.jit(lambda x: jnp.cumsum(jax.scipy.special.erf(x), axis=0)))(f32),
    "mlp": lambda: export.export(jax.jit(lambda x, w: jnp.tanh(x @ w).sum()))(f32, jax.ShapeDtypeStruct((8, 3), "float32")),
    "loop": lambda: export.export(jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, c: jnp.where(c > i, c * 2, c - 1), x)))(f32),
    "scan": lambda: export.export(jax.jit(lambda x: jax.lax.scan(lambda c, r: (c + r, jnp.cos(c) * r), x[0], x)))(f32),
    "sort": lambda: export.export(jax.jit(lambda x: (jnp.sort(x), jnp.argmax(x, axis=1), x[jnp.array([0, 2])])))(f32),
    "random": lambda: export.export(jax.jit(lambda x: jax.random.normal(jax.random.PRNGKey(0), (3, 3)) + x.mean()))(f32),
    "constant": lambda: export.export(jax.jit(lambda x: x @ np.arange(64, dtype="float32").reshape(8, 8)))(f32),
    "unused": lambda: export.export(jax.jit(lambda x, y, z: (y * 2).astype("int8")))(f32, f32, f32),
    "fp8": lambda: export.export(jax.jit(lambda x: x.astype(jnp.float8_e4m3fn)))(f32),
    "fft": lambda: export.export(jax.jit(lambda x: jnp.fft.rfft(x)))(f32),
    "conv": lambda: export.export(jax.jit(lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME")))(
        jax.ShapeDtypeStruct((1, 3, 8, 8), "float32"), jax.ShapeDtypeStruct((4, 3, 3, 3), "float32")
    ),
    "many": many,
}  # fmt: skip
VJP_ORDER = {"mlp": 2, "cholesky": 1, "tree": 1}


def count(op, counts, targets, functions):
    name = op.operation.name
    name = "return" if name in ("func.return", "stablehlo.return") else name
    counts[name] = counts.get(name, 0) + 1
    if name == "stablehlo.custom_call":
        targets.append(str(op.attributes["call_target_name"])[1:-1])
    if name == "func.func":
        functions[str(op.attributes["sym_name"])[1:-1]] = str(op.attributes["function_type"])
    for region in op.operation.regions:
        for block in region:
            for child in block:
                count(child, counts, targets, functions)


def of_module(text):
    """Return what a walk over a module with jaxlib finds: counts of operations, custom-call targets, functions.

    `text` is the module as text of MLIR.
    """
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        counts, targets, functions = {}, [], {}
        count(module, counts, targets, functions)
        return {"op_counts": counts, "targets": sorted(targets), "functions": functions}


def sharding_text(hlo, named):
    """Return a deserialized sharding as data: of `named` if it is not None (jax 0.9.0 and later), else of `hlo`."""
    if named is not None:
        mesh = named.mesh
        axes = [list(mesh.axis_names), list(mesh.axis_sizes), [kind.name for kind in mesh.axis_types]]
        spec = str(named.spec).replace("PartitionSpec(", "P(")  # how newer releases print it
        return ["named", *axes, spec, named.memory_kind]
    return None if hlo is None else ["hlo", hlo.to_proto().SerializeToString().hex()]


def sharding_texts(exported, side):
    hlo = getattr(exported, f"{side}_shardings_hlo")
    named = getattr(exported, f"_{side}_named_shardings", None) or [None] * len(hlo)
    return [sharding_text(*both) for both in zip(hlo, named)]  # noqa: B905 - of one length


def details(exported):
    """Return the fields of an exported function that only reader_check.py compares."""
    return {
        "module_sha256": hashlib.sha256(exported.mlir_module_serialized).hexdigest(),
        "unordered_effects": [str(type(e)) for e in exported.unordered_effects],
        "memory_spaces": [
            getattr(getattr(a, "memory_space", None), "name", "Device").lower()
            for a in (*exported.in_avals, *exported.out_avals)
        ],
        "in_shardings": sharding_texts(exported, "in"),
        "out_shardings": sharding_texts(exported, "out"),
    }


def aval_text(aval):
    dtype = "float0" if aval.dtype == jax.dtypes.float0 else aval.dtype
    return f"{dtype}[{','.join(map(str, aval.shape))}]"


def truth(exported, vjp_order):
    facts = {
        "fun_name": exported.fun_name,
        "in_tree": str(exported.in_tree),
        "out_tree": str(exported.out_tree),
        "in_avals": [aval_text(a) for a in exported.in_avals],
        "out_avals": [aval_text(a) for a in exported.out_avals],
        "platforms": list(exported.platforms),
        "nr_devices": exported.nr_devices,
        "calling_convention_version": exported.calling_convention_version,
        "module_kept_var_idx": list(exported.module_kept_var_idx),
        "uses_global_constants": exported.uses_global_constants,
        "ordered_effects": [str(type(e)) for e in exported.ordered_effects],
        "disabled_checks": [str(c) for c in exported.disabled_safety_checks],
        "module_bytes": len(exported.mlir_module_serialized),
        **of_module(exported.mlir_module()),
    }
    if vjp_order:
        facts["vjp"] = truth(exported.vjp(), vjp_order - 1)
    return facts


def main(directory: str, *chosen: str) -> None:
    folder = pathlib.Path(directory) / jax.__version__
    folder.mkdir(parents=True, exist_ok=True)
    facts = {}
    for name, make in CASES.items():
        if chosen and name not in chosen:
            continue
        order = VJP_ORDER.get(name, 0)
        try:
            exported = make()
            data = exported.serialize(vjp_order=order)
        except Exception as error:  # an old release has no such dtype, tree or key
            print(jax.__version__, name, "cannot be made:", type(error).__name__, str(error)[:80])
            continue
        (folder / f"{name}.jaxexport").write_bytes(data)
        facts[name] = truth(exported, order)
    (folder / "truth.json").write_text(json.dumps(facts, sort_keys=True))


def of_files(directory: str) -> None:
    """Write truth.json, which has what `jax.export.deserialize` and jaxlib read in every artifact of a folder."""
    folder = pathlib.Path(directory)
    facts = {}
    for path in sorted(folder.glob("*.jaxexport")):
        levels = [export.deserialize(bytearray(path.read_bytes()))]
        while levels[-1].has_vjp():
            levels.append(levels[-1].vjp())
        facts[path.stem] = [{**truth(level, 0), **details(level)} for level in levels]
    (folder / "truth.json").write_text(json.dumps(facts, sort_keys=True))


if __name__ == "__main__":
    if sys.argv[1] == "--truth":
        register_point()
        of_files(sys.argv[2])
    else:
        main(*sys.argv[1:])
