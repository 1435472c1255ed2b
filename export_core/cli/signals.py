"""Ctrl-C, and the SIGTERM of a CI system: the first ends a command cleanly, the second at once."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN = {
    signal.SIGINT: "press Ctrl-C again to quit at once",
    signal.SIGTERM: "a second SIGTERM quits at once",
}

REPEATED_SECONDS = 0.5
"""The seconds in which a repeated signal counts as one: `timeout` sends it to its command, then to the whole group."""


class Interrupted(KeyboardInterrupt):
    """A request to end the command.

    `exit_code` is what a shell expects: 130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Interrupted` at the first SIGTERM inside the ``with``, as Python raises KeyboardInterrupt at Ctrl-C.

    The exception lets a command end the processes that it has started, and remove its temporary folders. A second
    SIGTERM, after `REPEATED_SECONDS`, ends the process at once. In a thread other than the main thread, or where
    SIGTERM has a handler or is ignored, this does nothing.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        try:
            ignore_repeated(number)
        finally:
            signal.signal(number, signal.SIG_DFL)
        raise Interrupted(number)

    signal.signal(signal.SIGTERM, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def ignore_repeated(number: int) -> None:
    """Wait for `REPEATED_SECONDS` in the handler of a signal, and drop the signal if it is sent again meanwhile.

    The caller sets the next handler.
    """
    signal.signal(number, lambda *_: None)  # not SIG_IGN, which processes that are started meanwhile would inherit
    time.sleep(REPEATED_SECONDS)


@contextmanager
def interruptible(stopped: str = "the running cells", at_once: Callable[[], None] | None = None) -> Iterator[None]:
    """Raise `Interrupted` at the first Ctrl-C or SIGTERM inside the ``with``, and end the process at the second.

    A signal that is repeated within `REPEATED_SECONDS` does not count as the second. In a thread other than the main
    thread, this does nothing.

    Args:
        stopped: what the first signal stops, for the line that is printed then.
        at_once: called at the second signal, to kill what would outlive this process; it must not wait.
    """
    if threading.current_thread() is not threading.main_thread():  # Python allows it in no other thread
        yield
        return

    began: dict[int, float] = {}

    def first(number: int, frame: FrameType | None) -> None:
        began[number] = time.monotonic()
        # Before anything else: a second Ctrl-C must end the process even while this handler runs.
        for name in _SIGNALS:
            signal.signal(name, second)
        # Not print: it takes a lock, which the interrupted code may hold.
        os.write(2, f"\njaxexport: stopping {stopped}; {_AGAIN[signal.Signals(number)]}\n".encode())
        time.sleep(REPEATED_SECONDS)  # what comes meanwhile must not end the cleaning up, which may be done sooner
        raise Interrupted(number)

    def second(number: int, frame: FrameType | None) -> None:
        if number in began and time.monotonic() < began[number] + REPEATED_SECONDS:
            return
        if at_once:
            at_once()
        # Without cleaning up, which may be what hangs.
        os._exit(128 + number)

    before = [signal.signal(name, first) for name in _SIGNALS]
    try:
        yield
    finally:
        for name, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(name, handler)
