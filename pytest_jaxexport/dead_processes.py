"""A record on disk of the tests in which processes of pytest died: such a test can report in no other way.

Each process of pytest with marked tests has a file, which it locks for as long as it lives. A file without a lock names
the test in which its process died.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Container
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from export_core.base.cache_folder import cache_path


class Death(NamedTuple):
    """The death of a pytest process: the test that was running, when it had begun, and the version of jax."""

    test: str
    began: str
    jax: str


class RunningTest:
    """A file in which this process records the running test, so that a later run can name it if the process dies.

    If the file cannot be written, nothing is recorded, and no test fails because of that.
    """

    def __init__(self, root: Path) -> None:
        """Open and lock the file of this process; `root` is the root directory of the run."""
        from filelock import FileLock, Timeout  # here, since `deaths_in` mostly needs none

        self._root, self._jax = root, version("jax")
        self._path: Path | None = _folder() / os.urandom(12).hex()
        self._lock = FileLock(_lock_of(self._path))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self._file = self._path.open("wb", buffering=0)
        except (OSError, NotImplementedError, Timeout):  # of a disk that is full, or that cannot lock files
            self._path = None

    def begin(self, test: str) -> None:
        """Record that the test with this node id is running."""
        began = datetime.datetime.now().astimezone()
        self._write(f"{self._root}\n{began:%Y-%m-%d %H:%M}\n{self._jax}\n{test}")

    def end(self) -> None:
        """Record that no test is running."""
        self._write("")

    def close(self) -> None:
        """Remove the file, since this process ends normally."""
        if self._path is not None:
            self._file.close()
            self._lock.release()
            _remove(self._path)
            self._path = None

    def _write(self, text: str) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._file.seek(0)
                self._file.truncate()
                self._file.write(text.encode(errors="backslashreplace"))


def deaths_in(tests: Container[str], root: Path) -> list[Death]:
    """Return the recorded deaths of pytest processes in these tests, given by node ids, in this root directory.

    Returned deaths are forgotten. Deaths in other tests stay recorded for a run that has those tests.
    """
    folder = _folder()
    paths = sorted(path for path in folder.iterdir() if not path.suffix) if folder.is_dir() else []
    return [death for path in paths if (death := _take_death(path, tests, root))]


def line_about(death: Death) -> str:
    """Return a line for users about the death of a pytest process in a test."""
    return (
        f"{death.test} was running when its process of pytest died (begun {death.began}, jax {death.jax}): what it "
        "exports or calls may have ended it, or a signal from outside, such as a time limit's. With pytest-xdist "
        "(-n 1) the other tests run all the same."
    )


def _take_death(path: Path, tests: Container[str], root: Path) -> Death | None:
    """Return the death in a record file, and remove the file, if its process died in one of these tests; else None.

    A process that is still alive holds a lock on its file, which then stays. A dead one's record of no test is removed.
    """
    with contextlib.suppress(OSError, NotImplementedError):
        of_root, death = _read(path)
        if death.test and (of_root != str(root) or death.test not in tests):
            return None
        # Mostly there are no records, and filelock is not imported: 20 ms of each run that has marked tests.
        from filelock import FileLock, Timeout

        with contextlib.suppress(Timeout), FileLock(_lock_of(path), timeout=0):
            _, death = _read(path)  # again: its process may have gone on, or ended well
            _remove(path)
            return death if death.test else None
    return None


def _read(path: Path) -> tuple[str, Death]:
    """Return the contents of a record file: the root directory, and a death whose test is "" if no test was running."""
    parts = path.read_text(encoding="utf-8", errors="replace").split("\n", 3)
    root, began, jax, test = parts if len(parts) == 4 else ("", "", "", "")
    return root, Death(test, began, jax)


def _folder() -> Path:
    return Path(cache_path("running"))


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _remove(path: Path) -> None:
    for each in (path, _lock_of(path)):
        with contextlib.suppress(OSError):
            each.unlink()
