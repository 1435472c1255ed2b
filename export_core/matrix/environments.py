"""What does a reader run in? An environment with jax, jaxlib, numpy and flatbuffers, and nothing of this project."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from export_core.matrix.errors import EnvironmentFailed
from export_core.matrix.interpreters import find_python, python_for
from export_core.releases import Calendar, Release

LAST_LINES = 12
_ASKING_SYSCONFIG = threading.Lock()
_NOT_INHERITED = ("JAX_", "XLA_", "PYTHON", "TF_", "LIBTPU", "TPU_")
_CHECK = """
import importlib.util, json, jax, jaxlib.version, numpy, flatbuffers
importlib.import_module("jax.export" if importlib.util.find_spec("jax.export") else "jax.experimental.export")
print(json.dumps([jax.__version__, jaxlib.version.__version__]))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter in which a reader runs, and the variables it is started with."""

    release: Release
    python: Path
    variables: Mapping[str, str]


def cache_folder() -> Path:
    """Where environments are kept: JAXEXPORT_CACHE, or the user's cache folder. Never inside a project."""
    chosen = os.environ.get("JAXEXPORT_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("jaxexport"))


def this_interpreter(release: Release) -> Environment:
    """The interpreter that runs now, as a reader."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ}
    return Environment(release, Path(sys.executable), {**cell_variables(), **kept})


def cell_variables() -> dict[str, str]:
    """The variables of a cold cell: nothing that would set jax, XLA or Python differently from a plain process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    # Thread pools of numpy's BLAS would be lost in a fork.
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**inherited, **threads, "JAX_PLATFORMS": "cpu"}


def uv_command() -> str:
    """The uv that came with this package's dependencies."""
    from uv import find_uv_bin

    # It asks sysconfig, which in CPython 3.11 answers None while another thread is asking for the first time.
    with _ASKING_SYSCONFIG:
        return str(find_uv_bin())


def requirements(release: Release, calendar: Calendar) -> tuple[str, ...]:
    """The pip requirements of a reader: exact jax and jaxlib, and what the calendar says they need."""
    return (
        f"jax=={release.jax}",
        f"jaxlib=={release.jaxlib}",
        "numpy",
        *calendar.extra_requirements(release.jaxlib),
    )


def build_environment(release: Release, calendar: Calendar) -> Environment:
    """The environment of a reader, built once and shared by all projects of this user.

    Raises `EnvironmentFailed` with the builder's last lines when it cannot be built or does not import.
    """
    wanted = requirements(release, calendar)
    python = find_python(python_for(calendar.pythons(release.jaxlib)), uv_command())
    built = build(f"jaxlib-{release.jaxlib}", python, wanted, _CHECK)
    found = json.loads(built.checked)
    if found != [release.jax, release.jaxlib]:
        raise EnvironmentFailed(
            f"{built.folder}: expected jax {release.jax} and jaxlib {release.jaxlib}, found jax {found[0]} and jaxlib {found[1]}. "
            "Delete the folder; it will be built again."
        )
    return Environment(release, built.python, cell_variables())


@dataclass(frozen=True)
class Built:
    """A virtual environment on disk; `checked` is what its check printed."""

    folder: Path
    checked: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def build(name: str, python: str, wanted: tuple[str, ...], check: str, salt: str = "") -> Built:
    """A virtual environment that holds `wanted`, found by content or built, and verified by running `check` in it.

    `salt` stands for what decides the content beside the requirements.
    """
    key = hashlib.sha256(json.dumps([python, wanted, check, salt]).encode()).hexdigest()[:12]
    folder = cache_folder() / "environments" / f"{name}-{key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    ready = folder / "ready.json"
    with filelock.FileLock(f"{folder}.lock"):
        if not ready.exists():
            # Half of one, left by a build that was killed, is not worth saving.
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder, python, wanted)
            checked = _run([str(Built(folder, "").python), "-c", check], f"importing {wanted[0]}").strip()
            ready.write_text(json.dumps({"requirements": wanted, "checked": checked}))
        return Built(folder, json.loads(ready.read_text())["checked"])


def _install(folder: Path, python: str, wanted: tuple[str, ...]) -> None:
    uv = uv_command()
    _run([uv, "venv", "--quiet", "--python", python, str(folder)], "creating the environment")
    interpreter = str(Built(folder, "").python)
    _run([uv, "pip", "install", "--quiet", "--python", interpreter, *wanted], f"installing {', '.join(wanted)}")


def _run(command: list[str], doing: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=_builder_variables(), check=False)
    if done.returncode:
        lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LAST_LINES:])
        raise EnvironmentFailed(f"{doing} failed with status {done.returncode}:\n{lines}")
    return done.stdout


def _builder_variables() -> dict[str, str]:
    # An activated environment, or variables of the caller's jax, must not leak into another release's.
    # The check compiles what it imports, so that no worker has to.
    dropped = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE")
    return {
        name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("JAX_")
    } | {"JAX_PLATFORMS": "cpu"}
