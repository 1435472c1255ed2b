"""A reference in double precision: whether the writer or the reader of a golden is nearer to it."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from export_core.artifact.envelope.fields import Aval
from export_core.base.errors import ExportCompatError, InfrastructureFault
from export_core.base.phrases import first_line, plural
from export_core.base.tolerances import FLOATS
from export_core.features.why.choice import Choice
from export_core.features.why.errors import WhyError
from export_core.features.why.reduce.failing_alike import program_reader
from export_core.features.why.reduce.reduced_program import ModuleEditor, ReducedProgram, flat_program
from export_core.features.why.reduce.reduction import failing_call
from export_core.goldens import Leaf
from export_core.goldens.arrays import Array, from_npz
from export_core.goldens.store import INPUTS, OUTPUTS
from export_core.judge import Result
from export_core.matrix import Cell
from export_core.matrix.cell_audit import audit_problem
from export_core.numbers.elements import to_double
from export_core.readers.environment import Environment

ALIKE = 1.2  # How many times as far from the reference one of the two may be, to be called about as near.
CHOICE = 0.1
"""From which error on, relative to the reference, both do not round in another way: they chose something else."""
_SHOWN = 4
_WIDE = {"complex64": "complex128", "bfloat16": "float64", "float16": "float64", "float32": "float64"}


def reference_lines(choice: Choice, result: Result, notify: Callable[[str], None]) -> list[str]:
    """A line for each output that differs, that with the largest difference first; or why there is no reference.

    The program of the failing call runs once more in its reader, and in double precision there, else in the newest
    jaxlib, as for a reader of another runtime: with the golden's inputs, which are as exact as they were.
    """
    cell, golden = choice.cell, choice.cell.golden
    call = failing_call(golden, result.message)
    try:
        if cell.platform != "cpu" or call.mesh or call.spread or golden.manifest.options.mesh:
            raise WhyError("it is computed only on one CPU")
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
                with contextlib.suppress(WhyError):
                    exact = _outputs(choice, wide, own, double)
            exact = exact or _outputs(choice, replace(wide, reader=newest.release), newest, double)
        return nearer(written, read, exact) or ["no reference in double precision: no floats differ here"]
    except (ExportCompatError, InfrastructureFault) as error:
        return [f"no reference in double precision: {first_line(str(error))}"]


def in_double(program: ReducedProgram, editor: ModuleEditor) -> ReducedProgram:
    """The program in double precision, with the same inputs. Raises `WhyError` for one that cannot be rewritten."""
    double = program.edited(editor, [("double",)])

    def wide(avals: Sequence[Aval]) -> tuple[Aval, ...]:
        return tuple(aval._replace(dtype=_WIDE.get(aval.dtype, aval.dtype)) for aval in avals)

    envelope = double.envelope
    envelope = envelope._replace(in_avals=wide(envelope.in_avals), out_avals=wide(envelope.out_avals))
    inputs = (Leaf(_WIDE[x.dtype], to_double(x.numpy())) if x.dtype in _WIDE else x for x in double.inputs)
    return replace(double, envelope=envelope, inputs=tuple(inputs))


def nearer(written: Sequence[Leaf], read: Sequence[Leaf], exact: Sequence[Leaf]) -> list[str]:
    """A line for each output of floats that differs, the largest difference first. The outputs are of one call.

    Errors are root mean squares over the elements that differ, relative to that of the whole reference.
    """
    lines: list[tuple[float, str]] = []
    for number, (leaf, *others) in enumerate(zip(written, read, exact, strict=True)):
        if leaf.dtype not in FLOATS:
            continue
        want, got, true = (to_double(output.numpy()) for output in (leaf, *others))
        finite = np.isfinite(want) & np.isfinite(got) & np.isfinite(true)
        differs = finite & (want != got)
        size = _rms(true[finite])
        if not differs.any() or not size:
            continue
        pairs = (want, true), (got, true), (want, got)
        writer, reader, apart = (_rms((one - other)[differs]) / size for one, other in pairs)
        lines.append((apart, f"output {number} {leaf}: {_in_words(reader, writer)}"))
    texts = [text for _, text in sorted(lines, key=lambda line: -line[0])]
    rest = len(texts) - _SHOWN
    return [*texts[:_SHOWN], f"and {plural(rest, 'more output')} that differ"] if rest > 0 else texts


def _in_words(reader: float, writer: float) -> str:
    if min(reader, writer) > CHOICE:
        return f"both are far from float64 ({reader:.2e} and {writer:.2e}): another sign or order, no rounding"
    if max(reader, writer) <= ALIKE * min(reader, writer):
        return f"reader and writer are about as near to float64 ({reader:.2e} and {writer:.2e})"
    sides = ("reader", reader), ("writer", writer)
    (near, less), (far, more) = sorted(sides, key=lambda side: side[1])
    return f"the {near} is nearer to float64 than the {far} ({less:.2e} against {more:.2e})"


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(np.abs(values))))) if values.size else 0.0


def _outputs(choice: Choice, cell: Cell, environment: Environment, program: ReducedProgram) -> tuple[Leaf, ...]:
    """What a program gives in a reader. Raises `WhyError` where it does not run."""
    with program_reader(cell, environment, choice.options) as reader:
        (ran,) = reader.run([program])
    if not ran.works:
        outcome = ran.outcome
        raise WhyError(f"{outcome.verdict} in stage {outcome.stage} of {cell.reader.title}: {outcome.message}")
    return ran.outputs
