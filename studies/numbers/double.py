"""The errors of a golden's writer and of a reader against float64, which tell a real change from a false alarm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from export_core.base.errors import ExportCompatError, InfrastructureFault
from export_core.base.tolerances import FLOATS
from export_core.features.why.choice import WhyError
from export_core.features.why.explain.who_is_right import in_double
from export_core.features.why.reduce.failing_alike import program_reader
from export_core.features.why.reduce.reduced_program import ModuleEditor, flat_program
from export_core.goldens import Check, Golden, Leaf
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.store import INPUTS
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.elements import to_double
from export_core.policy import load_policy
from export_core.readers.cell import Cell
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import Release
from studies.numbers.collect import POLICY, Folders

CLEARLY = 4.0
"""A reader is really wrong if its largest error in an output is more than so many times the writer's largest error.

If only the order of sums differs, the largest of some hundred errors changes by less than that."""

LONGEST = 100
"""The reason why there are no outputs in double precision is cut after so many characters."""


@dataclass(frozen=True)
class Farther:
    """The largest errors of an output against float64, in the reader and in the writer.

    For integers, an error is the number of elements that differ. A writer's error below `least` is taken as `least`.
    `problem` is the reason why there are no outputs in double precision, or empty.
    """

    output: str = ""
    reader: float = 0.0
    writer: float = 0.0
    least: float = 0.0
    problem: str = ""

    @property
    def real(self) -> bool:
        """Whether the reader's error is so much larger than the writer's that rounding does not explain it."""
        return not self.problem and self.reader > CLEARLY * max(self.writer, self.least)

    def __str__(self) -> str:
        if self.problem:
            return f"no reference: {self.problem}"
        return f"{self.output}: reader {self.reader:.3g}, writer {self.writer:.3g} from float64"


def farther(name: str, want: Leaf, got: Leaf, true: Leaf) -> Farther:
    """Return the errors of an output in reader and writer.

    Args:
        name: the name of the output.
        want: the writer's output.
        got: the reader's output.
        true: the output in double precision.
    """
    title = f"{name} {want}"
    if want.dtype not in FLOATS:
        reader, writer = (float((leaf.data != true.data).sum()) for leaf in (got, want))
        # One different integer proves nothing: it may be a tie that is broken otherwise.
        return Farther(title, reader, writer, least=1.0)
    return Farther(title, _error(got, true), _error(want, true))


def _error(leaf: Leaf, true: Leaf) -> float:
    with np.errstate(all="ignore"):
        error = np.abs(to_double(leaf.numpy()) - to_double(true.numpy()))
    return float(error[np.isfinite(error)].max(initial=0.0))


@dataclass(frozen=True)
class Call:
    """A call of a golden, with its number, the reader's outputs (`given`), and which of them are judged wrong."""

    number: int
    check: Check
    given: Sequence[Leaf]
    wrong: Sequence[int] = ()


class References:
    """A context manager that computes the outputs of artifacts in double precision, each once, and stores them."""

    def __init__(self, folders: Folders) -> None:
        self._folder = folders.double
        self._failed: dict[tuple[Path, Release], str] = {}
        self._policy = load_policy(POLICY)
        self._environments = ReaderEnvironments(self._policy.calendar())

    def __enter__(self) -> References:
        self._environments.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._environments.__exit__(*exception)

    def farther(self, golden: Golden, reader: Release, calls: Iterable[Call]) -> Iterator[Farther]:
        """Yield the errors of reader and writer against float64 for each output of these calls that is judged wrong.

        For a call without outputs in double precision, yield the reason instead.
        """
        for call in calls:
            exact = self._exact(golden, reader, call.number, call.check)
            if isinstance(exact, str):
                yield Farther(problem=exact)
                continue
            written = from_npz(golden.folder / (call.check.outputs or ""))
            for output in call.wrong:
                name = f"{call.check.name or 'output'} {output}"
                yield farther(name, written[output], call.given[output], exact[output])

    def _exact(self, golden: Golden, reader: Release, number: int, check: Check) -> tuple[Leaf, ...] | str:
        """Return the outputs of a call in double precision, or the reason why there are none.

        They are computed once, and stored. The newest release computes them, or the reader if the newest release cannot
        run an old artifact.
        """
        folder = self._folder / golden.folder.parent.parent.name / golden.id
        stored, calendar = folder / f"{number}.npz", self._policy.calendar()
        if stored.exists():
            return from_npz(stored)
        folder.mkdir(parents=True, exist_ok=True)
        for release in (calendar.release(calendar.newest()), reader):
            if (stored, release) in self._failed:
                continue
            try:
                outputs = self._computed(golden, check, release)
            except (ExportCompatError, InfrastructureFault) as error:
                self._failed[stored, release] = str(error).strip().partition("\n")[0][:LONGEST]
            else:
                stored.write_bytes(to_npz(outputs))
                return outputs
        return self._failed[stored, reader]

    def _computed(self, golden: Golden, check: Check, release: Release) -> tuple[Leaf, ...]:
        calendar = self._policy.calendar()
        newest = self._environments.build(Placement(calendar.release(calendar.newest())))
        program = flat_program(golden.read_artifact(), check.vjp, from_npz(golden.folder / (check.inputs or INPUTS)))
        with ModuleEditor(newest) as editor:
            double = in_double(program, editor)
        flags = {**golden.manifest.flags, "jax_enable_x64": True}
        wide = replace(golden, manifest=msgspec.structs.replace(golden.manifest, flags=flags))
        environment = self._environments.build(Placement(release))
        with program_reader(Cell(wide, release, "cpu"), environment, ReplayOptions(calendar, self._policy)) as reader:
            (tried,) = reader.run([double])
        if not tried.works:
            raise WhyError(f"{tried.outcome.verdict}: {tried.outcome.message}")
        return tried.outputs
