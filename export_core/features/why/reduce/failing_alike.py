"""The check that a smaller program still fails in the same way: it runs in the failing reader, and in a second one."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from msgspec import structs

from export_core.base.errors import InfrastructureFault
from export_core.base.scratch import scratch_folder
from export_core.base.tolerances import FLOATS
from export_core.features.why.reduce.reduced_program import ReducedProgram
from export_core.goldens import Comparison, Golden, Leaf
from export_core.goldens.manifest import UNKNOWN, Manifest, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, sha256
from export_core.judge.causes import FailureSignature, failure_signature, message_class
from export_core.matrix import Cell, Result, Verdict
from export_core.matrix.replay import Ran, Repairs, ignore, replay_with_outputs
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.elements import to_double
from export_core.readers.environment import Environment
from export_core.readers.placement import Placement
from export_core.readers.worker.client import WarmWorkers
from export_core.readers.worker.protocol import WorkerStarter

KEPT_SHARE = 0.5
"""The share of the difference between two readers that has to be left: less could be any rounding."""

_FATAL = re.compile(r"Check failed|LLVM ERROR|[Aa]ssertion|F\d{4} |terminate called")
"""What a native library prints before it ends its process."""


@dataclass(frozen=True)
class Failure:
    """How a program failed: its failure signature, and the class of the fatal message that a native library printed.

    Two programs fail in the same way if their `Failure` is equal. `fatal` is empty if there was no such message.
    """

    signature: FailureSignature
    fatal: str

    @classmethod
    def of(cls, outcome: Result) -> Failure:
        """Return how the program of an outcome failed."""
        fatal = next((line for line in outcome.stderr.splitlines() if _FATAL.search(line)), "")
        # Since XLA's log lines begin with the time, what is before the message differs each time.
        fatal = fatal[match.start() :] if (match := _FATAL.search(fatal)) else ""
        return cls(failure_signature(outcome), message_class(fatal))

    def __str__(self) -> str:
        return str(self.signature)


@dataclass(frozen=True)
class Divergence:
    """How far the outputs of two readers differ.

    `relative` is the largest error, as a share of the largest finite element of its output; infinite if an element is
    NaN or infinite in only one reader. `units` is the same error in units in the last place of that element. `unequal`
    is whether any outputs that are not floats differ.
    """

    units: float = 0.0
    relative: float = 0.0
    unequal: bool = False

    def is_enough_for(self, original: Divergence) -> bool:
        """Return whether this difference, left in a smaller program, is large enough compared with the original's."""
        return self.units >= KEPT_SHARE * original.units if original.units else self.unequal


def divergence(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> Divergence:
    """Return how far the outputs of the failing reader (`actual`) are from a second reader's (`expected`)."""
    import ml_dtypes  # it comes with jax, which NumPy's narrow floats need

    units, relative, unequal = 0.0, 0.0, False
    for want, got in zip(expected, actual, strict=True):
        if want.dtype not in FLOATS:
            unequal = unequal or want.data.tobytes() != got.data.tobytes()
            continue
        one, other = to_double(want.numpy()), to_double(got.numpy())
        finite = np.isfinite(one) & np.isfinite(other)
        error = float(np.abs(one[finite] - other[finite]).max(initial=0.0))
        if error:
            largest = float(np.abs(one[finite]).max(initial=0.0))
            error = error / largest if largest else math.inf
        if not (finite | (one == other) | (np.isnan(one) & np.isnan(other))).all():
            error = math.inf
        units = max(units, error / float(ml_dtypes.finfo(want.numpy().dtype).eps))
        relative = max(relative, error)
    return Divergence(units, relative, unequal)


CASE = "reduced"  # The case of a reduced program's golden.
_NOT_COMPARED = "the outputs of a reduced program are compared with those of a second reader"


def manifest_of(golden: Golden, program: ReducedProgram) -> Manifest:
    """Return a manifest without outputs for a reduced program, with the writer and call options of the original."""
    original, kept = golden.manifest, ("mesh", "register", "platforms", "disabled_checks")
    options = {name: getattr(original.options, name) for name in kept} | {"allow": golden.compared_as.allow}
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
            **{f"{name}.register.py": original.files[f"{name}.register.py"] for name in original.options.register},
            ARTIFACT: sha256(program.artifact),
            INPUTS: sha256(program.arrays),
        },
        instruction_set=original.instruction_set,
    )


