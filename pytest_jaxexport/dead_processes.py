"""A record on disk of the tests in which processes of pytest died: such a test can report in no other way.

Each process of pytest with marked tests has a file, which it locks for as long as it lives. A file without a lock names
the test in which its process died.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from export_core.base.cache_folder import cache_path


class RunningTest:
    """A record, in a file of this process, of the test that runs: if the process dies, a later run reads which it was.

    If the file cannot be written, nothing is recorded, and no test fails for that.
    """

    def __init__(self, root: Path) -> None:
        """Open and lock the file of this process; `root` is the root directory of the run."""
        from filelock import FileLock, Timeout  # here, since `tests_of_dead_processes` mostly needs none

        self._root = root
        self._path: Path | None = _folder() / os.urandom(12).hex()
        self._lock = FileLock(_lock_of(self._path))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self._file = self._path.open("wb", buffering=0)
        except (OSError, NotImplementedError, Timeout):  # of a disk that is full, or that cannot lock files
            self._path = None

    def begin(self, test: str) -> None:
        """Record that a test runs, by its node id, before it exports anything."""
        self._write(f"{self._root}\n{test}")

    def end(self) -> None:
        """Record that no test runs."""
        self._write("")

    def close(self) -> None:
        """Remove the file: this process ends well."""
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


def tests_of_dead_processes(root: Path) -> list[str]:
    """Return the node ids of the tests in which a process of pytest died, in this root directory.

    Each is returned by one call only.
    """
    folder = _folder()
    # Mostly there are none, and filelock is not imported: 20 ms of each run that has marked tests.
    paths = sorted(path for path in folder.iterdir() if not path.suffix) if folder.is_dir() else []
    tests = []
    for path in paths:
        from filelock import FileLock, Timeout

        with (
            contextlib.suppress(OSError, NotImplementedError, Timeout),
            FileLock(_lock_of(path), timeout=0),
        ):
            of_root, _, test = path.read_text(encoding="utf-8", errors="replace").partition("\n")
            if not test or of_root == str(root):
                _remove(path)
                tests += [test] if test else []
    return tests


def line_about(test: str) -> str:
    """Return a line about a test in which a process of pytest died."""
    return (
        f"{test} was running when its process of pytest died: what it exports or calls may have ended it. With "
        "pytest-xdist (-n 1) the other tests run all the same."
    )


def _folder() -> Path:
    return Path(cache_path("running"))


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _remove(path: Path) -> None:
    for each in (path, _lock_of(path)):
        with contextlib.suppress(OSError):
            each.unlink()
