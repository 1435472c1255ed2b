"""The output of all commands for people: text from files is escaped, and a failed write never ends a command.

A closed pipe or a full disk only loses the text.
"""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import click

from export_core.base.errors import PREFIX, ExportCompatError
from export_core.base.json_text import safe_json
from export_core.base.streams import NOBODY_READS, FailSafe, accept_any_text
from export_core.base.text import plain_text, shown, without_commands, without_credentials

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text that may quote any file or message: credentials and control characters are made harmless.

    `nl` adds a line break; `err` prints on stderr.
    """
    click.echo(shown(without_credentials(text)), nl=nl, err=err)


def echo_json(value: Any, *, indent: int = 2) -> None:
    """Print a value as JSON, indented by `indent` spaces; -1 prints a single line."""
    click.echo(safe_json(value, indent=indent).decode())


def safe_console(stream: TextIO, **options: Any) -> Console:
    """Return a rich console on a stream that makes credentials and control characters in texts harmless.

    Only escape sequences that rich itself writes, such as colours, reach the terminal.
    """
    from rich.console import Console
    from rich.text import Text

    class SafeConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*map(_plain, objects), **options)

    def _plain(item: Any) -> Any:
        if isinstance(item, str):
            return _cleaned(item)
        if isinstance(item, Text) and item.plain != (plain := _cleaned(item.plain)):
            item = item.copy()
            item.plain = plain
        return item

    return SafeConsole(file=fail_safe(stream), **options)


def fail_safe(stream: TextIO) -> IO[str]:
    """Return a wrapper of a stream that drops text once writing fails, and escapes characters the encoding lacks."""
    accept_any_text(stream)
    return cast("IO[str]", _Screen(stream))


_NOT_WRITTEN: list[OSError] = []  # Why standard output could not be written to.


def is_written() -> bool:
    """Return whether standard output took all text. A closed pipe counts as written: its reader has read enough."""
    return code_of_lost_output() in (0, NOBODY_READS)


def code_of_lost_output() -> int:
    """Return the exit code of a command that did its work, but could not print: `NOBODY_READS` for a closed pipe.

    The code is 0 if all was printed.
    """
    if not _NOT_WRITTEN:
        return 0
    return NOBODY_READS if isinstance(_NOT_WRITTEN[0], BrokenPipeError) else ExportCompatError.exit_code


def _cleaned(text: str) -> str:
    return plain_text(without_credentials(text))


class _Screen(FailSafe):
    """A stream for people. A write error of standard output is reported on stderr, and makes `is_written` false."""

    def write(self, text: str) -> int:
        """Write a text, or drop it if the stream cannot be written to; return the length of the text."""
        super().write(without_commands(text))  # after wrapping, which decides where lines begin
        return len(text)

    def _give_up(self, error: OSError) -> None:
        if self._stream is sys.stdout:
            _NOT_WRITTEN.append(error)
            if not isinstance(error, BrokenPipeError):  # a closed pipe is no error
                echo(f"{PREFIX}cannot write to standard output: {error.strerror}.", err=True)
        super()._give_up(error)
