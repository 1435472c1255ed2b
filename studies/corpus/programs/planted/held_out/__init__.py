"""Programs on which no rule of comparing was ever tuned: what is sensitive in them is mostly computed inside.

They measure a rule and must not shape it. A rule that was changed because of one of them needs new ones.
"""

from studies.corpus.programs.planted.held_out import (
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

PARTS = (
    *(images, positions, decoding, quantized, tabulated, drawing, ordering, waves),
    *(whole_numbers, stored_matrices, everyday, operations, narrow_beside, narrow_stored, half_models),
)
