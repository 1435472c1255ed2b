"""How do cells run on other machines, and come back whatever happens there?

An executor is anything in the shape of `concurrent.futures.Executor`. The unit of work is a job: a reader on one platform with its
goldens. Without an executor cells run here, through `replay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field, replace

from export_core.environments.placement import Mode, Placement
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.matrix.cell_audit import audit_message
from export_core.remote.cluster import Cluster
from export_core.remote.errors import RemoteError
from export_core.remote.job import Done, How, Job, make_job, run_job
from export_core.worker.protocol import Stage

MOST_CELLS = 100
"""Cells of one job: what is lost with a machine, and how long nothing is heard of it. Starting a reader costs as much as ten."""
MOST_BYTES = 8 << 20
"""Bytes of the goldens of one job, unless a single one has more: what a task may carry."""
LOOK_SECONDS = 1.0
"""How often the cluster is asked whether its jobs will still end."""
TRIES = 2
"""How often a job is sent off. An engine may itself move it between machines in between."""


@dataclass
class _Batch:
    """Cells that travel together.

    `failed_on` is the machine that could not run them, with what was told of each; then they go to other `machines` only.
    """

    cells: tuple[Cell, ...]
    sent: int = 0
    failed_on: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    machines: Sequence[str] = ()

    @property
    def platform(self) -> str:
        """The one that a machine must have for its cells."""
        return _needs(self.cells[0])


def replay_on(
    cluster: Cluster,
    cells: Sequence[Cell],
    how: How,
    *,
    notify: Callable[[str], None] = lambda text: None,
    run: Callable[[Job], Done] = run_job,
) -> Generator[Outcome, None, None]:
    """Run cells on a cluster and yield one outcome for each, in the order their jobs end.

    A job that an engine loses is sent once more, and then its cells are not run. Cells that a machine could not run are tried on another,
    where there is one; those of a platform that no machine has are not run, at once. Goldens are read when there is room for their
    job, so that not all are in memory at once. `run` is what the machines do with a job.
    """
    left = []
    cells = [_settled(cell, cluster) for cell in cells]
    goldens = {cell.golden.id: cell.golden for cell in cells}
    audits = {name: audit_message(golden, how.allow) for name, golden in goldens.items()}
    for cell in cells:
        if message := audits[cell.golden.id]:  # what must not be compiled does not travel
            yield Outcome(cell, Stage.AUDIT, Verdict.ERROR, message)
        else:
            left.append(cell)
    waiting: dict[str, deque[_Batch]] = {}
    for some in batches(left):
        waiting.setdefault(_needs(some[0]), deque()).append(_Batch(some))
    out: dict[Future[Done], _Batch] = {}
    try:
        while any(waiting.values()) or out:
            for future, batch in _stranded(cluster, out):
                del out[future]
                future.cancel()
                waiting[batch.platform].append(batch)
            for platform, batches_left in waiting.items():
                yield from _given_up(cluster, platform, batches_left, out)
                free = cluster.room(platform) - sum(batch.platform == platform for batch in out.values())
                for _ in range(min(free, len(batches_left))):
                    batch = batches_left.popleft()
                    yield from _sent(cluster, batch, how, run, out)
            done, _ = wait(out, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                back = out.pop(future)
                try:
                    answer = future.result()
                except (Exception, CancelledError) as error:
                    problem = f"{type(error).__name__}: {error}"
                    if back.sent < TRIES:
                        notify(f"{_name(back)}: lost ({problem}); sent once more")
                        waiting[back.platform].append(back)
                    else:
                        yield from _not_run(back, f"infrastructure: lost {TRIES} times, the last time by {problem}")
                    continue
                for note in answer.notes:
                    notify(note)
                failed: dict[str, str] = {}
                again: list[Cell] = []
                for cell, ended in zip(back.cells, answer.ended, strict=True):
                    outcome = ended.of(cell)
                    fault = outcome.verdict is Verdict.NOT_RUN and outcome.stage is Stage.ENVIRONMENT
                    if fault and not back.failed_on and cluster.others(back.platform, answer.where):
                        again.append(cell)
                        failed[cell.id] = outcome.message
                        continue
                    if fault and back.failed_on:
                        before = f"{outcome.message}\nbefore that on {back.failed_on}: {back.told[cell.id]}"
                        outcome = replace(outcome, message=before)
                    yield outcome
                if again:
                    moved = _Batch(tuple(again), failed_on=answer.where, told=failed)
                    why = failed[again[0].id].splitlines()[0]
                    notify(f"{_name(moved)}: not run on {answer.where} ({why}); tried on another machine")
                    waiting[moved.platform].append(moved)
    finally:
        for future in out:
            future.cancel()


def _needs(cell: Cell) -> str:
    """The platform that a machine must have for a cell. Every machine can compile."""
    return "cpu" if cell.mode is Mode.COMPILE else cell.platform


def _settled(cell: Cell, cluster: Cluster) -> Cell:
    """A cell that is to run where it can, as this cluster can."""
    if cell.mode is not Mode.AUTO:
        return cell
    return replace(cell, mode=Mode.COMPILE if cluster.trouble(cell.platform) else Mode.RUN)


def batches(cells: Iterable[Cell]) -> list[tuple[Cell, ...]]:
    """Cells by reader, platform and mode, at most `MOST_CELLS` and `MOST_BYTES` in one batch."""
    groups: dict[Placement, list[list[Cell]]] = {}
    sizes: dict[Placement, int] = {}
    for cell in cells:
        key = cell.placement
        size = sum((cell.golden.folder / name).stat().st_size for name in cell.golden.manifest.files)
        parts = groups.setdefault(key, [[]])
        if parts[-1] and (len(parts[-1]) == MOST_CELLS or sizes[key] + size > MOST_BYTES):
            parts.append([])
            sizes[key] = 0
        parts[-1].append(cell)
        sizes[key] = sizes.get(key, 0) + size
    return [tuple(part) for parts in groups.values() for part in parts]


def _sent(
    cluster: Cluster,
    batch: _Batch,
    how: How,
    run: Callable[[Job], Done],
    out: dict[Future[Done], _Batch],
) -> Generator[Outcome, None, None]:
    batch.sent += 1
    if batch.failed_on:
        batch.machines = cluster.others(batch.platform, batch.failed_on)
        if not batch.machines:  # they went away meanwhile
            for cell in batch.cells:
                yield Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, batch.told[cell.id])
            return
    try:
        job = make_job(batch.cells, how)
        out[cluster.executor(batch.platform, batch.machines).submit(run, job)] = batch
    except Exception as error:  # whatever it is, each cell gets its result and the run goes on
        yield from _not_run(batch, f"infrastructure: could not be sent: {type(error).__name__}: {error}")


def _stranded(cluster: Cluster, out: Mapping[Future[Done], _Batch]) -> list[tuple[Future[Done], _Batch]]:
    """Batches that wait for machines none of which is left: an engine would wait for ever."""
    return [
        (future, batch)
        for future, batch in out.items()
        if batch.machines and not set(batch.machines) & set(cluster.others(batch.platform, batch.failed_on))
    ]


def _given_up(
    cluster: Cluster, platform: str, waiting: deque[_Batch], out: dict[Future[Done], _Batch]
) -> Generator[Outcome, None, None]:
    """Outcomes of all that is waiting or out for a platform, where the cluster is in trouble with it."""
    there = {future: batch for future, batch in out.items() if batch.platform == platform}
    if not (there or waiting) or not (trouble := cluster.trouble(platform)):
        return
    for future in there:
        del out[future]
        future.cancel()
    lost = [*there.values(), *waiting]
    waiting.clear()
    for batch in lost:
        yield from _not_run(batch, f"infrastructure: {trouble}")


def _not_run(batch: _Batch, problem: str) -> Generator[Outcome, None, None]:
    for cell in batch.cells:
        yield Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, problem)


def _name(batch: _Batch) -> str:
    first = batch.cells[0]
    return f"{len(batch.cells)} cells of jaxlib {first.reader.jaxlib} on {first.platform}"


def cluster_at(text: str) -> Cluster | None:
    """The cluster that --executor names, or None for this machine. Raises `RemoteError` for what is none, or does not answer."""
    engine, _, address = text.partition(":")
    if text == "local":
        return None
    if engine == "dask" and "://" in address:
        from export_core.remote.dask_cluster import DaskCluster

        return DaskCluster(address)
    raise RemoteError(f"--executor: expected local or dask:ADDRESS, such as dask:tcp://127.0.0.1:8786, found {text!r}.")
