"""The replay of cells in cold processes on this machine: one outcome for each cell, whatever dies.

Cells outside a matrix are replayed as those of one, with the outputs that they gave, and by a worker that may stay.
Cells that decide the gate run first. An environment that broke meanwhile is found when a cell errs, and built again.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from export_core.base.errors import InfrastructureFault
from export_core.base.processes import kernels_in_words
from export_core.base.scratch import remove_abandoned, scratch_folder
from export_core.base.text import plural
from export_core.goldens import Leaf
from export_core.goldens.arrays import from_npz
from export_core.matrix.cache_keys import ExecutionKeys
from export_core.matrix.outcome import audit_problem, machine_fault, not_run, outcome_of
from export_core.matrix.replay_options import ReplayOptions, opened
from export_core.matrix.result import Result, new_result
from export_core.matrix.verdicts import Verdict
from export_core.readers.cell import Cell, CellKey, cannot_pass, make_dump_folders, request_of, write_calls
from export_core.readers.environment import Environment, give_up_damaged
from export_core.readers.errors import EnvironmentFailed, WorkerDied, tried_twice
from export_core.readers.hardware import missing_hardware, processors
from export_core.readers.placement import Mode, Placement
from export_core.readers.sharing import share
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Reply, Stage, Worker, WorkerStarter

_DEFECT = "a defect of pytest-jaxexport, please report it"
LOOK_SECONDS = 0.5  # How often the main thread, which waits for outcomes, handles the signals that have come.
MOST_IDLE = 4
"""Workers that stay for a later group of their placement's cells: to start one takes a second of a processor, and each
that stays has about 100 MB of memory, with a process for its next cell."""

EnvironmentProvider = Callable[[Placement], Environment]
"""A function that returns the environment of a placement, or raises `EnvironmentFailed`.

It is called from several threads.
"""

Replayed = tuple[Cell, Result]  # A cell, in the mode in which it was run, and its outcome.
Finish = Callable[[Cell, Result], None]
Notify = Callable[
    [str], None
]  # A function for a line about what happens beside the cells, called from several threads.
Look = Callable[[Cell, Reply, Path], None]
"""A function that sees each reply, before outputs are compared.

