"""How are cells run on this machine: from earlier runs where it may be, else cold?"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from export_core.environments.build import cache_folder
from export_core.environments.environment import PUBLISHED, Environment, Environments, Sources
from export_core.environments.hardware import resolve_mode
from export_core.environments.placement import Placement
from export_core.matrix.cached_replay import Keys, replay_new
from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.limits import Limits
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import Equipped, replay
from export_core.releases import Calendar, Release
from export_core.tolerances import Tolerances


def replay_here(
    cells: Sequence[Cell],
    calendar: Calendar,
    sources: Sources = PUBLISHED,
    *,
    limits: Limits,
    allow: Mapping[str, str],
    tolerances: Tolerances,
    cache: bool,
    dump: Path | None = None,
    notify: Callable[[str], None] = lambda text: None,
    ready: Callable[[Release], None] = lambda release: None,
) -> Generator[Outcome, None, None]:
    """One outcome for each cell. Environments are built from `sources`; `cache`: take outcomes of equal cells from earlier runs.

    A cell that is to run where it can, and else to be compiled, is settled here: its outcome has the mode in which it was run.
    What is to be dumped, into the folder `dump`, is run whatever is known of it, and not kept.
    `ready` is told each reader whose environment stands, from several threads.
    """
    stopping = threading.Event()
    cells = [replace(cell, mode=resolve_mode(cell.mode, cell.platform)) for cell in cells]

    def build(placement: Placement) -> Environment:
        environment = environments.build(placement)
        ready(placement.reader)
        return environment

    def run(cells: Sequence[Cell], equipped: Equipped) -> Generator[Outcome, None, None]:
        return replay(
            cells,
            lambda reader: equipped(Placement(reader)),
            calendar,
            equipped=equipped,
            limits=limits,
            allow=allow,
            tolerances=tolerances,
            notify=notify,
            dump=dump,
            stopping=stopping,
        )

    with contextlib.ExitStack() as stack:
        environments = stack.enter_context(Environments(calendar, sources, stopping=stopping, notify=notify))
        if dump:
            yield from run(cells, build)
            return
        kept = stack.enter_context(contextlib.closing(OutcomeCache(cache_folder(), notify)))
        yield from replay_new(
            cells,
            kept,
            Keys(calendar, limits, tolerances, allow),
            standing=environments.find_built,
            equipped=build,
            replay=run,
            notify=notify,
            anew=not cache,
        )
