"""Hashes of what decides an outcome beside the cell itself: the code that runs here, and this machine."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from export_core import tolerances
from export_core.releases import stable_targets

_CORE = Path(__file__).parents[1]


@functools.cache
def code() -> str:
    """A hash of the code and the tables that run a cell and say how it ended."""
    rooms = (_CORE / name for name in ("artifact", "comparing", "environments", "goldens", "matrix", "worker"))
    paths = [path for room in rooms for pattern in ("*.py", "data/*.*") for path in sorted(room.rglob(pattern))]
    found = hashlib.sha256()
    for path in (*paths, Path(tolerances.__file__), Path(stable_targets.__file__), Path(stable_targets.TABLE)):
        found.update(path.read_bytes())
    return found.hexdigest()


@functools.cache
def machine() -> str:
    """What of this machine decides numbers: system, architecture, processor, what compares. A cache may lie on a shared disk."""
    processor = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    kinds = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    compares = (f"{name} {version(name)}" for name in ("numpy", "ml_dtypes"))
    # XLA divides work, and with it sums, by the number of processors.
    return "\n".join((sys.platform, processor, str(os.cpu_count()), *compares, *kinds))


def tool() -> str:
    """Which code of this project runs here."""
    return f"{version('pytest-jaxexport')} ({code()[:12]})"
