"""Virtual environments: built all or nothing, found again by their recipe, locked while they are used.

Also the CPython of an environment: which version it has, and where it is on this machine.

Locks are shared while runs use an environment, exclusive while it is removed: `flock`s on a file in it, which the
system releases when a process ends, however it ends. The time of that file is the day of the last use.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import filelock
import msgspec
from packaging.version import InvalidVersion, Version

from export_core.base.atomic import write_whole
from export_core.base.cache_folder import cache_path
from export_core.base.processes import kill_group, passed_variables
from export_core.base.text import without_credentials
from export_core.readers.errors import EnvironmentFailed, tried_twice
from export_core.readers.installed import (
    READY,
    HashedFiles,
    Ready,
    changed_in,
    damage_in,
    hash_of_installed,
    interpreter_in,
    other_release_in,
    read_ready,
)
from export_core.readers.uv_settings import CommandPlace, index_settings, project_place, shared_place, with_advice

try:
    import fcntl
except ImportError:  # Windows: a file that is open there cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

LAST_LINES = 12
_FRAME = " \t×│├╰─▶"  # What uv puts before the lines of an error.
_NO_SOLUTION = "No solution found when resolving"  # In the first line of uv's error about packages it cannot find.
_UNSATISFIABLE = ", we can conclude that your requirements are unsatisfiable."
_LOCK = "in-use.lock"
CHECK_SECONDS = 120.0  # How long an environment may take to import what it was built for.
LONG_WAIT_SECONDS = 30.0  # After how long a wait for another process that builds the environment is reported.
LOOK_SECONDS = 0.2  # How often a build checks whether it is still wanted.
_SYSCONFIG_LOCK = threading.Lock()


def cache_folder() -> Path:
    """Return the folder of environments and everything else that is cached.

    It is JAXEXPORT_CACHE if that variable is set, else a folder in the user's cache folder.
    """
    return Path(cache_path())


def environments_folder() -> Path:
    """Return the folder that has one subfolder for each environment."""
    return cache_folder() / "environments"


def uv_command() -> str:
    """Return the path of the uv that is installed with this package.

    Raises `EnvironmentFailed` if there is none.
    """
    # It asks sysconfig, which in CPython 3.11 answers None while another thread is asking for the first time.
    with _SYSCONFIG_LOCK:
        try:
            from uv import find_uv_bin

            return str(find_uv_bin())
        except (ImportError, FileNotFoundError):
            raise EnvironmentFailed(
                f"expected the command uv, which pytest-jaxexport requires, in the environment of {sys.executable}; "
                "found none. Install it there again, such as with `pip install uv`."
            ) from None


@dataclass(frozen=True)
class Recipe:
    """A virtual environment to build: its interpreter, its requirements and its check."""

    name: str  # The beginning of its folder's name.
    python: str  # The path or the version of its CPython.
    requirements: tuple[str, ...]
    check: str  # Python code that must run in it without an error.
    salt: str = ""  # Text that changes with all else that decides the content, such as the bytes of wheels.
    options: tuple[str, ...] = ()  # Options of `uv pip install` that do not decide the content.
    constraints: tuple[str, ...] = ()  # The versions to which packages are held, whichever package requires them.
    packages: tuple[str, ...] = ()  # Requirements that a policy adds.
    from_source: tuple[str, ...] = ()  # Packages that are built from source; all others have to be wheels.
    expected: str = ""
    """What the check would print, if it is skipped: a worker that is started at once checks the versions that it
    imports. Empty if the check runs."""
    project: str = ""
    """The folder of a project whose own configuration of uv decides what is installed. Its packages may be built from
    source, and no other project uses the environment. Empty for an environment that projects share."""

    @property
    def folder(self) -> Path:
        """The folder of this environment, built or not.

        Raises `EnvironmentFailed` if the user's configuration of uv cannot be read.
        """
        # The order must stay: the hash of these parts finds environments that are on disk.
        parts = [self.python, self.requirements, self.check, self.salt]
        added: list[object] = [self.constraints, self.packages] if self.constraints or self.packages else []
        if (settings := index_settings()) or self.from_source or self.project:
            added = [self.constraints, self.packages, self.from_source, self.project, settings]
        content = json.dumps([*parts, *added])
        return environments_folder() / f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Built:
    """A virtual environment on disk, with what its check printed and a hash of all that is installed in it."""

    folder: Path
    checked: str
    content_hash: str

    @property
    def python(self) -> Path:
        """The path of the environment's Python interpreter."""
        return interpreter_in(self.folder)


