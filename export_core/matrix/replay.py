"""The replay of cells in cold processes on this machine: one outcome for each cell, whatever dies.

Cells that decide the gate run first. An environment that breaks during the run is noticed when a cell fails, and is
built again. `replay_with_outputs` serves commands that need the outputs of cells, outside a matrix.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
import time
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
from export_core.readers.compiling import compile_imported
from export_core.readers.environment import Environment, give_up_damaged
from export_core.readers.errors import EnvironmentFailed, WorkerDied, tried_twice
from export_core.readers.hardware import missing_hardware, processors
from export_core.readers.placement import Mode, Placement
from export_core.readers.sharing import is_used, share
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Reply, Stage, Worker, WorkerStarter
from export_core.releases.calendar import Release, titles_among

_DEFECT = "a defect of pytest-jaxexport, please report it"
LOOK_SECONDS = 0.5  # The longest time that the main thread waits for an outcome before it handles signals.
AGAIN_SECONDS = 60.0  # The longest time between two lines about cells that run, while no cell ends.
FIRST_SECONDS = 20.0  # The longest time that readers wait for the bytecode of the first one.
FEW_JOBS = 4  # With more cells at once than this, readers do not wait for it: each has a processor to compile on.
MOST_IDLE = 6
"""The most workers that wait for a later group of cells of their placement. Starting a worker takes a second of a
processor, and each idle one has about 100 MB of memory, with a process for its next cell. Eight readers that each
have two groups leave six, with two cells at once."""

EnvironmentProvider = Callable[[Placement], Environment]
"""A function that returns the environment of a placement, or raises `EnvironmentFailed`.

It is called from several threads.
"""

Replayed = tuple[Cell, Result]  # A cell, in the mode in which it was run, and its outcome.
Finish = Callable[[Cell, Result], None]
Notify = Callable[[str], None]
"""A function that gets a line for the user about anything but an outcome, such as that an environment is ready.

It is called from several threads.
"""
Look = Callable[[Cell, Reply, Path], None]
"""A function that sees each reply, before outputs are compared.

Its arguments are the cell, the reply and the folder with the outputs. It is called from several threads.
"""


def ignore(*_: object) -> None:
    """Do nothing: the default callback."""


@dataclass(frozen=True)
class _Attempt:
    """An attempt to run cells of equal content: the content runs once, and its outputs are compared for each cell."""

    cells: tuple[Cell, ...]
    problem: str = ""  # Why the earlier attempt was lost; empty for a first attempt.
    isolated: bool = False
    """Whether the earlier attempt was lost with its worker; this one then gets a worker of its own."""

    @property
    def placement(self) -> Placement:
        """The placement that all its cells share."""
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

    Cells that decide the gate run first, then all others, placement by placement. If a worker, an environment or a disk
    fails, its cells are tried once more. A cell that has a verdict is never tried again.

    Args:
        cells: The cells to run.
        environment_for: Returns the environment of a placement.
        options: The options that all cells share.
        notify: Called with a line about each event that is not an outcome.
        start: Starts a worker; `WarmWorkers.start` returns the same worker for many replays.
        stopping: An event that is set as soon as the replay ends, so that `environment_for` can give up too.
        repairs: The damaged environments that earlier replays found; None if there were no earlier replays.
        look: Called with each reply before its outputs are compared.
    """
    remove_abandoned()
    with opened(options.user_code, options.policy, options.limits) as user_code:
        own = replace(options, user_code=user_code)
        run = _Replay(environment_for, own, notify, start, stopping or threading.Event(), repairs, look)
        yield from run.outcomes(cells)


