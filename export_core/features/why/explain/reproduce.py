"""Deserializes an artifact of jax.export, compiles it and runs it, in a new process.

Start it with `uv run` for the release in which it fails, or with any other Python that has jax. Exit codes: 0 it works
here, 1 it raises an exception or its numbers differ from those of its writer. It may also die by a signal.
"""

import base64
import importlib
import importlib.util
import io
import os
import sys
from typing import Any


def main() -> None:
    """Say each stage before the next one begins: a crash says nothing."""
    if DEVICES > 1:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    import jax

    if X64:
        jax.config.update("jax_enable_x64", True)
    if "--info" in sys.argv:
        jax.print_environment_info()
    print("reported: " + REPORTED, flush=True)
    # `jax.export` since 0.4.30, `jax.experimental.export` before.
    is_new = importlib.util.find_spec("jax.export")
    export = importlib.import_module("jax.export" if is_new else "jax.experimental.export")
    exported = export.deserialize(bytearray(base64.b64decode(ARTIFACT)))
    print("deserialized", ascii(exported.fun_name), flush=True)
    exported.mlir_module()
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, on_devices(exported, arrays(INPUTS)))
    function = exported.call if hasattr(exported, "call") else export.call(exported)
    compiled = jax.jit(function).lower(*args, **kwargs).compile()
    print("compiled", flush=True)
    results = jax.block_until_ready(jax.tree_util.tree_leaves(compiled(*args, **kwargs)))
    print("ran", flush=True)
    if not OUTPUTS:
        print("works here")
    elif differs(results, arrays(OUTPUTS)):
        sys.exit("its numbers differ from those that its writer saw")
    else:
        print("its numbers are those that its writer saw")


def on_devices(exported: Any, leaves: list[Any]) -> list[Any]:
    """Arguments as the artifact wants them on its devices."""
    import jax
    import numpy as np

    if DEVICES == 1:
        return leaves
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), "devices")
    shardings = exported.in_shardings_jax(mesh)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return [jax.device_put(leaf, at or whole) for leaf, at in zip(leaves, shardings)]


def arrays(text: str) -> list[Any]:
    """Arrays of an .npz whose members are called NUMBER.DTYPE, since NumPy itself has not all dtypes of JAX."""
    import jax
    import ml_dtypes
    import numpy as np

    leaves = []
    archive = np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
    for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
        dtype, data = name.partition(".")[2], archive[name]
        if dtype.startswith("key_"):
            implementation = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_urbg": "unsafe_rbg"}[dtype]
            data = jax.random.wrap_key_data(data, impl=implementation)
        elif dtype == "float0":
            data = np.zeros(data.shape, jax.dtypes.float0)
        elif dtype != data.dtype.name:
            data = data.view(getattr(ml_dtypes, dtype))
        leaves.append(data)
    return leaves


def differs(results: list[Any], expected: list[Any]) -> bool:
    """Whether a result is as far from the writer's as where it failed, within a factor of two."""
    import jax
    import numpy as np

    largest = 0.0
    for number, (result, writer) in enumerate(zip(results, expected)):
        if jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key):
            result, writer = jax.random.key_data(result), jax.random.key_data(writer)
        wide = np.complex128 if np.issubdtype(np.asarray(result).dtype, np.complexfloating) else np.float64
        one, other = np.asarray(result).astype(wide), np.asarray(writer).astype(wide)
        with np.errstate(invalid="ignore"):  # of two infinite numbers
            difference = np.where(np.isnan(one - other), np.inf, np.abs(one - other))
        is_equal = (one == other) | (np.isnan(one) & np.isnan(other))  # also where both are infinite
        at_most = float(np.max(np.where(is_equal, 0.0, difference), initial=0.0))
        print(f"result {number}: differs by at most {at_most:.3g}")
        largest = max(largest, at_most)
    return largest == np.inf if MEASURED is None else largest >= MEASURED / 2


# --- the cell ---------------------------------------------------------------------------------------------------------

DEVICES = 1
X64 = False
REPORTED = ""
MEASURED: float | None = None  # the largest absolute difference from the writer's outputs; None where it is infinite
ARTIFACT = ""
INPUTS = ""
OUTPUTS = ""

if __name__ == "__main__":
    main()
