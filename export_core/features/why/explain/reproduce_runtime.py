"""Calls a StableHLO module in one runtime, in a new process, without jax and without any other part of jaxexport.

Start it with `uv run`, which installs that runtime. Exit codes: 0 it works here, 1 it raises an exception or its
numbers differ from those of its writer. It may also die by a signal.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Say each stage before it begins: a crash says nothing."""
    facts = json.loads((HERE / "call.json").read_text(encoding="utf-8"))
    os.environ.update(facts["variables"])
    spec = importlib.util.spec_from_file_location("runtime", HERE / facts["worker"])
    assert spec
    assert spec.loader
    runtime = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runtime)
    runtime.warm()
    print("reported: " + facts["reported"], flush=True)
    call = {**facts["call"], "module": str(HERE / "module.mlirbc")}
    results = runtime.run(call, arrays(HERE / "inputs.npz"), lambda stage: print("next: " + stage, flush=True))
    print("ran", flush=True)
    outputs = HERE / "outputs.npz"
    if not outputs.exists():
        print("works here")
    elif differs(results, arrays(outputs), facts["measured"]):
        sys.exit("its numbers differ from those that its writer saw")
    else:
        print("its numbers are those that its writer saw")


def arrays(path: Path) -> list[Any]:
    """Arrays of an .npz whose members are called NUMBER.DTYPE, since NumPy itself has not all dtypes of JAX."""
    import ml_dtypes
    import numpy as np

    leaves = []
    archive = np.load(path, allow_pickle=False)
    for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
        dtype, data = name.partition(".")[2], archive[name]
        if not (dtype.startswith("key_") or dtype in ("float0", data.dtype.name)):
            data = data.view(getattr(ml_dtypes, dtype))
        leaves.append(data)
    return leaves


def differs(results: list[Any], expected: list[Any], measured: "float | None") -> bool:
    """Whether a result is as far from the writer's as where it failed, within a factor of two."""
    import numpy as np

    largest = 0.0
    for number, (result, writer) in enumerate(zip(results, expected)):
        wide = np.complex128 if np.issubdtype(np.asarray(writer).dtype, np.complexfloating) else np.float64
        one, other = np.asarray(result).astype(wide), np.asarray(writer).astype(wide)
        with np.errstate(invalid="ignore"):  # of two infinite numbers
            difference = np.where(np.isnan(one - other), np.inf, np.abs(one - other))
        is_equal = (one == other) | (np.isnan(one) & np.isnan(other))  # also where both are infinite
        at_most = float(np.max(np.where(is_equal, 0.0, difference), initial=0.0))
        print(f"result {number}: differs by at most {at_most:.3g}")
        if at_most:
            print("  expected", other.reshape(-1)[:8], "\n  got     ", one.reshape(-1)[:8])
        largest = max(largest, at_most)
    return largest == np.inf if measured is None else largest >= measured / 2


if __name__ == "__main__":
    main()
