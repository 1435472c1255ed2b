"""Who is right if numbers differ: StableHLO's interpreter, which shares no code with XLA, and double precision."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import structs

from export_core.artifact.envelope.fields import Aval
from export_core.base.errors import ExportCompatError, InfrastructureFault
from export_core.base.feature import hooks
from export_core.base.leaf_names import Named
from export_core.base.scratch import scratch_folder
from export_core.base.text import few, first_line, plural
from export_core.base.tolerances import FLOATS, NEAR
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.explain.explanation import Reference
from export_core.features.why.reduce.failing_alike import program_reader
from export_core.features.why.reduce.reduced_program import ModuleEditor, ReducedProgram, flat_program
from export_core.features.why.reduce.reduction import failing_call
from export_core.goldens import Leaf
from export_core.goldens.arrays import Array, from_npz
from export_core.goldens.store import INPUTS, OUTPUTS
from export_core.judge import Result
from export_core.judge.known import upstream_of
from export_core.matrix import Cell, Verdict
from export_core.matrix.outcome import audit_problem
from export_core.matrix.replay import Ran, replay_with_outputs
from export_core.matrix.replay_options import ConvertCell, opened
from export_core.matrix.result import titles
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.elements import finfo, to_double
from export_core.numbers.leaf_paths import outputs_named
from export_core.policy.known_issues import known_issues
from export_core.readers.environment import Environment

INTERPRETER = "stablehlo"
ALIKE = 1.2  # Up to this ratio of their distances from the reference, two sides are called about as near.
CHOICE = 0.1
"""The relative error from which a difference is no longer rounding, but another choice, such as a sign or an order."""
_SHOWN = 4
_DOUBLE = ("float64", "complex128")
_WIDE = {"complex64": "complex128", "bfloat16": "float64", "float16": "float64", "float32": "float64"}


class Sentence(NamedTuple):
    """A sentence of evidence about numbers, and whether it supports the golden's stored outputs; None for neither side.

    The other side is the outputs of the failing reader.
    """

    text: str
    for_stored: bool | None = None


def references(choice: Choice, result: Result, notify: Callable[[str], None], *, ask: bool = True) -> list[Reference]:
    """Return labelled evidence about whether the writer's or the reader's numbers are right.

    It is empty unless the cell ended in `numerics`. It comes from stored results and, with `ask`, from runs made now:
    in StableHLO's reference interpreter, and in double precision.
    """
    if result.verdict is not Verdict.NUMERICS:
        return []
    alone = alone_line(choice, result)
    shown = [Reference("alone", alone, True if alone else None)]
    if ask:
        shown.append(Reference("reference", *interpreter_line(choice, notify)))
        lines = reference_lines(choice, result, notify)
        for_stored = _of_all(line.for_stored for line in lines)
        shown.append(Reference("float64", "\n".join(line.text for line in lines), for_stored))
    return shown


def _of_all(sides: Iterable[bool | None]) -> bool | None:
    """Return whether several outputs together support the golden's stored outputs; None if no output shows anything.

    `sides` says of each output whether it does so, or None. A single output that contradicts them decides.
    """
    return min((side for side in sides if side is not None), default=None)


def interpreter_line(choice: Choice, notify: Callable[[str], None]) -> Sentence:
    """Return a sentence on whether the newest StableHLO interpreter agrees with the writer or the reader.

    If the interpreter was not run, the sentence says why. It is empty if the cell's reader is that interpreter.
    """
    cell = choice.cell
    try:
        reference = choice.cell_in(choice.release(INTERPRETER))
        if reference.reader == cell.reader:
            return Sentence("")
        notify(f"running {cell.golden.id} in {reference.reader.title} too")
        with scratch_folder() as scratch, choice.environments(notify) as environments:

            def run(cell: Cell) -> Ran:
                with closing(replay_with_outputs([cell], environments.build, choice.options, notify=notify)) as ran:
                    return next(ran)

            # Whatever the interpreter does not parse and can do without is taken out, such as Shardy's dialect.
            converted = (
                convert_cell(reference, choice.options, scratch / "converted", notify)
                for convert_cell in hooks("converted", ConvertCell)
            )
            own, theirs = run(cell), run(next(filter(None, converted), reference))
        side = _side(choice, own, theirs)
        return side._replace(text=f"{reference.reader.title} {side.text}")
    except (ExportCompatError, InfrastructureFault) as error:
        return Sentence(f"the reference interpreter was not asked: {first_line(str(error))}")


def _side(choice: Choice, own: Ran, reference: Ran) -> Sentence:
    """Return the end of a sentence on whether the reference interpreter agrees with the writer, the reader or neither.

    `own` are the outputs of the cell's reader, `reference` those of the interpreter; those of the plain call count.
    """
    outcome = reference.outcome
    if reference.works:
        return Sentence("agrees with the writer", for_stored=True)
    known = _known_of(choice, outcome)
    if outcome.verdict is not Verdict.NUMERICS:
        message = first_line(outcome.message)
        return Sentence(f"cannot run it ({outcome.verdict} in stage {outcome.stage}: {message}){known}")
    cell, options, plain = choice.cell, choice.options, choice.cell.checks[0]
    written = from_npz(cell.golden.folder / (plain.outputs or OUTPUTS))
    is_comparable = own.outputs and len(written) == len(own.outputs)
    with opened(options.user_code, options.policy, options.limits) as user_code:
        # As a reader has to agree with the writer.
        wanted = GoldenOutputs(cell.golden, cell.platform, options.policy.tolerances, user_code)
        if is_comparable and wanted.compare(plain, own.outputs, reference.outputs).ok:
            return Sentence("agrees with the reader, and not with the writer", for_stored=False)
    return Sentence(f"agrees with neither{known}")


def _known_of(choice: Choice, outcome: Result) -> str:
    """Return a clause that names the known issue of the reference interpreter that explains its failure; "" if none."""
    issues = known_issues(choice.options.policy.known_issues)
    shown = upstream_of(outcome, choice.cell.golden, issues)
    issue = next((issue for issue in issues if issue.id == shown), None)
    return f", which says nothing of either: it is known of this interpreter ({issue.title})" if issue else ""


def alone_line(choice: Choice, result: Result) -> str:
    """Return a sentence if, by the stored results, only the runtime of this reader gives different numbers; else ""."""
    right = [stored for stored in choice.stored if stored.verdict.works]
    wrong = [stored for stored in (*choice.stored, result) if stored.verdict is Verdict.NUMERICS]
    others = {stored.reader.family for stored in right} - {result.reader.family}
    if not others or {stored.reader.family for stored in wrong} != {result.reader.family}:
        return ""
    against = [stored.reader for stored in right if stored.reader.family in others]
    return (
        f"only {result.reader.family or 'jaxlib'} differs from {plural(len({*against}), 'reader')} of other runtimes, "
        f"which give the writer's numbers: {titles(against)}"
    )


# --- a reference in double precision ----------------------------------------------------------------------------------


def reference_lines(choice: Choice, result: Result, notify: Callable[[str], None]) -> list[Sentence]:
    """Return a line for each differing output on whether writer or reader is nearer to double precision.

    The largest difference comes first. If there is no result in double precision, a line says why.

    The program of the failing call runs again in its reader, then in double precision: in the same reader, or in the
    newest jaxlib if that fails or the reader is another runtime. It gets the golden's inputs unchanged.
    """
    cell, golden = choice.cell, choice.cell.golden
    call = failing_call(golden, result.message)
    try:
        if cell.platform != "cpu" or call.mesh or call.spread or golden.manifest.options.mesh:
            raise WhyError("a reference is computed only for calls on one CPU")
        if problem := audit_problem(golden, choice.options.policy):
            raise WhyError(problem)
        notify(f"computing {golden.id} in double precision")
        with choice.environments(notify) as environments:
            own, newest = environments.build(cell.placement), environments.build(choice.newest)
            program = flat_program(golden.read_artifact(), call.vjp, from_npz(golden.folder / (call.inputs or INPUTS)))
            with ModuleEditor(newest) as editor:
                double = in_double(program, editor)
            written = from_npz(golden.folder / (call.outputs or OUTPUTS))
            read = _outputs(choice, cell, own, program)
            manifest = structs.replace(golden.manifest, flags={**golden.manifest.flags, "jax_enable_x64": True})
            wide = replace(cell, golden=replace(golden, manifest=manifest))
            # What is wrong in another runtime may be wrong in double precision there too.
            exact: tuple[Leaf, ...] = ()
            if not cell.reader.runtime:
                with suppress(WhyError):
                    exact = _outputs(choice, wide, own, double)
            exact = exact or _outputs(choice, replace(wide, reader=newest.release), newest, double)
        named = outputs_named(golden, call)
        lines = nearer(written, read, exact, named)
        return lines or [Sentence(_without_reference(written, read, cell.reader.title, named))]
    except (ExportCompatError, InfrastructureFault) as error:
        return [Sentence(f"no reference in double precision: {first_line(str(error))}")]


def _without_reference(written: Sequence[Leaf], read: Sequence[Leaf], reader: str, named: Named) -> str:
    """Return why there is no reference in double precision although the failing call ran again.

    Either the outputs that differ are not floats, or this time the reader gave the writer's outputs.
    """
    pairs = enumerate(zip(written, read, strict=True))
    others = [
        f"output {named(number)} {leaf}"
        for number, (leaf, got) in pairs
        if leaf.numpy().tobytes() != got.numpy().tobytes()
    ]
    if others:
        return f"no reference in double precision: the outputs that differ are not floats: {few(others)}"
    return f"no reference in double precision: run once more in {reader}, alone, it gives the writer's outputs"


def in_double(program: ReducedProgram, editor: ModuleEditor) -> ReducedProgram:
    """Return the program in double precision, with the same inputs.

    Raises `WhyError` if it cannot be rewritten.
    """
    double = program.edited(editor, [("double",)])

    def wide(avals: Sequence[Aval]) -> tuple[Aval, ...]:
        return tuple(aval._replace(dtype=_WIDE.get(aval.dtype, aval.dtype)) for aval in avals)

    envelope = double.envelope
    envelope = envelope._replace(in_avals=wide(envelope.in_avals), out_avals=wide(envelope.out_avals))
    inputs = (Leaf(_WIDE[x.dtype], to_double(x.numpy())) if x.dtype in _WIDE else x for x in double.inputs)
    return replace(double, envelope=envelope, inputs=tuple(inputs))


def nearer(written: Sequence[Leaf], read: Sequence[Leaf], exact: Sequence[Leaf], named: Named = str) -> list[Sentence]:
    """Return a line for each float output that differs, which says whether writer or reader is nearer to `exact`.

    The largest difference comes first. An error is the root mean square over differing elements, relative to that of
    the whole exact output, or if that is 0, of the written or read output. Elements that are NaN or infinite in one of
    the three outputs are counted in words.

    A line contradicts the stored outputs if their error is more than `NEAR` times the reader's, and more than `NEAR`
    times the machine epsilon. It supports no side for an output in double precision, since the reader may have
    computed `exact` with the same operations.

    Args:
        written: The outputs of the failing call that the writer stored.
        read: The outputs that the reader gives.
        exact: The outputs in double precision.
        named: Returns the name of the output with a number.
    """
    lines: list[tuple[float, Sentence]] = []
    for number, (leaf, *others) in enumerate(zip(written, read, exact, strict=True)):
        if leaf.dtype not in FLOATS:
            continue
        want, got, true = (to_double(output.numpy()) for output in (leaf, *others))
        finite = np.isfinite(want) & np.isfinite(got) & np.isfinite(true)
        differs = finite & (want != got)
        sides = _not_finite(want, got, true)
        largest = np.inf if sides else 0.0
        if differs.any():
            size = next(filter(None, (_rms(side[finite]) for side in (true, want, got))))
            pairs = (want, true), (got, true), (want, got)
            writer, reader, apart = (_rms((one - other)[differs]) / size for one, other in pairs)
            is_near = writer <= NEAR * max(reader, float(finfo(leaf.dtype).eps))
            for_stored = None if leaf.dtype in _DOUBLE else is_near
            sides, largest = [*sides, Sentence(_in_words(reader, writer), for_stored)], max(largest, apart)
        if sides:
            text = f"output {named(number)} {leaf}: {'; '.join(side.text for side in sides)}"
            lines.append((largest, Sentence(text, _of_all(side.for_stored for side in sides))))
    shown = [line for _, line in sorted(lines, key=lambda line: -line[0])]
    if (rest := len(shown) - _SHOWN) <= 0:
        return shown
    those = _of_all(line.for_stored for line in shown[_SHOWN:])
    return [*shown[:_SHOWN], Sentence(f"and {plural(rest, 'more output')} that differ", those)]


_FINITE, _NAN, _INFINITE, _NEGATIVE = range(4)
_KINDS = ("finite", "NaN", "inf", "-inf")


def _kinds(values: Array) -> Array:
    """Return the index in `_KINDS` for each element: finite, NaN, infinite, or negative infinite.

    Infinite complex numbers count as infinite, since they have no sign.
    """
    kinds = np.where(np.isfinite(values), _FINITE, np.where(np.isnan(values), _NAN, _INFINITE))
    return kinds if np.iscomplexobj(values) else np.where(np.isneginf(values), _NEGATIVE, kinds)


def _not_finite(want: Array, got: Array, true: Array) -> list[Sentence]:
    """Return a sentence for each group of differing elements with a NaN or infinity, the largest group first.

    The elements of a group have the same kinds in `want` (the writer's outputs), `got` (the reader's) and `true` (in
    double precision). Such a difference is often rounding at the edge of a function's domain, as in log(0).
    """
    kinds = np.stack([_kinds(side).ravel() for side in (want, got, true)])
    differs = (kinds[0] != kinds[1]) | ((kinds[0] == _FINITE) & (want != got).ravel())
    chosen = differs & (kinds != _FINITE).any(axis=0)
    groups, counts = np.unique(kinds[:, chosen], axis=1, return_counts=True)
    texts = []
    for place in np.argsort(-counts, kind="stable"):
        here = chosen & (kinds == groups[:, place, None]).all(axis=0)
        writer, reader, exact = map(int, groups[:, place])
        both = f"{_KINDS[reader]} in the reader and {_KINDS[writer]} in the writer"
        agrees, for_stored = "as in neither", None
        for name, kind, side in (("writer", writer, want), ("reader", reader, got)):
            if kind == exact:
                agrees, for_stored = f"as in the {name}", name == "writer"
                if exact == _FINITE:
                    numbers, reference = side.ravel()[here], true.ravel()[here]
                    is_far = _rms(numbers - reference) > CHOICE * max(_rms(numbers), _rms(reference))
                    if is_far:
                        agrees, for_stored = f"{agrees}, whose numbers are far from it", None
        count = int(counts[place])
        verb = "is" if count == 1 else "are"
        text = f"{plural(count, 'element')} {verb} {both}: {_KINDS[exact]} in float64, {agrees}"
        texts.append(Sentence(text, for_stored))
    return texts


def _in_words(reader: float, writer: float) -> str:
    if min(reader, writer) > CHOICE:
        return f"both are far from float64 ({reader:.2e} and {writer:.2e}): a different sign or order, not rounding"
    if max(reader, writer) <= ALIKE * min(reader, writer):
        return f"reader and writer are about as near to float64 ({reader:.2e} and {writer:.2e})"
    sides = ("reader", reader), ("writer", writer)
    (near, less), (far, more) = sorted(sides, key=lambda side: side[1])
    return f"the {near} is nearer to float64 than the {far} ({less:.2e} against {more:.2e})"


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(np.abs(values))))) if values.size else 0.0


def _outputs(choice: Choice, cell: Cell, environment: Environment, program: ReducedProgram) -> tuple[Leaf, ...]:
    """Return the outputs of running a program in the reader of a cell.

    Raises `WhyError` if the program does not run.
    """
    with program_reader(cell, environment, choice.options) as reader:
        (ran,) = reader.run([program])
    if not ran.works:
        outcome = ran.outcome
        raise WhyError(f"{outcome.verdict} in stage {outcome.stage} of {cell.reader.title}: {outcome.message}")
    return ran.outputs
