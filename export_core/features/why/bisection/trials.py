"""The trials of a bisection: one golden in many releases, each of which is run once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Protocol

from export_core.features.why.choice import Choice
from export_core.judge import Result, judge
from export_core.judge.result import release_name
from export_core.matrix import Cell, Outcome
from export_core.matrix.replay_options import ReplayOptions
from export_core.releases import Release


class Replay(Protocol):
    """Runs cells: see `replay_here`."""

    def __call__(self, cells: Sequence[Cell], options: ReplayOptions) -> Generator[Outcome, None, None]:
        """One outcome for each cell."""


class Trials:
    """The results of the golden of a choice, by release. `notify` is called with a line about each that was run."""

    def __init__(self, choice: Choice, options: ReplayOptions, replay: Replay, notify: Callable[[str], None]) -> None:
        self.results: dict[Release, Result] = {}
        self.options = options
        self._choice = choice
        self._replay = replay
        self._notify = notify

    def run(self, releases: Iterable[Release]) -> None:
        """Run the releases that were not run yet."""
        left = [release for release in dict.fromkeys(releases) if release not in self.results]
        if not left:
            return
        cells = [self._choice.cell_in(release) for release in left]
        # Closed at once when Ctrl-C ends the loop: this stops the cells that are running.
        with closing(self._replay(cells, self.options)) as outcomes:
            for outcome in outcomes:
                self.results[outcome.cell.reader] = result = judge(outcome, self.options.policy)
                self._notify(f"{release_name(result.reader)}: {happened(result)}")

    def __getitem__(self, release: Release) -> Result:
        self.run([release])
        return self.results[release]


def happened(result: Result) -> str:
    """What happened to a cell, in a line: ``crash in stage run: died by signal 11 (SIGSEGV)``."""
    if result.verdict.works:
        return str(result.verdict)
    message = "".join(f": {line}" for line in result.message.strip().splitlines()[:1])
    return f"{result.verdict} in stage {result.stage}{message}"