@dataclass(eq=False)
class _Replay:
    """The state of one replay: its threads, its slots for running cells, and the queue of its outcomes."""

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
        self.bytecode = _Bytecode(self.limits.jobs, self.stopping)
        self.titles: dict[Release, str] = {}
        """The readers of the cells as lines name them."""
        self.begun: dict[CellKey, tuple[float, Cell]] = {}
        """The cells that run or are compared, each with the time at which its worker got it."""

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Replayed]:
        """Run all cells and yield each with its outcome; environments are built while cells of other ones run."""
        self.titles = titles_among({cell.reader for cell in cells})
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
                ended, silence = None, self.options.silence
                silent_since = time.monotonic()
                while ended is None:
                    with contextlib.suppress(queue.Empty):
                        ended = self.outcome_queue.get(timeout=LOOK_SECONDS)
                    if ended is None and silence is not None and time.monotonic() - silent_since >= silence:
                        silence = AGAIN_SECONDS if self._note_longest() else silence
                        silent_since = time.monotonic()
                yield ended
        finally:
            self.stopping.set()
            self.bytecode.end_wait()
            builders.shutdown(cancel_futures=True)
            runners.shutdown(cancel_futures=True)
            self.idle.close()

    def _note_longest(self) -> bool:
        """Report which running cell began first, and return whether any cell is running."""
        running = sorted(self.begun.copy().values(), key=lambda pair: pair[0])
        for begun, cell in running[:1]:
            does = "compiling" if cell.mode is Mode.COMPILE else "running"
            others = f", beside {plural(len(running) - 1, 'other')}" if len(running) > 1 else ""
            seconds = time.monotonic() - begun
            self.notify(f"{cell.golden.id} in {self._title(cell.reader)}: {does} for {seconds:.0f} s{others}")
        return bool(running)

    def _build(self, placement: Placement) -> Environment:
        environment = self._environment_for(placement)
        title = placement.title.replace(placement.reader.title, self._title(placement.reader), 1)
        self.notify(f"environment of {title} is ready")
        return environment

    def _title(self, reader: Release) -> str:
        return self.titles.get(reader, reader.title)

    def _environment_for(self, placement: Placement) -> Environment:
        if placement.mode is Mode.RUN and (problem := missing_hardware(placement.platform)):
            raise EnvironmentFailed(
                f"{placement.platform} cannot run here: {problem}. "
                f"--platforms {placement.platform}:compile compiles for it."
            )
        return self.provider(placement)

    def _execution(self, cell: Cell) -> object:
        """Return a value that is equal for cells that can share one execution.

        If modules are dumped, no two cells can, since each cell dumps into a folder of its own.
        """
        return cell.key if self.options.dump else self.executions.of(cell)

    def _run_group(self, cells: list[Cell], environment: Future[Environment]) -> None:
        """Run cells of one placement, and finish each of them with exactly one outcome."""
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
        """Return attempts for the cells that may run, and finish the cells that the audit or another check stops.

        Cells that can share one execution are in one attempt: their goldens may differ only in the expected outputs.
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
            self.notify(f"{self._title(environment.release)}: trying {count} again: {reason}")

    def _retry(self, attempts: list[_Attempt], environment: Environment, finish: Finish) -> list[_Attempt]:
        """Run cells a second time, after their first attempts were lost; return the attempts that were not started."""
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
        """Run attempts in one worker until it dies. Return the attempts to repeat, and those that were not started.

        `get_attempts` is called after the worker is started. `worker` is an idle worker of this placement; None starts
        a new one.
        """
        lost: list[_Attempt] = []
        running: list[Future[None]] = []
        shared = contextlib.nullcontext() if worker else self.bytecode.shared_with(environment)
        with scratch_folder() as scratch, shared:
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
        """Start and return a worker. Raises `WorkerDied` if two in a row do not start."""
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
        """Send an attempt to a worker, and return a future that is done when its slot is free again.

        When the reply arrives, `finish` is called for each cell of the attempt, except for those to repeat: an attempt
        with them is added to `lost`.
        """
        ended: Future[None] = Future()

        def take_reply(future: Future[Reply]) -> None:
            replied = future.exception() is None
            if replied:
                self.bytecode.add(environment)
                # The processor is free for the next cell, while this thread compares.
                self._release_slot(attempt.placement)
            try:
                lost.extend(self._finish_cells(attempt, environment, future, outputs, finish))
            finally:
                self.begun.pop(attempt.cells[0].key, None)
                shutil.rmtree(outputs, ignore_errors=True)
                if not replied:
                    # Not before `lost` says that the worker has died: the thread that waits for this slot must see it.
                    self._release_slot(attempt.placement)
                ended.set_result(None)

        try:
            outputs.mkdir()
            cell = attempt.cells[0]
            self.begun[cell.key] = time.monotonic(), cell
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
        """Finish each cell of an attempt by its reply, and return the attempts to repeat: one, or none.

        Only cells without an outcome because of the machine are repeated, and only once.
        """
        if not reply.exception() and (note := reply.result().note):
            self.notify(f"{self._title(environment.release)}: {note}")
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
        """Return the outcome of a cell from the reply of its worker.

        Raises `InfrastructureFault` if the machine is to blame for the reply, or if the cell's environment is damaged.
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
    """Return the cells in groups of one placement: first all groups that decide the gate's answer, then the others.

    The gate's answer then does not wait for cells on which it does not depend. Cells of a placement for which
    `execution` returns equal values run once, so all of them are in the deciding group if one of them decides. Groups
    of readers with the same jax are kept apart in the order, so that the later ones can use Python bytecode that an
    earlier one has compiled.
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
    """The idle workers of a replay, each of which waits for a later group of cells of its placement.

    A worker can run several groups, since it forks a cold process for each cell.
    """

    _waiting: Counter[Placement] = field(default_factory=Counter)  # How many groups of each placement have not begun.
    _workers: dict[Placement, Worker] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, placements: Iterable[Placement]) -> None:
        """Register the placements of all future groups of cells, each as often as it has groups."""
        self._waiting.update(placements)

    def begin(self, placement: Placement) -> None:
        """Register that one of the expected groups of a placement has begun."""
        with self._lock:
            self._waiting[placement] -= 1

    def leave(self, placement: Placement, worker: Worker) -> bool:
        """Store an idle worker for a later group of its placement, and return whether it was accepted.

        It is not accepted if no such group is expected, if one worker waits for it already, or if `MOST_IDLE` wait.
        """
        with self._lock:
            if not self._waiting[placement] or placement in self._workers or len(self._workers) == MOST_IDLE:
                return False
            self._workers[placement] = worker
            return True

    def take(self, placement: Placement) -> Worker | None:
        """Remove and return the worker that was left for a placement; None if there is none."""
        with self._lock:
            return self._workers.pop(placement, None)

    def close(self) -> None:
        """Close the workers that no group has taken."""
        for worker in self._workers.values():
            worker.close()


class _Bytecode:
    """The Python bytecode that the environments of a run share, so that the same files are not compiled twice.

    For the first reader whose environment is new, the files that cells import are compiled on all processors. Other new
    readers wait for it, and then get its bytecode. `jobs` is the number of cells that run at once; `stopping` is set
    when the run ends.
    """

    def __init__(self, jobs: int, stopping: threading.Event) -> None:
        self._jobs = jobs
        self._stopping = stopping
        self._compiled: dict[Path, str] = {}  # Folders of environments that have bytecode, each with its jax.
        self._lock = threading.Lock()
        self._first_begun = False
        self._first_over = threading.Event()

    @contextlib.contextmanager
    def shared_with(self, environment: Environment) -> Iterator[None]:
        """Copy the bytecode of other environments into a new one, in which the block then runs cells.

        If files are still being compiled for the first one, this waits for them, or at most `FIRST_SECONDS`.
        """
        folder, jax = environment.folder, environment.release.jax
        if folder is None or is_used(folder):
            yield
            return
        with self._lock:
            is_first, self._first_begun = not self._first_begun, True
        if not is_first and self._jobs <= FEW_JOBS:
            self._first_over.wait(FIRST_SECONDS)
        with self._lock:
            latest = [*self._compiled.items()][::-1]
        # The latest of the same jax has all of its bytecode; of others, the latest has most that is the same.
        latest.sort(key=lambda one: one[1] != jax)
        share(folder, [other for other, _ in latest[:2]])
        try:
            if is_first and not environment.release.runtime:
                compile_imported(folder, environment.python, self._jobs, self._stopping)
                self.add(environment)
            yield
        finally:
            if is_first:
                self.end_wait()

    def add(self, environment: Environment) -> None:
        """Register an environment whose files are compiled, or in which a cell has run, so that others can copy them.

        Only new environments copy bytecode.
        """
        if environment.folder:
            with self._lock:
                self._compiled.setdefault(environment.folder, environment.release.jax)
            self.end_wait()

    def end_wait(self) -> None:
        """Let all readers continue that wait for the first one."""
        self._first_over.set()


@dataclass(eq=False)
class _Inspected:
    """The record of one environment object, with the result of inspecting its files for damage.

    An environment that is built again has a new record, even if it equals the first one.
    """

    environment: Environment
    damaged: str | None = None  # Which part is damaged, empty if none is; None until its files were read.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def damage(self) -> str:
        """Return which part of the environment is damaged; empty if none is. Its files are read only once."""
        with self.lock:
            if self.damaged is None:
                self.damaged = give_up_damaged(self.environment)
            return self.damaged


class Repairs:
    """The inspected environments of a run, of which damaged ones are built again.

    `provider` returns the environment of a placement. `notify` is called with a line about each that is built again.
    """

    def __init__(self, provider: EnvironmentProvider, notify: Notify) -> None:
        self._provider = provider
        self._notify = notify
        self._inspected: list[_Inspected] = []
        self._lock = threading.Lock()

    def damage(self, environment: Environment) -> str:
        """Return which part of an environment is damaged; empty if none is."""
        with self._lock:
            handed_out = (known for known in self._inspected if known.environment is environment)
            if (inspected := next(handed_out, None)) is None:
                self._inspected.append(inspected := _Inspected(environment))
        return inspected.damage()

    def repaired(self, environment: Environment, placement: Placement) -> Environment:
        """Return the environment of a placement again, rebuilt if `environment` was damaged.

        Raises `EnvironmentFailed` if it cannot be built.
        """
        damaged = self.damage(environment)
        if damaged:
            self._notify(f"the environment of {environment.release.title} is built again: {damaged}")
        repaired = self._provider(placement)
        if damaged:  # what a package still says wrongly of its own files is no damage
            with self._lock:
                self._inspected.append(_Inspected(repaired, damaged=""))
        return repaired


_PLAIN = "0.npz"  # The file of the plain call's outputs, in the folder of a cell.


@dataclass(frozen=True)
class Ran:
    """The outcome of a cell, and its outputs."""

    outcome: Result
    outputs: tuple[Leaf, ...] = ()  # The outputs of its plain call; empty unless that call ran.
    lost: bool = False
    """Whether its worker died or the machine failed, so that nothing is known of it. A killed cell is not lost."""

    @property
    def works(self) -> bool:
        """Whether the cell works: it ran with the expected outputs, or was compiled if only that was planned."""
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
    """Run cells as `replay` does, without the cache, and yield the outcome of each with its outputs."""
    replied: dict[CellKey, tuple[bool, tuple[Leaf, ...]]] = {}

    def look(cell: Cell, reply: Reply, folder: Path) -> None:
        has_outputs = reply.end == "ok" and (folder / _PLAIN).exists()
        replied[cell.key] = reply.end == "fault", from_npz(folder / _PLAIN) if has_outputs else ()

    run = replay(cells, environment_for, options, notify=notify, start=start, repairs=repairs, look=look)
    with contextlib.closing(run) as outcomes:
        for cell, outcome in outcomes:
            lost, outputs = replied.pop(cell.key, (True, ()))
            yield Ran(outcome, outputs, lost and outcome.verdict is Verdict.NOT_RUN)
