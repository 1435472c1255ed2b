"""Files and folders that are replaced all or nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file all or nothing.

    In parts, since all results of a large run would fill the memory. What is no file, such as ``/dev/null`` or a pipe,
    takes what is written and is never replaced. Raises `OSError`.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(parts)
        return
    # In the same folder: only inside one file system is replacing a file atomic.
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    # Also for Ctrl-C, which would leave the half-written file behind.
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def exchange_folders(first: Path, second: Path) -> bool:
    """Exchange two folders by renameat2(2), in Linux since 3.15. False where the system or the file system lacks it."""
    at_working_folder, rename_exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of linux/fcntl.h and linux/fs.h
    # os has no such call, and a folder cannot be replaced by os.replace.
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    result: int = renameat2(
        at_working_folder, os.fsencode(first), at_working_folder, os.fsencode(second), rename_exchange
    )
    return result == 0
