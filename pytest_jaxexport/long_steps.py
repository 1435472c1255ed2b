"""Lines in a log about a step that takes long: a run that writes nothing looks like one that hangs."""

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

SILENCE_SECONDS = 60.0  # How long a step runs until a log has a line about it, and between two such lines.

_LOG = pytest.StashKey[int | None]()


@contextlib.contextmanager
def shown_in_log(config: pytest.Config, text: str) -> Iterator[None]:
    """Write a line to pytest's standard output every `SILENCE_SECONDS` while the block runs.

    Args:
        config: the configuration of the run.
        text: what the block does, for these lines.
    """
    log = config.stash[_LOG] if _LOG in config.stash else _opened(config)
    if log is None:
        yield
        return
    ended, begun = threading.Event(), time.monotonic()

    def write_lines() -> None:
        while not ended.wait(SILENCE_SECONDS):
            line = f"\n{text}: for {time.monotonic() - begun:.0f} s\n"
            with contextlib.suppress(OSError):  # nobody reads it any more
                os.write(log, line.encode(errors="backslashreplace"))

    thread = threading.Thread(target=write_lines, name="jaxexport-long-step", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _opened(config: pytest.Config) -> int | None:
    """Return a file descriptor of pytest's own standard output, which stays open while tests are captured.

    The descriptor is opened once in a run. None if standard output is not a file, as in a program that runs pytest.
    """
    capture = config.pluginmanager.get_plugin("capturemanager")
    log = None
    uncaptured = capture.global_and_fixture_disabled() if capture else contextlib.nullcontext()
    with uncaptured, contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        log = os.dup(sys.stdout.fileno())
        config.add_cleanup(functools.partial(os.close, log))
    config.stash[_LOG] = log
    return log
