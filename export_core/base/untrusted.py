"""The reading of files that somebody else may have written: only regular files of bounded size.

Errors are `OSError`, as of Python's own functions. `json_text` and `yaml_text` decode what was read. Other modules open
only files of their own in another way: tests/base/test_files_of_others.py lists them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader

LARGEST = 1 << 32  # Bytes of the largest file that is read: the offsets of an artifact have 32 bits.
LARGEST_TEXT = 1 << 26  # Bytes of the largest file that a person writes: a policy, a list, a module to register.

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnexpectedFileError(OSError):
    """An error for a file that is not regular, too large, or named as no file can be. `found` says which."""

    def __init__(self, expected: str, found: str, name: str) -> None:
        super().__init__(errno.EINVAL, f"expected {expected}, found {found}", name)
        self.found = found


def read_regular(path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes. Raises `OSError`.

    A link is refused, unless `follow` is true.
    """
    with open_regular(path, follow=follow, most=most) as file:
        # As many as it has now: it may grow meanwhile, and some files of /proc and /sys are regular and never end.
        return file.read(os.fstat(file.fileno()).st_size)


def read_named(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> bytes:
    """Return the bytes of a file of at most `most` bytes that a person named; links are followed. Raises `OSError`."""
    return read_regular(path, follow=True, most=most)


@contextlib.contextmanager
def open_regular(
    path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST
) -> Iterator[BufferedReader]:
    """Open a regular file of at most `most` bytes for reading.

    Raises `OSError` for anything else, without waiting for a FIFO or a device. A link, which may lead out of a checked
    folder, is refused too, unless `follow` is true, as for a path that a person named.
    """
    name = os.fspath(path)
    try:
        before = (os.stat if follow else os.lstat)(name).st_mode
    except ValueError:  # NUL, or a surrogate that stands for no byte
        raise UnexpectedFileError("a path that a file can have", repr(name), ascii(name)) from None
    if not stat.S_ISREG(before):
        raise _not_regular(name, before)
    # What is at the path may have been replaced since: O_NOFOLLOW refuses a link, O_NONBLOCK does not wait for a FIFO.
    names = ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC", *(() if follow else ("O_NOFOLLOW",)))
    flags = sum(getattr(os, flag, 0) for flag in names)
    with open(os.open(name, os.O_RDONLY | flags), "rb") as file:  # noqa: PTH123 - a descriptor
        now = os.fstat(file.fileno())
        if not stat.S_ISREG(now.st_mode):
            raise _not_regular(name, now.st_mode)
        if now.st_size > most:
            raise UnexpectedFileError(f"at most {most:,} bytes", f"{now.st_size:,} bytes", name)
        yield file


def _not_regular(name: str, mode: int) -> UnexpectedFileError:
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
    return UnexpectedFileError("a regular file", kind, name)