def build(
    recipe: Recipe,
    locks: EnvironmentLocks,
    *,
    stopping: threading.Event | None = None,
    announcement: str = "",
    notify: Callable[[str], None] = lambda text: None,
) -> Built:
    """Return the environment of a recipe, locked for use; build it if it is not on disk yet or is damaged.

    A build runs the check of the recipe, unless `expected` is set. Raises `EnvironmentFailed` if building fails twice.

    Args:
        recipe: what to build.
        locks: takes the lock on the environment.
        stopping: ends the build when it is set.
        announcement: the text to report before a build begins; "" for no report.
        notify: reports a text: the announcement, or that another process is building the same environment.
    """
    folder = recipe.folder
    stopping = stopping or threading.Event()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder, stopping, notify):
            built = find_built(folder, locks)
            if built and not (damage_in(folder) or other_release_in(folder, recipe.requirements)):
                return built
            if announcement:
                notify(announcement)
            return _build_in_two_tries(recipe, locks, stopping)
    except OSError as error:
        raise EnvironmentFailed(
            f"infrastructure: the cache cannot be written, where environments are locked for use: {folder.parent}: "
            f"{error.strerror or error}. Set JAXEXPORT_CACHE to a folder that can be written."
        ) from error


def find_built(folder: Path, locks: EnvironmentLocks) -> Built | None:
    """Return the environment in a folder, locked for use; None if it is incomplete or is being removed."""
    try:
        if not (folder / READY).exists() or not locks.take(folder):
            return None
    except OSError:
        return None
    ready = read_ready(folder)
    return Built(folder, ready.checked, ready.lock) if ready else None


class _Unusable(EnvironmentFailed):
    """An error for an environment that was installed but does not work."""


@contextlib.contextmanager
def _only_builder(folder: Path, stopping: threading.Event, notify: Callable[[str], None]) -> Iterator[None]:
    """Keep other processes from building an environment during the block; first wait for one that is building it.

    Raises `EnvironmentFailed` if the run is stopped during the wait. `notify` reports a long wait.
    """
    lock = filelock.FileLock(f"{folder}.lock")
    report_at = time.monotonic() + LONG_WAIT_SECONDS
    while not lock.is_locked:
        try:
            lock.acquire(timeout=LOOK_SECONDS)
        except filelock.Timeout:
            if stopping.is_set():
                raise EnvironmentFailed("the run was stopped while another process built the environment") from None
            if time.monotonic() > report_at:
                notify(f"waiting for another process that builds {folder}, and holds {folder}.lock")
                report_at = math.inf
    try:
        yield
    finally:
        lock.release()


def _build_in_two_tries(recipe: Recipe, locks: EnvironmentLocks, stopping: threading.Event) -> Built:
    # Where something is left of an environment, it may be damaged, and every file is read anew.
    is_new = not recipe.folder.exists()
    hashed = locks.hashed if is_new else HashedFiles()
    try:
        return _build_whole(recipe, locks, stopping, lambda folder: changed_in(folder, hashed, is_new=is_new))
    except (EnvironmentFailed, OSError) as error:
        first = str(error)
        # An environment's files are hard links into the installer's cache: what is damaged there stays so.
        again = ("--no-cache",) if isinstance(error, _Unusable) else ()
    if stopping.is_set():
        raise EnvironmentFailed(first)
    try:
        # By size only: a file that differs from RECORD right after its download is a mistake of its package.
        return _build_whole(replace(recipe, options=(*recipe.options, *again)), locks, stopping, look_for=damage_in)
    except (EnvironmentFailed, OSError) as error:
        raise EnvironmentFailed(tried_twice(first, str(error))) from error


def _build_whole(
    recipe: Recipe, locks: EnvironmentLocks, stopping: threading.Event, look_for: Callable[[Path], str]
) -> Built:
    """Build an environment in an emptied folder, which is removed if anything fails.

    `look_for` returns the damage in what was installed; "" if there is none.
    """
    folder, requirements = recipe.folder, recipe.requirements + recipe.packages
    # A build that was killed may have left half of one.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # First of all: this file says that the folder is one of ours, also where the build is killed.
        locks.take(folder)
        _install(recipe, stopping)
        with ThreadPoolExecutor(1) as beside:  # it reads every file, in a fifth of the time that the import takes
            looked = beside.submit(look_for, folder)
            checked, problem = (recipe.expected, "") if recipe.expected else _check(recipe, stopping)
        if damage := looked.result():
            problem = f"installing {', '.join(requirements)} left it broken: {damage}"
        if problem:
            raise _Unusable(problem)
        built = Built(folder, checked, hash_of_installed(folder))
        # Last of all: this file says that the environment is complete.
        shown = tuple(without_credentials(requirement) for requirement in requirements)
        ready = Ready(checked, built.content_hash, shown, size_of(folder), tuple(recipe.packages))
        write_whole(folder / READY, [msgspec.json.encode(ready)])
    except BaseException:  # on a full disk, what is left of it takes the room of others
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return built


