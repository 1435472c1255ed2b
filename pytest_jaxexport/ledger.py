"""The ledger of one test: each call of `export_golden`, `also` and `refused`, also those that raised or came too late.

A test passes only if all that is in its ledger was checked.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_jaxexport.marker import full_name, relative_file

if TYPE_CHECKING:
    from types import TracebackType

_HERE = str(Path(__file__).parent)


class Ledger:  # no dataclass: every pytest run makes this class, and a dataclass takes milliseconds
    """A record of the calls of `export_golden`, `also` and `refused` in a test, from setup to the end of teardown.

    `called` is whether the test exported anything, and `checked` whether all its exports were checked or written.
    `unheard` collects errors about calls after the teardown, which no report of the test can contain any more.
    """

    def __init__(self, item: pytest.Item, unheard: list[str]) -> None:
        self.called = self.checked = False
        self._item = item
        self._unheard = unheard
        self._ended = self._closed = False
        self._running: list[str] = []
        self._raised: list[str] = []
        self._late: list[str] = []
        self._lock = threading.Lock()  # a test may call from threads of its own

    def enter(self, what: str) -> RunningCall:
        """Record that a call begins, and return the context manager in which it must run.

        Raises pytest's `Failed` if the test has ended already.
        """
        __tracebackhide__ = True
        call = f"{what} {self._where()}"
        with self._lock:
            if not self._ended:
                self.called = True
                self._running.append(call)
                return RunningCall(self, call)
            text = (
                f"{call} came after the test had ended: it is neither checked nor written. Call it inside the test: "
                "not in a fixture after its yield, in a finalizer, in tearDown, in addCleanup, or in a thread that the "
                "test does not wait for."
            )
            if self._closed:
                self._unheard.append(f"{full_name(self._item)}: {text}")
            else:
                self._late.append(text)
        raise _failed(text)

    def leave(self, call: str, error: BaseException | None) -> None:
        """Record that a call has ended, with the error that it raised, if any."""
        with self._lock:
            self._running.remove(call)
            if error is not None:
                message = str(error).strip().partition("\n")[0]
                self._raised.append(f"{call} raised {type(error).__name__}: {message}")

    def end(self) -> None:
        """Record that the test has ended, so that later calls are errors."""
        with self._lock:
            self._ended = True

    def require_all(self) -> None:
        """Fail the test if a call raised an error or is still running, since its export cannot be checked."""
        __tracebackhide__ = True
        with self._lock:
            raised = self._raised[:]
            running = [f"{call} was still running" for call in self._running]
        if raised:
            raise _failed(
                "\n".join(raised) + "\nThe test passed nevertheless, and its export was not checked. "
                "Let the error fail the test, or remove the call."
            )
        if running:
            raise _failed("\n".join(running) + " when the test ended. Wait for its thread inside the test.")

    def require_in_time(self) -> None:
        """Fail the test if a call came after its end, even if the error of that call was caught."""
        __tracebackhide__ = True
        with self._lock:
            late = self._late[:]
        if late:
            raise _failed("\n".join(late))

    def close(self) -> None:
        """Close the ledger after the teardown. Later calls are collected in `unheard`."""
        with self._lock:
            self._ended = self._closed = True

    def _where(self) -> str:
        """Return in words where the user's code calls: the file, the line, and the thread if it is not the main one."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
            frame = frame.f_back
        file = relative_file(Path(frame.f_code.co_filename), self._item.config.rootpath)
        thread = threading.current_thread()
        of_thread = "" if thread is threading.main_thread() else f", in thread {thread.name},"
        return f"at {file}:{frame.f_lineno}{of_thread}"


class RunningCall:  # no generator with contextlib: its frames would be in tracebacks of the user's function
    """A context manager for a running call, which reports the call's end to the ledger."""

    def __init__(self, ledger: Ledger, call: str) -> None:
        self._ledger = ledger
        self._call = call

    def __enter__(self) -> None:
        """Do nothing, since the ledger has recorded the call already."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Record the end of the call."""
        self._ledger.leave(self._call, error)


def _failed(text: str) -> BaseException:
    from export_core.base.text import shown  # here: a run without a marked test loads nothing of export_core

    return pytest.fail.Exception(shown(text), pytrace=False)
