"""The one base of every error this project raises on purpose."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, NamedTuple

from export_core.base.text import shown, without_credentials

if TYPE_CHECKING:
    import os
    from typing import Self

PREFIX = "jaxexport: error: "  # How every error message begins, whichever command, nox session or test run prints it.

_LONGEST_NAME = 100  # Characters of a name that an error shows.

UNFORESEEN = 70
"""The exit code of a command that ends with an unexpected error: EX_SOFTWARE, which is no command's answer."""

NOBODY_READS = 141
"""The exit code of a command whose output has lost its reader, as of a program that SIGPIPE ends."""


def report_unforeseen(error: Exception, effect: str = "there is no result") -> int:
    """Print an unexpected error, and return its exit code.

    Two errors count as bad input: a name that no file can have, and an output that cannot be written, as on a full
    disk.

    Args:
        error: What was raised.
        effect: What follows from it, in words.
    """
    import traceback  # it takes 15 ms, which no command without such an error pays

    if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        name = str(error.filename)
        problem = f"{name if len(name) < _LONGEST_NAME else f'{name[:_LONGEST_NAME]}…'}: {error.strerror}"
    else:  # of `Path.resolve`, before CPython 3.13
        problem = str(error) if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop") else ""
    if problem:
        sys.stderr.write(f"{PREFIX}expected a path that a file can have, found {problem!a}\n")
        return ExportCompatError.exit_code
    if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        sys.stderr.write(f"{PREFIX}cannot write to standard output: {error.strerror}.\n")
        return ExportCompatError.exit_code
    text = shown(without_credentials("".join(traceback.format_exception(error))))
    more = f"unexpected {type(error).__name__}: {effect}. This is a bug: please report the lines above."
    # In ASCII: what cannot be encoded must not be a second error.
    sys.stderr.write(f"{text}{PREFIX}{more}\n".encode("ascii", "backslashreplace").decode())
    return UNFORESEEN


class Problem(NamedTuple):
    """A problem of a file, of one value in it, or of what was typed."""

    file: str | os.PathLike[str]  # The file; or what was typed, such as an option with its value.
    text: str  # What was expected and what was found, as a sentence.
    key: str = ""  # The path to the value, such as `known_failures[0].verdict`; empty for the whole file.
    line: int = 0  # The line of the value; 0 where nobody knows it.
    advice: str = ""  # What to do next, as a sentence.

    def __str__(self) -> str:
        """Return ``export_compat.yaml:12: rtol: expected a number, found text.``, with the advice behind it."""
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        text = ": ".join(filter(None, (place, self.key, self.text)))
        return f"{text} {self.advice}" if self.advice else text


class ExportCompatError(Exception):
    """Bad input or a broken part, in a message for a person.

    The message says what was expected, what was found, where, and what to do next. Command-line tools print it without
    a traceback.
    """

    exit_code = 2  # The exit code of a command that ends with it.
    problems: tuple[Problem, ...] = ()  # What is wrong with a file, where the error is about one.

    @classmethod
    def about(cls, *problems: Problem) -> Self:
        """Return the error for a file with these problems, a line for each."""
        error = cls("\n".join(map(str, problems)))
        error.problems = problems
        return error

    def __str__(self) -> str:
        """The message as it may be shown anywhere: it may quote a file, another program, or a URL with a password."""
        return shown(without_credentials(self.message()))

    def message(self) -> str:
        """Return the message as it was raised."""
        return super().__str__()


class CacheFolderError(ExportCompatError):
    """The folder of the cache may hold what a commit brought."""


class InfrastructureFault(ExportCompatError):  # noqa: N818 - it names what happened
    """A failure of something around a cell: nothing is known of the cell, and another try may succeed."""
