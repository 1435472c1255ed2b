"""Programs on which no rule of comparing was ever tuned: what is sensitive in them is mostly computed inside.

They measure a rule and must not shape it. A rule that was changed because of one of them needs new ones.
"""

from studies.numbers.programs.held_out import (
    decoding,
    drawing,
    images,
    ordering,
    positions,
    quantized,
    tabulated,
    waves,
)
from studies.numbers.programs.program import Program

PROGRAMS: tuple[Program, ...] = tuple(
    program
    for part in (images, positions, decoding, quantized, tabulated, drawing, ordering, waves)
    for program in part.PROGRAMS
)