@dataclass
class ProgramReader:
    """A reader that runs programs in cold processes of one worker; `program_reader` makes one.

    Reader, platform and call options are those of `cell`. The replay's `options` may be changed between runs. `tried`
    is the number of programs that were run.
    """

    cell: Cell
    options: ReplayOptions
    _replay: Callable[[Sequence[Cell], ReplayOptions], Generator[Ran, None, None]]
    _scratch: Path
    tried: int = 0

    def run(self, programs: Sequence[ReducedProgram]) -> list[Ran]:
        """Run programs, and return the outcome and outputs of each, in the same order.

        Raises `InfrastructureFault` if there is no outcome for a program, even after a second try.
        """
        self.tried += len(programs)
        return self.run_cells([self.write_cell(program, number) for number, program in enumerate(programs)])

    def run_cells(self, cells: Sequence[Cell]) -> list[Ran]:
        """Run cells, and return the outcome and outputs of each, in the same order.

        Raises `InfrastructureFault` if there is no outcome for a cell, even after a second try.
        """
        with closing(self._replay(cells, self.options)) as replayed:
            ran = {one.outcome.key: one for one in replayed}
        if lost := next((one for one in ran.values() if one.lost), None):
            raise InfrastructureFault(lost.outcome.message)
        return [ran[cell.key] for cell in cells]

    def write_cell(self, program: ReducedProgram, number: int = 0) -> Cell:
        """Write a program as golden number `number` into a scratch folder, and return the cell that runs it."""
        folder = self._scratch / str(number)
        folder.mkdir(exist_ok=True)
        golden = self.cell.golden
        modules = [f"{name}.register.py" for name in golden.manifest.options.register]
        content = {ARTIFACT: program.artifact, INPUTS: program.arrays, **{x: golden.content(x) for x in modules}}
        for name, data in content.items():
            (folder / name).write_bytes(data)
        manifest = structs.replace(manifest_of(golden, program), case=f"{CASE}-{number}")
        return replace(self.cell, golden=Golden(manifest, folder))


@contextmanager
def program_reader(
    cell: Cell, environment: Environment, options: ReplayOptions, start: WorkerStarter | None = None
) -> Iterator[ProgramReader]:
    """Yield a reader that runs programs in this environment, with the reader, platform and call options of the cell.

    `start` starts its worker; if it is None, the reader has a worker of its own, which is closed at the end.
    """

    def environment_for(placement: Placement) -> Environment:
        return environment

    repairs = Repairs(environment_for, ignore)
    with closing(WarmWorkers()) as workers, scratch_folder() as scratch:

        def replay(cells: Sequence[Cell], options: ReplayOptions) -> Generator[Ran, None, None]:
            return replay_with_outputs(cells, environment_for, options, start=start or workers.start, repairs=repairs)

        yield ProgramReader(cell, options, replay, scratch)


@dataclass
class Oracle:
    """A test of whether a smaller program still fails in the same way as the original.

    If the original gives different numbers in a failing and a second reader, at least `KEPT_SHARE` of the difference
    must remain. Any other failure must be the same in the failing reader. If there is a second reader, the smaller
    program must work there, so that it does not become a program that works nowhere.
    """

    failing: ProgramReader
    second: ProgramReader | None
    failure: Failure
    wanted: Divergence = field(default_factory=Divergence)
    _outputs: dict[bytes, tuple[Leaf, ...]] = field(default_factory=dict)
    _known: dict[bytes, bool] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """The number of programs that were run so far, in both readers."""
        return self.failing.tried + (self.second.tried if self.second else 0)

    def first(self, programs: Iterable[ReducedProgram | None]) -> tuple[int, ReducedProgram] | None:
        """Return the first program that fails in the same way as the original, with its index; None if none does.

        A None among the programs is skipped.
        """
        limits, is_shared = self.failing.options.limits, self.failing.cell.placement.shares_device
        numbered = ((place, program) for place, program in enumerate(programs) if program is not None)
        while waiting := list(itertools.islice(numbered, limits.device_jobs if is_shared else limits.jobs)):
            new = {program.key: program for _, program in waiting if program.key not in self._known}
            alike = self._alike(new) if new else set()
            self._known |= {key: key in alike for key in new}
            for place, program in waiting:
                if self._known[program.key]:
                    return place, program
        return None

    def fails_alike(self, program: ReducedProgram) -> bool:
        """Return whether a program fails in the same way as the original."""
        return self.first([program]) is not None

    def outputs_of(self, program: ReducedProgram) -> tuple[Leaf, ...]:
        """Return the second reader's outputs of a program; empty if there is no such reader, or it fails there."""
        if program.key not in self._outputs and self.second:
            return self.second.run([program])[0].outputs
        return self._outputs.get(program.key, ())

    def _alike(self, programs: Mapping[bytes, ReducedProgram]) -> set[bytes]:
        """Return the keys of the programs that fail in the same way as the original."""
        if self.failure.signature.verdict is Verdict.NUMERICS:
            assert self.second
            right = _working(self.second, programs)
            wrong = _working(self.failing, {key: programs[key] for key in right})
            pairs = ((key, right[key].outputs, one.outputs) for key, one in wrong.items())
            same_typed = [pair for pair in pairs if [*map(str, pair[1])] == [*map(str, pair[2])]]
            alike = {key for key, *both in same_typed if divergence(*both).is_enough_for(self.wanted)}
        else:
            tried = zip(programs, self.failing.run([*programs.values()]), strict=True)
            alike = {key for key, one in tried if Failure.of(one.outcome) == self.failure}
            right = _working(self.second, {key: programs[key] for key in alike}) if self.second else {}
            alike &= right.keys() if self.second else alike
        # Of these alone: the outputs of all programs would fill the memory.
        self._outputs = {key: right[key].outputs for key in alike if key in right} or self._outputs
        return alike


def _working(reader: ProgramReader, programs: Mapping[bytes, ReducedProgram]) -> dict[bytes, Ran]:
    """Return the outcome and outputs, by key, of those programs that work in a reader."""
    ran = zip(programs, reader.run([*programs.values()]) if programs else (), strict=True)
    return {key: one for key, one in ran if one.works}
