"""SIGTERM in a run that writes goldens: it ends as after Ctrl-C, with the summary of what was written."""

import signal
import threading
from types import FrameType

import pytest

EXIT_CODE = 128 + signal.SIGTERM  # What a shell expects.


class TerminationListener:
    """A plugin that raises KeyboardInterrupt at the first SIGTERM. The second ends the process at once.

    It leaves alone a handler that someone else has installed, and does nothing where Python allows none: outside the
    main thread.
    """

    terminated = False

    def pytest_sessionstart(self) -> None:
        """Install the handler."""
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminate)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit code. That of an interrupted run is set here: pytest writes no summary for another one."""
        if self.terminated:
            session.exitstatus = EXIT_CODE

    def pytest_unconfigure(self) -> None:
        """Restore what a SIGTERM does."""
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.terminated = True
        raise KeyboardInterrupt("SIGTERM")
