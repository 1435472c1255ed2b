"""Folders written and replaced all or nothing: in a hidden folder beside the place, then swapped in by one rename."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from export_core.base.atomic import exchange_folders, write_whole

# Hidden folders in a case's folder, by the step at which a killed process leaves them. The first and the last end in
# -PID-RANDOM, so that another process can tell whether their owner is still alive; the second is found again by its
# golden's name.
STAGED, SWAPPED_OUT, REMOVED = ".new-", ".old-", ".gone-"


def hidden_name(prefix: str, folder: Path) -> Path:
    """A hidden name beside a golden's folder that no other process or thread takes."""
    # The process id is for `is_abandoned`, the random part for threads and for ids that are used again.
    return folder.with_name(f"{prefix}{folder.name}-{os.getpid()}-{secrets.token_hex(4)}")


def put_folder(target: Path, content: Mapping[str, bytes]) -> None:
    """Write a folder with these files, or replace the one that is there, all or nothing. Raises `OSError`."""
    _clear_abandoned(target)
    staged = hidden_name(STAGED, target)  # beside its place, since a rename works within one file system only
    try:
        staged.mkdir(parents=True)
        for name, data in content.items():
            write_whole(staged / name, [data])
        sync_folder(staged)  # files and names are on disk before the rename that makes them a golden
        if target.exists():  # a rename onto a folder that is not empty fails, so the two have to change places
            _swap(staged, target)
        else:
            staged.rename(target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # after a swap, this is the old golden


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last: without it a power failure may undo them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear_abandoned(target: Path) -> None:
    """Remove what a killed process staged for this golden."""
    for staged in target.parent.glob(f"{STAGED}{target.name}-*-*"):
        if is_abandoned(staged):
            shutil.rmtree(staged, ignore_errors=True)


def is_abandoned(hidden: Path) -> bool:
    """Whether the process that made this hidden folder is gone.

    False where the name holds no process id: a user's own folder.
    """
    try:
        os.kill(int(hidden.name.rsplit("-", 2)[1]), 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return True
    except (ValueError, IndexError, OverflowError, PermissionError):  # the last: it exists, and is another user's
        return False
    return False


def _swap(staged: Path, target: Path) -> None:
    """Exchange two folders: in one system call where the kernel can, else by two renames that `recover` completes."""
    if exchange_folders(staged, target):
        return
    old = target.with_name(f"{SWAPPED_OUT}{target.name}")
    target.rename(old)
    staged.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def recover(case: Path) -> None:
    """Put back goldens whose replacement was killed between its two renames, where there is no atomic swap."""
    for old in sorted(case.glob(f"{SWAPPED_OUT}*")):
        place = case / old.name.removeprefix(SWAPPED_OUT)
        if place.exists():  # killed after the second rename: only the deletion is missing
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(place)
