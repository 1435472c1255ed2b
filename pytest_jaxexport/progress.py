"""The line that says on a terminal what takes long, below what pytest has written of the test."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest


@contextmanager
def progress(config: pytest.Config, text: str) -> Iterator[None]:
    """Show a line while the block runs, and remove it. Nothing in a log, nor in a worker of xdist: it cannot print."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    terminal = config.get_terminal_writer()
    if not (reporter and reporter.isatty and terminal.hasmarkup):
        yield
        return
    columns = shutil.get_terminal_size().columns
    column = terminal.width_of_current_line % columns
    back = f"\x1b[{column}C" if column else ""
    _write(config, f"\n{text[: columns - 1]}")
    try:
        yield
    finally:
        _write(config, f"\r\x1b[K\x1b[A{back}")


def _write(config: pytest.Config, text: str) -> None:
    capture = config.pluginmanager.get_plugin("capturemanager")
    # Not by the reporter: it counts what it writes, to know where the percentage of a line goes.
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        sys.stdout.write(text)
        sys.stdout.flush()
