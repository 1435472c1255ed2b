"""One failing cell made into the smallest program that still fails in the same way, and the folder that holds it."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

from export_core.artifact import read_bytes
from export_core.artifact.errors import ArtifactError
from export_core.base.atomic import put_folder
from export_core.base.json_text import decode_json, json_bytes
from export_core.base.text import few, first_line, plural
from export_core.base.tolerances import FLOATS
from export_core.base.untrusted import read_regular
from export_core.features.why.bisect.bisection import result_line
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.reduce.failing_alike import (
    KEPT_SHARE,
    Divergence,
    Failure,
    Oracle,
    ProgramReader,
    divergence,
    manifest_of,
    program_reader,
)
from export_core.features.why.reduce.passes import KINDS, Passes, traced_program
from export_core.features.why.reduce.reduced_program import ModuleEditor, NotEditedError, ReducedProgram, flat_program
from export_core.goldens import Check, Comparison, Golden, GoldenError, Leaf
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import ARTIFACT, INPUTS, MANIFEST, MODULE_TEXT, OUTPUTS, golden_around, sha256
from export_core.matrix import Cell, Result, Verdict
from export_core.matrix.outcome import audit_problem
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.elements import ulp_distance
from export_core.readers.environment import Environment
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.hardware import missing_hardware
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage, WorkerStarter

STEPS = "steps.jsonl"
_OWN = (ARTIFACT, INPUTS, OUTPUTS, MANIFEST, MODULE_TEXT, STEPS)
STARTED, FINISHED = "started", "finished"  # `Step.done` of the first and the last step; others name a pass.
LEAST_SECONDS = 10.0  # How long a smaller program may take in any case.
TIMES_AS_LONG = 4
"""How many times as long as the original a smaller program may take, since a loop that does not end shows nothing."""

Notify = Callable[[str], None]


# --- the folder -------------------------------------------------------------------------------------------------------


class DivergingOperation(msgspec.Struct, frozen=True):
    """An operation whose outputs differ, though those of all operations before it are equal."""

    operation: str  # Its name, with the types of its operands and results.
    place: int  # The number of its value among the values that are computed outside of regions, from 1.
    values: int  # How many such values there are.
    ulp: int | None  # The largest difference in units in the last place; null for values that are not floats.


class Reduction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The original of a reduction, and its failure: the first line of steps.jsonl."""

    cell: str  # The name of the cell.
    call: str  # The name of the golden's call that fails; empty for the plain call.
    artifact: str  # The SHA-256 of the original artifact.
    failure: str  # How it fails.
    second: str  # The jaxlib whose outputs count as right; empty if there is none.
    operations: int  # How many operations the original has.
    units: float | None = None
    """How far the outputs of the two readers differ, in units in the last place of the largest element."""
    first_diverging: DivergingOperation | None = None  # The first operation whose outputs differ, if numbers do.
    format: int = 1  # The version of this form.


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A smaller program that still fails: a further line of steps.jsonl."""

    done: str  # The pass that found it; `started` for the original, `finished` when no pass finds a smaller one.
    operations: int  # How many operations it has.
    tried: int  # How many cells were run until then.
    seconds: float  # How long that took.


class Reduced(NamedTuple):
    """The state of a reduction, finished or interrupted: the original, each step, and the smallest program so far."""

    reduction: Reduction
    steps: list[Step]
    program: ReducedProgram


@dataclass(frozen=True)
class ReductionFolder:
    """The output folder of a reduction: it holds the smallest program so far, and is always replaced as a whole."""

    path: Path

    def earlier(self, *, resume: bool) -> Reduced | None:
        """Return the reduction in the folder if `resume` asks to continue it, else None.

        Raises `WhyError` if the folder cannot be replaced without losing something, or if there is nothing to continue.
        """
        if self.path.resolve() == Path.cwd():  # which is replaced with each smaller program
            raise WhyError(
                f"{self.path}: expected a folder that can be replaced, found the current folder. Name another one."
            )
        if self.path.is_symlink():
            raise WhyError(f"{self.path}: expected no folder or an empty one, found a symbolic link. Name another one.")
        if golden := golden_around(self.path.parent):
            raise WhyError(
                f"{self.path}: expected a folder outside goldens, which are never changed, found one in {golden}. Name "
                "another folder."
            )
        if resume:
            earlier = self.read()
            names = sorted(path.name for path in self.path.iterdir())
            if others := [name for name in names if name not in _OWN and not name.endswith(".register.py")]:
                raise WhyError(
                    f"{self.path}: expected only the files of a reduction, found {few(others)} too, which would be "
                    "deleted. First move them to another folder."
                )
            return earlier
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise WhyError(
                f"{self.path}: expected no folder or an empty one, found files in it. Name another folder with "
                "--output, or continue the reduction in this one with --resume."
            )
        return None

    def write(self, reduced: Reduced, golden: Golden, outputs: Sequence[Leaf]) -> None:
        """Replace the content of the folder by the smallest program so far, as a golden, and the list of steps.

        Args:
            reduced: The reduction so far, with its smallest program.
            golden: The golden whose manifest, without outputs, and further files the program gets.
            outputs: The outputs of the second reader; empty if there are none.
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
            put_folder(self.path.parent.resolve() / self.path.name, files)
        except OSError as error:
            raise WhyError(f"{self.path}: cannot write this folder: {error.strerror or error}.") from None

    def read_of(self, cell: str) -> Reduced:
        """Return the reduction in this folder, which has to be of the given cell.

        Raises `WhyError` if there is no reduction in the folder, or one of another cell.
        """
        reduced = self.read()
        if reduced.reduction.cell != cell:
            raise WhyError(f"{self.path}: expected the reduction of {cell}, found that of {reduced.reduction.cell}.")
        return reduced

    def read(self) -> Reduced:
        """Return the reduction in this folder.

        The program is read from the artifact; the module's text beside it is not trusted. Raises `WhyError` if there is
        no reduction that can be read.
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
                f"{self.path}: expected the files of `jaxexport reduce`, found none that can be read: {error}. Name "
                "the folder of a reduction; to start one, leave out --resume and name an empty folder."
            ) from None
        return Reduced(reduction, steps, program)


# --- the reduction ----------------------------------------------------------------------------------------------------


class ReductionEnvironments(NamedTuple):
    """The environments of a reduction: failing reader, reader that works, and newest release for the module editor."""

    failing: Environment
    second: Environment | None
    editing: Environment


class NotReproducedError(WhyError):
    """An error for a cell that does not fail on this machine, so that it cannot be reduced."""

    exit_code = 3


def reduce_chosen(choice: Choice, good: str, folder: ReductionFolder, *, resume: bool, notify: Notify) -> Reduced:
    """Reduce the program of the chosen cell to the smallest one that fails in the same way.

    Args:
        choice: The cell.
        good: The jaxlib of a second reader, in which the cell works; empty for the golden's writer.
        folder: The output folder, which always holds the smallest program so far.
        resume: Whether to continue the reduction in the folder.
        notify: Called with a line about each step of progress.

    Raises:
        WhyError: The cell cannot be reduced; the message says why.
        ReleaseError: There is no release `good`.
        EnvironmentFailed: The environment of a reader cannot be built.
    """
    earlier = folder.earlier(resume=resume)  # before an environment is built
    cell = choice.cell
    if cell.mode is Mode.RUN and (problem := missing_hardware(cell.platform)):
        way = f"--platform {cell.platform}:compile compiles for it"
        raise NotReproducedError(f"{cell.platform} cannot run here: {problem}. {way}.")
    second = choice.plan.calendar.release(good or cell.golden.manifest.writer.jaxlib)
    if second == cell.reader and good:
        raise WhyError(f"--good {good}: expected a release in which the cell works, found this one, in which it fails.")
    with choice.environments(notify) as environments:
        failing = environments.build(cell.placement)
        other: Environment | None = None
        try:
            other = None if second == cell.reader else environments.build(replace(cell.placement, reader=second))
        except EnvironmentFailed as error:
            if good or (choice.result and choice.result.verdict is Verdict.NUMERICS):
                raise
            notify(f"continuing without a second reader: {error}")
        used = ReductionEnvironments(failing, other, environments.build(choice.newest))
        notify(f"running {cell.key} as it is, then smaller and smaller programs")
        return reduce_cell(cell, used, choice.options, folder, earlier, notify=notify)


def reduce_cell(
    cell: Cell,
    environments: ReductionEnvironments,
    options: ReplayOptions,
    folder: ReductionFolder,
    earlier: Reduced | None = None,
    *,
    notify: Notify = lambda text: None,
    start: WorkerStarter | None = None,
) -> Reduced:
    """Reduce the program of a failing cell. The folder always holds the smallest program so far.

    `earlier` is the reduction in the folder to continue; without it, the folder must be empty. `start` starts the
    workers; if it is None, this function starts workers of its own and closes them at the end.

    Raises:
        WhyError: The cell cannot be reduced; the message says why. `NotReproducedError` if it does not fail here.
        InfrastructureFault: Something that cells need failed, such as a worker or an environment.
    """
    if problem := audit_problem(cell.golden, options.policy):
        raise WhyError(f"{cell.key} fails in its audit, before anything is run: {problem}")
    with contextlib.ExitStack() as stack:
        failing = stack.enter_context(program_reader(cell, environments.failing, options, start))
        second = None
        if environments.second:
            other = replace(cell, reader=environments.second.release)
            second = stack.enter_context(program_reader(other, environments.second, options, start))
        editor = stack.enter_context(ModuleEditor(environments.editing))
        run = _Run(cell, failing, second, editor, folder, notify)
        run.begin()
        if earlier:
            run.resume(earlier)
        if not run.steps:
            run.keep(run.program, STARTED)
        passes = Passes(run.program, editor, run.oracle, run.keep)
        passes.run()
        return run.keep(passes.program, FINISHED)


@dataclass
class _Run:
    """The state of one reduction: how the original fails, and the steps that were written."""

    cell: Cell
    failing: ProgramReader
    second: ProgramReader | None
    editor: ModuleEditor
    folder: ReductionFolder
    notify: Notify
    steps: list[Step] = field(default_factory=list)
    earlier_tried: int = 0
    started: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Run the original program, and record how it fails; raise `WhyError` if it cannot be reduced."""
        golden, readers = self.cell.golden, [reader for reader in (self.failing, self.second) if reader]
        outcome = self.failing.run_cells([self.cell])[0].outcome
        call = failing_call(golden, outcome.message)
        if call.name:
            outcome = structs.replace(outcome, message=outcome.message.removeprefix(f"{call.name}: "))
        _check_reducible(self.cell, call, outcome)
        if outcome.verdict is not Verdict.TIMEOUT:
            limits = self.failing.options.limits
            seconds = max(LEAST_SECONDS, TIMES_AS_LONG * outcome.seconds)
            limits = replace(limits, timeout=min(limits.timeout, seconds) if limits.timeout else seconds)
            for reader in readers:
                reader.options = replace(reader.options, limits=limits)
        program = flat_program(golden.read_artifact(), call.vjp, from_npz(golden.folder / (call.inputs or INPUTS)))
        operations = len(self.editor.summary(program.module).names)
        self.program = self._written_again(program, golden.artifact)
        self.failure = Failure.of(outcome)
        if golden.manifest.options.register:
            self._leave_out_modules(readers)
        is_numerics = outcome.verdict is Verdict.NUMERICS
        wanted = self._divergence() if is_numerics else Divergence()
        if not is_numerics and self.second and not (tried := self.second.run([self.program])[0]).works:
            self.notify(f"{self.second.cell.reader.title} does not run it either: {result_line(tried.outcome)}")
            self.second = None
        self.oracle = Oracle(self.failing, self.second, self.failure, wanted)
        if not self.oracle.fails_alike(self.program):
            raise NotReproducedError(
                f"{self.cell.key}: {self.failure}, but its module alone, without derivatives and pytrees, does not "
                "fail in this way: the cause is outside the module, so the cell cannot be reduced."
            )
        self.reduction = Reduction(
            cell=str(self.cell.key),
            call=call.name,
            artifact=golden.manifest.files[ARTIFACT],
            failure=result_line(outcome),
            second=self.second.cell.reader.name if self.second else "",
            operations=operations,
            units=wanted.units or None,
            first_diverging=self._first_diverging(self.second) if self.second and is_numerics else None,
        )

    def _written_again(self, program: ReducedProgram, artifact: Path) -> ReducedProgram:
        """Return the program as the editor parses and writes it without edits; it then has the text of its module.

        Raises `WhyError`, with the path `artifact` in its message, if the editor cannot read or write the module.
        """
        try:
            return program.edited(self.editor)
        except NotEditedError as error:
            raise WhyError(f"{artifact}: its module cannot be changed: {error}") from None

    def _leave_out_modules(self, readers: Sequence[ProgramReader]) -> None:
        """Leave out the Python modules that the golden registers, if the cell fails in the same way without them.

        Most of these modules only register pytree nodes.
        """
        golden = self.cell.golden
        options = structs.replace(golden.manifest.options, register=())
        without = replace(golden, manifest=structs.replace(golden.manifest, options=options))
        for reader in readers:
            reader.cell = replace(reader.cell, golden=without)
        failing, *others = (reader.run([self.program])[0] for reader in readers)
        is_numerics = self.failure.signature.verdict is Verdict.NUMERICS
        fails_alike = failing.works if is_numerics else Failure.of(failing.outcome) == self.failure
        if not fails_alike or not all(tried.works for tried in others):
            for reader in readers:
                reader.cell = replace(reader.cell, golden=golden)

    def _first_diverging(self, second: ProgramReader) -> DivergingOperation | None:
        """Return the first operation, in main and its callees, whose outputs differ between the two readers.

        To find it, a program that returns every value is run. None if none of its outputs differs, as when only XLA's
        fusion made the difference, or if a reader does not run this program.
        """
        program = self.program
        with contextlib.suppress(NotEditedError):
            program = program.edited(self.editor, [("inline",)])
        if (everything := traced_program(program, self.editor)) is None:
            return None
        sources = everything.results
        (wrong,), (right,) = self.failing.run([everything]), second.run([everything])
        if not (wrong.works and right.works and len(wrong.outputs) == len(right.outputs) == len(sources)):
            return None
        for place, (source, one, other) in enumerate(zip(sources, right.outputs, wrong.outputs, strict=True), 1):
            apart = divergence([one], [other])
            if apart.units or apart.unequal:
                is_float = one.dtype in FLOATS
                ulp = int(ulp_distance(one.numpy(), other.numpy()).max(initial=0)) if is_float else None
                return DivergingOperation(source.text, place, len(sources), ulp)
        return None

    def resume(self, earlier: Reduced) -> None:
        """Continue from the program of an earlier reduction of the same cell."""
        mine, theirs = self.reduction, earlier.reduction
        if (mine.cell, mine.call, mine.artifact) != (theirs.cell, theirs.call, theirs.artifact):
            found = f"one of {theirs.cell}" if mine.cell != theirs.cell else "one of another golden of this name"
            raise WhyError(
                f"{self.folder.path}: expected a reduction of {mine.cell}, found {found}. Name another folder with "
                "--output."
            )
        # A folder may be from anywhere: nothing in it is compiled before its custom calls are known.
        if problem := audit_problem(self.failing.write_cell(earlier.program).golden, self.failing.options.policy):
            raise WhyError(
                f"{self.folder.path}: expected a program that passes the audit, found one that does not: {problem}\n"
                "Name another folder with --output."
            )
        self.program = self._written_again(earlier.program, self.folder.path / ARTIFACT)
        if not self.oracle.fails_alike(self.program):
            raise NotReproducedError(
                f"{self.folder.path}: expected a program that fails as the cell does, found one that does not fail so "
                "here. Name another folder with --output."
            )
        self.steps = [step for step in earlier.steps if step.done != FINISHED]
        self.started -= earlier.steps[-1].seconds
        self.earlier_tried = earlier.steps[-1].tried

    def _divergence(self) -> Divergence:
        """Return how far the outputs of the failing and the second reader differ.

        Raises `WhyError` if one of them has no outputs, and `NotReproducedError` if they do not differ.
        """
        if self.second is None:
            raise WhyError(f"{self.cell.key}: {self.failure}: with --good, name a release that gives other numbers.")
        (wrong,), (right,) = self.failing.run([self.program]), self.second.run([self.program])
        for reader, tried in ((self.failing, wrong), (self.second, right)):
            if not tried.works:
                raise WhyError(f"{reader.cell.key}: {result_line(tried.outcome)}. Name another release with --good.")
        apart = divergence(right.outputs, wrong.outputs)
        if not (apart.units or apart.unequal):
            raise NotReproducedError(
                f"{self.cell.key}: {self.second.cell.reader.title} gives the same numbers here, which are not "
                "those of the golden. With --good, name a release that gives those of the golden, if there is one."
            )
        return apart

    def keep(self, program: ReducedProgram, done: str) -> Reduced:
        """Write a smaller program, found by the pass `done`, into the folder, and return the reduction so far."""
        operations, seconds = len(program.names), round(time.monotonic() - self.started, 1)
        tried = self.earlier_tried + self.oracle.tried
        self.steps.append(Step(done, operations, tried, seconds))
        manifest = manifest_of(self.failing.cell.golden, program)
        relative = self.oracle.wanted.relative
        if 0 < relative < 1:
            # A quarter of what is left at least, so that the reduced golden fails by its own tolerance.
            manifest = structs.replace(manifest, comparison=Comparison(rtol=KEPT_SHARE / 4 * relative))
        reduced = Reduced(self.reduction, self.steps, program)
        self.folder.write(reduced, replace(self.cell.golden, manifest=manifest), self.oracle.outputs_of(program))
        if done in KINDS:
            self.notify(
                f"{plural(operations, 'operation')}: {KINDS[done]}; {plural(tried, 'cell')} run in {seconds:.0f} s"
            )
        return reduced


