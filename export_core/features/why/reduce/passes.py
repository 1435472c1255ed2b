"""The passes of a reduction: each looks for a smaller program of one kind, by delta debugging, until none finds any."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from export_core.artifact import Aval
from export_core.features.why.reduce.editor import Edit, ModuleEditor, Source
from export_core.features.why.reduce.failing_alike import Oracle
from export_core.features.why.reduce.reduced_program import ReducedProgram
from export_core.goldens import Leaf
from export_core.goldens.arrays import PLAIN

MOST_ROUNDS = 10
MOST_ELEMENTS = 1 << 26
"""Of all values that may become arguments."""
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

_BYTES = {"bfloat16": 2}
"""The size of dtypes that NumPy lacks and that do not have one byte."""

Values = dict[tuple[int, int], Leaf]
"""What operations give, by the number of the operation and of its result."""
Keep = Callable[[ReducedProgram, str], None]
"""Called with each smaller program that still fails, and the name of the pass that found it."""


@dataclass
class Passes:
    """Makes a program smaller. `program` is the smallest one so far; every one of them has been tried."""

    program: ReducedProgram
    editor: ModuleEditor
    oracle: Oracle
    keep: Keep

    def run(self) -> None:
        """Make passes until none of them changes anything."""
        for _ in range(MOST_ROUNDS):
            before = self.program
            for kind in KINDS:
                self._pass(kind)
            if self.program is before:
                return

    def _pass(self, kind: str) -> None:
        if kind == "input":
            self._simplify_inputs()
            return
        edits = self.editor.summary(self.program.module).edits.get(kind, ())
        if not edits:
            return
        if kind == "end":
            self._end_early(edits)
        elif kind in ("inline", "size"):
            self._try_each(kind, edits)
        else:
            values = self._values() if kind == "value" else {}
            self._make_most(kind, edits, values)

    def _try_each(self, kind: str, edits: Sequence[Edit]) -> None:
        """Make the first of these edits after which it still fails, and look for the next one."""
        while edits:
            base = self.program
            if self._first(base, [(edit,) for edit in edits], {}, kind) is None:
                return
            edits = self.editor.summary(self.program.module).edits.get(kind, ())

    def _end_early(self, edits: Sequence[Edit]) -> None:
        """Let main end as early as it still fails: the operation after which it does is the one that fails."""
        base = self.program
        # The last place is the program as it is.
        earliest(
            len(edits) + 1,
            self.oracle.at_once,
            lambda places: self._first(base, [(edits[place],) for place in places], {}, "end"),
        )

    def _make_most(self, kind: str, edits: Sequence[Edit], values: Values) -> None:
        """Make as many of these edits as can be made together: what is minimized is the list of the others."""
        base = self.program
        if kind == "value":
            edits = [edit for edit in edits if any(place == edit[1] for place, _ in values)]

        def first(subsets: Sequence[tuple[Edit, ...]]) -> int | None:
            made = [tuple(edit for edit in edits if edit not in set(left)) for left in subsets]
            return self._first(base, made, values, kind)

        minimize(edits, first)

    def _first(
        self, base: ReducedProgram, candidates: Sequence[tuple[Edit, ...]], values: Values, kind: str
    ) -> int | None:
        """The place of the first list of edits after which the program still fails; it becomes the smallest one."""
        made: list[ReducedProgram | None] = []

        def programs() -> Iterator[ReducedProgram | None]:
            for edits in candidates:
                made.append(edited_program(base, self.editor, edits, values))
                yield made[-1]

        place = self.oracle.first(programs())
        if place is not None and (program := made[place]) is not None and program.key != self.program.key:
            self.program = program
            self.keep(program, kind)
        return place

    def _values(self) -> Values:
        """What every operation of main gives in the second reader; made values where nobody can say it."""
        traced = traced_program(self.program, self.editor)
        if traced is None:
            return {}
        program, sources = traced
        avals = program.envelope.out_avals
        if sum(math.prod(map(int, aval.shape)) for aval in avals) > MOST_ELEMENTS:
            return {}
        second = self.oracle.second
        given = second.run([program])[0].outputs if second else ()
        leaves = given if len(given) == len(sources) else [_made(aval) for aval in avals]
        return {(source.operation, source.result): leaf for source, leaf in zip(sources, leaves, strict=True)}

    def _simplify_inputs(self) -> None:
        """Let as many inputs as possible be 1 everywhere, then 0, then numbers of one digit behind the point."""
        for simpler in (_ones, _zeros, _rounded):
            base = self.program
            simple = {number: simpler(leaf) for number, leaf in enumerate(base.inputs) if not _is_simple(leaf)}
            numbers = [number for number, leaf in simple.items() if _bits(leaf) != _bits(base.inputs[number])]
            if numbers:
                minimize(numbers, functools.partial(self._first_with_inputs, base, numbers, simple))

    def _first_with_inputs(
        self,
        base: ReducedProgram,
        numbers: Sequence[int],
        simple: Mapping[int, Leaf],
        subsets: Sequence[tuple[int, ...]],
    ) -> int | None:
        """The place of the first subset of inputs that have to stay as they are, the others among `numbers` simple."""
        programs = []
        for left in subsets:
            changed = set(numbers) - set(left)
            inputs = [simple[number] if number in changed else leaf for number, leaf in enumerate(base.inputs)]
            programs.append(replace(base, inputs=tuple(inputs)))
        place = self.oracle.first(iter(programs))
        if place is not None:
            self.program = programs[place]
            self.keep(self.program, "input")
        return place


def edited_program(
    program: ReducedProgram, editor: ModuleEditor, edits: Sequence[Edit], values: Values
) -> ReducedProgram | None:
    """The program after these edits; None where there is none. `values` are those that may become arguments."""
    summary, code, text = editor.edited(program.module, edits)
    if summary.refused:
        return None
    if edits and edits[0][0] == "size":
        _, size, to = edits[0]
        assert isinstance(size, int)
        assert isinstance(to, int)
        return program.with_size(summary, code, text, size, to)
    if any(source.was is None and (source.operation, source.result) not in values for source in summary.arguments):
        return None
    return program.edited(summary, code, text, values)


def traced_program(program: ReducedProgram, editor: ModuleEditor) -> tuple[ReducedProgram, tuple[Source, ...]] | None:
    """The program that returns every value that its main computes, and which they are; None where there is none."""
    summary, code, text = editor.edited(program.module, [("values",)])
    if summary.refused or not summary.results:
        return None
    return program.edited(summary, code, text, {}), summary.results


def _made(aval: Aval) -> Leaf:
    """The placeholder for a value that was not computed: all ones; zeros for integers and for dtypes NumPy lacks."""
    dtype = np.dtype(aval.dtype) if aval.dtype in PLAIN else np.dtype(f"u{_BYTES.get(aval.dtype, 1)}")
    shape = tuple(map(int, aval.shape))
    return Leaf(aval.dtype, np.ones(shape, dtype) if dtype.kind in "fc" else np.zeros(shape, dtype))


def _ones(leaf: Leaf) -> Leaf:
    return Leaf(leaf.dtype, np.ones_like(leaf.data)) if leaf.dtype in PLAIN else leaf


def _zeros(leaf: Leaf) -> Leaf:
    return Leaf(leaf.dtype, np.zeros_like(leaf.data))


def _rounded(leaf: Leaf) -> Leaf:
    is_float = leaf.dtype in PLAIN and leaf.data.dtype.kind in "fc"
    return Leaf(leaf.dtype, np.round(leaf.data, 1)) if is_float else leaf


def _is_simple(leaf: Leaf) -> bool:
    return _bits(leaf) in (_bits(_ones(leaf)), _bits(_zeros(leaf))) and (leaf.dtype in PLAIN or not leaf.data.any())


def _bits(leaf: Leaf) -> bytes:
    return leaf.data.tobytes()


T = TypeVar("T")

First = Callable[[Sequence[tuple[T, ...]]], int | None]
"""The place of the first interesting one of several subsets; None where there is none."""


def minimize(items: Sequence[T], first: First[T]) -> tuple[T, ...]:
    """A subset of interesting items that is interesting, and is no longer so without any one of its items.

    Args:
        items: all of them, each once; known to be interesting together.
        first: called with subsets in the order in which they are preferred, none of them twice.

    Where every superset of an interesting set is interesting, no smaller subset of the result is.
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
        chunks = _chunks(kept, parts)
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


def earliest(count: int, at_once: int, first: Callable[[Sequence[int]], int | None]) -> int:
    """The first of so many places that is interesting, where all behind an interesting one are: by binary search.

    The last one is known to be interesting. `first` is called with up to `at_once` places in ascending order, and
    returns the index of the first interesting one; where places behind it are not, the result is still interesting.
    """
    below, found = -1, count - 1
    while found - below > 1:
        inside = found - below - 1
        probes = min(at_once, inside)
        places = [below + 1 + inside * (number + 1) // (probes + 1) for number in range(probes)]
        places = sorted({min(place, found - 1) for place in places})
        index = first(places)
        if index is None:
            below = places[-1]
        else:
            found = places[index]
            below = places[index - 1] if index else below
    return found


def _chunks(items: tuple[T, ...], parts: int) -> list[tuple[T, ...]]:
    """The items in so many parts of nearly equal size, in order."""
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    return [items[start:end] for start, end in itertools.pairwise(bounds)]
