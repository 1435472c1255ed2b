"""The progress of a matrix run, as a bar or as lines in a log: environments, promised cells, causes, the time left."""

import datetime
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from export_core.base.layout import wrapped
from export_core.base.text import first_line, plural
from export_core.judge import Judgement, Result
from export_core.judge.causes import cell_signature
from export_core.matrix import Plan, Verdict
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release
from export_core.releases.calendar import titles_among
from export_core.report.wording import counts_line

SILENCE_SECONDS = 30.0  # The longest time without a line in a log: a run that writes nothing looks like one that hangs.
TERMINAL_SILENCE = 10.0  # The seconds without a result after which a terminal shows which cell runs.
SPEED_SECONDS = 60.0  # The speed is measured over the last 60 s, or over the last half of the run if that is longer.
OF_PROMISED = 0.7  # The expected cost of an unpromised cell, as a part of a promised cell's, until some have run.
START_FACTOR, END_FACTOR = 2.0, 1.15
"""The range is from the estimate divided by a factor to the estimate times the factor.

The first factor is that at the start, when no cell has ended, and the second is that at the end.
"""
NARROWING = 4  # The factor falls with this power of the part of cells left: with half left, 1/16 of the fall is left.
BUILDING = 1 / 4  # The part of a build's time by which it delays cells: environments are built while cells run.
MOST_UNCERTAIN = 1 / 3  # No time is shown while the mean of the cells' times may be off by more than this part of it.
LEAST_OF_CELLS = 1 / 3  # At least this part of the time counts as that of cells, however many environments were built.
MOST_FAILURES = 20  # Failures that are shown as they happen, the first of each kind; the report at the end has all.


def is_redrawn(console: Console) -> bool:
    """Return whether a console can redraw a line, and so shows a progress bar. A dumb terminal gets lines of a log."""
    return console.is_interactive and not console.is_dumb_terminal


