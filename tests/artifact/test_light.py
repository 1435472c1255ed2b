"""Reading an artifact imports neither jax nor numpy, nor any module that takes longer to import than to use."""

import subprocess
import sys

from stored_artifacts import DATA

HEAVY = {"jax", "jaxlib", "numpy", "flatbuffers", "dataclasses", "inspect", "yaml", "msgspec", "hashlib", "json"}


def test_reading_imports_no_slow_module():
    code = f"""
import sys
import packaging.version  # since CPython 3.13 its deprecated functions import inspect
before = set(sys.modules)
from export_core import artifact
from export_core.artifact.readers import Reader, loads
found = artifact.read({str(DATA / "0.12.0.1" / "cholesky.jaxexport")!r})
assert found.custom_calls[0].target == "lapack_spotrf_ffi"
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=DATA.parents[2])
    assert not HEAVY & set(done.stdout.split())