def failing_call(golden: Golden, message: str) -> Check:
    """Return the call of a golden whose name a failure message begins with; the plain call if there is no such name."""
    calls = (check for check in golden.manifest.checks if message.startswith(f"{check.name}: "))
    return next(calls, Check("", inputs=INPUTS))


def _check_reducible(cell: Cell, call: Check, outcome: Result) -> None:
    """Raise `WhyError` if a cell does not fail here, or if no smaller program can show its failure."""
    what = f"{cell.key}: {outcome.verdict} in stage {outcome.stage}"
    message = first_line(outcome.message)
    if outcome.verdict in (Verdict.PASS, Verdict.COMPILED):
        raise NotReproducedError(f"{cell.key} works here: {outcome.verdict}. There is nothing to reduce.")
    if outcome.verdict is Verdict.NOT_RUN:
        raise NotReproducedError(f"{cell.key} cannot be run here: {message}")
    if outcome.verdict is Verdict.ERROR and outcome.stage is Stage.COMPARE:
        raise WhyError(f"{what}: {message}: the cause is outside the module, so a smaller module cannot show it.")
    if call.refused is not None:
        raise WhyError(
            f"{what}: it fails in the call {call.name}, which the test added with refused(). "
            "Every reader must refuse it, and only calls that return results can be reduced."
        )
    if call.mesh or call.spread:
        raise WhyError(
            f"{what}: the call {call.name} is made on another mesh. Only calls on the artifact's mesh can be reduced."
        )