def _check(recipe: Recipe, stopping: threading.Event) -> tuple[str, str]:
    """Run the check of an environment; return what it printed, and why it failed ("" if it passed)."""
    with shared_place() as neutral:
        # The packages' own code runs here. Without PYTHONDONTWRITEBYTECODE what it imports is compiled, so that no
        # worker has to. -I, and an empty folder: nothing of the working folder takes the place of a package.
        place = CommandPlace(neutral.folder, passed_variables() | {"JAX_PLATFORMS": "cpu"})
        command = [str(interpreter_in(recipe.folder)), "-I", "-c", recipe.check]
        doing = f"importing {(recipe.requirements + recipe.packages)[0]}"
        try:
            return _run(command, doing, stopping, place, CHECK_SECONDS).strip(), ""
        except EnvironmentFailed as error:
            return "", str(error)


def _install(recipe: Recipe, stopping: threading.Event) -> None:
    uv, folder, requirements = uv_command(), recipe.folder, recipe.requirements + recipe.packages
    with project_place(recipe.project) if recipe.project else shared_place() as place:
        # --allow-existing: the folder has its lock. --no-project: no project says which Python it needs.
        venv = [uv, "venv", "--quiet", "--allow-existing", "--no-project", "--python", recipe.python, str(folder)]
        _run(venv, "creating the environment", stopping, place)
        command = [uv, "pip", "install", "--quiet", "--python", str(interpreter_in(folder)), *recipe.options]
        if not recipe.project:  # building a package runs its code, with the passwords of indexes
            command += ["--only-binary=:all:", *(f"--no-binary={name}" for name in recipe.from_source)]
        if recipe.constraints:
            (folder / "constraints.txt").write_text("\n".join(recipe.constraints))
            command += ["--constraints", str(folder / "constraints.txt")]
        try:
            _run([*command, *requirements], "installing", stopping, place)
        except EnvironmentFailed as error:
            # Not before the reason, of which a line of the terminal shows the beginning.
            text = f"{error}\nIt was to install {', '.join(requirements)}."
            # uv: "Building source distributions is disabled", "building from source is disabled for all packages".
            if not recipe.project and re.search(r"(?i)building .*source.* is disabled", text):
                text += (
                    "\nOnly wheels are installed for readers. `reader_packages_from_source` in the policy names "
                    "exceptions."
                )
            raise EnvironmentFailed(text) from error


def _run(
    command: list[str], doing: str, stopping: threading.Event, place: CommandPlace, seconds: float = math.inf
) -> str:
    """Run a command, and return what it printed. `doing` says in messages what the command does.

    The command is killed when the run is stopped, or after `seconds`. Commands that download have no limit, since
    networks may be slow, and uv itself gives up when no data arrive. Raises `EnvironmentFailed` if the command fails
    or is killed.
    """
    until = time.monotonic() + seconds
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=place.folder,
        env=place.variables,
        start_new_session=True,  # Ctrl-C is for the coordinator, which then ends it
    ) as process:
        try:
            out, err = _printed(process, until, stopping)
        except BaseException:  # Ctrl-C, in the main thread: without this, it would go on in its own session
            kill_group(process)
            raise
    if stopping.is_set():
        raise EnvironmentFailed(f"{doing}: the run was stopped")
    if process.returncode and time.monotonic() > until:
        raise EnvironmentFailed(f"{doing} took longer than {seconds:g} s, and was stopped")
    if process.returncode:
        raise EnvironmentFailed(f"{doing} failed with status {process.returncode}: {with_advice(_reason(err or out))}")
    return out


