"""How is a virtual environment built, all or nothing, found again by its content, and is it still as it was built?"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import filelock
import platformdirs

from export_core.environments.errors import EnvironmentFailed, twice
from export_core.environments.locks import Hold, hold, size_of

LAST_LINES = 12
READY = "ready.json"
CHECK_SECONDS = 120.0
"""How long an environment may take to import what it was built for."""
LONG_WAIT_SECONDS = 30.0
"""After how long it is told that another process builds the environment."""
LOOK_SECONDS = 0.2
"""How often a build is asked whether it is still wanted."""
_ASKING_SYSCONFIG = threading.Lock()


def cache_folder() -> Path:
    """Where environments are kept: JAXEXPORT_CACHE, or the user's cache folder. Never inside a project."""
    chosen = os.environ.get("JAXEXPORT_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("jaxexport"))


def uv_command() -> str:
    """The uv that came with this package's dependencies."""
    from uv import find_uv_bin

    # It asks sysconfig, which in CPython 3.11 answers None while another thread is asking for the first time.
    with _ASKING_SYSCONFIG:
        return str(find_uv_bin())


@dataclass(frozen=True)
class Built:
    """A virtual environment on disk; `checked` is what its check printed, `lock` a hash of what is installed in it.

    While this object lives, nobody removes the folder.
    """

    folder: Path
    checked: str
    lock: str
    held: Hold | None = field(default=None, compare=False, repr=False)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return interpreter_in(self.folder)


def build(
    name: str,
    python: str,
    wanted: tuple[str, ...],
    check: str,
    salt: str = "",
    options: tuple[str, ...] = (),
    stopping: threading.Event | None = None,
    about_to: Callable[[], None] = lambda: None,
    notify: Callable[[str], None] = lambda text: None,
) -> Built:
    """A virtual environment that holds `wanted`, found by content or built, and verified by running `check` in it.

    `salt` stands for what decides the content beside the requirements; `options` are those of ``uv pip install``. One that is not as
    it was installed is built anew; `about_to` is called before anything is fetched; `notify` is told of a long
    wait for another process that builds the same. Raises `EnvironmentFailed` when that fails twice.
    """
    folder = folder_of(name, python, wanted, check, salt)
    stopping = stopping or threading.Event()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder, stopping, notify):
            if (found := standing(folder)) and not damage_in(folder):
                return found
            about_to()
            try:
                return _built(folder, python, wanted, check, options, stopping)
            except (EnvironmentFailed, OSError) as error:
                first = str(error)
                # Files of an environment are those of the installer's cache, by hard links: what is broken there is no help.
                again = ("--no-cache",) if isinstance(error, _Unusable) else ()
            if stopping.is_set():
                raise EnvironmentFailed(first)
            try:
                return _built(folder, python, wanted, check, (*options, *again), stopping)
            except (EnvironmentFailed, OSError) as error:
                raise EnvironmentFailed(twice(first, str(error))) from error
    except OSError as error:
        raise EnvironmentFailed(f"infrastructure: no environment can be built in {folder.parent}: {error}") from error


class _Unusable(EnvironmentFailed):
    """It was installed, and does not work."""


@contextlib.contextmanager
def _alone(folder: Path, stopping: threading.Event, notify: Callable[[str], None]) -> Iterator[None]:
    """Nobody else builds this environment meanwhile. Raises `EnvironmentFailed` when the run is stopped before that."""
    lock = filelock.FileLock(f"{folder}.lock")
    told_at: float | None = time.monotonic() + LONG_WAIT_SECONDS
    while True:
        try:
            lock.acquire(timeout=LOOK_SECONDS)
            break
        except filelock.Timeout:
            if stopping.is_set():
                raise EnvironmentFailed("the run was stopped while another process built the environment") from None
            if told_at and time.monotonic() > told_at:
                notify(f"waiting for another process that builds {folder}, and holds {folder}.lock")
                told_at = None
    try:
        yield
    finally:
        lock.release()


def _built(
    folder: Path,
    python: str,
    wanted: tuple[str, ...],
    check: str,
    options: tuple[str, ...],
    stopping: threading.Event,
) -> Built:
    """Build an environment from nothing, all or nothing."""
    # Half of one, left by a build that was killed, is not worth saving.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _install(folder, python, wanted, options, stopping)
        if broken := damage_in(folder):
            raise _Unusable(f"installing {', '.join(wanted)} left it broken: {broken}")
        try:
            importing = [str(interpreter_in(folder)), "-c", check]
            checked = _run(importing, f"importing {wanted[0]}", stopping, CHECK_SECONDS).strip()
        except EnvironmentFailed as error:
            raise _Unusable(str(error)) from error
        found = Built(folder, checked, installed(folder), hold(folder))
        ready = folder / READY
        beside = ready.with_suffix(".new")
        said = {"requirements": wanted, "checked": checked, "lock": found.lock, "size": size_of(folder)}
        beside.write_text(json.dumps(said))
        beside.replace(ready)
    except BaseException:  # on a full disk, what is left of it takes the room of others
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return found


