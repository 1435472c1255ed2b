"""The progress of a matrix run, as a bar or as lines in a log: environments, cells, failures so far, the time left."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from export_core.judge import Judgement, Result
from export_core.matrix import Plan
from export_core.releases import Release
from export_core.report.wording import counts_line, first_line

SILENCE_SECONDS = 30.0
"""The longest time without a line in a log: a run that writes nothing looks like one that hangs."""
SPEED_SECONDS = 120.0
"""The time over which the speed is averaged for the estimate of the time left."""
MOST_FAILURES = 20
"""Failures that are shown as they happen; the report at the end has all."""
_FAILURES = (Judgement.BROKEN, Judgement.INCOMPLETE, Judgement.KNOWN)


class RunProgress:
    """The progress of one run. A context manager; every result is passed to `result`."""

    def __init__(
        self, console: Console, plan: Plan, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._left = Counter(cell.reader.pair for cell in plan.cells)
        self._readers = len(self._left)
        self._verdicts: dict[str, Counter[str]] = {}
        self._failures: Counter[Judgement] = Counter()
        self._flaky = 0
        self._ready: set[str] = set()
        self._last_line = clock()
        columns = (
            TextColumn("environments {task.fields[ready]}"),
            TextColumn("cells"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("[red]{task.fields[failures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._on_terminal = console.is_terminal and not quiet
        self._bar = Progress(
            *columns,
            console=console,
            disable=not self._on_terminal,
            speed_estimate_period=SPEED_SECONDS,
            get_time=clock,
        )
        self._task = self._bar.add_task("cells", total=len(plan.cells), ready=self._environments(), failures="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Something beside the cells, such as a worker that died."""
        self._line(f"  {text}", style="bright_black")

    def environment(self, reader: Release) -> None:
        """The environment of a reader is built. May be called from any thread."""
        self._ready.add(reader.pair)
        self._bar.update(self._task, ready=self._environments())

    def result(self, result: Result) -> None:
        """Count the result of a cell."""
        reader = f"{result.reader.jaxlib}-jax{result.reader.jax}"
        self._left[reader] -= 1
        self._verdicts.setdefault(reader, Counter())[result.verdict] += 1
        self._ready.add(reader)
        self._failures[result.judgement] += result.judgement in _FAILURES
        self._flaky += bool(result.flaky)
        self._bar.update(self._task, advance=1, ready=self._environments(), failures=self._failure_counts())
        if result.judgement in (Judgement.BROKEN, Judgement.INCOMPLETE):
            self._show_failure(result)
        # In a log: a line when a reader is done, and else one often enough to show that the run is alive.
        if not self._on_terminal and not self._left[reader]:
            counts = counts_line(dict(sorted(self._verdicts[reader].items())))
            self._line(f"[{self._count()}] jaxlib {result.reader.jaxlib}: {counts}{self._state()}")
        elif not self._on_terminal and self._clock() - self._last_line > SILENCE_SECONDS:
            self._line(f"[{self._count()}]{self._state()}")

    def _show_failure(self, result: Result) -> None:
        shown = self._failures[Judgement.BROKEN] + self._failures[Judgement.INCOMPLETE]
        if shown <= MOST_FAILURES:
            message = first_line(result.message) or str(result.verdict)
            self._line(
                f"  {result.judgement}: {result.golden} in jaxlib {result.reader.jaxlib}: {message}", style="red"
            )
        elif shown == MOST_FAILURES + 1:
            self._line("  further failures are only counted here; the report at the end lists them", style="red")

    def _line(self, text: str, style: str | None = None) -> None:
        if not self._quiet:
            self._last_line = self._clock()
            self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def _count(self) -> str:
        task = self._bar.tasks[0]
        return f"{task.completed:.0f}/{task.total:.0f}"

    def _environments(self) -> str:
        return f"{len(self._ready)}/{self._readers}"

    def _failure_counts(self) -> str:
        counts = {**{name.value: self._failures[name] for name in _FAILURES}, "flaky": self._flaky}
        return counts_line({name: count for name, count in counts.items() if count})

    def _state(self) -> str:
        """Environments, failures so far and the time left: the end of a line in a log."""
        failures, left = self._failure_counts(), self._bar.tasks[0].time_remaining
        parts = [f"environments {self._environments()}", *([f"so far {failures}"] if failures else [])]
        parts += [f"about {datetime.timedelta(seconds=round(left))} left"] if left else []
        return f" · {' · '.join(parts)}"
