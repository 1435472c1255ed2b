"""The replay of cells on this machine: outcomes of earlier runs where they may be used, else cold processes."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from typing import Protocol

from export_core.matrix.cache_keys import OutcomeKeys, depends_on_more
from export_core.matrix.outcome import Outcome
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import EnvironmentProvider, Notify, no_notes, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.build import cache_folder
from export_core.readers.cell import Cell
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.hardware import resolve_mode, shares_device
from export_core.readers.placement import Placement
from export_core.releases import Release

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


def replay_here(
    cells: Sequence[Cell],
    options: ReplayOptions,
    *,
    notify: Notify = no_notes,
    ready: Callable[[Release], None] = lambda release: None,
) -> Generator[Outcome, None, None]:
    """One outcome for each cell.

    A cell of mode `auto` becomes one to run where its device is on this machine, else one to compile: its outcome has
    the mode that it was run in. Where modules are dumped, every cell is run and nothing is stored. `ready` is called
    with each reader whose environment is built, from several threads.
    """
    cells = [replace(cell, mode=resolve_mode(cell.mode, cell.platform)) for cell in cells]
    # One event for both: when the replay ends early, so do the environments that are being built for it.
    stopping = threading.Event()
    run = functools.partial(replay, options=options, notify=notify, stopping=stopping)
    # Its locks are released when the replay has ended, and with it every process that runs in one of the environments.
    with ReaderEnvironments.of(
        options.policy, options.calendar, options.sources, stopping=stopping, notify=notify, ready=ready
    ) as environments:
        if options.dump:
            yield from run(cells, environments.build)
            return
        with OutcomeCache(cache_folder(), notify) as cache:
            yield from replay_unknown(cells, cache, environments, options, run, notify)
