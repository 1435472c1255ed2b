"""The one way in for files that somebody else may have written: regular ones, of bounded size.

The errors are those that callers expect of the plain functions: `OSError`. `json_text` and `yaml_text` decode what was
read. What other modules open otherwise is no such file: tests/base/test_files_of_others.py lists what they open.
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
    """A file that is refused: not regular, too large, or under a name that no file can have; `found` says which."""

    def __init__(self, expected: str, found: str, name: str) -> None:
        super().__init__(errno.EINVAL, f"expected {expected}, found {found}", name)
        self.found = found


def read_regular(path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST) -> bytes:
    """Return the bytes of a regular file, opened by `open_regular`."""
    with open_regular(path, follow=follow, most=most) as file:
        # As many as it has now: it may grow meanwhile, and some files of /proc and /sys are regular and never end.
        return file.read(os.fstat(file.fileno()).st_size)


def read_named(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> bytes:
    """Return the bytes of a file that a person named, or of one that links to it."""
    return read_regular(path, follow=True, most=most)


@contextlib.contextmanager
def open_regular(
    path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST
) -> Iterator[BufferedReader]:
    """Open a regular file of at most so many bytes.

    Raises `OSError` for anything else, and never waits for it: a FIFO or a device may never end. A link may lead out of
    the folder that is checked. So it is refused unless `follow`, for a path that a person named.
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
            raise UnexpectedFileError(f"at most {most:,} bytes", f"{now.st_size:,}", name)
        yield file


def _not_regular(name: str, mode: int) -> UnexpectedFileError:
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
    return UnexpectedFileError("a regular file", kind, name)
