"""How does a plan become outcomes: one for every cell, whatever dies?"""

from __future__ import annotations

import queue
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from export_core.artifact import ArtifactError, read
from export_core.artifact.audit import audit
from export_core.comparing import Tolerances
from export_core.goldens import Golden, GoldenError
from export_core.matrix.cell import Cell, Outcome, Stage, Verdict
from export_core.matrix.checks import checked, request_of
from export_core.matrix.compare import Difference
from export_core.matrix.environments import Environment
from export_core.matrix.errors import EnvironmentFailed, MatrixError, WorkerDied
from export_core.matrix.pool import Reply, Worker, WorkerStarter, start_worker
from export_core.matrix.refusals import find_refusal
from export_core.matrix.request import Limits, Runs
from export_core.releases import Calendar, Release
from export_core.releases.stable_targets import stable_targets

GIB = 1 << 30
EnvironmentOf = Callable[[Release], Environment]
Same = tuple[Cell, ...]
"""Cells of one reader that run the same; each is compared with its own golden."""


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
        start: starts a worker; `pool.KeptWorkers.start` keeps one for many replays.
        dump: a folder for every module as text, as exported and as compiled, by cell (`dump.dump_of`); None writes none.
    """
    run = _Run(environment_of, calendar, limits or Limits(), dict(allow or {}), tolerances or {}, notify, start, dump)
    yield from run.outcomes(cells)


class _Run:
    """One run: its threads, its slots, the queue its outcomes go through."""

    def __init__(
        self,
        environment_of: EnvironmentOf,
        calendar: Calendar,
        limits: Limits,
        allow: dict[str, str],
        tolerances: Tolerances,
        notify: Callable[[str], None],
        start: WorkerStarter,
        dump: Path | None,
    ) -> None:
        self.environment_of = environment_of
        self.calendar = calendar
        self.limits = limits
        self.allow = allow
        self.tolerances = tolerances
        self.notify = notify
        self.start = start
        self.dump = dump
        self.slots = threading.Semaphore(limits.jobs)
        self.stopping = threading.Event()
        self.done: queue.Queue[Outcome] = queue.Queue()
        self.audits: dict[str, str] = {}
        self.runs = Runs(limits)

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        groups: dict[tuple[Release, str], list[Cell]] = {}
        for cell in cells:
            groups.setdefault((cell.reader, cell.platform), []).append(cell)
        builders = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="environment")
        lanes = ThreadPoolExecutor(self.limits.jobs, thread_name_prefix="reader")
        try:
            built = {
                reader: builders.submit(self._build, reader) for reader, _ in groups if self._runs_here(groups, reader)
            }
            for (reader, platform), group in groups.items():
                lanes.submit(self._lane, platform, group, built.get(reader))
            for _ in cells:
                yield self.done.get()
        finally:
            self.stopping.set()
            builders.shutdown(cancel_futures=True)
            lanes.shutdown(cancel_futures=True)

    @staticmethod
    def _runs_here(groups: Mapping[tuple[Release, str], list[Cell]], reader: Release) -> bool:
        return (reader, "cpu") in groups

    def _build(self, reader: Release) -> Environment:
        environment = self.environment_of(reader)
        self.notify(f"environment of jaxlib {reader.jaxlib} is ready")
        return environment

    def _lane(self, platform: str, cells: list[Cell], environment: Future[Environment] | None) -> None:
        """Run the cells of one reader. Every cell leaves here with exactly one outcome."""
        ended: set[str] = set()

        def end(outcome: Outcome) -> None:
            ended.add(outcome.cell.id)
            self.done.put(outcome)

        problem = "the run was stopped before this cell"
        try:
            if platform != "cpu" or environment is None:
                problem = f"this version runs cells on cpu only, and compiles for no other platform yet: nothing was done for {platform}"
            else:
                self._run_cells(cells, environment.result(), end)
        except (EnvironmentFailed, WorkerDied) as error:
            problem = str(error)
        except Exception as error:  # whatever it is, each cell gets its result and the run goes on
            problem = f"the harness failed: {type(error).__name__}: {error}"
        for cell in cells:
            if cell.id not in ended:
                end(Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, problem))

    def _run_cells(self, cells: list[Cell], environment: Environment, end: Callable[[Outcome], None]) -> None:
        waiting: dict[str, list[Cell]] = {}
        for cell in cells:
            if found := self._audited(cell):
                end(found)
            else:
                # Goldens may differ in their expected outputs alone, and writers make the same bytes: what runs is run once.
                # But each has a folder of its own where modules are dumped.
                waiting.setdefault(cell.id if self.dump else self.runs.of(cell), []).append(cell)
        groups = [tuple(group) for group in waiting.values()]
        while groups and not self.stopping.is_set():
            # A worker that dies says nothing about the cells it had: each gets one more, alone, so that none takes another along.
            lost, groups = self._through_worker(groups, environment, end)
            if lost:
                self.notify(
                    f"the worker of jaxlib {environment.release.jaxlib} died; {len(lost)} cells are tried again"
                )
            for group in lost:
                self._through_worker([group], environment, end, last=True)

    def _through_worker(
        self, groups: list[Same], environment: Environment, end: Callable[[Outcome], None], *, last: bool = False
    ) -> tuple[list[Same], list[Same]]:
        """Run cells in one worker. Answers those that were out when it died, and those that it was never given."""
        worker = self._started(environment)
        lost: list[Same] = []
        settled: list[Future[Reply]] = []
        with tempfile.TemporaryDirectory(prefix="jaxexport-") as scratch:
            try:
                for number, group in enumerate(groups):
                    self.slots.acquire()
                    if self.stopping.is_set() or lost:
                        self.slots.release()
                        break
                    outputs = Path(scratch) / str(number)
                    outputs.mkdir()
                    settled.append(self._submit(worker, group, outputs, end, lost, last=last))
                for future in settled:
                    # Who stops the run must not wait for a cell that takes its whole time.
                    while not future.done() and not self.stopping.is_set():
                        wait([future], timeout=0.2)
            finally:
                worker.close()
        return lost, groups[len(settled) :]

    def _started(self, environment: Environment) -> Worker:
        """A worker. Raises `WorkerDied` when it does not start twice."""
        try:
            return self.start(environment, self.limits.jobs, fork=self.limits.fork)
        except WorkerDied:
            return self.start(environment, self.limits.jobs, fork=self.limits.fork)

    def _submit(
        self,
        worker: Worker,
        group: Same,
        outputs: Path,
        end: Callable[[Outcome], None],
        lost: list[Same],
        *,
        last: bool,
    ) -> Future[Reply]:
        """Run what all cells of a group run, once, and end each of them."""
        settled: Future[Reply] = Future()

        def finish(future: Future[Reply]) -> None:
            try:
                error = future.exception()
                if isinstance(error, WorkerDied) and not last:
                    lost.append(group)
                    return
                for cell in group:
                    end(self._ended(cell, future, outputs))
            finally:
                shutil.rmtree(outputs, ignore_errors=True)
                self.slots.release()
                settled.set_result(Reply("", ""))

        limits = self.limits
        request = request_of(group[0], outputs, timeout=limits.timeout or 1e9, memory=limits.memory, dump=self.dump)
        worker.submit(request).add_done_callback(finish)
        return settled

    def _ended(self, cell: Cell, future: Future[Reply], outputs: Path) -> Outcome:
        if error := future.exception():
            return Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, str(error))
        try:
            return self._outcome(cell, future.result(), outputs)
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

    def _outcome(self, cell: Cell, reply: Reply, outputs: Path) -> Outcome:
        stage = Stage(reply.stage)

        def ended(stage: Stage, verdict: Verdict, message: str = "", difference: Difference | None = None) -> Outcome:
            return Outcome(cell, stage, verdict, message, reply.signal, reply.stderr, difference, reply.seconds)

        at = f"{reply.check}: " if reply.check else ""
        if reply.end == "ok":
            try:
                found = checked(cell, reply, outputs, self.tolerances)
            except GoldenError as error:
                return ended(Stage.COMPARE, Verdict.ERROR, str(error))
            except MatrixError as error:  # a comparator that fails says nothing about the reader
                return ended(Stage.COMPARE, Verdict.NOT_RUN, str(error))
            verdict = Verdict.PASS if not found.problem else Verdict.ERROR if found.difference.ok else Verdict.NUMERICS
            return ended(Stage.COMPARE, verdict, found.problem, found.difference)
        if reply.end == "error":
            text = reply.message or ""
            if stage is Stage.READ:  # the file went away or cannot be read: nothing was asked of jax
                return ended(stage, Verdict.NOT_RUN, f"{reply.type}: {text}")
            jax_release = self.calendar.jax.get(cell.reader.jax)
            jax_built = jax_release.built if jax_release else cell.reader.built
            refusal = find_refusal(stage, reply.type or "", text, jax_built)
            return ended(stage, Verdict.REFUSED if refusal else Verdict.ERROR, f"{at}{reply.type}: {text}")
        if reply.end == "timeout":
            return ended(stage, Verdict.TIMEOUT, f"{at}still in stage {stage} after {self.limits.timeout:g} s, killed")
        if reply.end == "memory":
            text = f"{at}killed: it used more than the limit of {self.limits.memory / GIB:.1f} GiB"
            return ended(stage, Verdict.CRASH, text)
        return ended(stage, Verdict.CRASH, at + (reply.message or f"died by {signal_name(reply.signal)}"))


def audit_message(golden: Golden, allow: Mapping[str, str]) -> str:
    """Why this artifact must not be compiled anywhere; empty when nothing speaks against it.

    Only what the writer's release never promised stops it. A target that the reader's release has dropped since is run: whether
    the promise holds is what the cell is to show.
    """
    writer = golden.manifest.writer.jaxlib
    try:
        calls = read(golden.artifact).custom_calls
    except ArtifactError as error:
        return str(error)
    accepted = {**golden.manifest.options.allow, **allow}
    findings = audit(calls, stable_targets(writer), allow=accepted, writer=f"jaxlib {writer}")
    return "\n".join(str(finding) for finding in findings if not finding.ok)


def signal_name(number: int | None) -> str:
    """``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"
