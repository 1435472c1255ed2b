"""What does a reader run in? An environment with jax, jaxlib, numpy and flatbuffers, and nothing of this project."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
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
from export_core.releases.wheels import Wheel

LAST_LINES = 12
READY = "ready.json"
_ASKING_SYSCONFIG = threading.Lock()
_NOT_INHERITED = ("JAX_", "XLA_", "PYTHON", "TF_", "LIBTPU", "TPU_")
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
_CHECK = """
import importlib.util, json, jax, jaxlib.version, numpy, flatbuffers
importlib.import_module("jax.export" if importlib.util.find_spec("jax.export") else "jax.experimental.export")
print(json.dumps([jax.__version__, jaxlib.version.__version__]))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter in which a reader runs, and the variables it is started with.

    `lock` is a hash of every installed file of every package and of the interpreter's version; empty where nobody took it.
    """

    release: Release
    python: Path
    variables: Mapping[str, str]
    lock: str = ""


@dataclass(frozen=True)
class Sources:
    """Where packages come from, before the published ones: single wheels of jaxlib, wheels in folders, indexes by URL."""

    files: tuple[Wheel, ...] = ()
    held: tuple[Wheel, ...] = ()
    indexes: tuple[str, ...] = ()

    def file_of(self, release: Release) -> Wheel | None:
        """The wheel file that was named as this reader."""
        return next((wheel for wheel in self.files if wheel.version == release.jaxlib), None)

    def options(self) -> tuple[str, ...]:
        """The options of ``uv pip install``."""
        folders = dict.fromkeys(str(wheel.path.parent) for wheel in self.held)
        return (*(f"--find-links={folder}" for folder in folders), *(f"--index={url}" for url in self.indexes))

    def content(self, release: Release) -> str:
        """What decides, beside the versions, what is installed for a release: the bytes of its wheels."""
        named = self.file_of(release)
        wheels = [
            wheel for wheel in self.held if wheel.version == {"jax": release.jax, "jaxlib": release.jaxlib}[wheel.name]
        ]
        hashes = sorted(
            _sha256(wheel.path, wheel.path.stat().st_mtime_ns) for wheel in (*wheels, *((named,) if named else ()))
        )
        return (
            json.dumps([hashes, [without_credentials(url) for url in self.indexes]]) if hashes or self.indexes else ""
        )


def without_credentials(url: str) -> str:
    """An index without the user and password in its URL: what is written down anywhere."""
    return _CREDENTIALS.sub("", url)


PUBLISHED = Sources()
"""Nothing but what is published."""


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


def requirements(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> tuple[str, ...]:
    """The pip requirements of a reader: exact jax and jaxlib, and what the calendar says they need."""
    wheel = sources.file_of(release)
    return (
        f"jax=={release.jax}",
        f"jaxlib @ {wheel.path.as_uri()}" if wheel else f"jaxlib=={release.jaxlib}",
        "numpy",
        *calendar.extra_requirements(release.jaxlib),
    )


def build_environment(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> Environment:
    """The environment of a reader, built once and shared by all projects of this user.

    Raises `EnvironmentFailed` with the builder's last lines when it cannot be built or does not import.
    """
    built = build(*_recipe(release, calendar, sources), options=sources.options())
    found = json.loads(built.checked)
    if found != [release.jax, release.jaxlib]:
        raise EnvironmentFailed(
            f"{built.folder}: expected jax {release.jax} and jaxlib {release.jaxlib}, found jax {found[0]} and jaxlib {found[1]}. "
            "Delete the folder; it will be built again."
        )
    return Environment(release, built.python, cell_variables(), built.lock)


def standing_environment(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> Environment | None:
    """The environment of a reader if it stands already; nothing is built, started or waited for. None where it does not."""
    try:
        built = standing(folder_of(*_recipe(release, calendar, sources)))
    except EnvironmentFailed:  # there is no such CPython: who builds it says so
        return None
    return Environment(release, built.python, cell_variables(), built.lock) if built else None


def _recipe(release: Release, calendar: Calendar, sources: Sources) -> tuple[str, str, tuple[str, ...], str, str]:
    wheel = sources.file_of(release)
    python = find_python(python_for((wheel.pythons if wheel else ()) or calendar.pythons(release.jaxlib)), uv_command())
    wanted = requirements(release, calendar, sources)
    return f"jaxlib-{release.jaxlib}", python, wanted, _CHECK, sources.content(release)


@dataclass(frozen=True)
class Built:
    """A virtual environment on disk; `checked` is what its check printed, `lock` a hash of what is installed in it."""

    folder: Path
    checked: str
    lock: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return interpreter_in(self.folder)


def build(
    name: str, python: str, wanted: tuple[str, ...], check: str, salt: str = "", options: tuple[str, ...] = ()
) -> Built:
    """A virtual environment that holds `wanted`, found by content or built, and verified by running `check` in it.

    `salt` stands for what decides the content beside the requirements; `options` are those of ``uv pip install``.
    """
    folder = folder_of(name, python, wanted, check, salt)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if found := standing(folder):
            return found
        ready = folder / READY
        if ready.exists():  # built by a version of this tool that took no lock
            checked = json.loads(ready.read_bytes())["checked"]
        else:
            # Half of one, left by a build that was killed, is not worth saving.
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder, python, wanted, options)
            checked = _run([str(interpreter_in(folder)), "-c", check], f"importing {wanted[0]}").strip()
        found = Built(folder, checked, installed(folder))
        ready.write_text(json.dumps({"requirements": wanted, "checked": checked, "lock": found.lock}))
        return found


def folder_of(name: str, python: str, wanted: tuple[str, ...], check: str, salt: str = "") -> Path:
    """Where the environment of a `build` lies, built or not."""
    key = hashlib.sha256(json.dumps([python, wanted, check, salt]).encode()).hexdigest()[:12]
    return cache_folder() / "environments" / f"{name}-{key}"


def standing(folder: Path) -> Built | None:
    """The environment in a folder, or None where its build has not ended well."""
    try:
        said = json.loads((folder / READY).read_bytes())
        return Built(folder, said["checked"], said["lock"])
    except (OSError, ValueError, KeyError):
        return None


def interpreter_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def installed(folder: Path) -> str:
    """A hash of the interpreter's version and of every file that the packages of a virtual environment were installed with.

    The packages' own RECORD files have the SHA-256 of each. Scripts and notes of the installer are left out: they name the folder.
    """
    lines = [line for line in (folder / "pyvenv.cfg").read_text().splitlines() if line.startswith("version")]
    for record in (
        *folder.glob("[Ll]ib/python*/site-packages/*.dist-info/RECORD"),
        *folder.glob("Lib/site-packages/*.dist-info/RECORD"),
    ):
        for line in record.read_text(encoding="utf-8").splitlines():
            if ",sha256=" in line and not line.startswith("..") and ".dist-info/" not in line:
                lines.append(line)
        lines.append(record.parent.name)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _install(folder: Path, python: str, wanted: tuple[str, ...], options: tuple[str, ...]) -> None:
    uv = uv_command()
    _run([uv, "venv", "--quiet", "--python", python, str(folder)], "creating the environment")
    command = [uv, "pip", "install", "--quiet", "--python", str(interpreter_in(folder)), *options, *wanted]
    _run(command, f"installing {', '.join(wanted)}")


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


@functools.cache
def _sha256(path: Path, changed: int) -> str:
    """SHA-256 of a file, read again when its time of change is another one: a wheel has 100 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
