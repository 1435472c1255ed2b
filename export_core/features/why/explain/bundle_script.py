"""Runs the artifact of jax.export beside this file, or its StableHLO in another runtime, and checks its outputs.

Start this script with `uv run`, which installs the release that fails, or with a Python that has another release. Exit
codes: 0 the artifact works here, 1 an exception, or numbers that differ from its writer's. It may also die by a signal.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the artifact and compare its outputs; each stage is printed as it is reached, in case the process crashes."""
    facts = json.loads((HERE / "call.json").read_text(encoding="utf-8"))
    print("reported: " + facts["reported"], flush=True)
    results = in_runtime(facts) if "worker" in facts else in_jax(facts)
    print("ran", flush=True)
    outputs = HERE / "outputs.npz"
    if not outputs.exists():
        print("works here")
    elif differs(results, [data for _, data in arrays(outputs)], facts["measured"], facts.get("named", [])):
        sys.exit("its numbers differ from those that its writer saw")
    else:
        print("its numbers are those that its writer saw")


def in_runtime(facts: dict[str, Any]) -> list[Any]:
    """Return the results of the StableHLO module in a runtime that is not jaxlib, without jax and jaxexport."""
    os.environ.update(facts["variables"])
    spec = importlib.util.spec_from_file_location("runtime", HERE / facts["worker"])
    assert spec
    assert spec.loader
    runtime = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runtime)
    runtime.warm()
    call = {**facts["call"], "module": str(HERE / "module.mlirbc")}
    leaves = [data for _, data in arrays(HERE / "inputs.npz")]
    results: list[Any] = runtime.run(call, leaves, lambda stage: print("next: " + stage, flush=True))
    return results


def in_jax(facts: dict[str, Any]) -> list[Any]:
    """Return the results of running the artifact in jax; a PRNG key is returned as the array of its data."""
    devices = facts["devices"]
    if devices > 1:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax

    if facts["x64"]:
        jax.config.update("jax_enable_x64", True)
    if "--info" in sys.argv:
        jax.print_environment_info()
    # `jax.export` since 0.4.30, `jax.experimental.export` before.
    is_new = importlib.util.find_spec("jax.export")
    export = importlib.import_module("jax.export" if is_new else "jax.experimental.export")
    exported = export.deserialize(bytearray((HERE / "artifact.jaxexport").read_bytes()))
    print("deserialized", ascii(exported.fun_name), flush=True)
    exported.mlir_module()
    leaves = [as_jax(dtype, data) for dtype, data in arrays(HERE / "inputs.npz")]
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, on_devices(exported, leaves, devices))
    function = exported.call if hasattr(exported, "call") else export.call(exported)
    compiled = jax.jit(function).lower(*args, **kwargs).compile()
    print("compiled", flush=True)
    results = jax.block_until_ready(jax.tree_util.tree_leaves(compiled(*args, **kwargs)))
    is_key = [jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key) for result in results]
    return [jax.random.key_data(result) if key else result for result, key in zip(results, is_key)]


def as_jax(dtype: str, data: Any) -> Any:
    """Return an argument for jax, made from its stored data: a PRNG key, a float0 array, or the data itself."""
    import jax
    import numpy as np

    if dtype.startswith("key_"):
        implementation = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_urbg": "unsafe_rbg"}[dtype]
        return jax.random.wrap_key_data(data, impl=implementation)
    return np.zeros(data.shape, jax.dtypes.float0) if dtype == "float0" else data


def on_devices(exported: Any, leaves: list[Any], count: int) -> list[Any]:
    """Return the arguments, placed on `count` devices as the artifact's shardings say."""
    import jax
    import numpy as np

    if count == 1:
        return leaves
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]), "devices")
    shardings = exported.in_shardings_jax(mesh)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return [jax.device_put(leaf, at or whole) for leaf, at in zip(leaves, shardings)]


def arrays(path: Path) -> list[tuple[str, Any]]:
    """Return the dtype and the array of each member of an .npz file, in the order of their numbers.

    Members are called NUMBER.DTYPE, since NumPy cannot store some dtypes of JAX.
    """
    import ml_dtypes
    import numpy as np

    leaves = []
    archive = np.load(path, allow_pickle=False)
    for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
        dtype, data = name.partition(".")[2], archive[name]
        if not (dtype.startswith("key_") or dtype in ("float0", data.dtype.name)):
            data = data.view(getattr(ml_dtypes, dtype))
        leaves.append((dtype, data))
    return leaves


def differs(results: list[Any], expected: list[Any], measured: "float | None", named: Sequence[str] = ()) -> bool:
    """Return whether the results differ from the expected ones by at least half as much as in the failing cell.

    `measured` is the largest absolute difference in that cell; None if it was infinite. `named` has the number and the
    path of each result, as far as they are known.
    """
    import numpy as np

    largest = 0.0
    for number, (result, writer) in enumerate(zip(results, expected)):
        wide = np.complex128 if np.issubdtype(np.asarray(writer).dtype, np.complexfloating) else np.float64
        one, other = np.asarray(result).astype(wide), np.asarray(writer).astype(wide)
        with np.errstate(invalid="ignore"):  # of two infinite numbers
            difference = np.where(np.isnan(one - other), np.inf, np.abs(one - other))
        is_equal = (one == other) | (np.isnan(one) & np.isnan(other))  # also where both are infinite
        at_most = float(np.max(np.where(is_equal, 0.0, difference), initial=0.0))
        name = named[number] if number < len(named) else number
        print(f"result {name}: differs by at most {at_most:.3g}")
        if at_most:
            print("  expected", other.reshape(-1)[:8], "\n  got     ", one.reshape(-1)[:8])
        largest = max(largest, at_most)
    return largest == np.inf if measured is None else largest >= measured / 2


if __name__ == "__main__":
    main()
