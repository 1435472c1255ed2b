"""The environment of a reader: jax, jaxlib, numpy and flatbuffers, and nothing of this project.

Also the StableHLO versions that a jaxlib reports in its own environment.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from export_core.base.json_text import decode_json
from export_core.base.processes import passed_variables
from export_core.base.text import plain_text, without_credentials
from export_core.policy import Policy
from export_core.readers.build import (
    Built,
    CPython,
    EnvironmentLocks,
    Recipe,
    build,
    environments_folder,
    find_built,
    interpreter_for,
    interpreter_here,
    uv_command,
)
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.installed import READY, changed_in, damage_in, hash_of_this_interpreter, other_plugins_in
from export_core.readers.placement import Mode, Placement, typical
from export_core.releases import Calendar, Release
from export_core.releases.calendar import StableHloVersions
from export_core.releases.jaxlib_settings import packages_of, variables_of
from export_core.releases.runtimes import runtime_of
from export_core.releases.wheels import Wheel

# Settings of the caller's jax, XLA, Python and pytest: each would make a writer behave unlike a user's process.
_SETTINGS = ("JAX_", "XLA_", "PYTHON", "PYTEST_", "TF_", "LIBTPU", "TPU_")
# Thread pools of numpy's BLAS would be lost in a fork.
CELL_VARIABLES = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "JAX_PLATFORMS": "cpu"
}
JAXLIB_WORKER = Path(__file__).parent / "worker" / "jaxlib_worker.py"
_CHECK = """
import importlib.util, json, jax, jaxlib.version, numpy, flatbuffers
importlib.import_module("jax.export" if importlib.util.find_spec("jax.export") else "jax.experimental.export")
print(json.dumps([jax.__version__, jaxlib.version.__version__]))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter in which a reader runs, and the environment variables with which it is started."""

    release: Release
    python: Path
    variables: Mapping[str, str]
    content_hash: str = ""  # A hash of everything installed that can decide an outcome; empty if not known.
    note: str = ""  # A note for outcomes, or empty.
    folder: Path | None = None  # Where it was built, and can be built again; None for the user's own interpreter.
    half: Path = (
        JAXLIB_WORKER  # The half that its worker runs, beside the program that all workers share: see program.py.
    )


def with_variables(environment: Environment, **variables: str) -> Environment:
    """Return the same environment with more environment variables for its processes, which needs its own worker."""
    return replace(environment, variables={**environment.variables, **variables})


@dataclass(frozen=True)
class Sources:
    """The sources of packages besides the usual index: wheels of jaxlib, folders of wheels, and other indexes."""

    files: tuple[Wheel, ...] = ()  # Wheels of jaxlib that are named as readers.
    held: tuple[Wheel, ...] = ()  # Wheels whose folders uv searches (`--find-links`).
    indexes: tuple[str, ...] = ()

    def file_of(self, release: Release) -> Wheel | None:
        """Return the wheel file that the user has named as this reader, or None."""
        return next((wheel for wheel in self.files if wheel.version == release.jaxlib), None)

    def options(self) -> tuple[str, ...]:
        """Return the options of ``uv pip install`` for these sources."""
        # Absolute: uv runs in another folder.
        links = dict.fromkeys(f"--find-links={wheel.path.parent.absolute()}" for wheel in self.held)
        # An index of nightlies has no releases, and uv looks for a package only in the first index that knows its name.
        strategy = ("--index-strategy=unsafe-first-match",) if self.indexes else ()
        return (*links, *(f"--index={url}" for url in self._indexes()), *strategy)

    def content(self, release: Release) -> str:
        """Return a text that identifies what these sources add to the versions that decide what is installed.

        It has the hashes of local wheels for this release and the URLs of indexes; "" if there are neither.
        """
        paths = {wheel.path for wheel in (self.file_of(release),) if wheel}
        for path in {path for wheel in self.held for path in wheel.path.parent.glob("*.whl")}:
            with contextlib.suppress(InvalidWheelFilename):  # uv ignores such a file
                name, version, *_ = parse_wheel_filename(path.name)
                # Of jax, jaxlib, of which some runtimes are made, and plugins those of this release; of others all.
                own = release.jax if name == "jax" else release.version
                if str(version) == own or not name.startswith("jax"):
                    paths.add(path)
        if not paths and not self.indexes:
            return ""
        hashes = sorted(_sha256(path, path.stat().st_mtime_ns) for path in paths)
        return json.dumps([hashes, [without_credentials(url) for url in self._indexes()]])

    def _indexes(self) -> list[str]:
        """Return the indexes, each as a URL or an absolute path, since ``./wheels`` depends on the working folder."""
        return [url if ":/" in url or not Path(url).exists() else str(Path(url).absolute()) for url in self.indexes]


PUBLISHED = Sources()  # The usual index only.


def this_interpreter(
    release: Release, added: Iterable[str] = (), started_with: Mapping[str, str] | None = None
) -> Environment:
    """Return the interpreter that runs now as the environment of a reader.

    Args:
        release: the release of the reader, which is installed here.
        added: names of environment variables that cells get in addition to the usual ones.
        started_with: the environment variables at the start of this process, since an import may change some, as jax's
            Pallas sets CUDA_ROOT; None uses the present ones.
    """
    environ = os.environ if started_with is None else started_with
    own = {name: environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in environ}
    variables = {**passed_variables(added, own=environ), **CELL_VARIABLES, **own}
    return Environment(release, Path(sys.executable), variables, hash_of_this_interpreter())


def cell_variables(placement: Placement | None = None, added: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment variables with which the process of a cell starts on this placement.

    A cell that runs on a TPU also gets the variables by which a cloud describes its TPUs. `added` are names of further
    variables of this process to pass on.
    """
    runs_on_tpu = placement is not None and (placement.platform, placement.mode) == ("tpu", Mode.RUN)
    inherited = passed_variables(added, ("TPU_",) if runs_on_tpu else ())
    return {**inherited, **CELL_VARIABLES, **(placement.variables() if placement else {})}


