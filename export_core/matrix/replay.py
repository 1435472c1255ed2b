"""How does a plan become outcomes: one for every cell, whatever dies?"""

from __future__ import annotations

import contextlib
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from export_core.environments.environment import Environment, damage
from export_core.environments.errors import EnvironmentFailed, InfrastructureFault, tried_twice
from export_core.environments.hardware import missing_hardware, shares_device
from export_core.environments.placement import Mode, Placement
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.matrix.cell_audit import audit_message
from export_core.matrix.checks import request_of
from export_core.matrix.limits import Limits, Runs
from export_core.matrix.outcomes import fault_of, not_run, outcome_of
from export_core.releases import Calendar, Release
from export_core.tolerances import Tolerances
from export_core.worker.client import start_worker
from export_core.worker.errors import WorkerDied
from export_core.worker.protocol import Reply, Stage, Worker, WorkerStarter

EnvironmentOf = Callable[[Release], Environment]
Equipped = Callable[[Placement], Environment]
End = Callable[[Outcome], None]


@dataclass(frozen=True)
class _Try:
    """Cells of one reader that run the same; each is compared with its own golden.

    `problem` is why they were lost before, if they were; `alone`: because the worker died, so that each gets one to itself.
    """

    cells: tuple[Cell, ...]
    problem: str = ""
    alone: bool = False

    @property
    def placement(self) -> Placement:
        """The same for all of them."""
        return self.cells[0].placement


def replay(
    cells: Sequence[Cell],
    environment_of: EnvironmentOf,
    calendar: Calendar,
    *,
    limits: Limits | None = None,
    allow: Mapping[str, str] | None = None,
    tolerances: Tolerances | None = None,
    notify: Callable[[str], None] = lambda text: None,
    start: WorkerStarter = start_worker,
    dump: Path | None = None,
    stopping: threading.Event | None = None,
    equipped: Equipped | None = None,
) -> Generator[Outcome, None, None]:
    """Run cells and yield one outcome for each, in the order they end.

    Args:
        cells: what to run; readers are taken in the order they first appear.
        environment_of: gives the environment of a reader, or raises `EnvironmentFailed`. Called from several threads.
        calendar: dates the readers' jax, for the table of refusals.
        limits: how many at once, for how long.
        allow: custom-call targets that are accepted beside JAX's stable list, with reasons.
        tolerances: what the policy says for platforms, beside what each golden asks for.
        notify: told in a line what goes on beside the cells.
        start: starts a worker; `pool.WarmWorkers.start` keeps one for many replays.
        dump: a folder for every module as text, as exported and as compiled, by cell (`dump.dump_of`); None writes none.
        stopping: set when nobody wants the outcomes any more, so that `environment_of` can give up too.
        equipped: gives the environment of a reader on another platform than the CPU, likewise; None runs no such cell.

    What fails around a cell (its worker, its environment, a disk) is tried once more; a verdict never is.
    """

    def environment_at(placement: Placement) -> Environment:
        if placement.platform == "cpu":
            return environment_of(placement.reader)
        if equipped is None:
            raise EnvironmentFailed(f"this replay has no environment for {placement.platform}: nothing was done for it")
        if placement.mode is Mode.RUN and (lack := missing_hardware(placement.platform)):
            raise EnvironmentFailed(
                f"{placement.platform} cannot run here: {lack}. --platforms {placement.platform}:compile compiles for it."
            )
        return equipped(placement)

    run = _Run(
        environment_at,
        calendar,
        limits or Limits(),
        dict(allow or {}),
        tolerances or {},
        notify,
        start,
        dump,
        stopping or threading.Event(),
    )
    yield from run.outcomes(cells)


