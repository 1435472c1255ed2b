"""What does a command do on Ctrl-C, and on the SIGTERM of a CI system? It ends cleanly; the second time at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = "\njaxexport: ending the cells that run; once more ends at once\n"


class Interrupted(KeyboardInterrupt):
    """Somebody wants the command to end. `exit_code` is what a shell expects: 130 after Ctrl-C, 143 after SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises `Interrupted` in the main thread at the first signal, and ends the process at the second.

    Workers end by themselves when the process is gone.
    """
    if threading.current_thread() is not threading.main_thread():  # Python lets no other thread do this
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, second)
        os.write(2, _STOPPING.encode())  # nothing that takes a lock: it may be held right now
        raise Interrupted(number)

    def second(number: int, frame: FrameType | None) -> None:
        os._exit(128 + number)

    before = [signal.signal(each, first) for each in _SIGNALS]
    try:
        yield
    finally:
        for each, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(each, handler)
