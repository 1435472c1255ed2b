"""The base class of all errors that this project raises on purpose, and how commands print other errors."""

from __future__ import annotations

import errno
import os
import re
import sys

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.base.text import shown, without_credentials

if TYPE_CHECKING:
    from typing import Self

PREFIX = "jaxexport: error: "  # How every error message begins, whichever command, nox session or test run prints it.


def with_prefix(problems: object) -> str:
    """Return the text of an error as it is printed, with `PREFIX` before each line that begins a problem.

    An indented line belongs to the problem above it, and so do all lines but the first of an `InfrastructureFault`,
    which are the output of another program.
    """
    if isinstance(problems, InfrastructureFault):
        return PREFIX + str(problems).replace("\n", "\n  ")
    return PREFIX + re.sub(r"\n(?=[^ \n])", f"\n{PREFIX}", str(problems))


_LONGEST_NAME = 100  # Characters of a name that an error shows.

UNFORESEEN = 70
"""The exit code of a command that ends with an unexpected error: EX_SOFTWARE, which no command uses as an answer."""


def report_unforeseen(error: Exception, effect: str = "there is no result") -> int:
    """Print an unexpected error to standard error, and return the exit code for it.

    Two kinds of errors count as bad input: a name that no file can have, and output that cannot be written, for example
    on a full disk.

    Args:
        error: The exception.
        effect: The consequence of the error, for the message.
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
    """A problem with a file, a value in a file, or what the user typed."""

    file: str | os.PathLike[str]  # The file; or what was typed, such as an option with its value.
    text: str  # What was expected and what was found, as a sentence.
    key: str = ""  # The path to the value, such as `known_failures[0].verdict`; empty for the whole file.
    line: int = 0  # The line of the value; 0 if it is not known.
    advice: str = ""  # What to do next, as a sentence.

    def __str__(self) -> str:
        """Return ``export_compat.yaml:12: rtol: expected a number, found text.``, followed by the advice."""
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        text = ": ".join(filter(None, (place, self.key, self.text)))
        return f"{text} {self.advice}" if self.advice else text


class ExportCompatError(Exception):
    """An error that is reported to a person, such as bad input.

    The message says what was expected, what was found, where, and what to do next. Command-line tools print it without
    a traceback.
    """

    exit_code = 2  # The exit code of a command that ends with this error.
    problems: tuple[Problem, ...] = ()  # What is wrong with a file; empty if the error is not about a file.

    @classmethod
    def about(cls, *problems: Problem) -> Self:
        """Return an error about these problems, whose message has a line for each problem."""
        error = cls("\n".join(map(str, problems)))
        error.problems = problems
        return error

    def __str__(self) -> str:
        """Return the message in a form that is safe to show: without control characters and passwords in URLs."""
        return shown(without_credentials(self.message()))

    def message(self) -> str:
        """Return the message as it was given to the error, which may not be safe to show."""
        return super().__str__()


class CacheFolderError(ExportCompatError):
    """An error for a cache folder in which git tracks files, or cannot tell whether it does."""


class InfrastructureFault(ExportCompatError):  # noqa: N818 - it names what happened
    """A failure of something that a cell needs, such as a disk.

    Nothing is known about the cell, and another try may succeed.
    """

    exit_code = 3  # Neither an answer nor bad input: `ExitCode.INCOMPLETE`.
