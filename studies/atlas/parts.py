"""The parts of the atlas: groups of programs in the corpus, and goldens that exist already."""

from __future__ import annotations

from pathlib import Path

from studies.corpus.choosing import choose

FIRST = "0.4.30"
"""The oldest release of the atlas."""
CORPUS = Path(__file__).parents[1] / "corpus"
OWN, JAX = "own", "jax"
"""Parts whose goldens exist already: the goldens of this project, and the goldens that ship in jax."""
REGRESSIONS, HARNESSES = "regressions", "harnesses"
"""Parts of the corpus that are not real programs: they were made from closed issues, or to test primitives."""


def part_of(case: str) -> str:
    """Return the name of the part to which a case belongs, which follows from the beginning of the case's id."""
    if case.startswith("jax."):
        return JAX
    for part in choose("atlas"):
        if any(case.startswith(path.removesuffix(".py").replace("/", ".") + ".") for path in part.paths):
            return part.name
    return OWN
