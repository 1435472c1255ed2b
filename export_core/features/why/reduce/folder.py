"""The folder of a reduction: the program as a golden, its module as text, and the steps that led to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

from export_core.artifact import read_bytes
from export_core.artifact.errors import ArtifactError
from export_core.base.atomic import put_folder
from export_core.base.escaping import json_bytes
from export_core.base.phrases import few
from export_core.base.untrusted import decode_json, read_regular
from export_core.features.why.errors import WhyError
from export_core.features.why.reduce.reduced_program import ReducedProgram, flat_program
from export_core.goldens import Golden, GoldenError, Leaf
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import ARTIFACT, INPUTS, MANIFEST, MODULE_TEXT, OUTPUTS, sha256

STEPS = "steps.jsonl"
_OWN = (ARTIFACT, INPUTS, OUTPUTS, MANIFEST, MODULE_TEXT, STEPS)
FORMAT = 1


class DivergingOperation(msgspec.Struct, frozen=True):
    """An operation whose outputs differ, though those of all operations before it are equal."""

    operation: str  # Its name, with the types of its operands and results.
    place: int  # Which of the values that are computed outside of regions it gives, from 1.
    values: int  # How many such values there are.
    ulp: int | None  # The largest difference in units in the last place; null for values that are no floats.


class Reduction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was reduced: the first line of steps.jsonl."""

    cell: str  # The name of the cell.
    call: str  # Which call of the golden fails: empty for the plain one.
    artifact: str  # The SHA-256 of the original artifact.
    failure: str  # How it fails.
    second: str  # The jaxlib that says what is right; empty for none.
    operations: int  # How many operations the original has.
    units: float | None = None
    """How far the outputs of the two readers are apart, in units in the last place of the largest element."""
    first_diverging: DivergingOperation | None = None  # The first operation whose outputs differ, where numbers do.
    format: int = FORMAT  # The version of this form.


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A smaller program that still fails: a further line of steps.jsonl."""

    done: str  # The pass that found it; `started` for the original, `finished` where no pass finds a smaller one.
    operations: int  # How many operations it has.
    tried: int  # How many cells were run until then.
    seconds: float  # How long that took.


class Reduced(NamedTuple):
    """A reduction that has ended, or what is left of one: what was reduced, each step, the smallest program."""

    reduction: Reduction
    steps: list[Step]
    program: ReducedProgram


@dataclass(frozen=True)
class ReductionFolder:
    """A folder that always holds the smallest program so far; replaced all or nothing."""

    path: Path

    def earlier(self, *, resume: bool) -> Reduced | None:
        """The reduction to be continued; None to start one. Raises `WhyError` where something would be lost."""
        if self.path.resolve() == Path.cwd():  # which is replaced with each smaller program
            raise WhyError(f"{self.path}: is the current folder, which is not replaced. Name another one.")
        if resume:
            earlier = self.read()
            names = sorted(path.name for path in self.path.iterdir())
            if others := [name for name in names if name not in _OWN and not name.endswith(".register.py")]:
                raise WhyError(
                    f"{self.path}: expected what a reduction writes, found {few(others)} too, which would be lost. "
                    "Move it away first."
                )
            return earlier
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise WhyError(
                f"{self.path}: expected no folder or an empty one, found something. Name another one with --output, or "
                "continue a reduction that is in it with --resume."
            )
        return None

    def write(self, reduced: Reduced, golden: Golden, outputs: Sequence[Leaf]) -> None:
        """Replace what is in the folder.

        `golden` is that of the program: its manifest is without outputs, and its folder has the files beside the
        program's. `outputs` are those of the second reader; empty where there are none.
        """
        program = reduced.program
        others = [name for name in golden.manifest.files if name not in (ARTIFACT, INPUTS)]
        files = {ARTIFACT: program.artifact, INPUTS: program.arrays, MODULE_TEXT: program.text}
        files |= {name: golden.content(name) for name in others}
        files[STEPS] = b"".join(json_bytes(line) + b"\n" for line in (reduced.reduction, *reduced.steps))
        if outputs:
            files[OUTPUTS] = to_npz(outputs)
            hashes = {name: sha256(content) for name, content in files.items()}
            options = structs.replace(golden.manifest.options, without_outputs="")
            files[MANIFEST] = dump_manifest(structs.replace(golden.manifest, options=options, files=hashes))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            put_folder(self.path.resolve(), files)  # of a link, the folder behind it
        except OSError as error:
            raise WhyError(f"{self.path}: cannot write this folder: {error.strerror or error}.") from None

    def read_of(self, cell: str) -> Reduced:
        """What is left of this cell. Raises `WhyError` where nothing is, or it is what is left of another one."""
        reduced = self.read()
        if reduced.reduction.cell != cell:
            raise WhyError(f"{self.path}: expected the reduction of {cell}, found that of {reduced.reduction.cell}.")
        return reduced

    def read(self) -> Reduced:
        """What an earlier reduction has left, its program without a text: that in the folder may be anybody's.

        Raises `WhyError` where there is none that can be read.
        """
        try:
            first, *others = read_regular(self.path / STEPS).splitlines()
            reduction = decode_json(first, Reduction)
            steps = [decode_json(line, Step) for line in others]
            if not steps:
                raise WhyError(f"{STEPS} has no step")
            artifact = read_bytes(read_regular(self.path / ARTIFACT), str(self.path / ARTIFACT))
            program = flat_program(artifact, 0, from_npz(self.path / INPUTS))
        except (OSError, ValueError, msgspec.MsgspecError, ArtifactError, GoldenError, WhyError) as error:
            raise WhyError(
                f"{self.path}: expected what `jaxexport reduce` writes, found nothing that can be read: {error}. Name "
                "the folder of a reduction; to start one, leave out --resume and name an empty folder."
            ) from None
        return Reduced(reduction, steps, program)
