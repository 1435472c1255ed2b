"""Programs on which no rule of comparing was ever tuned: what is sensitive in them is mostly computed inside.

They measure a rule and must not shape it. A rule that was changed because of one of them needs new ones.
"""

from studies.numbers.programs.held_out import (
    decoding,
    drawing,
    everyday,
    half_models,
    images,
    narrow_beside,
    narrow_stored,
    operations,
    ordering,
    positions,
    quantized,
    stored_matrices,
    tabulated,
    waves,
    whole_numbers,
)
from studies.numbers.programs.program import Program

_FIRST = images, positions, decoding, quantized, tabulated, drawing, ordering, waves
_LAST = whole_numbers, stored_matrices, everyday, operations, narrow_beside, narrow_stored, half_models

FIRST: tuple[Program, ...] = tuple(program for part in _FIRST for program in part.PROGRAMS)
_SHAPED = {"chroma_of_grey_pixels"}
"""It showed that equal numbers move alike, and the rule was changed: it is one of the corpus since."""
LAST: tuple[Program, ...] = tuple(p for part in _LAST for p in part.PROGRAMS if p.name not in _SHAPED)
"""Those written before the error of an operation was bounded by its terms: whole numbers, narrow types, plain ones."""
PROGRAMS: tuple[Program, ...] = tuple(program for part in (*_FIRST, *_LAST) for program in part.PROGRAMS)
