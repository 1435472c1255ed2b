"""The first operation whose outputs differ between two readers, where all values of a program are looked at."""

from __future__ import annotations

import msgspec

from export_core.base.tolerances import FLOATS
from export_core.features.why.reduce.editor import ModuleEditor
from export_core.features.why.reduce.failing_alike import ProgramReader, divergence
from export_core.features.why.reduce.passes import edited_program, traced_program
from export_core.features.why.reduce.reduced_program import ReducedProgram
from export_core.goldens import Leaf
from export_core.numbers.elements import ulp_distance


class DivergingOperation(msgspec.Struct, frozen=True):
    """An operation whose outputs differ, though those of all operations before it are equal."""

    operation: str
    """Its name, with the types of its operands and results."""
    place: int
    """Which of the values that are computed outside of regions it gives, from 1."""
    values: int
    """How many such values there are."""
    ulp: int | None
    """The largest difference in units in the last place; null for values that are no floats."""


def first_diverging(
    program: ReducedProgram, editor: ModuleEditor, failing: ProgramReader, second: ProgramReader
) -> DivergingOperation | None:
    """The first operation whose outputs differ, in main and what it calls.

    None where no value does, or the readers do not run the program that returns all of them.

    Every value is a result of the program that is run, which keeps XLA from computing some of them together: a
    difference that comes from that alone is not seen.
    """
    traced = traced_program(edited_program(program, editor, [("inline",)], {}) or program, editor)
    if traced is None:
        return None
    everything, sources = traced
    (wrong,), (right,) = failing.run([everything]), second.run([everything])
    if not (wrong.works and right.works and len(wrong.outputs) == len(right.outputs) == len(sources)):
        return None
    for place, (source, one, other) in enumerate(zip(sources, right.outputs, wrong.outputs, strict=True), 1):
        found = divergence([one], [other])
        if found.units or found.unequal:
            return DivergingOperation(source.text, place, len(sources), _largest_ulp(one, other))
    return None


def _largest_ulp(one: Leaf, other: Leaf) -> int | None:
    if one.dtype not in FLOATS:
        return None
    return int(ulp_distance(one.numpy(), other.numpy()).max(initial=0))
