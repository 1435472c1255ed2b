"""Output for people that never ends a command: a closed pipe or a full disk only loses the text."""

from __future__ import annotations

import io
import os
from typing import IO, Any, TextIO, cast


def fail_safe(stream: TextIO) -> IO[str]:
    """The same stream, which drops text once it cannot be written to, and escapes what its encoding does not have."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast("IO[str]", _FailSafe(stream))


class _FailSafe:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or drop it."""
        try:
            return self._stream.write(text)
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Flush, or drop what cannot be written."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        # What is left in the buffer would fail again when Python ends, and change the exit code.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
