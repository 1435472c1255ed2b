"""How are cells run on this machine: from earlier runs where it may be, else cold?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from export_core.comparing import Tolerances
from export_core.matrix.building import cache_folder
from export_core.matrix.cache import OutcomeCache
from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.environments import (
    PUBLISHED,
    Environment,
    Sources,
    build_environment,
    standing_environment,
)
from export_core.matrix.request import Limits
from export_core.matrix.reuse import Keys, replay_new
from export_core.matrix.run import EnvironmentOf, replay
from export_core.releases import Calendar, Release


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

    What is to be dumped, into the folder `dump`, is run whatever is known of it, and not kept.
    `ready` is told each reader whose environment stands, from several threads.
    """
    stopping = threading.Event()

    def build(release: Release) -> Environment:
        environment = build_environment(release, calendar, sources, stopping)
        ready(release)
        return environment

    def run(cells: Sequence[Cell], environment_of: EnvironmentOf) -> Generator[Outcome, None, None]:
        return replay(
            cells,
            environment_of,
            calendar,
            limits=limits,
            allow=allow,
            tolerances=tolerances,
            notify=notify,
            dump=dump,
            stopping=stopping,
        )

    if dump:
        yield from run(cells, build)
        return
    kept = OutcomeCache(cache_folder(), notify)
    try:
        yield from replay_new(
            cells,
            kept,
            Keys(calendar, limits, tolerances, allow),
            standing=lambda release: standing_environment(release, calendar, sources),
            environment_of=build,
            replay=run,
            notify=notify,
            anew=not cache,
        )
    finally:
        kept.close()
