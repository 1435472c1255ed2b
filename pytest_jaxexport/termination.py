"""What a SIGTERM does to a run that writes goldens: the run ends as after Ctrl-C, with its summary."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from export_core.cli.signals import ignore_repeated

if TYPE_CHECKING:
    from types import FrameType


class TerminationListener:
    """A plugin that turns the first SIGTERM into a KeyboardInterrupt: a run that writes goldens then has its summary.

    A run that Ctrl-C has interrupted already ignores the first SIGTERM, which a backfill sends after a Ctrl-C. The
    pytest of a backfill ignores a second SIGTERM, since `timeout` sends one to both. The next SIGTERM ends the process
    at once. Nothing is changed if SIGTERM has another handler, or outside the main thread, where Python allows none.
    """

    terminated = False
    _interrupted = False

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Install the handler of SIGTERM."""
        self._session = session
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminate)

    @pytest.hookimpl(tryfirst=True)  # pytest's own hook needs half a second for its text
    def pytest_keyboard_interrupt(self) -> None:
        """Record that a KeyboardInterrupt is ending the run."""
        self._interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit code of a run that SIGTERM has ended.

        This is done last, since pytest writes no summary for an exit code that it does not know.
        """
        if self.terminated:
            session.exitstatus = 128 + signal.SIGTERM  # what a shell expects

    def pytest_unconfigure(self) -> None:
        """Restore the default handler of SIGTERM."""
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        first = not (self.terminated or self._interrupted)
        try:
            ignore_repeated(number)
        finally:
            again = first and "JAXEXPORT_SESSION_ENDED" in os.environ  # set by a backfill, which sends a SIGTERM too
            signal.signal(number, self._terminate if again else signal.SIG_DFL)
        if first:
            self.terminated = True
            self._session.shouldstop = "SIGTERM"  # for an exception in a destructor, which Python only prints
            raise KeyboardInterrupt("SIGTERM")