It gets the cell, the reply and the folder of the outputs, from several threads.
"""


def ignore(*_: object) -> None:
    """Do nothing: the default callback."""


@dataclass(frozen=True)
class _Attempt:
    """A try of cells of one placement that run the same; each is compared with its own golden."""

    cells: tuple[Cell, ...]
    problem: str = ""  # Why an earlier attempt was lost, if one was.
    isolated: bool = False  # It was lost with its worker, so that this one gets a worker to itself.

    @property
    def placement(self) -> Placement:
        """Where its cells run: one reader on one platform."""
        return self.cells[0].placement


def replay(
    cells: Sequence[Cell],
    environment_for: EnvironmentProvider,
    options: ReplayOptions,
    *,
    notify: Notify = ignore,
    start: WorkerStarter = start_worker,
    stopping: threading.Event | None = None,
    repairs: Repairs | None = None,
    look: Look | None = None,
) -> Generator[Replayed, None, None]:
    """Run cells and yield each with its outcome, in the order in which they end.

    Placements are taken in the order in which they first appear, promised cells first. `environment_for` gives the
    environment of a placement, and `start` a worker: `WarmWorkers.start` uses one for many replays. `stopping` is set
    when nobody wants the outcomes any more, so that `environment_for` can give up too. `repairs` is what earlier
    replays in the same environments found damaged. `look` is called with what comes back from each cell.

    What fails around a cell (its worker, its environment, a disk) is tried once more; a verdict never is.
    """
    remove_abandoned()
    with opened(options.user_code, options.policy, options.limits) as user_code:
        own = replace(options, user_code=user_code)
        run = _Replay(environment_for, own, notify, start, stopping or threading.Event(), repairs, look)
        yield from run.outcomes(cells)


@dataclass(eq=False)
class _Replay:
    """One replay: its threads, its slots, and the queue that its outcomes go through."""

    provider: EnvironmentProvider
    options: ReplayOptions
    notify: Notify
    start: WorkerStarter
    stopping: threading.Event
    earlier_repairs: Repairs | None
    look: Look | None

    def __post_init__(self) -> None:
        self.limits = self.options.limits
        self.slots = threading.Semaphore(self.limits.jobs)
        self.device_slots = threading.Semaphore(self.limits.device_jobs)
        self.outcome_queue: queue.Queue[Replayed] = queue.Queue()
        self.audits: dict[str, str] = {}
        self.executions = ExecutionKeys(self.limits)
        self.repairs = self.earlier_repairs or Repairs(self._environment_for, self.notify)
        self.idle = _IdleWorkers()
        self.compiled: dict[Path, str] = {}  # Environments in which cells have run, each with its jax.

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Replayed]:
        """Yield each cell with its outcome. Environments are built while the cells of others run."""
        groups = deciding_first(cells, self._execution)
        # Two pools: in a single one, all environments would be built before the first cell runs.
        builders = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="environment")
        runners = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="reader")
        try:
            placements = dict.fromkeys(group[0].placement for group in groups)
            environments = {placement: builders.submit(self._build, placement) for placement in placements}
            self.idle.expect(group[0].placement for group in groups)
            for group in groups:
                runners.submit(self._run_group, group, environments[group[0].placement])
            # Every cell is finished exactly once: counting them is enough to know the end.
            for _ in cells:
                # Never without a limit: Python handles signals in this thread, and one that arrives in another thread,
                # or just before this one begins to wait, does not wake it.
                ended = None
                while ended is None:
                    with contextlib.suppress(queue.Empty):
                        ended = self.outcome_queue.get(timeout=LOOK_SECONDS)
                yield ended
        finally:
            self.stopping.set()
            builders.shutdown(cancel_futures=True)
            runners.shutdown(cancel_futures=True)
            self.idle.close()

    def _build(self, placement: Placement) -> Environment:
        environment = self._environment_for(placement)
        self.notify(f"environment of {placement.title} is ready")
        return environment

    def _environment_for(self, placement: Placement) -> Environment:
        if placement.mode is Mode.RUN and (problem := missing_hardware(placement.platform)):
            raise EnvironmentFailed(
                f"{placement.platform} cannot run here: {problem}. "
                f"--platforms {placement.platform}:compile compiles for it."
            )
        return self.provider(placement)

    def _execution(self, cell: Cell) -> object:
        """Return what identifies the run of a cell.

        Where modules are dumped, each cell has a folder of its own and runs on its own.
        """
        return cell.key if self.options.dump else self.executions.of(cell)

    def _run_group(self, cells: list[Cell], environment: Future[Environment]) -> None:
        """Run cells of one placement. Every cell leaves here with exactly one outcome."""
        finished: set[CellKey] = set()

        def finish(cell: Cell, outcome: Result) -> None:
            finished.add(cell.key)
            self.outcome_queue.put((cell, outcome))

        problem = "the run was stopped before this cell"
        self.idle.begin(cells[0].placement)
        try:
            self._run_cells(cells, environment.result(), finish)
        except InfrastructureFault as error:
            problem = str(error)
        except BaseException as error:  # whatever it is, each cell gets its outcome and the run continues
            problem = f"{_DEFECT}: {type(error).__name__}: {error}"
        for cell in (cell for cell in cells if cell.key not in finished):
            # The audit needs no reader: what it stops is broken, and not merely without a result.
            audited = None if self.stopping.is_set() else self._stopped_by_audit(cell)
            finish(cell, audited or not_run(cell, problem))

    def _stopped_by_audit(self, cell: Cell) -> Result | None:
        golden = cell.golden.id
        if golden not in self.audits:  # each golden is audited once
            self.audits[golden] = audit_problem(cell.golden, self.options.policy)
        problem = self.audits[golden]
        return new_result(cell, Stage.AUDIT, Verdict.ERROR, problem) if problem else None

    def _run_cells(self, cells: list[Cell], environment: Environment, finish: Finish) -> None:
        placement = cells[0].placement
        retries: list[_Attempt] = []
        with ThreadPoolExecutor(1, thread_name_prefix="audit") as auditor:
            # Meanwhile the worker imports jax on another processor.
            audited = auditor.submit(self._attempts, cells, finish)
            worker = self.idle.take(placement)
            lost, untried = self._through_worker(audited.result, placement, environment, finish, worker)
        if environment.folder:
            self.compiled.setdefault(environment.folder, environment.release.jax)
        while True:
            retries += [attempt for attempt in lost if not attempt.isolated]
            # A worker that dies says nothing about the cells it had: each gets a worker of its own, so that the one
            # that killed it does not take the others along once more.
            isolated = [attempt for attempt in lost if attempt.isolated]
            self._notify_retries(isolated, environment)
            for attempt in isolated:
                self._retry([attempt], environment, finish)
            if not untried or self.stopping.is_set():
                break
            lost, untried = self._through_worker(untried.copy, placement, environment, finish)
        # These shared no dead worker: they are tried again together, once the others are done.
        self._notify_retries(retries, environment)
        while retries and not self.stopping.is_set():
            retries = self._retry(retries, environment, finish)

    def _attempts(self, cells: list[Cell], finish: Finish) -> list[_Attempt]:
        """Return the cells that may run, as attempts.

        Those that run the same are one: goldens may differ in outputs alone.
        """
        groups: dict[object, list[Cell]] = {}
        for cell in cells:
            if audited := self._stopped_by_audit(cell):
                finish(cell, audited)
            elif problem := cannot_pass(cell):
                finish(cell, new_result(cell, Stage.READ, Verdict.REFUSED, problem))
            else:
                groups.setdefault(self._execution(cell), []).append(cell)
        return [_Attempt(tuple(group)) for group in groups.values()]

    def _notify_retries(self, attempts: list[_Attempt], environment: Environment) -> None:
        if attempts and not self.stopping.is_set():
            count = plural(sum(len(attempt.cells) for attempt in attempts), "cell")
            reason = attempts[0].problem.splitlines()[0]
            self.notify(f"{environment.release.title}: trying {count} again: {reason}")

    def _retry(self, attempts: list[_Attempt], environment: Environment, finish: Finish) -> list[_Attempt]:
        """Return the second attempt at cells, after the first was lost.

        Returns those that the worker was not given.
        """
        if self.stopping.is_set():
            return attempts
        try:
            repaired = self.repairs.repaired(environment, attempts[0].placement)
            return self._through_worker(attempts.copy, attempts[0].placement, repaired, finish)[1]
        except InfrastructureFault as fault:  # there was no worker for any of them
            for attempt in attempts:
                for cell in attempt.cells:
                    finish(cell, not_run(cell, tried_twice(attempt.problem, str(fault))))
            return []

    def _through_worker(
        self,
        get_attempts: Callable[[], list[_Attempt]],
        placement: Placement,
        environment: Environment,
        finish: Finish,
        worker: Worker | None = None,
    ) -> tuple[list[_Attempt], list[_Attempt]]:
        """Run cells in one worker until it dies. Returns the attempts to make again, and those it was never given.

        `worker` is one that an earlier group of this placement has left; else one is started.
        """
        lost: list[_Attempt] = []
        running: list[Future[None]] = []
        with scratch_folder() as scratch:
            worker = worker or self._start_worker(environment, placement)
            is_sound = False
            try:
                attempts = get_attempts()
                for number, attempt in enumerate(attempts):
                    # The device first, everywhere: a cell that waits for the device must not hold a slot that a cell on
                    # the CPU could use, and with one order no two threads can wait for each other.
                    if attempt.placement.shares_device:
                        self.device_slots.acquire()
                    self.slots.acquire()
                    # Looked at only now: while this thread waited for the slot, the worker may have died.
                    if self.stopping.is_set() or any(attempt.isolated for attempt in lost):
                        self._release_slot(attempt.placement)
                        break
                    outputs = scratch / str(number)
                    running.append(self._submit(worker, environment, attempt, outputs, finish, lost))
                for future in running:
                    # Stopping the run must not wait for a cell that takes its whole time.
                    while not future.done() and not self.stopping.is_set():
                        wait([future], timeout=0.2)
                is_sound = not lost and not self.stopping.is_set()
            finally:
                if not (is_sound and self.idle.leave(placement, worker)):
                    worker.close()
        return lost, attempts[len(running) :]

    def _release_slot(self, placement: Placement) -> None:
        self.slots.release()
        if placement.shares_device:
            self.device_slots.release()

    def _start_worker(self, environment: Environment, placement: Placement) -> Worker:
        """Return a worker. Raises `WorkerDied` when two in a row do not start."""
        if environment.folder:
            # Copied: another thread may add one. The latest of the same jax has all of its bytecode.
            latest = [*self.compiled.items()][::-1]
            latest.sort(key=lambda one: one[1] != environment.release.jax)
            share(environment.folder, [folder for folder, _ in latest[: self.limits.jobs]])
        try:
            return self.start(environment, self.limits.jobs)
        except WorkerDied as first:
            if self.stopping.is_set():
                raise
            try:
                return self.start(self.repairs.repaired(environment, placement), self.limits.jobs)
            except InfrastructureFault as second:
                raise WorkerDied(tried_twice(str(first), str(second))) from second

    def _submit(
        self,
        worker: Worker,
        environment: Environment,
        attempt: _Attempt,
        outputs: Path,
        finish: Finish,
        lost: list[_Attempt],
    ) -> Future[None]:
        """Run an attempt, finish each of its cells or add it to `lost`. The future is done when its slot is free."""
        ended: Future[None] = Future()

        def take_reply(future: Future[Reply]) -> None:
            replied = future.exception() is None
            if replied:  # the processor is free for the next cell, while this thread compares
                self._release_slot(attempt.placement)
            try:
                lost.extend(self._finish_cells(attempt, environment, future, outputs, finish))
            finally:
                shutil.rmtree(outputs, ignore_errors=True)
                if not replied:
                    # Not before `lost` says that the worker has died: the thread that waits for this slot must see it.
                    self._release_slot(attempt.placement)
                ended.set_result(None)

        try:
            outputs.mkdir()
            cell = attempt.cells[0]
            if self.options.dump:
                make_dump_folders(cell, self.options.dump)
            request = request_of(cell, outputs, self.limits, self.options.dump)
            reply = worker.submit(write_calls(request, cell, outputs) if cell.reader.runtime else request)
        except Exception as error:  # whatever it is, the slot of this cell is released
            reply = Future()
            reply.set_exception(InfrastructureFault(str(error)) if isinstance(error, OSError) else error)
        reply.add_done_callback(take_reply)
        return ended

    def _finish_cells(
        self, attempt: _Attempt, environment: Environment, reply: Future[Reply], outputs: Path, finish: Finish
    ) -> list[_Attempt]:
        """Finish each cell of an attempt. Returns the attempt to make again, with the cells that the machine failed."""
        if not reply.exception() and (note := reply.result().note):
            self.notify(f"{environment.release.title}: {note}")
        failed: list[Cell] = []
        isolated, problem = False, ""
        for cell in attempt.cells:
            try:
                finish(cell, self._outcome(cell, environment, reply, outputs))
            except InfrastructureFault as fault:
                failed.append(cell)
                isolated, problem = isinstance(fault, WorkerDied), str(fault)
        if failed and not attempt.problem:
            return [_Attempt(tuple(failed), problem, isolated)]
        for cell in failed:
            finish(cell, not_run(cell, tried_twice(attempt.problem, problem)))
        return []

    def _outcome(self, cell: Cell, environment: Environment, future: Future[Reply], outputs: Path) -> Result:
        """Return the outcome of a cell by its reply.

        Raises `InfrastructureFault` where the reply does not tell it.
        """
        try:
            reply = future.result()
            if self.look:
                self.look(cell, reply, outputs)
            if problem := machine_fault(reply):
                raise InfrastructureFault(problem)
            outcome = outcome_of(cell, reply, outputs, self.options)
            if notes := [*filter(None, (environment.note, kernels_in_words(environment.variables)))]:
                outcome = structs.replace(outcome, message="\n".join(filter(None, (outcome.message, *notes))))
            if outcome.verdict is Verdict.NUMERICS and cell.platform == "cpu" and not cell.reader.runtime:
                both = processors(cell.golden.manifest.computed_on, environment.variables)
                outcome = structs.replace(outcome, processors=both)
            # A jax that has lost a file, or runs with one that is not its own, can fail in any way but by a refusal.
            is_suspicious = not outcome.verdict.works and outcome.verdict is not Verdict.REFUSED
            if is_suspicious and (broken := self.repairs.damage(environment)):
                raise InfrastructureFault(f"the environment broke: {broken}")
            return outcome
        except InfrastructureFault:
            raise
        except BaseException as failure:  # a defect here must not lose the cell, nor end this thread with the others
            message = f"{_DEFECT}: {type(failure).__name__}: {failure}"
            return new_result(cell, Stage.COMPARE, Verdict.NOT_RUN, message)


def deciding_first(cells: Sequence[Cell], execution: Callable[[Cell], object]) -> list[list[Cell]]:
    """Return cells in groups of one placement: those that decide the gate, of all placements, then the others of each.

    The gate's answer must not wait for cells that it does not depend on. A cell that runs the same as a deciding one of
    its placement, as `execution` shows, is in that one's group: equal cells are run once.

    Readers with one jax do not follow each other: the later one finds compiled what the earlier one has imported.
    """
    named = [(cell, (cell.placement, execution(cell))) for cell in cells]
    deciding = {name for cell, name in named if cell.decides}
    groups: dict[tuple[bool, Placement], list[Cell]] = {}
    for cell, name in sorted(named, key=lambda pair: pair[1] not in deciding):
        groups.setdefault((name in deciding, name[0]), []).append(cell)
    ordered: list[tuple[bool, int, list[Cell]]] = []
    met: Counter[tuple[bool, str]] = Counter()
    for (decides, placement), group in groups.items():
        ordered.append((not decides, met[decides, placement.reader.jax], group))
        met[decides, placement.reader.jax] += 1
    return [group for _, _, group in sorted(ordered, key=lambda one: one[:2])]


@dataclass(eq=False)
class _IdleWorkers:
    """Workers between two groups of cells of their placements. Each still forks a cold process for each cell."""

    _waiting: Counter[Placement] = field(default_factory=Counter)  # Groups that have not begun.
    _workers: dict[Placement, Worker] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, placements: Iterable[Placement]) -> None:
        """Note the placement of each group that will begin."""
        self._waiting.update(placements)

    def begin(self, placement: Placement) -> None:
        """Note that one more group of a placement has begun."""
        with self._lock:
            self._waiting[placement] -= 1

    def leave(self, placement: Placement, worker: Worker) -> bool:
        """Leave a worker for a later group of its placement. False where none comes, or enough workers wait."""
        with self._lock:
            if not self._waiting[placement] or placement in self._workers or len(self._workers) == MOST_IDLE:
                return False
            self._workers[placement] = worker
            return True

    def take(self, placement: Placement) -> Worker | None:
        """Return the worker that was left for a placement; None without one."""
        with self._lock:
            return self._workers.pop(placement, None)

    def close(self) -> None:
        """End the workers for which no group came."""
        for worker in self._workers.values():
            worker.close()


@dataclass(eq=False)
class _Inspected:
    """An environment as it was handed out: one that is built again is another one, though it equals the first."""

    environment: Environment
    damaged: str | None = None  # What of it is damaged, empty for nothing; None until its files were read.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def damage(self) -> str:
        """Return which part of it is damaged, empty for none.

        All of its files are read, so only once.
        """
        with self.lock:
            if self.damaged is None:
                self.damaged = give_up_damaged(self.environment)
            return self.damaged


class Repairs:
    """The damaged environments of a run, which are built again; `notify` reports each.

    `provider` gives an environment, `notify` reports one that is built again.
    """

    def __init__(self, provider: EnvironmentProvider, notify: Notify) -> None:
        self._provider = provider
        self._notify = notify
        self._inspected: list[_Inspected] = []
        self._lock = threading.Lock()

    def damage(self, environment: Environment) -> str:
        """Return which part of an environment is damaged, empty for none."""
        with self._lock:
            handed_out = (known for known in self._inspected if known.environment is environment)
            if (inspected := next(handed_out, None)) is None:
                self._inspected.append(inspected := _Inspected(environment))
        return inspected.damage()

    def repaired(self, environment: Environment, placement: Placement) -> Environment:
        """Return an environment, asked for again, and repaired where it was damaged. Raises `EnvironmentFailed`."""
        damaged = self.damage(environment)
        if damaged:
            self._notify(f"the environment of {environment.release.title} is built again: {damaged}")
        repaired = self._provider(placement)
        if damaged:  # what a package still says wrongly of its own files is no damage
            with self._lock:
                self._inspected.append(_Inspected(repaired, damaged=""))
        return repaired


_PLAIN = "0.npz"  # The outputs of the plain call, in the folder of a cell.


@dataclass(frozen=True)
class Ran:
    """A cell that was run, with its outputs."""

    outcome: Result
    outputs: tuple[Leaf, ...] = ()  # Those of its plain call; empty unless it ran.
    lost: bool = False  # Nothing is known of it: its worker died or the machine failed. A killed cell is not lost.

    @property
    def works(self) -> bool:
        """Whether it ran, or was compiled where it is only to be compiled."""
        return self.outcome.verdict.works


def replay_with_outputs(
    cells: Sequence[Cell],
    environment_for: EnvironmentProvider,
    options: ReplayOptions,
    *,
    notify: Notify = ignore,
    start: WorkerStarter = start_worker,
    repairs: Repairs | None = None,
) -> Generator[Ran, None, None]:
    """Run cells as `replay` does, and yield each with what it gave. No outcome is taken from a cache, or stored."""
    replied: dict[CellKey, tuple[bool, tuple[Leaf, ...]]] = {}

    def look(cell: Cell, reply: Reply, folder: Path) -> None:
        has_outputs = reply.end == "ok" and (folder / _PLAIN).exists()
        replied[cell.key] = reply.end == "fault", from_npz(folder / _PLAIN) if has_outputs else ()

    run = replay(cells, environment_for, options, notify=notify, start=start, repairs=repairs, look=look)
    with contextlib.closing(run) as outcomes:
        for cell, outcome in outcomes:
            lost, outputs = replied.pop(cell.key, (True, ()))
            yield Ran(outcome, outputs, lost and outcome.verdict is Verdict.NOT_RUN)
