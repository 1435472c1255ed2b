"""Temporary folders of a run: each is locked by its owner, so that the next run can remove those of a killed one."""

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from export_core.base.errors import InfrastructureFault

try:
    import fcntl
except ImportError:  # Windows: what a killed run leaves there stays
    fcntl = None  # type: ignore[assignment]

_PREFIX = "jaxexport-"
_LOCK = "owner.lock"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder, which the end of the ``with`` removes, or a later run if this run is killed.

    Raises `InfrastructureFault` if the folder cannot be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(os.close, _lock(folder))
        except OSError as error:
            raise InfrastructureFault(f"infrastructure: cannot make a temporary folder: {error}") from error
        yield folder


def _lock(folder: Path) -> int:
    """Lock a folder until the returned file descriptor is closed or the process ends."""
    # Not the process id in a name: ids are used again, and containers that share a folder do not share them.
    descriptor = os.open(folder / "new.lock", os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl:
        with contextlib.suppress(OSError):  # a disk without locks: nobody can clean it either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    (folder / "new.lock").rename(folder / _LOCK)  # by this name it is locked already
    return descriptor


def remove_abandoned() -> None:
    """Remove the temporary folders that killed runs of this user left. Only the first call in a process does this."""
    if fcntl:
        _remove_abandoned_in(tempfile.gettempdir())


@functools.cache
def _remove_abandoned_in(parent: str) -> None:
    for name in [path.name for path in Path(parent).glob(f"{_PREFIX}*")]:
        # Anybody can make a folder or a link of this name beside ours. No link is followed, here and by rmtree.
        with contextlib.suppress(OSError), _opened(f"{parent}/{name}", os.O_DIRECTORY) as folder:
            if os.fstat(folder).st_uid != os.getuid():
                continue
            # A folder without a lock is just being made, or is not a run's.
            with _opened(_LOCK, os.O_RDWR, folder) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: its owner lives
                shutil.rmtree(f"{parent}/{name}", ignore_errors=True)


@contextlib.contextmanager
def _opened(path: str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
