"""Where does a worker note which modules cells of its environment import, so that the next one imports them before its first cell?"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from export_core.environments.build import cache_folder
from export_core.environments.environment import Environment


def learned_file(environment: Environment) -> str:
    """A path in a folder that is there; empty where there can be none. What stands in it may be old: it saves time, and nothing else.

    In the environment, which takes it along when it is cleaned away; in the cache folder for one that was not built here.
    """
    folder = environment.python.parent.parent if environment.content_hash else cache_folder() / "modules"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    release, variables = environment.release, environment.variables
    words = [str(environment.python), release.jax, release.jaxlib, environment.content_hash]
    words += [variables.get(name, "") for name in ("PYTHONPATH", "JAX_PLATFORMS")]
    return str(folder / f"modules-{hashlib.sha256('|'.join(words).encode()).hexdigest()[:24]}.json")


def forget(path: str) -> None:
    """Remove the notes at a path, if there are any."""
    if path:
        with contextlib.suppress(OSError):
            Path(path).unlink()
