"""Locks on environments: shared while runs use one, exclusive while it is removed; and the day of the last use.

Both are `flock`s on a file in the environment: the system releases them when a process ends, however it ends.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: a file that is open there cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_FILE = "in-use.lock"


class EnvironmentLocks:
    """The shared locks on the environments that a run uses, released at the end of its ``with``.

    Several threads may build environments and share these. Outside of a ``with`` the locks last as long as the process.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> EnvironmentLocks:
        return self

    def __exit__(self, *_: object) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def take(self, folder: Path) -> bool:
        """Lock an environment for use, and note the day. False when it is being removed just now."""
        try:
            descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # a cache on a disk that cannot be written: nobody removes anything there
            return True
        try:
            if fcntl:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.utime(folder / _FILE)
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
    """Keep everybody else out of an environment; False when somebody uses it.

    `create`: lock also an environment that nobody has used yet.
    """
    try:
        descriptor = os.open(folder / _FILE, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
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


def last_used(folder: Path) -> datetime.date:
    """The day of the last use, or of the build if nobody has used it."""
    newest = 0.0
    for path in (folder / _FILE, folder):
        try:
            newest = path.stat().st_mtime
            break
        except OSError:
            continue
    return datetime.datetime.fromtimestamp(newest, datetime.UTC).date()
