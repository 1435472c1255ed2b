"""The progress of a long command: a line on stderr for each step, and on a terminal a spinner below."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from export_core.cli.click_options import console
from export_core.report.progress import SILENCE_SECONDS

Item = TypeVar("Item")

_LOOK_SECONDS = 1.0  # The seconds after which a log counts as silent.


class Steps:
    """A context manager that shows the progress of a command on stderr; it can be entered repeatedly.

    Call the object, from any thread, with a line of text for each step. Inside the `with` block, a terminal shows a
    spinner with the seconds since the last line, and a log gets a line after `SILENCE_SECONDS` without output. Other
    code may print only outside the block.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console, self._quiet = console(stderr=True), quiet
        # A dumb terminal cannot redraw a line: it gets the lines of a log.
        self._moves = self._console.is_interactive and not self._console.is_dumb_terminal and not quiet
        columns = SpinnerColumn(), TextColumn("working,"), TimeElapsedColumn()
        self._bar = Progress(
            *columns, console=self._console, transient=True, disable=not self._moves,
            redirect_stdout=False, redirect_stderr=False,  # else other code's stdout would go to stderr
        )  # fmt: skip
        self._task = self._bar.add_task("")
        self._last = time.monotonic()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._bar.start()
        if not (self._moves or self._quiet):
            self._ended = threading.Event()
            threading.Thread(target=self._break_silence, args=(self._ended,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._bar.stop()

    def __call__(self, text: str) -> None:
        """Print a line of text on stderr, unless the object was made with `quiet`."""
        if not self._quiet:
            self._last = time.monotonic()
            self._bar.reset(self._task)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield `items`, and show the progress display only while the next item is being made."""
        left = iter(items)
        while True:
            with self:
                try:
                    item = next(left)
                except StopIteration:
                    return
            yield item

    def _break_silence(self, ended: threading.Event) -> None:
        begun = self._last
        while not ended.wait(_LOOK_SECONDS):
            if time.monotonic() - self._last > SILENCE_SECONDS:
                seconds = time.monotonic() - begun
                self(f"  still running, for {seconds:.0f} s")
