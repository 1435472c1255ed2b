"""Programs for several devices, exported by the jax that runs this file: artifacts, inputs and outputs.

`python sharded_programs.py FOLDER DEVICES [NAME …]` writes NAME.jaxexport, NAME.inputs.npz and NAME.outputs.npz.

`python sharded_programs.py FOLDER DEVICES --call REPORT` calls each artifact of a folder as somebody with the source
would, with all arguments replicated on its mesh, and writes {NAME: why it fails, or ""} as JSON.

It runs in writers' and readers' environments, so it imports nothing but numpy and jax.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).parent]
DEVICES = int(sys.argv[2])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import export  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

shard_map: Any = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map

# Two axes, of different sizes with eight devices: if they are exchanged, the mesh is another one.
SIZES = {2: (1, 2), 4: (2, 2), 8: (2, 4)}[DEVICES]
LINE = Mesh(np.array(jax.devices()), ("data",))
GRID = Mesh(np.array(jax.devices()).reshape(SIZES), ("x", "y"))
COLUMNS = Mesh(np.array(jax.devices()).reshape(SIZES).T, ("y", "x"))
# Since 0.5.1. Newer artifacts record the type of each axis.
TYPES = {"axis_types": (jax.sharding.AxisType.Explicit,) * 2} if hasattr(jax.sharding, "AxisType") else {}
EXPLICIT = Mesh(np.array(jax.devices()).reshape(SIZES), ("x", "y"), **TYPES)
BACKWARD = Mesh(np.array(jax.devices())[::-1], ("data",))


def numbers(*shape: int, dtype: Any = "float32") -> Any:
    """Return different numbers, small enough to be summed."""
    return np.sin(np.arange(math.prod(shape)) * 0.7 + len(shape)).reshape(shape).astype(dtype)


def on(mesh: Mesh, *specs: Any) -> tuple[Any, ...]:
    """Return the shardings of arguments; None for an argument without one."""
    return tuple(None if spec is None else NamedSharding(mesh, spec) for spec in specs)


def constrained(x: Any) -> Any:
    """Compute with a sharding constraint inside; the arguments have no shardings."""
    return jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(GRID, P("y", "x"))) @ x.T


def by_shards(function: Callable[..., Any], mesh: Mesh, into: Any, out: Any) -> Any:
    """Return a function that runs on each device's shard."""
    return shard_map(function, mesh=mesh, in_specs=into, out_specs=out)


def turned(x: Any) -> Any:
    """Move each shard to the next device."""
    return jax.lax.ppermute(x, "data", [(i, (i + 1) % DEVICES) for i in range(DEVICES)])


def matmul(x: Any, w: Any) -> Any:
    """Return the product of two matrices, and a sum over all devices."""
    return jnp.tanh(x @ w), (x * x).sum()


SQUARE = (numbers(8, 8),)
PAIR = (numbers(8, 16), numbers(16, 8))
KEY = jax.random.key(7)

