"""Whether a smaller program still fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from export_core.features.why.reduction.failure import Divergence, Failure, divergence
from export_core.features.why.reduction.reduced_program import ReducedProgram
from export_core.features.why.reduction.trial import Reader, Tried
from export_core.goldens import Leaf
from export_core.matrix import Verdict


@dataclass
class Oracle:
    """Tries programs in the failing reader, and in a second one.

    Where the two give different numbers, at least half of the difference has to be left. Any other failure has to be
    the same in the failing reader; and where the original works in the second one, so does the smaller program: it does
    not just become one that works nowhere.
    """

    failing: Reader
    second: Reader | None
    failure: Failure
    wanted: Divergence = field(default_factory=Divergence)
    _outputs: dict[bytes, tuple[Leaf, ...]] = field(default_factory=dict)
    _known: dict[bytes, bool] = field(default_factory=dict)

    @property
    def at_once(self) -> int:
        """How many programs are tried at a time."""
        return self.failing.at_once

    @property
    def tried(self) -> int:
        """How many cells were run so far, in both readers."""
        return self.failing.tried + (self.second.tried if self.second else 0)

    def first(self, programs: Iterator[ReducedProgram | None]) -> int | None:
        """The place of the first program that fails in the same way. None among them are passed over."""
        waiting: list[tuple[int, ReducedProgram]] = []
        for place, program in enumerate(programs):
            if program is not None:
                waiting.append((place, program))
            if len(waiting) == self.at_once:
                if (found := self._first(waiting)) is not None:
                    return found
                waiting = []
        return self._first(waiting)

    def fails_alike(self, program: ReducedProgram) -> bool:
        """Whether one program fails in the same way."""
        return self.first(iter([program])) == 0

    def outputs_of(self, program: ReducedProgram) -> tuple[Leaf, ...]:
        """What the second reader gives for a program; empty without one, and where it does not run it."""
        if program.key not in self._outputs and self.second:
            return self.second.run([program])[0].outputs
        return self._outputs.get(program.key, ())

    def _first(self, numbered: Sequence[tuple[int, ReducedProgram]]) -> int | None:
        new = {program.key: program for _, program in numbered if program.key not in self._known}
        self._known.update(zip(new, self._judged(list(new.values())), strict=True))
        return next((place for place, program in numbered if self._known[program.key]), None)

    def _judged(self, programs: Sequence[ReducedProgram]) -> list[bool]:
        if not programs:
            return []
        if self.failure.signature.verdict is Verdict.NUMERICS:
            assert self.second
            right = self._run_those(self.second, programs, [True] * len(programs))
            wrong = self._run_those(self.failing, programs, [bool(one and one.works) for one in right])
            alike = [
                bool(one and other and other.works and self._is_enough(one, other))
                for one, other in zip(right, wrong, strict=True)
            ]
        else:
            tried = self.failing.run(programs)
            alike = [Failure.of(one.outcome) == self.failure for one in tried]
            right = self._run_those(self.second, programs, alike)
            if self.second:
                alike = [bool(one and one.works) for one in right]
        # Of these alone: the outputs of all programs would fill the memory.
        self._outputs = {
            program.key: one.outputs
            for program, one, is_alike in zip(programs, right, alike, strict=True)
            if is_alike and one
        } or self._outputs
        return alike

    def _is_enough(self, one: Tried, other: Tried) -> bool:
        if [str(leaf) for leaf in one.outputs] != [str(leaf) for leaf in other.outputs]:
            return False
        return divergence(one.outputs, other.outputs).is_enough_for(self.wanted)

    def _run_those(
        self, reader: Reader | None, programs: Sequence[ReducedProgram], chosen: Sequence[bool]
    ) -> list[Tried | None]:
        """The outcomes of the chosen programs in a reader; None for the others."""
        some = [program for program, is_chosen in zip(programs, chosen, strict=True) if is_chosen]
        tried = iter(reader.run(some) if reader and some else [])
        return [next(tried, None) if is_chosen else None for is_chosen in chosen]
