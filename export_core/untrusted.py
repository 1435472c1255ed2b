"""Files that somebody else may have written: only regular ones are read, and only what nests like our own is decoded.

The errors are those that callers expect of the plain functions: `OSError`, and `msgspec.MsgspecError`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

import msgspec

DEEPEST = 100
"""Lists and tables inside each other in a YAML file. Ours have six; libyaml's C loader dies by signal 11 at 40,000."""
FEW_MARKS = 2000
"""Each level of YAML takes one of the characters ``[{-?:``: a text with fewer is shallow enough for any stack."""

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file, as `open_regular` opens it."""
    with open_regular(path) as file:
        return file.read()


@contextlib.contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a regular file; raises `OSError` for anything else, and never waits for it.

    A link may lead out of the folder that is checked, a FIFO or a device may never end.
    """
    name = os.fspath(path)
    before = os.lstat(name).st_mode
    if not stat.S_ISREG(before):
        raise _not_regular(name, before)
    # What is at the path may have been replaced since: O_NOFOLLOW refuses a link, O_NONBLOCK does not wait for a FIFO.
    flags = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    with open(os.open(name, os.O_RDONLY | flags), "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(mode := os.fstat(file.fileno()).st_mode):
            raise _not_regular(name, mode)
        yield file


def _not_regular(name: str, mode: int) -> OSError:
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
    return OSError(errno.EINVAL, f"expected a regular file, found {kind}", name)


def decode_yaml(data: bytes, kind: Any = Any) -> Any:
    """A YAML document as msgspec reads it. Raises `msgspec.DecodeError` for one that no file of ours looks like."""
    # Counting takes microseconds, and parsing twice would double the time of a matrix whose results are all cached.
    if sum(map(data.count, (b"[", b"{", b"-", b"?", b":"))) > FEW_MARKS or (b"&" in data and b"*" in data):
        _check_shape(data)
    try:
        return msgspec.yaml.decode(data, type=kind)
    except msgspec.MsgspecError:
        raise
    except (RecursionError, ValueError, TypeError) as error:
        raise _decode_error(error) from None


def decode_json(data: bytes, kind: Any = Any) -> Any:
    """The same for JSON."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _decode_error(error) from None


def _check_shape(data: bytes) -> None:
    """Refuse deep nesting, and aliases, by which ten lines make billions of values."""
    import yaml  # here: releases are read by commands that need no YAML

    depth = 0
    try:
        # Events come from a parser with a stack of its own: it is the loader behind it that recurses.
        for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                raise msgspec.DecodeError(f"expected no alias, found *{event.anchor} in line {_line(event)}")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise msgspec.DecodeError(
                    f"expected at most {DEEPEST} lists and tables inside each other, found more in line {_line(event)}"
                )
    except yaml.YAMLError as error:
        raise msgspec.DecodeError(" ".join(str(error).split())) from None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _decode_error(error: Exception) -> msgspec.DecodeError:
    if isinstance(error, RecursionError):
        return msgspec.DecodeError("it is nested deeper than any such file needs to be")
    return msgspec.DecodeError(f"it cannot be decoded: {error}")