class TimeLeft:
    """An estimate of the time that a run still takes: a range of seconds, which narrows as cells end.

    The time of a cell depends on its reader, since old readers refuse what new readers run. Deciding cells run first.
    Until some unpromised cells of a reader have run, each is expected to take a fixed part of the time of a promised
    cell. Unpromised cells of other readers say little: the old readers come first, and refuse most.

    `cells` counts the cells by the name of their reader and whether they are promised.
    """

    def __init__(self, cells: Counter[tuple[str, bool]], clock: Callable[[], float]) -> None:
        self._left = Counter(cells)
        self._clock = clock
        self._started = clock()
        self._ready: set[str] = set()
        # All keys from the start: a bar asks from another thread, and none of them may be added meanwhile.
        self._cells = Counter(dict.fromkeys(cells, 0))
        self._costs = dict.fromkeys(cells, 0.0)  # The seconds of the cells that have ended, added up.
        self._squares = 0.0  # The squares of these seconds, added up.
        self._longest = 0.0  # The longest of these times.
        self._done: list[tuple[float, float, int]] = []  # Time, sum of costs, number of environments; once a second.
        self._began: tuple[float, float, int] | None = None  # These when the first cell began that has ended.
        self._environments = 0
        self._seconds_an_environment = 0.0
        self._ended = 0.0  # When something ended last.

    def environment(self, reader: str) -> None:
        """Count an environment that was found or built. `reader` is the name of its reader."""
        self._ready.add(reader)
        self._environments += 1
        self._ended = self._now()

    def cell(self, reader: str, promised: bool, cost: float) -> None:
        """Count a cell that has ended; `cost` is its time in seconds."""
        self._left[reader, promised] -= 1
        # Results of an earlier run come at once, before any environment is built: they show nothing about the speed.
        if self._environments or self._now() > 5:
            self._ready.add(reader)
            self._cells[reader, promised] += 1
            self._ended = now = self._now()
            self._began = self._began or (max(now - cost, 0.0), 0.0, self._environments)
            self._costs[reader, promised] += cost
            self._squares += cost * cost
            self._longest = max(self._longest, cost)
            self._seconds_an_environment = self._seconds_an_environment or now / max(self._environments, 1)
            if not self._done or now - self._done[-1][0] >= 1:
                self._done.append((now, sum(self._costs.values()), self._environments))

    def range(self) -> tuple[float, float] | None:
        """Return the least and the most seconds that the run may still take; None if unknown, or if no cell is left.

        They are unknown until some cells have ended, and while the times of these differ too much for a mean.
        """
        if not self._left.total() or self._cells.total() < 3 or self._ended - self._done[0][0] < 2:
            return None
        if self._uncertainty() > MOST_UNCERTAIN:
            return None
        silent = self._now() - self._ended
        # While nothing ends, the time passes; and the longer nothing ends, the longer the next may take.
        seconds = max(self._seconds() - silent, silent)
        left = self._left.total()
        factor = END_FACTOR + (START_FACTOR - END_FACTOR) * (left / (left + self._cells.total())) ** NARROWING
        return seconds / factor, seconds * factor

    def __format__(self, before: str) -> str:
        """Return the text `before` and the range, such as ``0:02:40 to 0:04:10``; "" while the range is not known."""
        seconds = self.range()
        times = [str(datetime.timedelta(seconds=round(end))) for end in seconds or ()]
        return f"{before}{' to '.join(times)}" if times else ""

    def __str__(self) -> str:
        return f"{self}"

    def _now(self) -> float:
        return self._clock() - self._started

    def _seconds(self) -> float:
        """Return how many seconds the remaining cells and builds will take, estimated when the last one ended."""
        measured = self._ended - self._done[0][0]
        # So long that the cells that ended meanwhile also began then: else the time of a long one looks like speed.
        since = self._ended - max(SPEED_SECONDS, measured / 2, self._longest)
        first = self._began if self._began and self._longest > measured else self._done[0]
        began, cost_then, built_then = next((done for done in reversed(self._done) if done[0] <= since), first)
        seconds_of_a_build = self._seconds_an_environment * BUILDING
        passed = self._ended - began
        of_cells = max(passed - (self._environments - built_then) * seconds_of_a_build, passed * LEAST_OF_CELLS)
        seconds_a_cost = of_cells / ((sum(self._costs.values()) - cost_then) or 1.0)
        to_build = {reader for (reader, _), cells in self._left.items() if cells} - self._ready
        return seconds_a_cost * self._cost_left() + len(to_build) * seconds_of_a_build

    def _cost_left(self) -> float:
        """Return the expected cost in seconds of all cells that have not ended."""
        promised, others = ([kind for kind in self._cells if kind[1] is of_promised] for of_promised in (True, False))
        typical = self._mean(promised, 0.0, 0) or self._mean(others, 0.0, 0) / OF_PROMISED
        return sum(
            left * self._mean([kind], typical * (1.0 if kind[1] else OF_PROMISED), 5)
            for kind, left in self._left.items()
        )

    def _uncertainty(self) -> float:
        """Return the standard error of the mean time of all ended cells, as a fraction of that mean."""
        cells, mean = self._cells.total(), sum(self._costs.values()) / self._cells.total()
        variance = max(self._squares / cells - mean * mean, 0.0)
        return (variance / (cells - 1)) ** 0.5 / mean if mean else 0.0

    def _mean(self, kinds: Collection[tuple[str, bool]], expected: float, weight: int) -> float:
        """Return the mean cost of ended cells of these kinds, and of `weight` imaginary cells of cost `expected`.

        A kind is the name of a reader, and whether the cells are promised.
        """
        cells = weight + sum(self._cells.get(kind, 0) for kind in kinds)
        return (weight * expected + sum(self._costs.get(kind, 0.0) for kind in kinds)) / cells if cells else 0.0


