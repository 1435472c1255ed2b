"""The load check: may this server load a model? `python -m ranking.check GOLDEN` says so with exit code 0 or 1."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.export
import numpy as np


def load(golden):
    """Return the exported function of a golden, deserialized but not compiled."""
    return jax.export.deserialize(bytearray((golden / "artifact.jaxexport").read_bytes()))


def arrays(golden, name):
    """Return the flat inputs or outputs of a golden, in order."""
    with np.load(golden / f"{name}.npz") as file:
        return list(file.values())


def check(golden):
    """Run a model on the inputs of its golden. Raises where it does not run, or gives other numbers than its writer."""
    exported = load(golden)
    args, kwargs = jax.tree.unflatten(exported.in_tree, arrays(golden, "inputs"))
    outputs = jax.tree.leaves(exported.call(*args, **kwargs))
    for output, expected in zip(outputs, arrays(golden, "outputs"), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-5)


def problem(golden):
    """Return why this server must not load a model, empty if it may, from another process, since jaxlib may crash."""
    child = subprocess.run([sys.executable, "-m", "ranking.check", golden], stdout=subprocess.PIPE, text=True)
    if child.returncode < 0:
        return f"{golden}: jaxlib died by signal {-child.returncode}"
    return child.stdout.strip() if child.returncode else ""


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except Exception as error:
        print(f"{sys.argv[1]}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
        sys.exit(1)
    print(f"{sys.argv[1]}: may be served")