def _reason(output: str) -> str:
    """Return why a command failed, extracted from its output.

    The reason is in the first line, since some reports show only that line.
    """
    printed = without_credentials(output).strip().splitlines()
    # What uv says of requirements that exclude each other may be long, and is no reason without its beginning.
    unsolved = [number for number, line in enumerate(printed) if _NO_SOLUTION in line]
    if unsolved:
        return _why_unsolved(" ".join(filter(None, (line.strip(_FRAME) for line in printed[unsolved[-1] :]))))
    lines = printed[-LAST_LINES:]
    if "Traceback (most recent call last)" in output:
        return "\n".join([lines[-1], *lines])
    # uv breaks its sentences at 80 columns, and draws a frame beside them.
    text = " ".join(filter(None, (line.strip(_FRAME) for line in lines))).removeprefix("error: ")
    # What to do follows from the hint alone.
    before, _, hint = text.partition("hint: ")
    # The error of a build backend, such as setuptools, is above the advice that follows it.
    above = [line.strip() for line in printed[:-LAST_LINES]]
    causes = [line.removeprefix("error: ") for line in above if line.startswith("error: ")]
    return " ".join(filter(None, (*causes[-1:], hint, before.strip())))


def _why_unsolved(text: str) -> str:
    """Return why uv found no set of packages that fit together: first what is missing, then uv's hint.

    `text` is uv's explanation on one line. If a single requirement cannot be met, the closing words that every such
    error has are left out.
    """
    _, because, sentences = text.partition("Because ")
    sentences, _, hint = sentences.partition("hint: ")
    sentences = sentences.strip()
    if not because:
        return text
    if sentences.endswith(_UNSATISFIABLE) and "because " not in sentences.lower():
        return f"{sentences.removesuffix(_UNSATISFIABLE)}. {hint}".strip()
    return f"{because}{sentences} {hint}".strip()


