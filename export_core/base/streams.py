"""The standard streams of a command, which may be closed or full, or have an encoding that lacks a character."""

from __future__ import annotations

import codecs
import os
import sys

from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TextIO

NOBODY_READS = 141
"""The exit code of a command whose output nobody reads any more, as of a program that SIGPIPE ended."""

_IN_ASCII = {"·": "|", "–": "-", "—": "-", "−": "-", "×": "x", "→": "->", "…": "...", "≤": "<=", "≥": ">=", "━": "-"}
"""ASCII text for characters of this package's own sentences that an encoding lacks. Other characters are escaped."""


def prepare_streams() -> None:
    """Prepare the standard streams of a command, so that no fault of a stream changes the exit code.

    A closed stream is opened as the null device, messages that cannot be written to standard error are dropped, and
    characters that an encoding lacks are written as ASCII text.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # The lowest free number is that of the closed stream: the next file would have it, and what a process
            # started from here prints would be in that file.
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        accept_any_text(stream)
    sys.stderr = FailSafe(sys.stderr)  # else Python would end with 1, the code of a broken promise


def accept_any_text(stream: TextIO) -> None:
    """Let a stream write characters that its encoding lacks, for example in the locale C, as ASCII text."""
    if reconfigure := getattr(stream, "reconfigure", None):
        reconfigure(errors="jaxexport")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII text for the characters that cannot be encoded, and the index at which encoding continues.

    This is an error handler for `codecs.register_error`.
    """
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    texts = (_IN_ASCII.get(letter, letter.encode("ascii", "backslashreplace").decode()) for letter in letters)
    return "".join(texts), error.end


codecs.register_error("jaxexport", _replaced)


def drop_output(stream: TextIO) -> None:
    """Connect a stream that cannot be written to with the null device.

    Otherwise, writing the rest of its buffer would fail again when Python ends, and change the exit code.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class FailSafe:
    """A wrapper of a stream that drops text once writing fails, as on a full disk."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it if the stream cannot be written to; return the length of the text."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, or drop the text that cannot be written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, _error: OSError) -> None:
        drop_output(self._stream)
