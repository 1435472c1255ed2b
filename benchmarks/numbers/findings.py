"""What the corpus shows: false alarms and misses of each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.numbers.changes import Change, change_of
from benchmarks.numbers.collect import Folders, Read, program_of, reads, wrong_outputs
from benchmarks.numbers.planted import FROM_OUTPUTS
from benchmarks.numbers.rules import Judged, judge
from export_core.comparing.rules import CallNoise, call_noise
from export_core.goldens import Golden, GoldenStore, Leaf
from export_core.goldens.arrays import leaf_of
from export_core.goldens.store import OUTPUTS
from export_core.tolerances import FLOATS


@dataclass(frozen=True)
class Cell:
    """A correct reader's answer, judged."""

    read: Read
    judged: Judged
    change: Change | None


@dataclass(frozen=True)
class Planted:
    """A wrong answer, judged."""

    program: str
    writer: str
    kind: str
    judged: Judged


@dataclass(frozen=True)
class Findings:
    """All cells and all planted errors.

    `not_compared` counts the verdicts of cells that did not run, `not_written` has
    the programs of which a writer has no golden.
    """

    cells: list[Cell] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    not_written: list[str] = field(default_factory=list)

    @property
    def correct(self) -> list[Cell]:
        """Those in which nothing changed for real: here any alarm is false."""
        return [cell for cell in self.cells if cell.change is None]


def find(folders: Folders) -> Findings:
    """Judge everything that was collected."""
    goldens = GoldenStore(folders.goldens).goldens()
    findings = Findings(not_written=_not_written(goldens))
    noises = {golden.id: _noise(golden) for golden in goldens}
    for read in reads(folders):
        if read.outputs is None:
            findings.not_compared[read.verdict] += 1
            continue
        judged = judge(read.golden.outputs(), read.outputs, _compare(read.golden), noises[read.golden.id])
        findings.cells.append(Cell(read, judged, change_of(read.program, read.writer, read.reader)))
    for golden in goldens:
        findings.planted.extend(_planted(golden, wrong_outputs(folders, golden), noises[golden.id]))
    return findings


def _not_written(goldens: Sequence[Golden]) -> list[str]:
    writers = {golden.manifest.writer.jaxlib for golden in goldens}
    written = Counter(map(program_of, goldens))
    return sorted(program for program, count in written.items() if count < len(writers))


def _compare(golden: Golden) -> str:
    return golden.manifest.comparison.compare


def _noise(golden: Golden) -> CallNoise:
    return call_noise(golden)[OUTPUTS]


def _planted(golden: Golden, given: dict[str, tuple[Leaf, ...]], noise: CallNoise) -> Iterable[Planted]:
    """Every error planted in one golden. Errors that change no number are none."""
    expected = golden.outputs()
    wrong = {kind: _from_outputs(expected, kind) for kind in FROM_OUTPUTS} | given
    for kind, outputs in wrong.items():
        if any(_differ(want, got) for want, got in zip(expected, outputs, strict=True)):
            judged = judge(expected, outputs, _compare(golden), noise)
            yield Planted(program_of(golden), golden.manifest.writer.jaxlib, kind, judged)


def _from_outputs(expected: tuple[Leaf, ...], kind: str) -> tuple[Leaf, ...]:
    """Outputs with an error; the one element that is wrong is in the first output with floats."""
    outputs = []
    for leaf in expected:
        changed = leaf_of(FROM_OUTPUTS[kind](leaf.numpy())) if leaf.dtype in FLOATS else leaf
        outputs.append(changed)
        if kind == "one-element" and _differ(leaf, changed):
            return (*outputs, *expected[len(outputs) :])
    return tuple(outputs)


def _differ(want: Leaf, got: Leaf) -> bool:
    return want.data.tobytes() != got.data.tobytes()
