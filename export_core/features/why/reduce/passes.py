"""The passes of a reduction: each searches for smaller programs of one kind, until no pass finds any."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from export_core.artifact import Aval
from export_core.features.why.bisect.bisection import find_edge
from export_core.features.why.reduce.failing_alike import Oracle
from export_core.features.why.reduce.reduced_program import Edit, ModuleEditor, NotEditedError, ReducedProgram, Values
from export_core.goldens import Leaf
from export_core.goldens.arrays import PLAIN, Array

MOST_ROUNDS = 10
MOST_ELEMENTS = 1 << 26  # The most elements of all values that may become arguments.
KINDS = {
    "inline": "functions inlined",
    "end": "operations behind the failure removed",
    "result": "results dropped",
    "value": "values given as arguments",
    "constant": "operations replaced by constants",
    "operand": "operations replaced by their operands",
    "region": "regions put in the place of their operation",
    "size": "dimensions made smaller",
    "input": "inputs made simple",
}
"""What each pass does, in words, in the order in which they are made."""

_BYTES = {"bfloat16": 2}  # The size of dtypes that NumPy lacks and that do not have one byte.

T = TypeVar("T")

Keep = Callable[[ReducedProgram, str], object]
"""Called with each smaller program that still fails, and the name of the pass that found it."""


@dataclass
class Passes:
    """The passes that make a failing program smaller.

    `program` is the smallest failing program so far. `keep` is called with each smaller failing program that is found.
    """

    program: ReducedProgram
    editor: ModuleEditor
    oracle: Oracle
    keep: Keep

    def run(self) -> None:
        """Run all passes in turn, until none of them finds a smaller program, or `MOST_ROUNDS` times."""
        for _ in range(MOST_ROUNDS):
            before = self.program
            for kind in KINDS:
                self._pass(kind)
            if self.program is before:
                return

    def _pass(self, kind: str) -> None:
        if kind == "input":
            for simpler in (_ones, _zeros, _rounded):
                self._simplify_inputs(simpler)
            return
        edits = self._edits(kind)
        if kind in ("inline", "size"):
            # The first of these edits after which it still fails is made, and the next one is looked for.
            while edits and self._first((self._edited((edit,), self.program) for edit in edits), kind) is not None:
                edits = self._edits(kind)
        elif kind == "end":
            base = self.program
            # Main ends as early as it still fails: the operation after which it does is the one that fails. Before the
            # first place nothing is left, and the last one is the program as it is.
            find_edge(
                len(edits) + 2,
                lambda place: self._first([self._edited((edits[place - 1],), base)], kind) is not None,
            )
        else:
            base, values = self.program, self._values() if kind == "value" else {}
            if kind == "value":
                edits = tuple(edit for edit in edits if any(operation == edit[1] for operation, _ in values))
            self._make_most(kind, edits, lambda made: self._edited(made, base, values))

    def _edits(self, kind: str) -> tuple[Edit, ...]:
        """Return the edits of a kind that may be tried on the smallest program so far."""
        return self.editor.summary(self.program.module).edits.get(kind, ())

    def _edited(
        self, edits: Sequence[Edit], base: ReducedProgram, values: Values | None = None
    ) -> ReducedProgram | None:
        """Return the program `base` after these edits; None if they cannot be made."""
        try:
            return base.edited(self.editor, edits, values)
        except NotEditedError:
            return None

    def _first(self, programs: Iterable[ReducedProgram | None], kind: str) -> int | None:
        """Return the index of the first of these programs that still fails; None if there is none.

        That program becomes the smallest one so far.
        """
        failing = self.oracle.first(programs)
        if failing is None:
            return None
        place, program = failing
        if program.key != self.program.key:
            self.program = program
            self.keep(program, kind)
        return place

    def _make_most(
        self, kind: str, changes: Sequence[T], changed: Callable[[Sequence[T]], ReducedProgram | None]
    ) -> None:
        """Make as many of these changes as possible such that the program still fails.

        `changed` returns the program after some of the changes; None if they cannot be made. In the end, not one more
        of the changes could be made.
        """

        def first(subsets: Sequence[tuple[T, ...]]) -> int | None:
            made = ([change for change in changes if change not in left] for left in map(frozenset, subsets))
            return self._first(map(changed, made), kind)

        minimize(changes, first)

    def _values(self) -> Values:
        """Return the output values of every operation of main in the second reader, or placeholders for them.

        Empty if main cannot be made to return them all, or if they are too large.
        """
        traced = traced_program(self.program, self.editor)
        if traced is None:
            return {}
        avals = traced.envelope.out_avals
        if sum(math.prod(map(int, aval.shape)) for aval in avals) > MOST_ELEMENTS:
            return {}
        second = self.oracle.second
        given = second.run([traced])[0].outputs if second else ()
        leaves = given if len(given) == len(traced.results) else [_made(aval) for aval in avals]
        return {(source.operation, source.result): leaf for source, leaf in zip(traced.results, leaves, strict=True)}

    def _simplify_inputs(self, simpler: Callable[[Leaf], Array]) -> None:
        """Replace as many inputs as possible by what `simpler` returns for them, so that the program still fails.

        Inputs that are all 1 or all 0 already stay as they are.
        """
        base = self.program
        simple = {}
        for number, leaf in enumerate(base.inputs):
            bits = leaf.data.tobytes()
            if bits not in (_ones(leaf).tobytes(), _zeros(leaf).tobytes(), simpler(leaf).tobytes()):
                simple[number] = Leaf(leaf.dtype, simpler(leaf))

        def simplified(numbers: Sequence[int]) -> ReducedProgram:
            inputs = (simple[number] if number in numbers else leaf for number, leaf in enumerate(base.inputs))
            return replace(base, inputs=tuple(inputs))

        self._make_most("input", list(simple), simplified)


def traced_program(program: ReducedProgram, editor: ModuleEditor) -> ReducedProgram | None:
    """Return a copy of the program whose main returns every value that it computes; None if there can be none."""
    try:
        traced = program.edited(editor, [("values",)])
    except NotEditedError:
        return None
    return traced if traced.results else None


def _made(aval: Aval) -> Leaf:
    """Return a placeholder for a value that was not computed: ones for NumPy's real and complex floats, else zeros."""
    dtype = np.dtype(aval.dtype) if aval.dtype in PLAIN else np.dtype(f"u{_BYTES.get(aval.dtype, 1)}")
    shape = tuple(map(int, aval.shape))
    return Leaf(aval.dtype, np.ones(shape, dtype) if dtype.kind in "fc" else np.zeros(shape, dtype))


