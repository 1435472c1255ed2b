"""What does a reader run in? An environment with jax, jaxlib, numpy and flatbuffers, and nothing of this project."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from export_core.environments.build import build, damage_in, folder_of, standing, uv_command
from export_core.environments.errors import EnvironmentFailed
from export_core.environments.interpreters import find_python, python_for
from export_core.environments.locks import Hold
from export_core.environments.placement import Mode, Placement
from export_core.releases import Calendar, Release
from export_core.releases.wheels import Wheel
from export_core.urls import without_credentials

_NOT_INHERITED = ("JAX_", "XLA_", "PYTHON", "PYTEST_", "TF_", "LIBTPU", "TPU_")
_CHECK = """
import importlib.util, json, jax, jaxlib.version, numpy, flatbuffers
importlib.import_module("jax.export" if importlib.util.find_spec("jax.export") else "jax.experimental.export")
print(json.dumps([jax.__version__, jaxlib.version.__version__]))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter in which a reader runs, and the variables it is started with.

    `lock` is a hash of every installed file of every package and of the interpreter's version; empty where nobody took it. While
    this object lives, nobody removes the folder.
    """

    release: Release
    python: Path
    variables: Mapping[str, str]
    lock: str = ""
    held: Hold | None = field(default=None, compare=False, repr=False)


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
        # An index of nightlies holds no releases, and uv would look for a package in no other index than the first that knows its name.
        strategy = ("--index-strategy=unsafe-first-match",) if self.indexes else ()
        return (
            *(f"--find-links={folder}" for folder in folders),
            *(f"--index={url}" for url in self.indexes),
            *strategy,
        )

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


PUBLISHED = Sources()
"""Nothing but what is published."""


def this_interpreter(release: Release) -> Environment:
    """The interpreter that runs now, as a reader."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ}
    return Environment(release, Path(sys.executable), {**cell_variables(), **kept})


def cell_variables(placement: Placement | None = None) -> dict[str, str]:
    """The variables of a cold cell: nothing that would set jax, XLA or Python differently from a plain process.

    A cloud tells its TPUs by variables: a cell that runs there keeps them.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    # Thread pools of numpy's BLAS would be lost in a fork.
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    plain = {**inherited, **threads, "JAX_PLATFORMS": "cpu"}
    if placement is None:
        return plain
    told = {name: value for name, value in os.environ.items() if name.startswith("TPU_")}
    kept = told if (placement.platform, placement.mode) == ("tpu", Mode.RUN) else {}
    return {**plain, **kept, **placement.variables()}


def requirements(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> tuple[str, ...]:
    """The pip requirements of a reader: exact jax and jaxlib, and what the calendar says they need."""
    wheel = sources.file_of(release)
    return (
        f"jax=={release.jax}",
        f"jaxlib @ {wheel.path.as_uri()}" if wheel else f"jaxlib=={release.jaxlib}",
        "numpy",
        *calendar.extra_requirements(release.jaxlib),
    )


def build_environment(
    release: Release,
    calendar: Calendar,
    sources: Sources = PUBLISHED,
    stopping: threading.Event | None = None,
    placement: Placement | None = None,
    about_to: Callable[[tuple[str, ...], str], None] = lambda wanted, python: None,
    notify: Callable[[str], None] = lambda text: None,
) -> Environment:
    """The environment of a reader, built once and shared by all projects of this user; one that has lost a file is built anew.

    `placement` is the platform, when it is not a CPU; `about_to` is told requirements and interpreter before anything is fetched, `notify`
    of a long wait.
    Raises `EnvironmentFailed` with the builder's last lines when it cannot be built or does not import, in two tries, and when
    `stopping` is set meanwhile.
    """
    recipe = _recipe(release, calendar, sources, placement)
    built = build(
        *recipe,
        options=sources.options(),
        stopping=stopping,
        about_to=lambda: about_to(recipe[2], recipe[1]),
        notify=notify,
    )
    found = json.loads(built.checked)
    if found != [release.jax, release.jaxlib]:
        raise EnvironmentFailed(
            f"{built.folder}: expected jax {release.jax} and jaxlib {release.jaxlib}, found jax {found[0]} and jaxlib {found[1]}. "
            "Delete the folder; it will be built again."
        )
    return Environment(release, built.python, cell_variables(placement), built.lock, built.held)


def standing_environment(
    release: Release, calendar: Calendar, sources: Sources = PUBLISHED, placement: Placement | None = None
) -> Environment | None:
    """The environment of a reader if it stands already; nothing is built, started or waited for. None where it does not."""
    try:
        built = standing(folder_of(*_recipe(release, calendar, sources, placement)))
    except EnvironmentFailed:  # there is no such CPython: who builds it says so
        return None
    return Environment(release, built.python, cell_variables(placement), built.lock, built.held) if built else None


def _recipe(
    release: Release, calendar: Calendar, sources: Sources, placement: Placement | None
) -> tuple[str, str, tuple[str, ...], str, str]:
    wheel = sources.file_of(release)
    python = find_python(python_for((wheel.pythons if wheel else ()) or calendar.pythons(release.jaxlib)), uv_command())
    wanted = requirements(release, calendar, sources) + (placement.requirements() if placement else ())
    plugin = f"-{placement.name}" if placement and placement.name else ""
    return f"jaxlib-{release.jaxlib}{plugin}", python, wanted, _CHECK, sources.content(release)


def damage(environment: Environment) -> str:
    """What is not as it was installed, in words; empty where nothing is, and of an environment that was not built here."""
    return damage_in(environment.python.parent.parent) if environment.lock else ""


@functools.cache
def _sha256(path: Path, changed: int) -> str:
    """SHA-256 of a file, read again when its time of change is another one: a wheel has 100 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
