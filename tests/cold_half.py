"""One call of a runtime's worker half in a new process, as the worker makes it.

Run as a program, it reads a pickled call from stdin and writes the pickled result to stdout.
"""

import importlib.util
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNTIMES = Path(__file__).resolve().parent.parent / "export_core" / "runtimes"


@dataclass(frozen=True)
class Called:
    stage: str  # the last one
    error: str  # of a call that failed; empty for one that worked
    outputs: list[Any]
    threads: int  # after warm()
    late: list[str]  # modules that the call imported and warm() had not
    jax: bool  # whether it is imported
    printed: str  # on stderr


def call_half(
    half: str | Path, artifact: bytes, *leaves: Any, folder: Path, x64: bool = False, python: str = sys.executable
) -> Called:
    """Call an artifact on the CPU by a runtime's worker half, given by name or file. `folder` gets the module."""
    import numpy as np

    from export_core.artifact import read_bytes

    envelope = read_bytes(artifact).envelope
    assert envelope
    module = folder / "module.mlirbc"
    module.write_bytes(envelope.module_source.copy())
    call = {
        "module": str(module),
        "version": envelope.calling_convention_version,
        "platforms": list(envelope.platforms),
        "kept": list(envelope.module_kept_var_idx),
        "refine": envelope.uses_global_constants,
        "tokens": len(envelope.ordered_effects),
        "disabled_checks": [],
        "inputs": [wire(aval) for aval in envelope.in_avals],
        "outputs": [wire(aval) for aval in envelope.out_avals],
        "devices": envelope.nr_devices,
        "x64": x64,
        "shardy": True,
    }
    arrays = [(str(leaf.dtype), leaf.shape, leaf.tobytes()) for leaf in map(np.asarray, leaves)]
    variables = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(
        [python, __file__, str(half if isinstance(half, Path) else RUNTIMES / f"{half}_worker.py")],
        input=pickle.dumps((call, arrays)),
        capture_output=True,
        env=variables,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    stage, error, outputs, *others = pickle.loads(ended.stdout)
    return Called(stage, error, [from_bits(*bits) for bits in outputs], *others, ended.stderr.decode())


def wire(aval: Any) -> list[Any]:
    shape = [size if isinstance(size, int) else None for size in aval.shape]
    return [aval.dtype, shape, aval.dtype]


def from_bits(dtype: str, shape: tuple[int, ...], data: bytes) -> Any:
    """Build an array from its bytes, since pickles of NumPy's dtypes depend on its version."""
    import ml_dtypes
    import numpy as np

    return np.frombuffer(data, getattr(ml_dtypes, dtype, dtype)).reshape(shape)


def main() -> None:
    call, arrays = pickle.load(sys.stdin.buffer)
    out = os.dup(1)
    os.dup2(2, 1)  # as in a worker, what libraries print goes to stderr
    sys.modules["jax"] = None  # type: ignore[assignment]  # a runtime's environment lacks it
    spec = importlib.util.spec_from_file_location("half", sys.argv[1])
    assert spec
    assert spec.loader
    half = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(half)
    half.warm()
    tasks = Path("/proc/self/task")
    threads = len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()
    before, stages, error, outputs = set(sys.modules), ["read"], "", []
    leaves = [from_bits(*bits) for bits in arrays]
    try:
        for value in half.run(call, leaves, stages.append):
            outputs.append((str(value.dtype), value.shape, value.tobytes()))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    late = sorted(set(sys.modules) - before)
    with os.fdopen(out, "wb") as file:
        pickle.dump((stages[-1], error, outputs, threads, late, bool(sys.modules.get("jax"))), file)
        file.flush()
        os._exit(0)  # a client of PJRT may not end in good order


if __name__ == "__main__":
    main()
