"""The replay of cells on this machine: outcomes of earlier runs where they may be used, else cold processes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from export_core.environments.build import cache_folder
from export_core.environments.download_size import download, told
from export_core.environments.environment import Environment, build_environment, standing_environment
from export_core.environments.hardware import settled
from export_core.environments.placement import Placement
from export_core.matrix.cached_replay import replay_unknown
from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.limits import ReplayOptions
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import Notify, no_notes, replay
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
    the mode that it was run in. Where modules are dumped, every cell is run and nothing is stored. `ready` is told each
    reader whose environment is built, from several threads.
    """
    cells = [replace(cell, mode=settled(cell.mode, cell.platform)) for cell in cells]
    stopping = threading.Event()
    environments = ReaderEnvironments(options, stopping, notify, ready)
    run = functools.partial(replay, options=options, notify=notify, stopping=stopping)
    if options.dump:
        yield from run(cells, environments.build)
        return
    with OutcomeCache(cache_folder(), notify) as cache:
        yield from replay_unknown(cells, cache, environments, options, run, notify)


class ReaderEnvironments:
    """The environments of a run's readers, in the cache folder of this user."""

    def __init__(
        self,
        options: ReplayOptions,
        stopping: threading.Event,
        notify: Notify,
        ready: Callable[[Release], None],
    ) -> None:
        self._calendar = options.calendar
        self._sources = options.sources
        self._stopping = stopping
        self._notify = notify
        self._ready = ready

    def find(self, placement: Placement) -> Environment | None:
        """See `Environments.find`."""
        return standing_environment(placement.reader, self._calendar, self._sources, placement)

    def build(self, placement: Placement) -> Environment:
        """See `Environments.build`."""
        environment = build_environment(
            placement.reader,
            self._calendar,
            self._sources,
            self._stopping,
            placement,
            functools.partial(self._notify_download, placement),
            self._notify,
        )
        self._ready(placement.reader)
        return environment

    def _notify_download(self, placement: Placement, requirements: tuple[str, ...], python: str) -> None:
        """Say how much is to be fetched for a plugin, which may be gigabytes."""
        if placement.name and (size := told(download(requirements, python, self._sources.options()))):
            reader = placement.reader.jaxlib
            self._notify(f"environment of jaxlib {reader} for {placement.name}: {size}, unless uv has it already")