def folder_of(name: str, python: str, wanted: tuple[str, ...], check: str, salt: str = "") -> Path:
    """Where the environment of a `build` lies, built or not."""
    key = hashlib.sha256(json.dumps([python, wanted, check, salt]).encode()).hexdigest()[:12]
    return cache_folder() / "environments" / f"{name}-{key}"


def standing(folder: Path) -> Built | None:
    """The environment in a folder, or None where its build has not ended well, or it is being removed."""
    try:
        if not (folder / READY).exists() or (held := hold(folder)) is None:
            return None
        said = json.loads((folder / READY).read_bytes())
        return Built(folder, said["checked"], said["lock"], held)
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
    for record in _records(folder):
        lines += [line for line in _recorded(record) if ".dist-info/" not in line]
        lines.append(record.parent.name)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _records(folder: Path) -> list[Path]:
    """The RECORD of each package, there or not."""
    patterns = ("[Ll]ib/python*/site-packages/*.dist-info", "Lib/site-packages/*.dist-info")
    return sorted({info / "RECORD" for pattern in patterns for info in folder.glob(pattern)})


def _recorded(record: Path) -> list[str]:
    """The lines of files that a package came with: path, hash, size."""
    lines = record.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if ",sha256=" in line and not line.startswith("..")]


def damage_in(folder: Path) -> str:
    """Which file of an environment is gone or has another size than its package says. Contents are not read: 350 MB."""
    python, ready = interpreter_in(folder), folder / READY
    if not python.exists():
        return f"{python}: no such interpreter"
    try:
        for path, size in _files(folder, ready.stat().st_mtime_ns if ready.exists() else 0):
            if (found := os.stat(path).st_size) != size:  # noqa: PTH116 - thousands of files, and pathlib is slow
                return f"{path}: expected {size} bytes, as its package says, found {found}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=64)
def _files(folder: Path, built: int) -> tuple[tuple[str, int], ...]:
    """Every file of the packages of an environment, and its bytes, as its RECORD says since it was built."""
    files = []
    for record in _records(folder):
        for line in _recorded(record):
            name, _, size = line.rsplit(",", 2)
            path = name.strip('"')
            files.append((f"{record.parent.parent}/{path}", int(size)))
    return tuple(files)


def _install(
    folder: Path, python: str, wanted: tuple[str, ...], options: tuple[str, ...], stopping: threading.Event
) -> None:
    uv = uv_command()
    _run([uv, "venv", "--quiet", "--python", python, str(folder)], "creating the environment", stopping)
    command = [uv, "pip", "install", "--quiet", "--python", str(interpreter_in(folder)), *options, *wanted]
    _run(command, f"installing {', '.join(wanted)}", stopping)


def _run(command: list[str], doing: str, stopping: threading.Event, seconds: float = math.inf) -> str:
    """What a command printed. Raises `EnvironmentFailed` where it fails, and ends it when the run is stopped or its time is up.

    What fetches has no limit, since nobody knows how slow a network is; uv itself gives up where nothing comes.
    """
    until = time.monotonic() + seconds
    late = False
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_builder_variables(),
        start_new_session=True,  # Ctrl-C is for who started it, which then ends it
    ) as process:
        while True:
            try:
                out, err = process.communicate(timeout=LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                late = time.monotonic() > until
                if late or stopping.is_set():
                    process.kill()
    if stopping.is_set():
        raise EnvironmentFailed(f"{doing}: the run was stopped")
    if late:
        raise EnvironmentFailed(f"{doing} took longer than {seconds:g} s, and was ended")
    if process.returncode:
        lines = "\n".join((err or out).strip().splitlines()[-LAST_LINES:])
        raise EnvironmentFailed(f"{doing} failed with status {process.returncode}:\n{lines}")
    return out


def _builder_variables() -> dict[str, str]:
    # An activated environment, or variables of the caller's jax, must not leak into another release's.
    # The check compiles what it imports, so that no worker has to.
    dropped = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE")
    return {
        name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("JAX_")
    } | {"JAX_PLATFORMS": "cpu"}
