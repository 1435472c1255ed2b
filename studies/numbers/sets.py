"""The sets of programs that are measured, the releases that write each, and the processors of writers and readers."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import msgspec

from studies.numbers.programs import HELD_OUT, HELD_OUT_LAST, PROGRAMS

ROOT = Path(__file__).parents[2]
CORPUS, HELD, HELD_NOW, REALS = "corpus", "heldout", "terms", "real"
LIBRARIES, PROCESSORS = "libraries", "processors"
SETS = (CORPUS, HELD, HELD_NOW, REALS, LIBRARIES, PROCESSORS)
USUAL = (CORPUS, HELD, HELD_NOW, REALS, PROCESSORS)
"""The sets that are measured by default. Programs of libraries take ten times as long, and only young releases write
them."""
_TEST = "studies/numbers/test_corpus.py"
_REAL = "studies/corpus/programs"


@dataclass(frozen=True)
class Group:
    """Marked tests that a release writes together, by their pytest ids.

    `install` are packages beside jax. Releases older than `since` do not write them, and only `writers` do, if any.
    """

    name: str
    tests: tuple[str, ...]
    install: tuple[str, ...] = ()
    since: str = ""
    writers: tuple[str, ...] = ()


_ALARMS = Group(
    "alarms",
    (
        f"{_REAL}/attention_programs.py::test_causal_rotary_attention",
        f"{_REAL}/attention_programs.py::test_decoding_with_a_cache",
        f"{_REAL}/network_programs.py::test_resnet_block",
        f"{_REAL}/statistic_programs.py::test_option_prices_and_their_greeks",
        f"{_REAL}/statistic_programs.py::test_particle_filter",
    ),
    writers=("0.4.31", "0.5.3", "0.9.0.1"),
)
"""The real programs that the atlas of 2026-11-23 judged broken, perhaps wrongly, by the writers of those cells."""


@dataclass(frozen=True, eq=False)
class Processor:
    """A processor for which XLA and OpenBLAS take this one in a process with these variables.

    `lapack`: only artifacts that call LAPACK may differ there. `written_by` are the releases that write these `sets`
    there, to be read on this processor.
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
"""The releases that read goldens of another processor, and whose goldens are read on another."""


def groups_of(sets: Sequence[str], programs: Sequence[str]) -> list[Group]:
    """Return the groups that releases write of these sets, on this processor: all programs, or those named.

    Raises:
        SystemExit: a named program is in none of the sets.
    """
    groups = [group for group in _groups() if _SET_OF_GROUP.get(group.name, LIBRARIES) in sets]
    if not programs:
        return groups
    some = [replace(group, tests=tuple(t for t in group.tests if program_in(t) in programs)) for group in groups]
    known = {program_in(test) for group in some for test in group.tests}
    if missing := sorted(set(programs) - known):
        raise SystemExit(f"--programs: expected programs of the sets {', '.join(sets)}, found {', '.join(missing)}")
    return [group for group in some if group.tests]


_SET_OF_GROUP = {CORPUS: CORPUS, HELD: HELD, HELD_NOW: HELD_NOW, "plain": REALS, "alarms": REALS}


@functools.cache
def _groups() -> list[Group]:
    made = {
        CORPUS: [name for name in PROGRAMS if name not in HELD_OUT | HELD_OUT_LAST],
        HELD: [name for name in PROGRAMS if name in HELD_OUT],
        HELD_NOW: [name for name in PROGRAMS if name in HELD_OUT_LAST],
    }
    groups = [
        Group(title, tuple(f"{_TEST}::test_program[{name}]" for name in names))
        for title, names in made.items()
        if names
    ]
    listed = msgspec.yaml.decode((ROOT / _REAL / "packages.yaml").read_bytes())
    for name, part in listed.items():
        tests = tuple(f"{_REAL}/{file}::{test}" for file in part["files"] for test in _tests_in(ROOT / _REAL / file))
        groups.append(Group(name, tests, tuple(part["packages"]), part["since"]))
    return [*groups, _ALARMS]


def _tests_in(file: Path) -> list[str]:
    return re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)


def program_in(test: str) -> str:
    """Return the name of a program by its test's id or its case: the parameter in the corpus, else the function."""
    return re.split(r"::|\.", test)[-1].removeprefix("test_program[").rstrip("]")


def set_of(case: str) -> str:
    """Return the set that a case belongs to."""
    program = program_in(case)
    if program in PROGRAMS and f"test_program[{program}]" in case:
        return HELD if program in HELD_OUT else HELD_NOW if program in HELD_OUT_LAST else CORPUS
    plain = next(group for group in _groups() if group.name == "plain")
    return REALS if program in {program_in(test) for test in plain.tests} else LIBRARIES
