"""The findings of a measurement: cells of correct readers and outputs with planted errors, each judged by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from export_core.base.tolerances import FLOATS
from export_core.goldens import Check, Golden, GoldenStore, Leaf
from export_core.goldens.arrays import from_npz, leaf_of
from export_core.numbers.noise import knows_inputs_only
from export_core.readers.cell import Cell as MatrixCell
from export_core.releases import Release
from studies.numbers.changes import Change, change_of
from studies.numbers.collect import Folders, Replay
from studies.numbers.double import Call, Farther, References
from studies.numbers.planted import FROM_EACH_OUTPUT, FROM_OUTPUTS
from studies.numbers.rules import Judge, Judged, worst
from studies.numbers.sets import program_in, set_of
from tools.stored_results import read_results


@dataclass(frozen=True)
class Cell:
    """A cell of a correct reader, with the judgement of its outputs.

    `other_bits` tells whether any bit differs from the writer's outputs. `farther` has the errors against float64 of
    each output that is judged wrong.
    """

    replay: Replay
    program: str
    of_set: str
    writer: str
    reader: str
    verdict: str
    judged: Judged
    other_bits: bool
    farther: tuple[Farther, ...] = ()

    @property
    def change(self) -> Change | None:
        """The documented change of XLA that the cell shows, if any."""
        return change_of(self.program, self.writer, self.reader)

    @property
    def false_alarm(self) -> bool:
        """Whether the cell is judged wrong, although no change is documented, and float64 does not show a real one."""
        shown = any(one.real for one in self.farther)
        return self.judged.fails and self.change is None and not shown


@dataclass(frozen=True)
class Planted:
    """Outputs with a planted error, and their judgement.

    `jumps` tells whether one of the wrong outputs jumps, as the writer measured. `undecided` tells whether rounding
    alone moves most elements of the wrong outputs by a tenth of the largest number, as the writer measured. `output` is
    the number of the wrong output if the error was planted in a single output.
    """

    program: str
    of_set: str
    writer: str
    kind: str
    judged: Judged
    jumps: bool
    undecided: bool = False
    output: int | None = None


@dataclass(frozen=True)
class Findings:
    """All cells and all planted errors of a measurement.

    `not_compared` counts the verdicts of cells without outputs. `not_written` lists programs of which a writer has no
    golden. `inputs_only` lists programs without noise from moved results inside the program.
    """

    cells: list[Cell] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    not_written: list[str] = field(default_factory=list)
    inputs_only: list[str] = field(default_factory=list)

    @property
    def correct(self) -> list[Cell]:
        """The cells that show no documented change, and whose reader has the writer's processor.

        Their numbers are right, so that every alarm in them is false.
        """
        return [cell for cell in self.cells if cell.change is None and cell.replay.read is cell.replay.written]


def find(folders: Folders, replays: Sequence[Replay]) -> Findings:
    """Judge the outputs of these matrices and the planted errors, and return the findings."""
    findings = Findings()
    with References(folders) as references:
        for replay in replays:
            for golden, cells in _read(folders, replay):
                judge = Judge.of(golden)
                for reader, verdict, calls in cells:
                    if not calls:
                        findings.not_compared[verdict] += 1
                        continue
                    findings.cells.append(_judged(replay, golden, reader, verdict, calls, judge, references))
                if replay.written is replay.read:
                    if not (noise := golden.manifest.noise) or knows_inputs_only(noise):
                        case, writer = golden.manifest.case, golden.manifest.writer.jaxlib
                        findings.inputs_only.append(f"{program_in(case)} by {writer}")
                    findings.planted.extend(_planted(folders, golden, judge))
    return findings


Calls = list[tuple[int, Check, tuple[Leaf, ...]]]


def _read(folders: Folders, replay: Replay) -> Iterator[tuple[Golden, list[tuple[Release, str, Calls]]]]:
    """Yield each golden of a matrix; with it, for each of its readers, the verdict and the outputs of each call."""
    goldens = {golden.id: golden for golden in GoldenStore(folders.goldens(replay.written)).goldens()}
    found: dict[str, list[tuple[Release, str, Calls]]] = {}
    if not replay.results(folders).exists():  # it had nothing to replay
        return
    for result in read_results(replay.results(folders)):
        golden, jaxlib = goldens[result.golden], result.reader.jaxlib
        folder = replay.outputs(folders) / jaxlib / golden.folder.parent.name / golden.folder.name
        checks = MatrixCell(golden, result.reader, "cpu").checks
        calls = [
            (number, check, from_npz(file))
            for number, check in enumerate(checks)
            if check.outputs and (file := folder / f"{number}.npz").exists()
        ]
        found.setdefault(golden.id, []).append((result.reader, result.verdict, calls))
    yield from ((goldens[name], cells) for name, cells in found.items())


def _judged(
    replay: Replay,
    golden: Golden,
    reader: Release,
    verdict: str,
    calls: Calls,
    judge: Judge,
    references: References,
) -> Cell:
    expected = {number: from_npz(golden.folder / (check.outputs or "")) for number, check, _ in calls}
    by_call = [judge.judge(check, expected[number], given) for number, check, given in calls]
    judged = worst(by_call)
    wrong = [Call(*call, one.wrong) for call, one in zip(calls, by_call, strict=True) if one.fails]
    case, writer = golden.manifest.case, golden.manifest.writer.jaxlib
    return Cell(
        replay, program_in(case), set_of(case), writer, reader.jaxlib, verdict, judged,
        other_bits=any(_differ(expected[number], given) for number, _, given in calls),
        farther=tuple(references.farther(golden, reader, wrong)),
    )  # fmt: skip


def _planted(folders: Folders, golden: Golden, judge: Judge) -> Iterable[Planted]:
    """Yield every planted error in the first call of a golden, except errors that change no number."""
    if golden.manifest.options.without_outputs:
        return
    case, writer = golden.manifest.case, golden.manifest.writer.jaxlib
    program, plain = program_in(case), Check("", outputs="outputs.npz")
    expected = golden.outputs()
    wrong: list[tuple[str, int | None, tuple[Leaf, ...]]]
    wrong = [(kind, None, _from_outputs(expected, kind)) for kind in FROM_OUTPUTS]
    for number, leaf in enumerate(expected):
        if leaf.dtype in FLOATS:
            for kind, function in FROM_EACH_OUTPUT.items():
                given = leaf_of(function(leaf.numpy()))
                wrong.append((kind, number, (*expected[:number], given, *expected[number + 1 :])))
    for file in (folders.wrong / writer).glob(f"{program}.*.npz"):
        wrong.append((file.name.split(".")[-2], None, from_npz(file)))
    noise = golden.manifest.noise
    jumping, undecided = (noise.jumping, noise.undecided_outputs or {}) if noise else ({}, {})
    for kind, output, outputs in wrong:
        pairs = enumerate(zip(expected, outputs, strict=True))
        changed = [str(number) for number, (want, got) in pairs if _differ([want], [got])]
        if changed:
            judged = judge.judge(plain, expected, outputs)
            jumps = any(number in jumping for number in changed)
            hidden = [
                number in undecided and 2 * undecided[number].elements >= undecided[number].of for number in changed
            ]
            yield Planted(program, set_of(case), writer, kind, judged, jumps, all(hidden), output)


def _from_outputs(expected: tuple[Leaf, ...], kind: str) -> tuple[Leaf, ...]:
    """Return outputs into which an error of a kind of `FROM_OUTPUTS` is planted.

    It is planted in all outputs of floats, except for `one-element`, which changes only the first that it can change.
    """
    outputs = []
    for leaf in expected:
        changed = leaf_of(FROM_OUTPUTS[kind](leaf.numpy())) if leaf.dtype in FLOATS else leaf
        outputs.append(changed)
        if kind == "one-element" and _differ([leaf], [changed]):
            return (*outputs, *expected[len(outputs) :])
    return tuple(outputs)


def _differ(expected: Sequence[Leaf], given: Sequence[Leaf]) -> bool:
    return any(want.data.tobytes() != got.data.tobytes() for want, got in zip(expected, given, strict=True))