def _ones(leaf: Leaf) -> Array:
    """Return an array of ones with an input's shape and dtype; zeros if NumPy lacks the dtype."""
    return np.ones_like(leaf.data) if leaf.dtype in PLAIN else np.zeros_like(leaf.data)


def _zeros(leaf: Leaf) -> Array:
    return np.zeros_like(leaf.data)


def _rounded(leaf: Leaf) -> Array:
    """Return an input's values rounded to one decimal place; unchanged unless they are NumPy's (complex) floats."""
    return np.round(leaf.data, 1) if leaf.dtype in PLAIN and leaf.data.dtype.kind in "fc" else leaf.data


# --- delta debugging --------------------------------------------------------------------------------------------------

First = Callable[[Sequence[tuple[T, ...]]], int | None]
"""A function that returns the index of the first interesting subset; None if there is none."""


def minimize(items: Sequence[T], first: First[T]) -> tuple[T, ...]:
    """Return a subset of items that is interesting, but no longer so when any single item is removed (ddmin).

    Args:
        items: All items, each once; all of them together are known to be interesting.
        first: Decides which subsets are interesting. It is called with new subsets only, the preferred ones first.
    """
    asked: set[tuple[T, ...]] = {tuple(items)}

    def ask(subsets: Sequence[tuple[T, ...]]) -> tuple[T, ...] | None:
        new = [subset for subset in dict.fromkeys(subsets) if subset not in asked]
        place = first(new) if new else None
        # What comes behind the interesting one was not looked at.
        asked.update(new if place is None else new[: place + 1])
        return None if place is None else new[place]

    kept = tuple(items)
    if kept and ask([()]) == ():
        return ()
    parts = 2
    while len(kept) > 1:
        bounds = [len(kept) * number // parts for number in range(parts + 1)]
        chunks = [kept[start:end] for start, end in itertools.pairwise(bounds)]
        complements = [tuple(item for other in chunks if other is not chunk for item in other) for chunk in chunks]
        smaller = ask([*chunks, *complements])
        if smaller is not None:
            parts = 2 if smaller in chunks else max(parts - 1, 2)
            kept = smaller
            parts = min(parts, len(kept))
        elif parts < len(kept):
            parts = min(2 * parts, len(kept))
        else:
            break
    return kept