class RunProgress:
    """A context manager that shows the progress of a run, in which the method `result` is called with every result."""

    def __init__(
        self, console: Console, plan: Plan, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._left = Counter(cell.reader.pair for cell in plan.cells)
        self._readers = len(self._left)
        self._titles = titles_among({cell.reader for cell in plan.cells})
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._failures: Counter[str] = Counter()  # The failures by judgement, and flaky cells.
        self._promised = self._decided = self._left_out = 0
        self._all_promised = sum(cell.promised for cell in plan.cells)
        self._deciding = sum(cell.decides for cell in plan.cells)
        # Counted as planned: of a runtime, the judgement leaves out of the promise what only a run shows.
        self._planned = {cell.key: cell.promised for cell in plan.cells if cell.reader.runtime}
        self._kinds: set[tuple[Judgement, tuple[str, ...]]] = set()
        self._ready: set[str] = set()
        self._last_line = clock()
        self._time_left = TimeLeft(Counter((cell.reader.pair, cell.promised) for cell in plan.cells), clock)
        self._has_bar = is_redrawn(console) and not quiet
        self._bar = Progress(
            TextColumn("{task.fields[state]}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]:left }"),
            console=console,
            disable=not self._has_bar,
            expand=True,
            get_time=clock,
        )
        self._task = self._bar.add_task("cells", total=len(plan.cells), state=self._short_state(), left=self._time_left)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Show a line about an event other than the result of a cell, such as the death of a worker."""
        self._line(f"  {text}", style="bright_black")

    def environment(self, reader: Release) -> None:
        """Count a reader whose environment was found or built. Any thread may call this."""
        self._ready.add(reader.pair)
        self._time_left.environment(reader.pair)
        self._bar.update(self._task, state=self._short_state())

    def result(self, result: Result) -> None:
        """Count the result of a cell, and show the progress. The first failure of each urgent kind is shown too."""
        reader = result.reader.pair
        self._left[reader] -= 1
        self._verdicts[reader, result.verdict] += 1
        if result.stage is not Stage.ENVIRONMENT:  # an environment that could not be built is not counted
            self._ready.add(reader)
        self._failures.update([result.judgement, *(["flaky"] if result.flaky else [])])
        promised = self._planned.get(result.key, result.promised)
        self._promised += promised and result.verdict is not Verdict.NOT_RUN
        self._left_out += promised and not result.promised
        decides = promised or bool(result.deployed)
        self._decided += decides
        self._time_left.cell(reader, promised, result.seconds)
        if result.judgement.is_urgent:
            self._show_failure(result)
        self._bar.update(self._task, advance=1, state=self._short_state())
        if decides and self._decided == self._deciding and any(self._left.values()):
            others = "were not promised"
            if self._deciding > self._all_promised:
                others = "are neither promised nor of a deployment target"
            self._line(f"{self._promised_cells()}{self._failed_so_far()}; the cells that are left {others}")
        if self._has_bar:
            return
        # In a log: a line when a reader is done, and else one often enough to show that the run is alive.
        task = self._bar.tasks[0]
        count = f"[{task.completed:.0f}/{task.total:.0f}]"
        if not self._left[reader]:
            counts = counts_line({name: count for (of, name), count in sorted(self._verdicts.items()) if of == reader})
            self._line(f"{count} {self._title(result.reader)}: {counts}{self._state()}")
        elif self._clock() - self._last_line > SILENCE_SECONDS:
            self._line(f"{count}{self._state()}")

    def _show_failure(self, result: Result) -> None:
        """Show a failure if it is the first of its kind. After `MOST_FAILURES` kinds, failures are only counted."""
        kind = result.judgement, cell_signature(result)
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        if len(self._kinds) <= MOST_FAILURES:
            message = first_line(result.message) or str(result.verdict)
            self._line(f"  {result.judgement}: {result.golden} in {self._title(result.reader)}: {message}", style="red")
        elif len(self._kinds) == MOST_FAILURES + 1:
            self._line("  further failures are only counted here; the report at the end lists them", style="red")

    def _title(self, reader: Release) -> str:
        return self._titles.get(reader, reader.title)

    def _line(self, text: str, style: str | None = None) -> None:
        if not self._quiet:
            self._last_line = self._clock()
            first = text[: len(text) - len(text.lstrip())]
            for line in wrapped(text.strip(), self._console.width, first, len(first) + 2):
                self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _environments(self) -> str:
        return f"environments {len(self._ready)}/{self._readers}"

    def _promised_cells(self, what: str = "promised cells") -> str:
        """Return the progress of the promised cells in words: ``promised cells done: 812 of 1,350, 2 causes``.

        Cells that another runtime refused for a reason that its promise excludes count here, and are named as outside;
        the report leaves them out.
        """
        # "promised: 2 of 2" would read as two promises kept.
        done = f"{what} done: {self._promised:,} of {self._all_promised:,}"
        done += f", {self._left_out:,} of them outside" if self._left_out else ""
        promised = done if self._all_promised else "nothing promised"
        causes = sum(judgement is Judgement.BROKEN for judgement, _ in self._kinds)
        return f"{promised}, {plural(causes, 'cause')}" if causes else promised

    def _failed_so_far(self) -> str:
        bad = [name for name in Judgement if name.facts.badness and name is not Judgement.OUTSIDE]
        failures = counts_line({name: count for name in (*bad, "flaky") if (count := self._failures[name])})
        return f" · so far {failures}" if failures else ""

    def _short_state(self) -> str:
        """Return the text beside the progress bar: the environments until all are built, and the promised cells."""
        building = f"{self._environments()} · " if len(self._ready) < self._readers else ""
        return f"{building}{self._promised_cells('promised')}"  # In 80 columns there is room for one word.

    def _state(self) -> str:
        """Return the end of a progress line in a log: promised cells, environments, failures so far, time left."""
        time_left = f" · {text} left" if (text := str(self._time_left)) else ""
        return f" · {self._promised_cells()} · {self._environments()}{self._failed_so_far()}{time_left}"
