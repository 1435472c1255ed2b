"""The outcomes of a bisection, stored where it was started: an interrupted one continues, whatever the usual cache has.

The usual cache has no outcomes of an accelerator, nor those of a user's comparators, and may be of another machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.variables import deciding_variables
from export_core.features.why.bisection.blame import ReplayPair
from export_core.features.why.bisection.trials import Replay
from export_core.matrix import Cell, Outcome
from export_core.matrix.cache_keys import code, machine
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy.run_options import of_cell
from export_core.readers.environment import cell_variables
from export_core.releases import Release
from export_core.run.journal import make_folder
from export_core.run.plan_record import hash_of, policy_hash

BISECTED = "bisected"
"""The folder of these outcomes, inside that of results."""


class StoredTrials:
    """Stores what two replays give; use it as a context manager.

    Args:
        folder: where outcomes are stored. A run never fails because it cannot be written: `notify` says so.
        replay: runs cells.
        replay_pair: runs a cell in a pair that is made by hand.
        resume: take outcomes that are in the folder, of the same golden, run in the same way.
        notify: called with a line about what happens.
    """

    def __init__(
        self, folder: Path, replay: Replay, replay_pair: ReplayPair, *, resume: bool, notify: Callable[[str], None]
    ) -> None:
        try:
            make_folder(folder)
        except OSError as error:
            notify(f"{folder}: cannot be made, so that nothing can be resumed: {error.strerror or error}")
        self._cache = OutcomeCache(folder, notify)
        self._replay = replay
        self._replay_pair = replay_pair
        self._resume = resume

    def __enter__(self) -> StoredTrials:
        return self

    def __exit__(self, *exception: object) -> None:
        self._cache.close()

    def replay(self, cells: Sequence[Cell], options: ReplayOptions) -> Generator[Outcome, None, None]:
        """See `Replay`."""
        left = []
        for cell in cells:
            if outcome := self._stored(cell, options):
                yield outcome
            else:
                left.append(cell)
        if left:
            with closing(self._replay(left, options)) as outcomes:
                for outcome in outcomes:
                    yield self._store(outcome, options)

    def replay_pair(self, cell: Cell, jax_of: Release, jaxlib_of: Release, options: ReplayOptions) -> Outcome:
        """See `ReplayPair`."""
        return self._stored(cell, options) or self._store(self._replay_pair(cell, jax_of, jaxlib_of, options), options)

    def _stored(self, cell: Cell, options: ReplayOptions) -> Outcome | None:
        key = _key(cell, options)
        cached = self._cache.get([key]).get(key) if self._resume else None
        return cached.for_cell(cell) if cached else None

    def _store(self, outcome: Outcome, options: ReplayOptions) -> Outcome:
        self._cache.put(_key(outcome.cell, options), outcome)
        return outcome


def _key(cell: Cell, options: ReplayOptions) -> str:
    """The same for a cell that is run again in the same way: all that decides it, but for what is in its environment.

    Which that is, nobody knows before it is built.
    """
    variables = cell_variables(cell.placement, options.policy.environment)
    parts: list[Any] = [
        *(
            hash_of(cell.golden.manifest),
            str(cell.key),
            cell.mode,
            str(cell.target),
            options.sources.content(cell.reader),
        ),
        *(policy_hash(msgspec.to_builtins(options.policy)), *of_cell(options.limits).values()),
        *(deciding_variables(variables), code(), machine()),
    ]
    return hashlib.sha256(msgspec.msgpack.encode(parts, order="deterministic")).hexdigest()
