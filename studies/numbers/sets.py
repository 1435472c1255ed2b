"""The sets of programs that are measured, the releases that write each, and the processors of writers and readers."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from studies.corpus.choosing import Group, case_of, choose

CORPUS, HELD, HELD_NOW, REALS = "corpus", "heldout", "terms", "real"
LIBRARIES, PROCESSORS = "libraries", "processors"
SETS = (CORPUS, HELD, HELD_NOW, REALS, LIBRARIES, PROCESSORS)
USUAL = (CORPUS, HELD, HELD_NOW, REALS, PROCESSORS)
"""The sets that are measured by default. Programs of libraries take ten times as long, and only young releases write
them."""
_SETS = {"programs-plain": REALS, "alarms": REALS, "programs-libraries": LIBRARIES, "programs-flax": LIBRARIES}
"""The sets to which some groups of programs.yaml belong. The set of any other group has the group's own name."""


@dataclass(frozen=True, eq=False)
class Processor:
    """A processor that is imitated: in a process with these variables, XLA or OpenBLAS uses the code for it.

    If `lapack` is true, only artifacts that call LAPACK may give different numbers. `written_by` are the releases that
    write `sets` as if on this processor, to be read on the real one.
    """

    name: str
    title: str
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    lapack: bool = False
    written_by: tuple[str, ...] = ()
    sets: tuple[str, ...] = (CORPUS, HELD, HELD_NOW, REALS)


NATIVE = Processor("native", "this processor")
OTHERS = (
    # Up to AVX2 XLA compiles the same code as with AVX-512, since it prefers vectors of 256 bits. SSE4.2 has no FMA.
    Processor(
        "sse4_2",
        "XLA for SSE4.2",
        MappingProxyType({"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}),
        written_by=("0.9.2",),
        sets=(HELD, HELD_NOW),
    ),
    Processor(
        "haswell",
        "OpenBLAS for Haswell",
        MappingProxyType({"OPENBLAS_CORETYPE": "Haswell"}),
        lapack=True,
        written_by=("0.9.2", "0.12.0.1"),
    ),
)
ACROSS = ("0.9.2", "0.12.0.1")
"""The releases that read, or whose goldens are read, as if on a processor that is not the writer's."""


def groups_of(sets: Sequence[str], programs: Sequence[str]) -> list[Group]:
    """Return the groups of these sets, with all of their programs or only some.

    Args:
        sets: the names of sets.
        programs: the names of the programs to return; all if empty.

    Raises:
        SystemExit: a named program is in none of the sets.
    """
    groups = [group for group in choose("numbers") if _SETS.get(group.name, group.name) in sets]
    if not programs:
        return groups
    some = [
        msgspec.structs.replace(group, paths=tuple(t for t in group.tests if program_in(t) in programs))
        for group in groups
    ]
    known = {program_in(test) for group in some for test in group.tests}
    if missing := sorted(set(programs) - known):
        raise SystemExit(f"--programs: expected programs of the sets {', '.join(sets)}, found {', '.join(missing)}")
    return [group for group in some if group.tests]


def program_in(test: str) -> str:
    """Return the name of a program, from the pytest id of its test or from its case.

    It is the parameter of the test, or the name of its function if the test has no parameter.
    """
    return re.split(r"::|\.", test)[-1].removeprefix("test_program[").rstrip("]")


def set_of(case: str) -> str:
    """Return the name of the set to which a case belongs, or "" if it belongs to none."""
    return _sets_by_case().get(case, "")


@functools.cache
def _sets_by_case() -> dict[str, str]:
    named = [(_SETS.get(group.name, group.name), group) for group in choose("numbers")]
    return {case_of(test): name for name, group in named for test in group.tests}
