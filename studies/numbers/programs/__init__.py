"""The programs of the corpus, by name, and those of them that were held out of every choice of a rule."""

from studies.numbers.programs import (
    algebra,
    cancelling,
    chance,
    held_out,
    narrow,
    networks,
    precision,
    science,
    training,
)
from studies.numbers.programs.program import Program

_PARTS = (algebra, networks, training, precision, science, chance, cancelling, narrow, held_out)

PROGRAMS: dict[str, Program] = {program.name: program for part in _PARTS for program in part.PROGRAMS}
HELD_OUT = frozenset(program.name for program in held_out.FIRST)
HELD_OUT_LAST = frozenset(program.name for program in held_out.LAST)
