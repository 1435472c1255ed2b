"""A wheel of this repository, and the environment variables of a user who installs it, to run the commands of pages."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

from export_core.readers.build import cache_folder, uv_command

ROOT = Path(__file__).parents[1]


@functools.cache
def _built() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    subprocess.run([uv_command(), "build", "--quiet", "--wheel", "--out-dir", folder.name, str(ROOT)], check=True)
    return folder  # the folder is removed when this object is


def wheel_folder() -> Path:
    """Return a folder with a wheel of this repository, built once in each process and removed when the process ends."""
    return Path(_built().name)


def variables_of_a_user(private: Path) -> dict[str, str]:
    """Return environment variables with which pip and uv find the wheel, and `jaxexport` has a new cache.

    The cache has only a link to the readers' environments of the person who runs this: each takes some 350 MB.

    Args:
        private: an empty folder, for the cache.
    """
    cache = private / "cache"
    cache.mkdir()
    environments = cache_folder() / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    (cache / "environments").symlink_to(environments)
    return {
        "JAXEXPORT_CACHE": str(cache),
        "PIP_COMPILE": "no",  # all of jax and SciPy; Python compiles what it imports
        "PIP_CONFIG_FILE": os.devnull,  # a user's configuration could make pip print warnings
        "PIP_FIND_LINKS": str(wheel_folder()),
        "UV_FIND_LINKS": str(wheel_folder()),
    }
