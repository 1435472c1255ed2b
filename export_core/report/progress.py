"""What a person sees while a matrix runs: a bar on a terminal, a line for each finished reader elsewhere."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from export_core.judge import Judgement, Result
from export_core.matrix import Plan


class RunProgress:
    """Follows a run. Use as a context manager; tell it each result."""

    def __init__(self, console: Console, plan: Plan, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._left = Counter(cell.reader.pair for cell in plan.cells)
        self._verdicts: dict[str, Counter[str]] = {}
        self._total = len(plan.cells)
        self._done = 0
        self._broken = 0
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            columns = ("[progress.description]{task.description}", TextColumn("{task.fields[broken]}", style="red"))
            self._bar = Progress(
                *columns, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=console
            )
            self._task = self._bar.add_task("cells", total=self._total, broken="")

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def note(self, text: str) -> None:
        """Something beside the cells, such as an environment that is ready."""
        if not self._quiet:
            self._console.print(f"  {text}", style="bright_black", highlight=False)

    def result(self, result: Result) -> None:
        """One more cell has ended."""
        self._done += 1
        self._broken += result.judgement is Judgement.BROKEN
        reader = f"{result.reader.jaxlib}-jax{result.reader.jax}"
        self._left[reader] -= 1
        self._verdicts.setdefault(reader, Counter())[result.verdict] += 1
        if self._bar:
            self._bar.update(self._task, advance=1, broken=f"{self._broken} broken" if self._broken else "")
        elif not self._quiet and not self._left[reader]:
            counts = ", ".join(f"{count} {name}" for name, count in sorted(self._verdicts[reader].items()))
            self._console.print(
                f"[{self._done}/{self._total}] jaxlib {result.reader.jaxlib}: {counts}", markup=False, highlight=False
            )