def writer_variables() -> dict[str, str]:
    """Return the environment variables with which a project's tests run in another release.

    They are the variables of this process, except for settings of jax, Python and pytest.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)} | CELL_VARIABLES


def pythons(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> tuple[str, ...]:
    """Return the versions of CPython for which a reader has wheels, such as ``3.12``."""
    if release.runtime:
        return runtime_of(release.runtime).release(release.version, calendar).python
    wheel = sources.file_of(release)
    return (wheel.pythons if wheel else ()) or calendar.pythons(release.jaxlib)


def requirements(release: Release, calendar: Calendar, sources: Sources = PUBLISHED) -> tuple[str, ...]:
    """Return the pip requirements of a reader: exact jax and jaxlib, and what the calendar adds.

    For another runtime, they are the runtime's requirements, numpy and ml_dtypes.
    """
    if release.runtime:
        runtime, version = runtime_of(release.runtime), release.version
        own = (requirement.format(version=version) for requirement in runtime.requirements)
        return (*own, *runtime.release(version, calendar).requires, "numpy", "ml_dtypes")
    wheel = sources.file_of(release)
    return (
        f"jax=={release.jax}",
        f"jaxlib @ {wheel.path.as_uri()}" if wheel else f"jaxlib=={release.jaxlib}",
        "numpy",
        *calendar.extra_requirements(release.jaxlib),
    )


_OTHER_PLUGINS = (
    "has {}, of another release than jaxlib: jax uses it all the same, plain programs compile, and each FFI call "
    "fails. Name the release of the jaxlib in `reader_packages`."
)


@dataclass(eq=False)
class ReaderEnvironments(EnvironmentLocks):
    """The environments of a run's readers, each built once and shared by all projects of this user.

    Each returned environment is locked, so that no other process removes it, until the ``with`` block ends, or without
    one until the process ends.
    """

    calendar: Calendar
    sources: Sources = PUBLISHED
    packages: Sequence[str] = ()  # Requirements that every reader gets beside jax.
    from_source: Sequence[str] = ()  # Names of packages that may be built from source; all others have to be wheels.
    variables: Sequence[str] = ()  # Names of environment variables that cells get beside the usual ones.
    for_workers: bool = False  # Whether a worker is started in each environment at once: then a build skips its check.
    stopping: threading.Event | None = None  # An event that, once set, ends a running build.
    notify: Callable[[str], None] = lambda text: None  # Reports downloads and long waits.
    ready: Callable[[Release], None] = lambda release: None  # Gets each reader with an environment, found or built.

    @classmethod
    def of(cls, policy: Policy, calendar: Calendar, sources: Sources = PUBLISHED, **more: Any) -> ReaderEnvironments:
        """Return the environments of readers with a policy's packages and variables. `more` sets the other fields."""
        packages, from_source = policy.reader_packages, policy.reader_packages_from_source
        return cls(calendar, sources, packages, from_source, policy.environment, **more)

    def build(self, placement: Placement) -> Environment:
        """Return the environment for a reader on its platform; build it if it is not on disk yet or is damaged.

        Several threads may call this. Raises `EnvironmentFailed` if the environment cannot be built or cannot import
        jax in two tries, or if the run is stopped meanwhile. The message ends with the builder's last lines.
        """
        release, interpreter = placement.reader, interpreter_for(self._pythons(placement), uv_command())
        recipe = self._recipe(placement, interpreter)
        announcement = f"building the environment of {placement.title}"
        # For a platform other than the CPU and for another runtime, often gigabytes.
        if (placement.name or release.runtime) and (download := typical(placement).download):
            announcement += f": about {download} MB to fetch, unless uv has it already"
        built = build(recipe, self, stopping=self.stopping, announcement=announcement, notify=self.notify)
        _check_versions(release, built)
        if not release.runtime and (others := other_plugins_in(built.folder, release.jaxlib)):
            self.notify(f"{placement.title} {_OTHER_PLUGINS.format(others)}")
        if interpreter.note:
            self.notify(f"{release.title} {interpreter.note}")
        self.ready(release)
        return self._environment(placement, built, interpreter)

    def find(self, placement: Placement) -> Environment | None:
        """Return the environment for a reader on its platform if it is on disk, else None.

        Nothing is built, downloaded or awaited.
        """
        interpreter = interpreter_here(self._pythons(placement))
        if interpreter and (built := find_built(self._recipe(placement, interpreter).folder, self)):
            return self._environment(placement, built, interpreter)
        return None

    def folder(self, placement: Placement) -> Path | None:
        """Return the folder where the environment for a reader on its platform is, or will be built.

        None if no CPython for it is on this machine, since the folder's name depends on the CPython. Nothing
        is downloaded.
        """
        interpreter = interpreter_here(self._pythons(placement))
        return self._recipe(placement, interpreter).folder if interpreter else None

    def _environment(self, placement: Placement, built: Built, interpreter: CPython) -> Environment:
        reader, variables, half = placement.reader, cell_variables(placement, self.variables), JAXLIB_WORKER
        if reader.runtime:
            runtime = runtime_of(reader.runtime)
            variables, half = {**variables, **runtime.variables_of(reader)}, runtime.half
        else:
            own = variables_of(reader)
            if {"XLA_FLAGS"} <= own.keys() & variables.keys():  # of the policy's `environment`, or of the placement
                own["XLA_FLAGS"] = f"{variables['XLA_FLAGS']} {own['XLA_FLAGS']}"
            variables |= own
        content = built.content_hash
        return Environment(reader, built.python, variables, content, interpreter.note, built.folder, half)

    def _pythons(self, placement: Placement) -> tuple[str, ...]:
        return pythons(placement.reader, self.calendar, self.sources)

    def _recipe(self, placement: Placement, interpreter: CPython) -> Recipe:
        release, sources = placement.reader, self.sources
        own = {} if release.runtime else packages_of(release)
        # A version among the settings replaces what the policy asks of that package for every reader.
        shared = [text for text in self.packages if not own or canonicalize_name(Requirement(text).name) not in own]
        return Recipe(
            f"{release.family or 'jaxlib'}-{release.version}{f'-{placement.name}' if placement.name else ''}",
            interpreter.python,
            (*requirements(release, self.calendar, sources), *placement.requirements()),
            runtime_of(release.runtime).check if release.runtime else _CHECK,
            sources.content(release),
            sources.options(),
            packages=() if release.runtime else (*shared, *own.values()),
            from_source=() if release.runtime else tuple(self.from_source),
            expected=json.dumps([release.jax, release.jaxlib]) if self.for_workers and not release.runtime else "",
        )