# name: function, arguments, mesh, options of jax.jit, options of this script
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], Mesh, dict[str, Any], dict[str, Any]]] = {
    "data_parallel": (matmul, PAIR, LINE, {"in_shardings": on(LINE, P("data"), P())}, {}),
    "symbolic": (jnp.cos, SQUARE, LINE, {"in_shardings": on(LINE, P(None, "data"))}, {"symbolic": "b, 8"}),
    "rows_of_weights": (matmul, PAIR, LINE, {"in_shardings": on(LINE, P(None, "data"), P("data"))}, {}),
    "grid": (matmul, PAIR, GRID, {"in_shardings": on(GRID, P("x", "y"), P("y", "x"))}, {}),
    "exchanged_axes": (jnp.cos, SQUARE, GRID, {"in_shardings": on(GRID, P("y", "x"))}, {}),
    "two_meshes": (
        matmul,
        PAIR,
        GRID,
        {"in_shardings": (*on(GRID, P("x", "y")), *on(LINE, P("data")))},
        {},
    ),
    "two_axes_swapped": (jnp.cos, SQUARE, GRID, {"in_shardings": on(GRID, P(None, ("y", "x")))}, {}),
    "columns_of_devices": (jnp.cos, SQUARE, COLUMNS, {"in_shardings": on(COLUMNS, P("x", "y"))}, {}),
    "backward_devices": (jnp.cumsum, SQUARE, BACKWARD, {"in_shardings": on(BACKWARD, P("data"))}, {}),
    "explicit_axes": (jnp.cos, (jax.device_put(*SQUARE, *on(EXPLICIT, P("x", "y"))),), EXPLICIT, {}, {}),
    "replicated": (matmul, PAIR, GRID, {"in_shardings": on(GRID, P(), P())}, {}),
    "unspecified": (constrained, SQUARE, GRID, {}, {}),
    "partly_unspecified": (matmul, PAIR, GRID, {"in_shardings": on(GRID, P("x"), None)}, {}),
    "out_shardings": (
        lambda x: (x.T * 2, x.sum()),
        SQUARE,
        GRID,
        {"in_shardings": on(GRID, P("x")), "out_shardings": on(GRID, P("y", "x"), P())},
        {},
    ),
    "psum": (
        by_shards(lambda x: jax.lax.psum(x, "x"), GRID, P("x", "y"), P(None, "y")),
        SQUARE,
        GRID,
        {"in_shardings": on(GRID, P("x", "y"))},
        {},
    ),
    "ppermute": (by_shards(turned, LINE, P("data"), P("data")), SQUARE, LINE, {}, {}),
    "scalar_and_tree": (
        lambda scale, tree: {"sum": scale * tree["a"].sum(), "b": tree["b"] + jnp.bfloat16(1)},
        (np.float32(3), {"a": numbers(8, 2), "b": numbers(8, dtype=jnp.bfloat16)}),
        LINE,
        {"in_shardings": (NamedSharding(LINE, P()), NamedSharding(LINE, P("data")))},
        {},
    ),
    "key": (
        lambda key, x: x + jax.random.uniform(key, (8, 8)),
        (KEY, *SQUARE),
        LINE,
        {"in_shardings": on(LINE, P(), P("data"))},
        {},
    ),
    "donated": (
        lambda x: x * 2 + 1,
        SQUARE,
        LINE,
        {"in_shardings": on(LINE, P("data")), "out_shardings": NamedSharding(LINE, P("data")), "donate_argnums": 0},
        {},
    ),
    "derivative": (
        lambda x: (jnp.sin(x) * x).sum(1),
        SQUARE,
        GRID,
        {"in_shardings": on(GRID, P("x", "y"))},
        {"vjp": 1},
    ),
    "other_partitioner": (matmul, PAIR, GRID, {"in_shardings": on(GRID, P("y", "x"), P("x", "y"))}, {"other": True}),
}


@contextlib.contextmanager
def other_partitioner(wanted: bool) -> Any:
    """Use the partitioner that is not jax's default, GSPMD or Shardy, for a while; its only one if it has one."""
    name = "jax_use_shardy_partitioner"
    if not wanted or name not in jax.config.values:
        yield
        return
    old = jax.config.values[name]
    jax.config.update(name, not old)
    try:
        yield
    finally:
        jax.config.update(name, old)


def plain(value: Any) -> Any:
    """Return a value in a form that NumPy can store."""
    return np.asarray(jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value)


def write(folder: Path, names: list[str]) -> None:
    """Export these programs, run each, and write all files."""
    for name in names:
        function, args, _, options, own = PROGRAMS[name]
        with other_partitioner("other" in own):
            jitted = jax.jit(function, **options)
            shapes = export.symbolic_args_specs(args, own["symbolic"]) if "symbolic" in own else args
            exported = export.export(jitted)(*shapes)
            assert exported.nr_devices == DEVICES, (name, exported.nr_devices)
            (folder / f"{name}.jaxexport").write_bytes(exported.serialize(vjp_order=own.get("vjp", 0)))
            np.savez(folder / f"{name}.inputs.npz", *map(plain, jax.tree_util.tree_leaves(args)))
            results = jax.tree_util.tree_leaves(jitted(*args))
        np.savez(folder / f"{name}.outputs.npz", *map(plain, results))


def call(folder: Path, name: str) -> str:
    """Call an artifact; return why that fails or gives other numbers, empty if it works."""
    _, args, mesh, _, _ = PROGRAMS[name]
    try:
        exported = export.deserialize(bytearray((folder / f"{name}.jaxexport").read_bytes()))
        results = jax.jit(exported.call)(*jax.device_put(args, NamedSharding(mesh, P())))
        values = [plain(value) for value in jax.tree_util.tree_leaves(results)]
        with np.load(folder / f"{name}.outputs.npz") as outputs:
            expected = [outputs[member] for member in outputs.files]
        assert len(values) == len(expected), (len(values), len(expected))
        for want, got in zip(expected, values, strict=True):
            # numpy stores bfloat16 as nameless bytes.
            np.testing.assert_allclose(np.float64(got), np.float64(want.view(got.dtype)), 1e-4, 1e-4)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Export the named programs, or all; or call what a release has exported."""
    folder, words = Path(sys.argv[1]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    if words[:1] == ["--call"]:
        made = sorted(path.stem for path in folder.glob("*.jaxexport"))
        Path(words[1]).write_text(json.dumps({name: call(folder, name) for name in made}))
    else:
        write(folder, words or list(PROGRAMS))


if __name__ == "__main__":
    main()
