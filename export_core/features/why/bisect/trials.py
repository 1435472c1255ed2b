"""The trials of a bisection: one golden in many releases, each run once and stored, so that it can be resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.processes import deciding_variables
from export_core.features.why.bisect import mixed_pairs
from export_core.features.why.choice import Choice
from export_core.judge import Result, judge
from export_core.judge.result import release_name
from export_core.matrix import Cell, Outcome, cached_replay
from export_core.matrix.cache_keys import code, machine
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy.run_options import of_cell
from export_core.readers.environment import cell_variables
from export_core.releases import Release
from export_core.run.journal import make_folder
from export_core.run.plan_record import hash_of, policy_hash


class Trials:
    """The results of the golden of a choice, by release. A context manager.

    Outcomes are stored in a folder of the project too. The usual cache has none of an accelerator, nor those of a
    user's comparators, and may be of another machine.

    Args:
        choice: the cell.
        options: how it is run in each release.
        folder: where outcomes are stored. A run never fails because it cannot be written: `notify` says so.
        resume: take outcomes that are in the folder, of the same golden, run in the same way.
        notify: called with a line about each release that was run, and about what happens beside it.
    """

    def __init__(
        self, choice: Choice, options: ReplayOptions, folder: Path, *, resume: bool, notify: Callable[[str], None]
    ) -> None:
        try:
            make_folder(folder)
        except OSError as error:
            notify(f"{folder}: cannot be made, so that nothing can be resumed: {error.strerror or error}")
        self.results: dict[Release, Result] = {}
        self.options = options
        self._choice = choice
        self._cache = OutcomeCache(folder, notify)
        self._resume = resume
        self._notify = notify

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *exception: object) -> None:
        self._cache.close()

    def __getitem__(self, release: Release) -> Result:
        self.run([release])
        return self.results[release]

    def run(self, releases: Iterable[Release]) -> None:
        """Run the releases that were not run yet."""
        left = [release for release in dict.fromkeys(releases) if release not in self.results]
        # Closed at once when Ctrl-C ends the loop: this stops the cells that are running.
        with closing(self._outcomes([self._choice.cell_in(release) for release in left])) as outcomes:
            for outcome in outcomes:
                self.results[outcome.cell.reader] = result = judge(outcome, self.options.policy)
                self._notify(f"{release_name(result.reader)}: {result_line(result)}")

    def run_pair(self, jax_of: Release, jaxlib_of: Release) -> Result:
        """The result with the jax of one release on the jaxlib of another; not_run where they cannot be paired."""
        cell = self._choice.cell_in(Release(jaxlib_of.jaxlib, jax_of.jax, jaxlib_of.built))
        if (outcome := self._stored(cell)) is None:
            outcome = self._store(mixed_pairs.replay_pair(cell, jax_of, jaxlib_of, self.options, self._notify))
        return judge(outcome, self.options.policy)

    def _outcomes(self, cells: Sequence[Cell]) -> Generator[Outcome, None, None]:
        left = []
        for cell in cells:
            if outcome := self._stored(cell):
                yield outcome
            else:
                left.append(cell)
        if left:
            with closing(cached_replay.replay_here(left, self.options, notify=self._notify)) as outcomes:
                for outcome in outcomes:
                    yield self._store(outcome)

    def _stored(self, cell: Cell) -> Outcome | None:
        key = _key(cell, self.options)
        cached = self._cache.get([key]).get(key) if self._resume else None
        return cached.for_cell(cell) if cached else None

    def _store(self, outcome: Outcome) -> Outcome:
        self._cache.put(_key(outcome.cell, self.options), outcome)
        return outcome


def result_line(result: Result) -> str:
    """What happened to a cell, in a line: ``crash in stage run: died by signal 11 (SIGSEGV)``."""
    if result.verdict.works:
        return str(result.verdict)
    message = "".join(f": {line}" for line in result.message.strip().splitlines()[:1])
    return f"{result.verdict} in stage {result.stage}{message}"


def _key(cell: Cell, options: ReplayOptions) -> str:
    """The name of an outcome: all that decides it, but for what is in the environment, which may not be built yet."""
    variables = cell_variables(cell.placement, options.policy.environment)
    parts: list[Any] = [
        *(hash_of(cell.golden.manifest), str(cell.key), cell.mode, str(cell.target)),
        *(options.sources.content(cell.reader), policy_hash(msgspec.to_builtins(options.policy))),
        *(*of_cell(options.limits).values(), deciding_variables(variables), code(), machine()),
    ]
    return hashlib.sha256(msgspec.msgpack.encode(parts, order="deterministic")).hexdigest()
