"""What a person sees while a matrix runs: a bar on a terminal, lines in a log. Environments, cells, failures so far, the time left."""

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
from export_core.report.words import first_line

SILENCE_SECONDS = 30.0
"""A log that says nothing for longer looks like a run that hangs."""
SPEED_SECONDS = 120.0
"""How far back the speed is looked at that the time left is told by."""
MOST_FAILURES = 20
"""Failures that are shown as they come; the report at the end has all."""
_FAILURES = (Judgement.BROKEN, Judgement.INCOMPLETE, Judgement.KNOWN)


class RunProgress:
    """Follows a run. Use as a context manager; tell it each result."""

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
        self._told = clock()
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
        self._terminal = console.is_terminal and not quiet
        self._bar = Progress(
            *columns,
            console=console,
            disable=not self._terminal,
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
        """The environment of a reader stands. May be told by any thread."""
        self._ready.add(reader.pair)
        self._bar.update(self._task, ready=self._environments())

    def result(self, result: Result) -> None:
        """One more cell has ended."""
        reader = f"{result.reader.jaxlib}-jax{result.reader.jax}"
        self._left[reader] -= 1
        self._verdicts.setdefault(reader, Counter())[result.verdict] += 1
        self._ready.add(reader)
        self._failures[result.judgement] += result.judgement in _FAILURES
        self._flaky += bool(result.flaky)
        self._bar.update(self._task, advance=1, ready=self._environments(), failures=self._failed())
        if result.judgement in (Judgement.BROKEN, Judgement.INCOMPLETE):
            self._failure(result)
        if not self._terminal and not self._left[reader]:
            counts = ", ".join(f"{count} {name}" for name, count in sorted(self._verdicts[reader].items()))
            self._line(f"[{self._count()}] jaxlib {result.reader.jaxlib}: {counts}{self._standing()}")
        elif not self._terminal and self._clock() - self._told > SILENCE_SECONDS:
            self._line(f"[{self._count()}]{self._standing()}")

    def _failure(self, result: Result) -> None:
        shown = self._failures[Judgement.BROKEN] + self._failures[Judgement.INCOMPLETE]
        if shown <= MOST_FAILURES:
            what = first_line(result.message) or str(result.verdict)
            self._line(f"  {result.judgement}: {result.golden} in jaxlib {result.reader.jaxlib}: {what}", style="red")
        elif shown == MOST_FAILURES + 1:
            self._line("  further failures are counted here, and told at the end", style="red")

    def _line(self, text: str, style: str | None = None) -> None:
        if not self._quiet:
            self._told = self._clock()
            self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def _count(self) -> str:
        task = self._bar.tasks[0]
        return f"{task.completed:.0f}/{task.total:.0f}"

    def _environments(self) -> str:
        return f"{len(self._ready)}/{self._readers}"

    def _failed(self) -> str:
        counts = {**{name.value: self._failures[name] for name in _FAILURES}, "flaky": self._flaky}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)

    def _standing(self) -> str:
        """What a line of a log ends with."""
        failed, left = self._failed(), self._bar.tasks[0].time_remaining
        parts = [f"environments {self._environments()}", *([f"so far {failed}"] if failed else [])]
        parts += [f"about {datetime.timedelta(seconds=round(left))} left"] if left else []
        return f" · {' · '.join(parts)}"
