"""Programs with errors that can be planted in them, as records by name. `planted_programs.py` exports them."""

from studies.corpus.programs.planted import (
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
from studies.corpus.programs.program import Program

_PARTS = (algebra, networks, training, precision, science, chance, cancelling, narrow, *held_out.PARTS)

PROGRAMS: dict[str, Program] = {program.name: program for part in _PARTS for program in part.PROGRAMS}
