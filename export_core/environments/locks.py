"""Who uses an environment just now, when was it last used, how large is it?

Who uses one has a shared lock on a file in it, which goes when the process does.
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


class Hold:
    """A process uses an environment until this is closed, or goes away."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Let it go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def hold(folder: Path) -> Hold | None:
    """Use an environment, and note the day. None where it is being removed just now."""
    try:
        descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a cache on a disk that cannot be written: nobody removes anything there
        return Hold(-1)
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.utime(folder / _FILE)
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        return None
    except OSError:  # a disk without locks, or a file of somebody else's: what is there can be used all the same
        pass
    return Hold(descriptor)


@contextmanager
def taken_alone(folder: Path, *, create: bool = False) -> Iterator[bool]:
    """Keep everybody else out of an environment; False where somebody uses it. `create`: also one that nobody has used yet."""
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
    """The day of the last use, or that of the build where nobody noted one."""
    newest = 0.0
    for path in (folder / _FILE, folder):
        try:
            newest = path.stat().st_mtime
            break
        except OSError:
            continue
    return datetime.datetime.fromtimestamp(newest, datetime.UTC).date()


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:  # it is going away while it is looked at
            continue
    return total
