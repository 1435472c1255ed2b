"""Programs tried in cold cells: of the failing reader, and of a second one that says what is right."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import structs

from export_core.base.errors import InfrastructureFault
from export_core.features.why.reduction.reduced_program import ReducedProgram
from export_core.goldens import Comparison, Golden, Leaf
from export_core.goldens.arrays import from_npz
from export_core.goldens.manifest import UNKNOWN, Manifest, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, sha256
from export_core.matrix import Cell, Outcome, Verdict
from export_core.matrix.outcome import machine_fault, not_run, outcome_of
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.cell import request_of
from export_core.readers.environment import Environment
from export_core.readers.errors import WorkerDied
from export_core.readers.hardware import shares_device
from export_core.readers.worker.protocol import Reply, Worker, WorkerStarter

CASE = "reduced"
"""The case of a reduced program's golden."""
_NOT_COMPARED = "the outputs of a reduced program are compared with those of a second reader"


@dataclass(frozen=True)
class Tried:
    """The outcome of a program in one reader; `outputs` are empty unless it ran."""

    outcome: Outcome
    outputs: tuple[Leaf, ...] = ()

    @property
    def works(self) -> bool:
        """Whether it ran, or was compiled where it is only to be compiled."""
        return self.outcome.verdict in (Verdict.PASS, Verdict.COMPILED)


def manifest_of(original: Manifest, program: ReducedProgram) -> Manifest:
    """The manifest of a reduced program's golden, without outputs: that of an adopted artifact."""
    kept = ("mesh", "register", "allow", "platforms", "disabled_checks")
    options = {name: getattr(original.options, name) for name in kept}
    return Manifest(
        case=CASE,
        test="",
        name=None,
        writer=structs.replace(original.writer, python=UNKNOWN),
        flags=original.flags,
        options=type(original.options)(**options, without_outputs=_NOT_COMPARED),
        comparison=Comparison(),
        signature=signature_of(program.envelope),
        custom_calls=original.custom_calls,
        files={
            **{name: original.files[name] for name in map(register_file, original.options.register)},
            ARTIFACT: sha256(program.artifact),
            INPUTS: sha256(program.arrays),
        },
        instruction_set=original.instruction_set,
    )


class Reader:
    """One reader, which runs programs in cold processes of one worker. A context manager.

    Args:
        cell: its golden says how a program is called, the rest where.
        environment: that of its reader.
        options: limits and calendar.
        scratch: a folder of its own.
        start: starts its worker.
    """

    def __init__(
        self, cell: Cell, environment: Environment, options: ReplayOptions, scratch: Path, start: WorkerStarter
    ) -> None:
        self.cell = cell
        self.environment = environment
        self.options = options
        self.at_once = options.limits.device_jobs if shares_device(cell.placement) else options.limits.jobs
        self.tried = 0
        self._scratch = scratch
        self._start = start
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker:
            self._worker.close()

    def limit_time(self, seconds: float) -> None:
        """Let a program take so long from now on."""
        self.options = replace(self.options, limits=replace(self.options.limits, timeout=seconds))

    def run(self, programs: Sequence[ReducedProgram]) -> list[Tried]:
        """Run programs, all at once. Raises `InfrastructureFault` where two workers in a row die, or the disk fails."""
        self.tried += len(programs)
        cells = [self.cell_of(program, number) for number, program in enumerate(programs)]
        try:
            return self._run(cells)
        except WorkerDied:
            self._worker = None
            return self._run(cells)

    def run_golden(self, golden: Golden) -> Tried:
        """Run the plain call of a golden as it is, and compare its outputs as its manifest says."""
        (tried,) = self._run([replace(self.cell, golden=golden)])
        return tried

    def cell_of(self, program: ReducedProgram, number: int = 0) -> Cell:
        """A program as a cell. Its golden is in the scratch folder of this number."""
        folder = self._scratch / str(number)
        folder.mkdir(exist_ok=True)
        (folder / ARTIFACT).write_bytes(program.artifact)
        (folder / INPUTS).write_bytes(program.arrays)
        for module in self.cell.golden.manifest.options.register:
            name = register_file(module)
            (folder / name).write_bytes(self.cell.golden.content(name))
        return replace(self.cell, golden=Golden(manifest_of(self.cell.golden.manifest, program), folder))

    def _run(self, cells: Sequence[Cell]) -> list[Tried]:
        limits = self.options.limits
        worker = self._worker = self._worker or self._start(self.environment, limits.jobs, fork=limits.fork)
        folders = [self._scratch / f"outputs-{number}" for number in range(len(cells))]
        replies: list[Future[Reply]] = []
        for cell, folder in zip(cells, folders, strict=True):
            folder.mkdir(exist_ok=True)
            replies.append(worker.submit(request_of(cell, folder, limits)))
        return [self._tried(*one) for one in zip(cells, (reply.result() for reply in replies), folders, strict=True)]

    def _tried(self, cell: Cell, reply: Reply, folder: Path) -> Tried:
        if reply.end == "fault":
            raise InfrastructureFault(machine_fault(reply))
        if problem := machine_fault(reply):  # killed, as by the system where memory is short: it shows nothing
            return Tried(not_run(cell, problem))
        outcome = outcome_of(cell, reply, folder, self.options)
        path = folder / "0.npz"
        outputs = from_npz(path) if reply.end == "ok" and path.exists() else ()
        path.unlink(missing_ok=True)
        return Tried(outcome, outputs)


def register_file(module: str) -> str:
    """The golden's copy of a module that it registers."""
    return f"{module}.register.py"
