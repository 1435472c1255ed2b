"""A replay that runs only the cells whose outcome no earlier run has stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Protocol

from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.content_keys import OutcomeKeys, depends_on_more
from export_core.matrix.limits import ReplayOptions
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import EnvironmentProvider, Notify, no_notes
from export_core.readers.environment import Environment
from export_core.readers.hardware import shares_device
from export_core.readers.placement import Placement

Replay = Callable[[Sequence[Cell], EnvironmentProvider], Generator[Outcome, None, None]]
"""Runs cells in environments that it asks for."""


class Environments(Protocol):
    """The environments of a run's readers."""

    def find(self, placement: Placement) -> Environment | None:
        """The environment of a placement if it is built; nothing is built, started or waited for."""

    def build(self, placement: Placement) -> Environment:
        """An `EnvironmentProvider`."""


def replay_unknown(
    cells: Sequence[Cell],
    cache: OutcomeCache,
    environments: Environments,
    options: ReplayOptions,
    replay: Replay,
    notify: Notify = no_notes,
    *,
    claim: bool = False,
) -> Generator[Outcome, None, None]:
    """One outcome for each cell: those that the cache has, then those of a replay, which are stored.

    No environment is built or started if every cell of it is known. Unless `options.cache`, every cell is run, and its
    outcome stored all the same. `claim`: other processes may be about to run the same cells, as the workers of
    pytest-xdist; one of them runs each, and the others wait for its outcome.
    """
    known = _KnownOutcomes(cells, cache, environments, options)
    unknown = sorted(cells, key=lambda cell: not cell.decides)  # in the order of a replay
    if options.cache:
        unknown = yield from known.stored(unknown, notify)
    if not unknown:
        return
    claim = claim and options.cache
    with known.claimed(unknown) if claim else nullcontext():
        if claim:  # another process may have run them while this one waited
            unknown = yield from known.stored(unknown, notify)
        with closing(replay(unknown, known.build)) as outcomes:
            for outcome in outcomes:
                yield known.store(outcome)


class _KnownOutcomes:
    """The outcomes of some cells that the cache has, and gets."""

    def __init__(
        self, cells: Sequence[Cell], cache: OutcomeCache, environments: Environments, options: ReplayOptions
    ) -> None:
        self._cache = cache
        self._build = environments.build
        self._keys = OutcomeKeys(options)
        self._builds: Counter[Placement] = Counter()
        # Only what is built already: a key needs the hash of what is installed, and cached cells need no environment.
        self._environments = {
            placement: environments.find(placement) for placement in dict.fromkeys(cell.placement for cell in cells)
        }
        goldens = {cell.golden.id: cell.golden for cell in cells}
        self._not_cached = {name for name, golden in goldens.items() if depends_on_more(golden)}

    def stored(self, cells: Sequence[Cell], notify: Notify) -> Generator[Outcome, None, list[Cell]]:
        """The outcomes that the cache has of these cells. Returns the cells that it does not have."""
        keys = self._named(cells)
        # One request for all: a run in which nothing has changed has a budget of 1 ms a cell (nox -s bench).
        cached = self._cache.get(tuple(keys.values()))
        if cached:
            count = sum(key in cached for key in keys.values())
            notify(f"{count} of {len(cells)} cells have been run before with the same content: not run again")
        unknown = []
        for cell in cells:
            if outcome := cached.get(keys.get(cell.key, "")):
                yield outcome.for_cell(cell)
            else:
                unknown.append(cell)
        return unknown

    def claimed(self, cells: Sequence[Cell]) -> AbstractContextManager[None]:
        """Waits until no other process that claims them runs one of these cells."""
        return self._cache.claimed(tuple(self._named(cells).values()))

    def _named(self, cells: Sequence[Cell]) -> dict[object, str]:
        """The key of each cell that has one, by `CellKey`."""
        return {cell.key: key for cell in cells if (key := self._key(cell))}

    def build(self, placement: Placement) -> Environment:
        """An `EnvironmentProvider` that remembers what it gave."""
        self._builds[placement] += 1
        self._environments[placement] = environment = self._build(placement)
        return environment

    def store(self, outcome: Outcome) -> Outcome:
        """Store an outcome if it may be, and return it, marked where it is flaky."""
        # Asked for again: before the replay, the environment may not have been built.
        key = self._key(outcome.cell)
        return self._cache.put(key, outcome) if key else outcome

    def _key(self, cell: Cell) -> str:
        """The name of a cell's outcome; empty if it is not stored, and while its environment is not built.

        Outcomes of an environment that was asked for again, because something broke, are not stored: nobody knows which
        of them come from the broken one. Nor are those of an accelerator, since no key has the version of its driver.
        """
        environment = self._environments[cell.placement]
        if environment is None or not environment.content_hash or self._builds[cell.placement] > 1:
            return ""
        if cell.golden.id in self._not_cached or shares_device(cell.placement):
            return ""
        return self._keys.of(cell, environment)
