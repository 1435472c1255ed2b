"""Who is nearer to float64, the reader of a golden or its writer: what tells a real change from a false alarm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.numbers.collect import POLICY, Folders
from export_core.comparing.algebra import to_double
from export_core.environments.environment import ReaderEnvironments
from export_core.environments.placement import Placement
from export_core.errors import ExportCompatError, InfrastructureFault
from export_core.goldens import Check, Golden, Leaf
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.store import INPUTS
from export_core.matrix.cell import Cell
from export_core.matrix.limits import ReplayOptions
from export_core.policy import load_policy
from export_core.scratch import scratch_folder
from export_core.tolerances import FLOATS

CLEARLY = 4.0
"""How many times as far as the writer a reader must be, to be wrong for real: by the largest error of each in the whole
output. Another order of the same sums changes the largest of some hundred errors by less."""


@dataclass(frozen=True)
class Farther:
    """The largest errors of one output from float64, of both sides; of integers how many are others.

    `problem` says why there is no reference.
    """

    output: str = ""
    reader: float = 0.0
    writer: float = 0.0
    problem: str = ""

    @property
    def real(self) -> bool:
        """Whether the reader is clearly farther than the writer: a change for real."""
        return not self.problem and self.reader > CLEARLY * self.writer

    def __str__(self) -> str:
        if self.problem:
            return f"no reference: {self.problem}"
        return f"{self.output}: reader {self.reader:.3g}, writer {self.writer:.3g} from float64"


def farther(name: str, written: Sequence[Leaf], read: Sequence[Leaf], exact: Sequence[Leaf]) -> Farther:
    """Of the outputs of a call, the one in which the reader is farthest beside the writer."""
    found = []
    for number, (want, got, true) in enumerate(zip(written, read, exact, strict=True)):
        errors = [_error(leaf, true) for leaf in (got, want)]
        found.append(Farther(f"{name}{number} {want}", *errors))
    differs = [one for one in found if one.reader or one.writer]
    if not differs:
        return Farther(problem="no output differs from float64")
    return max(differs, key=lambda one: one.reader / max(one.writer, 1e-300))


def _error(leaf: Leaf, true: Leaf) -> float:
    if leaf.dtype not in FLOATS:
        # One integer that is chosen otherwise is no proof of anything.
        return float(max(1, (leaf.data != true.data).sum()))
    with np.errstate(all="ignore"):
        error = np.abs(to_double(leaf.numpy()) - to_double(true.numpy()))
    return float(error[np.isfinite(error)].max(initial=0.0))


class References:
    """What artifacts answer in double precision, computed once each by the newest release. A context manager."""

    def __init__(self, folders: Folders) -> None:
        self._folder = folders.double
        self._policy = load_policy(POLICY)
        self._environments = ReaderEnvironments(self._policy.calendar())

    def __enter__(self) -> References:
        self._environments.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._environments.__exit__(*exception)

    def farther(self, golden: Golden, calls: Iterable[tuple[int, Check, Sequence[Leaf]]]) -> Iterator[Farther]:
        """For each of these calls, by its number, with what a reader answered: how far both are from float64."""
        for number, check, given in calls:
            exact = self._exact(golden, number, check)
            if isinstance(exact, str):
                yield Farther(problem=exact)
            else:
                prefix = f"{check.name}/" if check.name else "output "
                yield farther(prefix, from_npz(golden.folder / (check.outputs or "")), given, exact)

    def _exact(self, golden: Golden, number: int, check: Check) -> tuple[Leaf, ...] | str:
        """The outputs in double precision, or why there are none; once computed, they stay in the folder."""
        place = self._folder / golden.folder.parent.parent.name / golden.id
        stored, reason = place / f"{number}.npz", place / f"{number}.txt"
        if stored.exists():
            return from_npz(stored)
        if reason.exists():
            return reason.read_text()
        place.mkdir(parents=True, exist_ok=True)
        try:
            outputs = self._computed(golden, check)
        except (ExportCompatError, InfrastructureFault) as error:
            reason.write_text(text := str(error).strip().partition("\n")[0])
            return text
        stored.write_bytes(to_npz(outputs))
        return outputs

    def _computed(self, golden: Golden, check: Check) -> tuple[Leaf, ...]:

        from export_core.why.errors import WhyError
        from export_core.why.reduction.editor import ModuleEditor
        from export_core.why.reduction.reduced_program import flat_program
        from export_core.why.reduction.trial import Reader
        from export_core.worker.client import start_worker

        try:
            from export_core.why.reference import in_double
        except ImportError:
            raise WhyError("nothing here computes in double precision") from None
        calendar = self._policy.calendar()
        newest = calendar.release(calendar.newest())
        environment = self._environments.build(Placement(newest))
        with scratch_folder() as scratch:
            program = flat_program(
                golden.read_artifact(), check.vjp, from_npz(golden.folder / (check.inputs or INPUTS))
            )
            with ModuleEditor(environment, scratch) as editor:
                double = in_double(program, editor)
            flags = {**golden.manifest.flags, "jax_enable_x64": True}
            wide = replace(golden, manifest=msgspec.structs.replace(golden.manifest, flags=flags))
            options = ReplayOptions(calendar, self._policy)
            folder = Path(scratch) / "double"
            folder.mkdir()
            with Reader(Cell(wide, newest, "cpu"), environment, options, folder, start_worker) as reader:
                (tried,) = reader.run([double])
            if not tried.works:
                raise WhyError(f"{tried.outcome.verdict}: {tried.outcome.message}")
            return tried.outputs
