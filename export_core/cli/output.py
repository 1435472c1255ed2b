"""Where does text for people go when nobody reads it any more, or a log has no room? Nowhere; and what it is about goes on."""

from __future__ import annotations

import io
import os
from typing import IO, Any, TextIO, cast


def lasting(stream: TextIO) -> IO[str]:
    """The same stream; once it cannot be written to any more, what is written is forgotten. It writes any character somehow."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast("IO[str]", _Lasting(stream))


class _Lasting:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or forget it."""
        try:
            return self._stream.write(text)
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Hand on what was written, or forget it."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        # What the stream still holds would fail once more when Python ends, and change the exit code.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
