"""The notes of a worker: which modules cells of its environment import.

The next worker of that environment imports them before its first cell.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from export_core.readers.build import cache_folder
from export_core.readers.environment import Environment


def notes_file(environment: Environment) -> str:
    """The path of the notes, in a folder that exists; empty where there can be none.

    Notes may be out of date: they save time, and nothing else. They are in the environment, and removed with it; for
    one that was not built here, in the cache folder.
    """
    folder = environment.folder or cache_folder() / "modules"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    release, variables = environment.release, environment.variables
    words = [str(environment.python), release.jax, release.jaxlib, environment.content_hash]
    words += [variables.get(name, "") for name in ("PYTHONPATH", "JAX_PLATFORMS")]
    return str(folder / f"modules-{hashlib.sha256('|'.join(words).encode()).hexdigest()[:24]}.json")


def remove_notes(path: str) -> None:
    """Remove the notes at a path, if there are any."""
    if path:
        with contextlib.suppress(OSError):
            Path(path).unlink()