def _printed(process: subprocess.Popen[str], until: float, stopping: threading.Event) -> tuple[str, str]:
    """Return what a process printed on stdout and on stderr; two empty texts if it was killed.

    The process is killed when `stopping` is set, or at the time `until` of the monotonic clock.
    """
    while True:
        try:
            return process.communicate(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > until or stopping.is_set():
                kill_group(process)
                # Its child processes may have left the group and hold the pipes open, so their end is not awaited.
                if process.poll() is not None:
                    return "", ""


def size_of(folder: Path) -> int:
    """Return the sum of the sizes of all files below a folder, in bytes."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # it is being removed meanwhile
                total += os.lstat(f"{parent}/{name}").st_size
    return total


@dataclass(eq=False)
class EnvironmentLocks:
    """The locks on the environments that a run uses, shared by the threads of the run.

    They are held until the ``with`` block ends, or without one until the process ends.
    """

    _descriptors: list[int] = field(default_factory=list, init=False, repr=False)
    hashed: HashedFiles = field(default_factory=HashedFiles, init=False, repr=False)
    """The hashes of files in environments that this run has built."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def take(self, folder: Path) -> bool:
        """Lock an environment for use, and record today as the day of its last use.

        Returns False if the environment is being removed at the moment.
        """
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # a cache on a disk that cannot be written: nobody removes anything there
            return True
        try:
            if fcntl:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.utime(folder / _LOCK)
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return False
        except OSError:  # a disk without locks, or a file of another user: the environment can be used all the same
            pass
        # Also if this run has locked the folder before: an environment that was built anew has a new file to lock.
        self._descriptors.append(descriptor)
        return True


@contextmanager
def exclusive_lock(folder: Path, *, create: bool = False) -> Iterator[bool]:
    """Lock an environment, so that no other process can use it; yield False if it is in use or cannot be locked.

    If the lock file is missing, it is made with `create`. Without `create`, nothing is locked, and True is yielded.
    """
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
    except OSError as error:
        yield isinstance(error, FileNotFoundError) and not create
        return
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def is_ours(folder: Path) -> bool:
    """Return whether a folder was made by `build`, even if incomplete: a real folder that contains our lock file."""
    return folder.is_dir() and not folder.is_symlink() and (folder / _LOCK).is_file()


def last_used(folder: Path) -> datetime.date:
    """Return the day on which an environment was last used; the day of its build if it has not been used yet."""
    path = folder / _LOCK if (folder / _LOCK).exists() else folder
    try:
        seconds = path.stat().st_mtime
    except OSError:  # it is being removed
        seconds = 0.0
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()


# --- the CPython of an environment ------------------------------------------------------------------------------------

PREFERRED = "3.12"  # Runs every jaxlib from 0.4.18 to the newest.

INSTALL_SECONDS = 600.0


def python_for(pythons: tuple[str, ...]) -> str:
    """Return which of the CPython versions `pythons` to prefer: 3.12 if it is among them, else the newest."""
    return PREFERRED if PREFERRED in pythons else max(pythons, key=Version)


@dataclass(frozen=True)
class CPython:
    """A CPython to build an environment with: its path, or its version if uv manages it.

    `note` says why it is not the preferred version; it is "" for the preferred version.
    """

    python: str
    note: str = ""


def interpreter_here(pythons: tuple[str, ...]) -> CPython | None:
    """Return a CPython on this machine for a release with wheels for `pythons`; None if there is none.

    The version that `python_for` prefers is chosen if it is here, else the newest one that is here.
    """
    preferred = python_for(pythons)
    for version in (preferred, *sorted({*pythons} - {preferred}, key=Version, reverse=True)):
        if path := _installed(version):
            note = f"runs on CPython {version}, since CPython {preferred} was not found here"
            return CPython(path, "" if version == preferred else note)
    return None


def interpreter_for(pythons: tuple[str, ...], uv: str) -> CPython:
    """Return a CPython for a release with wheels for `pythons`, downloaded if the preferred version is not here.

    The newest version that is here replaces one that cannot be downloaded. Raises `EnvironmentFailed` if there is none.
    """
    here = interpreter_here(pythons)
    if here and not here.note:
        return here
    try:
        return CPython(find_python(python_for(pythons), uv))
    except EnvironmentFailed as error:
        if here:
            return here
        raise EnvironmentFailed(
            f"{error} The release has wheels for CPython {', '.join(pythons)}, of which none is installed here."
        ) from error


def find_python(version: str, uv: str) -> str:
    """Return the path of a CPython of this `version` (``3.12``), or the version itself if only uv knows where it is.

    The running interpreter, PATH, pyenv's versions and uv's versions are searched, in this order. uv is asked last
    because it stops at the first pyenv shim of a version that is not activated. Raises `EnvironmentFailed` if uv
    cannot download the version.
    """
    if path := _installed(version):
        return path
    if problem := _why_not_downloaded(version, uv):
        raise EnvironmentFailed(
            f"CPython {version} is needed and was not found: not on PATH, not among pyenv's versions, and uv could not "
            f"download it ({problem}). Install it, or put python{version} on PATH."
        )
    # By its path, if it is where uv usually puts it: the next run finds it there, and must find its environments too.
    return _installed(version) or version  # uv finds its own by the version


def _installed(version: str) -> str:
    """Return the path of a CPython of this `version` on this machine; "" if there is none."""
    return next((str(path) for path in _candidates(version) if _version_of(path) == version), "")


@functools.cache
def _why_not_downloaded(version: str, uv: str) -> str:
    """Have uv download a CPython; return why that failed, or "" if it succeeded. Each version is tried once."""
    try:
        with shared_place() as place:
            installing = subprocess.run(
                [uv, "python", "install", version],
                cwd=place.folder,
                env=place.variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=INSTALL_SECONDS,
            )
    except subprocess.TimeoutExpired:
        return f"not within {INSTALL_SECONDS:g} s"
    lines = [line.strip() for line in installing.stderr.splitlines() if line.strip()] or ["it gave no reason"]
    return with_advice(lines[-1]) if installing.returncode else ""


def _candidates(version: str) -> Iterator[Path]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield Path(getattr(sys, "_base_executable", sys.executable))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / f"python{version}"
        if path.is_absolute() and path.is_file():  # a relative one would be another in each working folder
            yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").absolute()
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    of_uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python").absolute()
    yield from sorted(of_uv.glob(f"cpython-{version}.*/bin/python{version}"), reverse=True)


@functools.cache  # readers of one run prefer the same few
def _version_of(python: Path) -> str | None:
    """Return the version that an interpreter reports, such as ``3.12``; None if it does not start.

    A shim of pyenv does not start if its version is not activated.
    """
    try:
        # In the root folder: a shim of pyenv looks for `.python-version` in the working folder.
        asking = [str(python), "-I", "--version"]
        printed = subprocess.run(asking, cwd=os.sep, capture_output=True, text=True, timeout=30, check=True).stdout
        version = Version(printed.split()[1].rstrip("+"))  # a build between releases calls itself 3.13.0+
    except (OSError, subprocess.SubprocessError, IndexError, InvalidVersion):
        return None
    return f"{version.major}.{version.minor}"
