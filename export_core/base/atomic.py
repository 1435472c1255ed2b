"""The one writer of files and folders: all or nothing, and never through a link.

A file or folder is written under a hidden name beside its place, then swapped in by one rename. A process that is
killed at any moment leaves the old content or the new content. The hidden name is random and must be free, so that
nobody can put a link there first. tests/base/test_writing.py lists what other modules write, with the reasons.
"""

import contextlib
import ctypes
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from export_core.base.untrusted import UnexpectedFileError

_STREAMS = "/dev", "/dev/fd"  # Folders of the system whose links are open files, such as /dev/stdout.


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file from parts, all or nothing: if writing fails, the old file stays.

    A device or a pipe, such as ``/dev/null``, is written to and not replaced. Raises `OSError`, also if `path` is a
    symbolic link, which may lead anywhere. The folders of `path` may be links.
    """
    refuse_link(path)
    mode = _mode(path)
    if stat.S_ISLNK(mode):  # one of _STREAMS
        with path.open("ab") as stream:  # appended: it may lead to a file that has more in it
            stream.writelines(parts)
        return
    if mode and not stat.S_ISREG(mode):
        with open(path, "ab", opener=_without_links) as device:
            device.writelines(parts)
        return
    # In the same folder: only inside one file system is replacing a file atomic.
    beside = hidden_name(STAGED, path)
    try:
        write_new(beside, parts)
        beside.replace(path)
    # Also for Ctrl-C, which would leave the half-written file behind.
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write_new(path: Path, parts: Iterable[bytes]) -> None:
    """Write a new file from parts. Raises `FileExistsError` if its path exists, also as a symbolic link."""
    with open(path, "xb", opener=_without_links) as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def open_to_append(path: Path) -> io.FileIO:
    """Open a file to append to, unbuffered. Raises `OSError`, also if the file is a symbolic link."""
    refuse_link(path)
    return open(path, "ab", buffering=0, opener=_without_links)


def refuse_link(path: Path) -> None:
    """Raise `UnexpectedFileError` if a path to write is a symbolic link, unless it is a link of the system in /dev."""
    if stat.S_ISLNK(_mode(path)) and str(path.absolute().parent) not in _STREAMS:
        raise UnexpectedFileError("no symbolic link", "one", str(path))


def _mode(path: Path) -> int:
    """Return the mode bits (st_mode) of a path, or 0 if it does not exist. Links are not followed."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _without_links(path: str, flags: int) -> int:
    # A link may have been made since the check.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def exchange_folders(first: Path, second: Path) -> bool:
    """Exchange two folders in one step, by renameat2(2) of Linux, and return whether that was possible.

    If the system or the file system cannot exchange folders, nothing has changed.
    """
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


# Hidden folders in a case's folder, by the step at which a killed process leaves them. The first and the last end in
# -PID-RANDOM, so that another process can tell whether their owner is still alive; the second is found again by its
# golden's name.
STAGED, SWAPPED_OUT, REMOVED = ".new-", ".old-", ".gone-"


def hidden_name(prefix: str, folder: Path) -> Path:
    """Return a hidden path beside a file or folder, which no other process or thread uses; `prefix` begins the name."""
    # The process id is for `is_abandoned`, the random part for threads and for ids that are used again.
    return folder.with_name(f"{prefix}{folder.name}-{os.getpid()}-{secrets.token_hex(4)}")


def put_folder(target: Path, content: Mapping[str, bytes]) -> None:
    """Write a folder with files, or replace the folder at its path, all or nothing.

    `content` has the bytes of each file by name. Raises `OSError`, also if the path is a symbolic link.
    """
    refuse_link(target)
    remove_staged(target)
    staged = hidden_name(STAGED, target)  # beside its place, since a rename works within one file system only
    try:
        staged.mkdir(parents=True)
        for name, data in content.items():
            write_whole(staged / name, [data])
        sync_folder(staged)  # files and names are on disk before the rename that makes them a golden
        # A rename onto a folder that is not empty fails, so the two have to change places: in one system call where the
        # kernel can, else by two renames that `recover` completes.
        if not target.exists():
            staged.rename(target)
        elif not exchange_folders(staged, target):
            old = target.with_name(f"{SWAPPED_OUT}{target.name}")
            target.rename(old)
            staged.rename(target)
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # after a swap, this is the old golden


def remove_staged(target: Path) -> None:
    """Remove the hidden files and folders that killed processes left beside a path when they wrote to it.

    Hidden files of processes that still run are not removed.
    """
    for staged in target.parent.glob(f"{STAGED}{target.name}-*-*"):
        if is_abandoned(staged):
            with contextlib.suppress(OSError):
                staged.unlink() if staged.is_symlink() or staged.is_file() else shutil.rmtree(staged)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to the disk, so that a power failure does not undo renames in the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_abandoned(hidden: Path) -> bool:
    """Return whether the process that made a hidden file or folder has ended, by the process id in its name.

    False if the name has no process id, for example because a user chose it.
    """
    try:
        os.kill(int(hidden.name.rsplit("-", 2)[1]), 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return True
    except (ValueError, IndexError, OverflowError, PermissionError):  # the last: another user's process
        return False
    return False


def recover(case: Path) -> None:
    """Put back the goldens in a case's folder that a killed process had renamed and not yet replaced.

    Only systems that cannot exchange folders in one step replace a golden by two renames.
    """
    if case.is_symlink():  # its goldens are elsewhere, and no golden is read through a link
        return
    for old in sorted(case.glob(f"{SWAPPED_OUT}*")):
        place = case / old.name.removeprefix(SWAPPED_OUT)
        if place.exists():  # killed after the second rename: only the deletion is missing
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(place)
