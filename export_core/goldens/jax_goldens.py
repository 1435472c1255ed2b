"""JAX's own goldens, by the hashes of their modules: builds between two releases wrote them, so no writer's bytes fit.

They are the only goldens whose writer their bytes may contradict. `python -m tools.jax_goldens` adds those of a new
jax.
"""

from __future__ import annotations

import datetime
import functools
from pathlib import Path

from export_core.artifact import Artifact
from export_core.goldens.manifest import Writer
from export_core.releases import load_calendar

TABLE = Path(__file__).with_name("data") / "jax_goldens.txt"
"""A line for each: the day of the data, and the SHA-256 of the module."""


@functools.cache
def days() -> dict[str, list[datetime.date]]:
    """The days of the data that have a module, by its SHA-256."""
    table: dict[str, list[datetime.date]] = {}
    for line in TABLE.read_text(encoding="ascii").splitlines():
        day, module = line.split()
        table.setdefault(module, []).append(datetime.date.fromisoformat(day))
    return table


def is_known(artifact: Artifact, writer: Writer) -> bool:
    """Whether JAX has this module as a golden, and the writer is what stands for the build that wrote it.

    That is a release from the day of the data on, up to the first one that this package knows.
    """
    import hashlib

    calendar = load_calendar()
    built = [calendar.built(version) for version in calendar.versions()]
    for day in days().get(hashlib.sha256(artifact.module.serialized()).hexdigest(), ()):
        first = next((date for date in built if date >= day), None)
        if day <= writer.built <= first if first else writer.built >= built[-1]:
            return True
    return False
