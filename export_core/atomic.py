"""Files written all or nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file all or nothing.

    In parts, since all results of a large run would fill the memory. Raises `OSError`.
    """
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
