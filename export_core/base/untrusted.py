"""The one way in for files that somebody else may have written: regular ones, of bounded size, that nest like our own.

The errors are those that callers expect of the plain functions: `OSError`, and `msgspec.MsgspecError`. What other
modules open otherwise is no such file: tests/base/test_files_of_others.py lists them with what they open.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import functools
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import msgspec

LARGEST = 1 << 32  # Bytes of the largest file that is read: the offsets of an artifact have 32 bits.
LARGEST_TEXT = 1 << 26  # Bytes of the largest file that a person writes: a policy, a list, a module to register.
DEEPEST = 100
"""Lists and tables inside each other in a YAML file. Ours have six; libyaml's C loader has no limit of its own."""
FEW_MARKS = 2000
"""Each level of YAML takes one of the characters ``[{-?:``: a text with fewer is shallow enough for any stack."""

LONGEST_PATTERN = 1000  # Characters of a regular expression.

# What a regular expression of a golden may be, once each escape and class in it is one character.
_ONE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_HOW_TO_READ = re.compile(r"^\(\?i\)|(?<=\()\?i?:")  # Of a group, or of all.
_PLAIN = r"(?:[^()|*+{]|\((?!\?)[^()*+{]*\)(?![*+{]))*"  # No repeats; groups are not nested, and not repeated.
_ALTERNATIVE = rf"{_PLAIN}(?:[^()|*+{{][*+]{_PLAIN})?"  # One repeat of one character.
_QUICK = re.compile(rf"{_ALTERNATIVE}(?:\|{_ALTERNATIVE})*", re.DOTALL)
_MOST_CHOICES = 8  # Alternatives and optional characters: each may double the time.

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnexpectedFileError(OSError):
    """What is no regular file, too large, or has no name that a file can have; `found` says what it is."""

    def __init__(self, expected: str, found: str, name: str) -> None:
        super().__init__(errno.EINVAL, f"expected {expected}, found {found}", name)
        self.found = found


def read_regular(path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST) -> bytes:
    """The bytes of a regular file, as `open_regular` opens it."""
    with open_regular(path, follow=follow, most=most) as file:
        # As many as it has now: it may grow meanwhile, and some files of /proc and /sys are regular and never end.
        return file.read(os.fstat(file.fileno()).st_size)


def read_named(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> bytes:
    """The bytes of a file that a person named, or of one that links to it."""
    return read_regular(path, follow=True, most=most)


@contextlib.contextmanager
def open_regular(
    path: str | os.PathLike[str], *, follow: bool = False, most: int = LARGEST
) -> Iterator[BufferedReader]:
    """Open a regular file of at most so many bytes; raises `OSError` for anything else, and never waits for it.

    A link may lead out of the folder that is checked: it is refused unless `follow`, for a path that a person named. A
    FIFO or a device may never end.
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


def decode_yaml(data: bytes, kind: Any = Any) -> Any:
    """A YAML document, with each key once. Raises `msgspec.DecodeError` for one that no file of ours looks like."""
    import msgspec  # here: reading an artifact has no time for these
    import yaml

    try:
        # Counting takes microseconds, and parsing twice would double the time of a matrix whose results are all cached.
        if sum(map(data.count, (b"[", b"{", b"-", b"?", b":"))) > FEW_MARKS or (b"&" in data and b"*" in data):
            _check_shape(data)
        loaded = yaml.load(data, Loader=_loader())
        return msgspec.convert(loaded, kind, builtin_types=(datetime.datetime, datetime.date))
    except msgspec.MsgspecError:
        raise
    except yaml.YAMLError as error:
        raise msgspec.DecodeError(" ".join(str(error).split())) from None
    except (RecursionError, ValueError, TypeError) as error:
        raise _decode_error(error) from None


@functools.cache
def _loader() -> Any:
    """The loader of PyYAML that refuses a key which a table has twice: PyYAML itself takes the last."""
    import msgspec
    import yaml

    class UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            mapping = super().construct_mapping(node, deep)
            if len(mapping) < len(node.value):
                keys: set[Any] = set()
                for name, _ in node.value:
                    if (key := self.construct_object(name)) in keys:
                        raise msgspec.DecodeError(f"expected each key once, found {key!r} again in line {_line(name)}")
                    keys.add(key)
            return mapping

    return UniqueKeys


def decode_json(data: bytes, kind: Any = Any) -> Any:
    """A JSON document. Raises `msgspec.DecodeError`, also for one that is nested too deeply."""
    import msgspec

    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _decode_error(error) from None


def _check_shape(data: bytes) -> None:
    """Refuse deep nesting, and aliases, by which ten lines make billions of values."""
    import msgspec
    import yaml

    depth = 0
    # Events come from a parser with a stack of its own: it is the loader behind it that recurses.
    for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise msgspec.DecodeError(f"expected no alias, found *{event.anchor} in line {_line(event)}")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise msgspec.DecodeError(
                f"expected at most {DEEPEST} lists and tables inside each other, found more in line {_line(event)}"
            )


def _line(event: Any) -> int:
    """The line where an event or a node begins."""
    return int(event.start_mark.line) + 1


def _decode_error(error: Exception) -> msgspec.DecodeError:
    import msgspec

    if isinstance(error, RecursionError):
        return msgspec.DecodeError("it is nested deeper than any such file needs to be")
    return msgspec.DecodeError(f"it cannot be decoded: {error}")


def problem_of_pattern(pattern: str) -> str:
    """Return what is wrong with a regular expression that somebody else wrote; empty where it can be searched for.

    Python's engine cannot be interrupted, and some patterns take it longer than the universe has lasted. So only those
    are accepted whose time grows with the square of the text at most.
    """
    if len(pattern) > LONGEST_PATTERN:
        return f"expected a regular expression of at most {LONGEST_PATTERN} characters, found {len(pattern)}."
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"expected a regular expression, found {pattern!r}: {error}."
    plain = _HOW_TO_READ.sub("", _ONE_CHARACTER.sub("x", pattern))
    if not _QUICK.fullmatch(plain):
        return (
            "expected a regular expression with one * or + at most in each alternative, after one character or class, "
            f"and no {{…}} or groups in groups, since some others never end; found {pattern!r}. Match fewer words."
        )
    if (choices := plain.count("|") + plain.count("?")) > _MOST_CHOICES:
        return f"expected a regular expression with at most {_MOST_CHOICES} | and ?, found {choices} in {pattern!r}."
    return ""
