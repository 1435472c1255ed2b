"""The parts of the corpus from which releases write goldens for the atlas, and the part of a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

FIRST = "0.4.30"
"""The oldest release of the atlas."""
CORPUS = Path(__file__).parents[1] / "corpus"
OWN, JAX = "own", "jax"
"""Parts whose goldens exist already: those of this project, and those that ship in jax."""


@dataclass(frozen=True)
class Part:
    """Marked tests from which releases write goldens: their files, packages beside jax, variables, and writers.

    Where `writers` is None, the writers of the run write them, except those built before `since`.
    """

    name: str
    paths: tuple[str, ...]
    install: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    writers: tuple[str, ...] | None = None
    since: str = FIRST


REGRESSIONS = Part("regressions", ("studies/corpus/regressions",))
HARNESSES = Part(
    "harnesses",
    ("studies/corpus/harnesses/harnesses.py",),
    install=("absl-py",),
    variables={"HARNESSES_SAMPLE": "150"},
    # Each with the jax of the same version, which lists the harnesses.
    writers=("0.8.2-jax0.8.2", "0.9.2-jax0.9.2", "0.10.2-jax0.10.2", "0.11.1-jax0.11.1"),
)


def programs() -> Iterator[Part]:
    """Yield the parts with real programs, one for each group of packages.yaml."""
    folder = CORPUS / "programs"
    for name, group in yaml.safe_load((folder / "packages.yaml").read_text()).items():
        paths = tuple(f"studies/corpus/programs/{file}" for file in group["files"])
        yield Part(f"programs-{name}", paths, tuple(group["packages"]), since=group["since"])


def part_of(case: str) -> str:
    """Return the name of the part that a case belongs to, by how its id begins."""
    if case.startswith("jax."):
        return JAX
    for part in (REGRESSIONS, *programs(), HARNESSES):
        if any(case.startswith(path.removesuffix(".py").replace("/", ".") + ".") for path in part.paths):
            return part.name
    return OWN
