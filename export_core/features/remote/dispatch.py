"""The replay of cells on a cluster: jobs are sent to its machines, and every cell gets one outcome.

A job is a reader on one platform with some of its goldens.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from export_core.base.text import plural
from export_core.features.remote.dask_cluster import DaskCluster, RemoteError
from export_core.features.remote.job import Job, JobResult, make_job, run_job
from export_core.matrix.cache_keys import ExecutionKeys
from export_core.matrix.outcome import audit_problem, not_run
from export_core.matrix.replay import Notify, Replayed, deciding_first, ignore
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import for_cell, new_result
from export_core.matrix.verdicts import Verdict
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage

MOST_CELLS = 100
"""The most cells of one job.

A machine that dies loses its whole job, and no outcome arrives before a job ends; but each job starts its reader, which
costs as much as ten cells.
"""
MOST_BYTES = 8 << 20
"""The most bytes of goldens in one job, unless a single golden has more: they travel in the task itself."""
LOOK_SECONDS = 1.0  # How often to check whether the cluster can still end its jobs.
TRIES = 2  # How many times a job may be sent. Each time, Dask may also move it from one machine to another.

Outcomes = Generator[Replayed, None, None]


@dataclass
class _Batch:
    """Cells that are sent to a machine as one job, and how many times they were sent."""

    cells: tuple[Cell, ...]
    sent: int = 0

    @property
    def platform(self) -> str:
        """The platform that a machine must have for these cells: `cpu` to compile, which every machine can do."""
        first = self.cells[0]
        return "cpu" if first.mode is Mode.COMPILE else first.platform

    def __str__(self) -> str:
        first = self.cells[0]
        return f"{plural(len(self.cells), 'cell')} of {first.reader.title} on {first.platform}"


def replay_on(
    cluster: DaskCluster,
    cells: Sequence[Cell],
    options: ReplayOptions,
    *,
    notify: Notify = ignore,
    run: Callable[[Job], JobResult] = run_job,
) -> Outcomes:
    """Run cells on a cluster and yield each with its outcome, in the order in which their jobs end.

    If a job is lost, it is sent once more; if it is lost again, its cells count as not run. If no machine has a
    platform, its cells count as not run at once. A job's goldens are read when it is sent, so that not all are in
    memory at once. `run` is the function that machines call with a job.
    """
    placed = []
    for cell in cells:
        if cell.mode is Mode.AUTO:  # to run where a machine has the platform, else to compile
            cell = replace(cell, mode=Mode.COMPILE if cluster.trouble(cell.platform) else Mode.RUN)
        placed.append(cell)
    yield from _Dispatch(cluster, options, notify, run).outcomes(placed)


@dataclass
class _Dispatch:
    """The state of a replay on a cluster: the batches that wait, by platform, and those that were sent."""

    cluster: DaskCluster
    options: ReplayOptions
    notify: Notify
    run: Callable[[Job], JobResult]
    waiting: defaultdict[str, deque[_Batch]] = field(default_factory=lambda: defaultdict(deque))
    out: dict[Future[JobResult], _Batch] = field(default_factory=dict)

    def outcomes(self, cells: Sequence[Cell]) -> Outcomes:
        """Yield each cell with its outcome, until all have one."""
        audited = yield from self._audit(cells)
        for group in deciding_first(audited, ExecutionKeys(self.options.limits).of):
            for batch in map(_Batch, batches(group)):
                self.waiting[batch.platform].append(batch)
        try:
            while any(self.waiting.values()) or self.out:
                for platform, waiting in list(self.waiting.items()):
                    yield from self._give_up(platform)
                    free = self.cluster.room(platform) - sum(batch.platform == platform for batch in self.out.values())
                    for _ in range(min(free, len(waiting))):
                        yield from self._send(waiting.popleft())
                # Never without a limit: the future of a job that no machine can take any more never ends.
                done, _ = wait(self.out, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
                if not self.out and any(self.waiting.values()):  # nothing can be sent while the scheduler is lost
                    time.sleep(LOOK_SECONDS)
                for line in self.cluster.news():
                    self.notify(line)
                for future in done:
                    yield from self._take(self.out.pop(future), future)
        finally:
            for future in self.out:
                future.cancel()

    def _audit(self, cells: Sequence[Cell]) -> Generator[Replayed, None, list[Cell]]:
        """Yield the outcomes of cells that the audit stops, and return the other cells.

        An artifact that must not be compiled is not sent either.
        """
        # Checked here too: on its machine, a message would name a file in a temporary folder.
        goldens = {cell.golden.id: cell.golden for cell in cells}
        problems = {name: audit_problem(golden, self.options.policy) for name, golden in goldens.items()}
        for cell in cells:
            if problem := problems[cell.golden.id]:
                yield cell, new_result(cell, Stage.AUDIT, Verdict.ERROR, problem)
        return [cell for cell in cells if not problems[cell.golden.id]]

    def _give_up(self, platform: str) -> Outcomes:
        """Yield outcomes of all batches of a platform, waiting or sent, if the cluster cannot run that platform."""
        out = {future: batch for future, batch in self.out.items() if batch.platform == platform}
        waiting = self.waiting[platform]
        if not (out or waiting) or not (trouble := self.cluster.trouble(platform)):
            return
        for future in out:
            del self.out[future]
            future.cancel()
        lost = [*out.values(), *waiting]
        waiting.clear()
        for batch in lost:
            yield from _not_run(batch, trouble)

    def _send(self, batch: _Batch) -> Outcomes:
        batch.sent += 1
        try:
            job = make_job(batch.cells, self.options)
            self.out[self.cluster.submit(self.run, job, batch.platform)] = batch
        except Exception as error:  # whatever it is, each cell gets its outcome and the run continues
            # Where the cluster is lost, every cell reports that, whenever it was noticed.
            trouble = self.cluster.trouble(batch.platform) or f"could not be sent: {type(error).__name__}: {error}"
            yield from _not_run(batch, trouble)

    def _take(self, batch: _Batch, future: Future[JobResult]) -> Outcomes:
        """Yield the outcomes of a job that has ended; if it was lost, send it again or give it up."""
        try:
            result = future.result()
        except (Exception, CancelledError) as error:
            problem = f"{type(error).__name__}: {error}"
            if isinstance(error, CancelledError) and not self.cluster.is_connected:
                batch.sent -= 1  # by its client, which lost its scheduler: whatever becomes of that, no machine failed
                self.waiting[batch.platform].append(batch)
            elif batch.sent < TRIES:
                self.notify(f"{batch}: lost ({problem}); sent once more")
                self.waiting[batch.platform].append(batch)
            else:
                yield from _not_run(batch, f"lost {TRIES} times, the last time by {problem}")
            return
        for note in result.notes:
            self.notify(note)
        for cell, outcome in zip(batch.cells, result.outcomes, strict=True):
            yield replace(cell, mode=outcome.mode), for_cell(outcome, cell)


def batches(cells: Iterable[Cell]) -> list[tuple[Cell, ...]]:
    """Return cells of one placement in batches of at most `MOST_CELLS` cells and `MOST_BYTES` bytes, in order."""
    parts: list[list[Cell]] = []
    size = 0
    for cell in cells:
        # By their sizes on disk: the files are read only when their job is sent.
        own = sum((cell.golden.folder / name).stat().st_size for name in cell.golden.manifest.files)
        if not parts or len(parts[-1]) == MOST_CELLS or size + own > MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(cell)
        size += own
    return [tuple(part) for part in parts]


def _not_run(batch: _Batch, problem: str) -> Outcomes:
    for cell in batch.cells:
        yield cell, not_run(cell, f"infrastructure: {problem}")


@contextmanager
def replay_at(text: str, notify: Notify = ignore) -> Iterator[Callable[..., Outcomes]]:
    """Yield the function that replays cells on the cluster that `--executor` names, and disconnect at the end.

    `notify` gets a line if the cluster does not answer soon. Raises `RemoteError` if `text` names no cluster, or a
    cluster that does not answer.
    """
    engine, _, address = text.partition(":")
    if engine != "dask" or "://" not in address:
        raise RemoteError(
            f"--executor: expected local or dask:ADDRESS, such as dask:tcp://127.0.0.1:8786, found {text!r}."
        )
    with closing(DaskCluster(address, notify)) as cluster:
        yield partial(replay_on, cluster)
