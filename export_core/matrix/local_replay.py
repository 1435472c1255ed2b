"""The replay of cells on this machine: outcomes of earlier runs where they may be used, else cold processes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from export_core.matrix.cached_replay import replay_unknown
from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.limits import ReplayOptions
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import Notify, no_notes, replay
from export_core.readers.build import cache_folder
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.hardware import resolve_mode
from export_core.releases import Release


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