def _check_versions(release: Release, built: Built) -> None:
    """Raise `EnvironmentFailed` if the check of an environment has not printed the versions of its reader."""
    if release.runtime:
        expected, found = release.version, built.checked.strip().rpartition("\n")[2] or "nothing"
        hint = f" If this happens again, correct `check` of the runtime {release.family}: it has to print the version."
    else:
        expected, hint = _jax_and_jaxlib(release.jax, release.jaxlib), ""
        try:
            found = _jax_and_jaxlib(*decode_json(built.checked.encode(), tuple[str, str]))
        except msgspec.MsgspecError:
            found = "something else"
    if found != expected:
        raise EnvironmentFailed(f"{_other_versions(built.folder, expected, found)}{hint}")


def problem_of_imported(environment: Environment, imported: Any) -> str:
    """Return why a worker may not be used since it imported a wrong jax or jaxlib; "" if both are right.

    Metadata and the sizes of files do not show that an environment has the code of another release. The user's own
    interpreter has no expected versions, and other runtimes report none: for both, the answer is "".

    Args:
        environment: the environment of the worker.
        imported: what the worker reported, such as {"jax": "0.9.0", "jaxlib": "0.9.0"}; None or empty if nothing.
    """
    if environment.folder is None or not imported:
        return ""
    expected = _jax_and_jaxlib(environment.release.jax, environment.release.jaxlib)
    is_table = isinstance(imported, dict)
    found = _jax_and_jaxlib(imported.get("jax"), imported.get("jaxlib")) if is_table else f"{imported!r}"
    return "" if found == expected else _other_versions(environment.folder, expected, plain_text(found))


