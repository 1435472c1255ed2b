"""The progress of a matrix run, as a bar or as lines in a log: environments, promised cells, causes, the time left."""

import datetime
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from export_core.base.layout import wrapped
from export_core.base.phrases import first_line, plural
from export_core.judge import Judgement, Result
from export_core.judge.causes import cell_signature
from export_core.matrix import Plan
from export_core.releases import Release
from export_core.report.wording import counts_line

SILENCE_SECONDS = 30.0  # The longest time without a line in a log: a run that writes nothing looks like one that hangs.
SPEED_SECONDS = 120.0  # The time over which the speed is averaged for the estimate of the time left.
MOST_FAILURES = 20  # Failures that are shown as they happen, the first of each kind; the report at the end has all.


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
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._failures: Counter[Judgement] = Counter()
        self._flaky = 0
        self._promised = 0
        self._all_promised = sum(cell.promised for cell in plan.cells)
        self._kinds: set[tuple[Judgement, tuple[str, ...]]] = set()
        self._ready: set[str] = set()
        self._last_line = clock()
        # A dumb terminal cannot redraw a line: it gets those of a log.
        self._has_bar = console.is_interactive and not console.is_dumb_terminal and not quiet
        self._bar = Progress(
            TextColumn("{task.fields[state]}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._has_bar,
            expand=True,
            speed_estimate_period=SPEED_SECONDS,
            get_time=clock,
        )
        self._task = self._bar.add_task("cells", total=len(plan.cells), state=self._short_state())

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
        self._bar.update(self._task, state=self._short_state())

    def result(self, result: Result) -> None:
        """Count the result of a cell."""
        reader = result.reader.pair
        self._left[reader] -= 1
        self._verdicts[reader, result.verdict] += 1
        self._ready.add(reader)
        self._failures[result.judgement] += 1
        self._flaky += bool(result.flaky)
        self._promised += result.promised
        if result.judgement.is_urgent:
            self._show_failure(result)
        self._bar.update(self._task, advance=1, state=self._short_state())
        if result.promised and self._promised == self._all_promised and any(self._left.values()):
            self._line(f"{self._promised_cells()}{self._failed_so_far()}; the cells that are left were not promised")
        if self._has_bar:
            return
        # In a log: a line when a reader is done, and else one often enough to show that the run is alive.
        task = self._bar.tasks[0]
        count = f"[{task.completed:.0f}/{task.total:.0f}]"
        if not self._left[reader]:
            counts = counts_line({name: count for (of, name), count in sorted(self._verdicts.items()) if of == reader})
            self._line(f"{count} {result.reader.title}: {counts}{self._state()}")
        elif self._clock() - self._last_line > SILENCE_SECONDS:
            self._line(f"{count}{self._state()}")

    def _show_failure(self, result: Result) -> None:
        """Show the first failure of each kind: the others are counted."""
        kind = result.judgement, cell_signature(result)
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        if len(self._kinds) <= MOST_FAILURES:
            message = first_line(result.message) or str(result.verdict)
            text = f"  {result.judgement}: {result.golden} in {result.reader.title}: {message}"
            self._line(text, style="red")
        elif len(self._kinds) == MOST_FAILURES + 1:
            self._line("  further failures are only counted here; the report at the end lists them", style="red")

    def _line(self, text: str, style: str | None = None) -> None:
        if not self._quiet:
            self._last_line = self._clock()
            first = text[: len(text) - len(text.lstrip())]
            for line in wrapped(text.strip(), self._console.width, first, len(first) + 2):
                self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _environments(self) -> str:
        return f"environments {len(self._ready)}/{self._readers}"

    def _promised_cells(self) -> str:
        """``promised: 812 of 1,350, 2 causes``."""
        promised = (
            f"promised: {self._promised:,} of {self._all_promised:,}" if self._all_promised else "nothing promised"
        )
        causes = sum(judgement is Judgement.BROKEN for judgement, _ in self._kinds)
        return f"{promised}, {plural(causes, 'cause')}" if causes else promised

    def _failed_so_far(self) -> str:
        bad = [name for name in Judgement if name.facts.badness and name is not Judgement.OUTSIDE]
        counts = {**{name.value: self._failures[name] for name in bad}, "flaky": self._flaky}
        failures = counts_line({name: count for name, count in counts.items() if count})
        return f" · so far {failures}" if failures else ""

    def _short_state(self) -> str:
        """What a bar has room for: environments only until all are built."""
        building = f"{self._environments()} · " if len(self._ready) < self._readers else ""
        return f"{building}{self._promised_cells()}"

    def _state(self) -> str:
        """Promised cells, environments, failures so far and the time left: the end of a line in a log."""
        left = self._bar.tasks[0].time_remaining
        time_left = f" · about {datetime.timedelta(seconds=round(left))} left" if left else ""
        return f" · {self._promised_cells()} · {self._environments()}{self._failed_so_far()}{time_left}"