class _Run:
    """One run: its threads, its slots, the queue its outcomes go through."""

    def __init__(
        self,
        environment_at: Equipped,
        calendar: Calendar,
        limits: Limits,
        allow: dict[str, str],
        tolerances: Tolerances,
        notify: Callable[[str], None],
        start: WorkerStarter,
        dump: Path | None,
        stopping: threading.Event,
    ) -> None:
        self.environment_at = environment_at
        self.calendar = calendar
        self.limits = limits
        self.allow = allow
        self.tolerances = tolerances
        self.notify = notify
        self.start = start
        self.dump = dump
        self.slots = threading.Semaphore(limits.jobs)
        self.turns = threading.Semaphore(limits.device_jobs)
        self.stopping = stopping
        self.done: queue.Queue[Outcome] = queue.Queue()
        self.audits: dict[str, str] = {}
        self.runs = Runs(limits)

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        groups: dict[Placement, list[Cell]] = {}
        for cell in cells:
            groups.setdefault(cell.placement, []).append(cell)
        builders = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="environment")
        lanes = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="reader")
        try:
            built = {placement: builders.submit(self._build, placement) for placement in groups}
            for placement, group in groups.items():
                lanes.submit(self._lane, group, built[placement])
            for _ in cells:
                yield self.done.get()
        finally:
            self.stopping.set()
            builders.shutdown(cancel_futures=True)
            lanes.shutdown(cancel_futures=True)

    def _build(self, placement: Placement) -> Environment:
        environment = self.environment_at(placement)
        self.notify(
            f"environment of jaxlib {placement.reader.jaxlib}{f' for {placement.name}' if placement.name else ''} is ready"
        )
        return environment

    def _lane(self, cells: list[Cell], environment: Future[Environment]) -> None:
        """Run the cells of one reader. Every cell leaves here with exactly one outcome."""
        ended: set[str] = set()

        def end(outcome: Outcome) -> None:
            ended.add(outcome.cell.id)
            self.done.put(outcome)

        problem = "the run was stopped before this cell"
        try:
            self._run_cells(cells, environment.result(), end)
        except InfrastructureFault as error:
            problem = str(error)
        except BaseException as error:  # whatever it is, each cell gets its result and the run goes on
            problem = f"the harness failed: {type(error).__name__}: {error}"
        for cell in cells:
            if cell.id not in ended:
                end(not_run(cell, problem))

    def _run_cells(self, cells: list[Cell], environment: Environment, end: End) -> None:
        waiting: dict[str, list[Cell]] = {}
        for cell in cells:
            if found := self._audited(cell):
                end(found)
            else:
                # Goldens may differ in their expected outputs alone, and writers make the same bytes: what runs is run once.
                # But each has a folder of its own where modules are dumped.
                waiting.setdefault(cell.id if self.dump else self.runs.of(cell), []).append(cell)
        left = [_Try(tuple(group)) for group in waiting.values()]
        again: list[_Try] = []
        while left and not self.stopping.is_set():
            lost, left = self._through_worker(left, environment, end)
            again += [each for each in lost if not each.alone]
            # A worker that dies says nothing about the cells it had: each gets one more, alone, so that none takes another along.
            alone = [each for each in lost if each.alone]
            self._tell(alone, environment)
            for each in alone:
                self._once_more([each], environment, end)
        self._tell(again, environment)
        while again and not self.stopping.is_set():
            again = self._once_more(again, environment, end)

    def _tell(self, again: list[_Try], environment: Environment) -> None:
        if again and not self.stopping.is_set():
            cells = sum(len(each.cells) for each in again)
            why = again[0].problem.splitlines()[0]
            self.notify(f"jaxlib {environment.release.jaxlib}: {cells} cells are tried again: {why}")

    def _once_more(self, tries: list[_Try], environment: Environment, end: End) -> list[_Try]:
        """The second try of cells. Answers those that it was not given to."""
        if self.stopping.is_set():
            return tries
        try:
            # What broke of the environment meanwhile is mended.
            return self._through_worker(tries, self.environment_at(tries[0].placement), end)[1]
        except InfrastructureFault as fault:  # there was no worker for any of them
            for each in tries:
                for cell in each.cells:
                    end(not_run(cell, tried_twice(each.problem, str(fault))))
            return []

    def _through_worker(self, tries: list[_Try], environment: Environment, end: End) -> tuple[list[_Try], list[_Try]]:
        """Run cells in one worker. Answers those that are to be tried again, and those that it was never given."""
        lost: list[_Try] = []
        settled: list[Future[None]] = []
        with _scratch() as scratch:
            worker = self._started(environment, tries[0].placement)
            try:
                for number, each in enumerate(tries):
                    self._take_slot(each.placement)
                    if self.stopping.is_set() or any(one.alone for one in lost):
                        self._leave_slot(each.placement)
                        break
                    settled.append(self._submit(worker, environment, each, Path(scratch) / str(number), end, lost))
                for future in settled:
                    # Who stops the run must not wait for a cell that takes its whole time.
                    while not future.done() and not self.stopping.is_set():
                        wait([future], timeout=0.2)
            finally:
                worker.close()
        return lost, tries[len(settled) :]

    def _take_slot(self, placement: Placement) -> None:
        # In this order everywhere: who waits for a device must not keep a slot that others could use.
        if shares_device(placement):
            self.turns.acquire()
        self.slots.acquire()

    def _leave_slot(self, placement: Placement) -> None:
        self.slots.release()
        if shares_device(placement):
            self.turns.release()

    def _started(self, environment: Environment, placement: Placement) -> Worker:
        """A worker. Raises `WorkerDied` when it does not start twice."""
        try:
            return self.start(environment, self.limits.jobs, fork=self.limits.fork)
        except WorkerDied as first:
            if self.stopping.is_set():
                raise
            try:
                return self.start(self.environment_at(placement), self.limits.jobs, fork=self.limits.fork)
            except InfrastructureFault as second:
                raise WorkerDied(tried_twice(str(first), str(second))) from second

    def _submit(
        self,
        worker: Worker,
        environment: Environment,
        this: _Try,
        outputs: Path,
        end: End,
        lost: list[_Try],
    ) -> Future[None]:
        """Run what all cells of a try run, once, and end each of them, or have it tried again."""
        settled: Future[None] = Future()

        def finish(future: Future[Reply]) -> None:
            again: list[Cell] = []
            alone, problem = False, ""
            ran = future.exception() is None
            if ran:  # its processor is free for the next cell, while this thread compares
                self._leave_slot(this.placement)
            try:
                for cell in this.cells:
                    try:
                        end(self._ended(cell, environment, future, outputs))
                    except InfrastructureFault as fault:
                        again.append(cell)
                        alone, problem = isinstance(fault, WorkerDied), str(fault)
                if again and not this.problem:
                    lost.append(_Try(tuple(again), problem, alone))
                    return
                for cell in again:
                    end(not_run(cell, tried_twice(this.problem, problem)))
            finally:
                shutil.rmtree(outputs, ignore_errors=True)
                if not ran:  # not before it is known that this worker gets no more
                    self._leave_slot(this.placement)
                settled.set_result(None)

        self._asked(worker, this.cells[0], outputs).add_done_callback(finish)
        return settled

    def _asked(self, worker: Worker, cell: Cell, outputs: Path) -> Future[Reply]:
        limits = self.limits
        try:
            outputs.mkdir()
            timeout = limits.timeout or 1e9
            return worker.submit(request_of(cell, outputs, timeout=timeout, memory=limits.memory, dump=self.dump))
        except Exception as error:  # whatever it is, the slot of this cell is given back
            failed: Future[Reply] = Future()
            failed.set_exception(InfrastructureFault(str(error)) if isinstance(error, OSError) else error)
            return failed

    def _ended(self, cell: Cell, environment: Environment, future: Future[Reply], outputs: Path) -> Outcome:
        """What a reply says of a cell. Raises `InfrastructureFault` where it says nothing of it."""
        try:
            reply = future.result()
            if problem := fault_of(reply):
                raise InfrastructureFault(problem)
            outcome = outcome_of(
                cell, reply, outputs, calendar=self.calendar, tolerances=self.tolerances, limits=self.limits
            )
            # A jax that lost a file fails in any way.
            if outcome.verdict in (Verdict.ERROR, Verdict.CRASH) and (broken := damage(environment)):
                raise InfrastructureFault(f"the environment broke: {broken}")
            return outcome
        except InfrastructureFault:
            raise
        except Exception as failure:  # a defect here must not lose the cell
            text = f"the harness failed: {type(failure).__name__}: {failure}"
            return Outcome(cell, Stage.COMPARE, Verdict.NOT_RUN, text)

    def _audited(self, cell: Cell) -> Outcome | None:
        """What the audit found against running this artifact, or None."""
        key = cell.golden.id
        if key not in self.audits:
            self.audits[key] = audit_message(cell.golden, self.allow)
        message = self.audits[key]
        return Outcome(cell, Stage.AUDIT, Verdict.ERROR, message) if message else None


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    """A folder for what comes out of cells."""
    try:
        made = tempfile.TemporaryDirectory(prefix="jaxexport-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InfrastructureFault(f"infrastructure: no folder for the outputs of cells: {error}") from error
    with made as folder:
        yield folder
