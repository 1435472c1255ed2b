"""Ctrl-C, and the SIGTERM of a CI system: the first ends a command cleanly, the second at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = {
    signal.SIGINT: "\njaxexport: stopping the running cells; press Ctrl-C again to quit at once\n",
    signal.SIGTERM: "\njaxexport: stopping the running cells; a second SIGTERM quits at once\n",
}


class Interrupted(KeyboardInterrupt):
    """A request to end the command.

    `exit_code` is what a shell expects: 130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first Ctrl-C or SIGTERM inside the ``with``, and end the process at the second.

    In a thread other than the main thread, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():  # Python allows it in no other thread
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        # Before anything else: a second Ctrl-C must end the process even while this handler runs.
        for name in _SIGNALS:
            signal.signal(name, second)
        # Not print: it takes a lock, which the interrupted code may hold.
        os.write(2, _STOPPING[signal.Signals(number)].encode())
        raise Interrupted(number)

    def second(number: int, frame: FrameType | None) -> None:
        # Without cleaning up, which may be what hangs.
        os._exit(128 + number)

    before = [signal.signal(name, first) for name in _SIGNALS]
    try:
        yield
    finally:
        for name, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(name, handler)