def _jax_and_jaxlib(jax: object, jaxlib: object) -> str:
    return f"jax {jax} and jaxlib {jaxlib}"


def _other_versions(folder: Path, expected: str, found: str) -> str:
    return f"{folder}: expected {expected}, found {found}. Delete the folder; it will be built again."


def give_up_damaged(environment: Environment) -> str:
    """Return what has changed in an environment since it was installed, in words; "" if nothing has.

    Every file is compared with its hash. A damaged environment is marked as not built, so that its next use builds it
    anew. The user's own interpreter is not examined: for it, "" is returned.
    """
    folder = environment.folder
    if folder is None:
        return ""
    broken = damage_in(folder)
    if folder.parent == environments_folder():
        broken = broken or changed_in(folder)
        if broken:
            (folder / READY).unlink(missing_ok=True)
    return broken


@functools.cache
def _sha256(path: Path, changed: int) -> str:
    """Return the SHA-256 of a file. It is cached for the same time of change `changed`, since a wheel has 100 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_SAYS_VERSIONS = """
import json
from jaxlib.mlir.dialects import stablehlo
weeks = stablehlo.StablehloCompatibilityRequirement
ask = stablehlo.get_version_from_compatibility_requirement
print(json.dumps([stablehlo.get_current_version(), ask(weeks.WEEK_4), ask(weeks.WEEK_12)]))
"""


def stablehlo_versions(calendar: Calendar, jaxlib: str, sources: Sources = PUBLISHED) -> StableHloVersions:
    """Return the StableHLO versions that a jaxlib reports: the current one, and those 4 and 12 weeks older.

    They are read in an environment with the jax of the same version number, or else the newest jax that works. Raises
    `EnvironmentFailed` if the environment cannot be built or reports no versions.
    """
    release = calendar.pair(jaxlib, jaxlib) if jaxlib in calendar.jax else calendar.release(jaxlib)
    with ReaderEnvironments(calendar, sources) as environments:
        environment = environments.build(Placement(release))
        # -I: in a checkout of jax, the folder jaxlib would be imported.
        command = [str(environment.python), "-I", "-c", _SAYS_VERSIONS]
        done = subprocess.run(command, env=dict(environment.variables), capture_output=True, text=True, check=False)
    if done.returncode:
        last, *_ = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise EnvironmentFailed(f"jaxlib {jaxlib} with jax {release.jax} reports no StableHLO versions: {last}")
    current, four_weeks, twelve_weeks = json.loads(done.stdout)
    return current, four_weeks, twelve_weeks
