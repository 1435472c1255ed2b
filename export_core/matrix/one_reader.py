"""Cells outside a matrix, replayed as those of one: with the outputs that they gave, and by a worker that may stay."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from export_core.base.errors import InfrastructureFault
from export_core.goldens import Leaf
from export_core.goldens.arrays import from_npz
from export_core.matrix.outcome import Outcome, Verdict
from export_core.matrix.replay import EnvironmentProvider, Notify, Repairs, no_notes, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.cell import Cell, CellKey
from export_core.readers.environment import Environment
from export_core.readers.worker.client import WarmWorkers, start_worker
from export_core.readers.worker.protocol import Reply, WorkerStarter

_PLAIN = "0.npz"
"""The outputs of the plain call, in the folder of a cell."""


@dataclass(frozen=True)
class Ran:
    """The outcome of a cell; `outputs` are those of its plain call, empty unless it ran.

    `lost`: nothing is known of it, since its worker died or the machine failed. A cell that was killed is not lost.
    """

    outcome: Outcome
    outputs: tuple[Leaf, ...] = ()
    lost: bool = False

    @property
    def works(self) -> bool:
        """Whether it ran, or was compiled where it is only to be compiled."""
        return self.outcome.verdict.works


def replay_with_outputs(
    cells: Sequence[Cell],
    environment_for: EnvironmentProvider,
    options: ReplayOptions,
    *,
    notify: Notify = no_notes,
    start: WorkerStarter = start_worker,
    repairs: Repairs | None = None,
) -> Generator[Ran, None, None]:
    """Run cells as `replay` does, and yield each with what it gave. No outcome is taken from a cache, or stored."""
    replied: dict[CellKey, tuple[bool, tuple[Leaf, ...]]] = {}

    def look(cell: Cell, reply: Reply, folder: Path) -> None:
        has_outputs = reply.end == "ok" and (folder / _PLAIN).exists()
        replied[cell.key] = reply.end == "fault", from_npz(folder / _PLAIN) if has_outputs else ()

    run = replay(cells, environment_for, options, notify=notify, start=start, repairs=repairs, look=look)
    with closing(run) as outcomes:
        for outcome in outcomes:
            lost, outputs = replied.pop(outcome.cell.key, (True, ()))
            yield Ran(outcome, outputs, lost and outcome.verdict is Verdict.NOT_RUN)


class OneReader:
    """One reader for many small replays: its worker stays, and its environment is looked at once. A context manager.

    Args:
        environment: that of the reader.
        options: limits, policy and calendar; they may be changed from one replay to the next.
        start: starts its worker; None starts one that is closed at the end.
    """

    def __init__(self, environment: Environment, options: ReplayOptions, start: WorkerStarter | None = None) -> None:
        self.options = options
        self._environment_for = lambda placement: environment
        self._workers = WarmWorkers()
        self._start = start or self._workers.start
        self._repairs = Repairs(self._environment_for, no_notes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.close()

    def run(self, cells: Sequence[Cell]) -> list[Ran]:
        """Run cells, each in a cold process, and return what became of each in their order.

        Raises `InfrastructureFault` where nothing is known of one, also after a second try.
        """
        run = replay_with_outputs(cells, self._environment_for, self.options, start=self._start, repairs=self._repairs)
        with closing(run) as each:
            ran = {one.outcome.cell.key: one for one in each}
        if lost := next((one for one in ran.values() if one.lost), None):
            raise InfrastructureFault(lost.outcome.message)
        return [ran[cell.key] for cell in cells]
