"""The part of the atlas that a case is of: a group of the corpus, or goldens that are there already."""

from __future__ import annotations

from pathlib import Path

from studies.corpus.choosing import choose

FIRST = "0.4.30"
"""The oldest release of the atlas."""
CORPUS = Path(__file__).parents[1] / "corpus"
OWN, JAX = "own", "jax"
"""Parts whose goldens are there already: those of this project, and those that ship in jax."""
REGRESSIONS, HARNESSES = "regressions", "harnesses"
"""Parts of the atlas that are no real programs."""


def part_of(case: str) -> str:
    """Return the name of the part that a case is of, by how its id begins."""
    if case.startswith("jax."):
        return JAX
    for part in choose("atlas"):
        if any(case.startswith(path.removesuffix(".py").replace("/", ".") + ".") for path in part.paths):
            return part.name
    return OWN
