"""The entries of the knowledge base that a forecast uses: those that say which artifacts they are about.

`python -m tools.knowledge` makes `data/entries.json` from `data/CONSUMER.yaml`, with build dates instead of versions; a
test checks that they agree. People write an entry as a `KnownIssue` (policy/known_issues.py), which has all that a
report shows.
"""

from __future__ import annotations

import functools
import json
import os.path
from collections.abc import Mapping

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any


# Paths by os.path: pathlib takes 5 ms to import.
FILE = os.path.join(os.path.dirname(__file__), "data", "entries.json")  # noqa: PTH118, PTH120
CONSUMERS = ("jaxlib", "iree", "litert", "tensorflow", "savedmodel", "pjrt", "stablehlo")
_PARTS = {"savedmodel": ("tensorflow",)}  # TensorFlow runs a SavedModel: its entries hold for a SavedModel too.


class Entry(NamedTuple):
    """A known fault of some releases of a consumer, such as jaxlib or IREE, and the artifacts that show it."""

    id: str  # The id of the entry.
    title: str  # What goes wrong, in a few words.
    effect: str  # What happens, in a sentence; "" if the title says it.
    todo: str  # What to do.
    outcome: str  # refused, error, crash, timeout, numerics, overwritten or accepted.
    stage: str  # The first stage in which the fault shows.
    is_sure: bool  # Whether the fault always happens.
    platforms: tuple[str, ...]  # The platforms on which the fault happens; all if empty.
    settings: tuple[str, ...]  # The flags that a reader must have for the fault to happen; none if empty.
    unless: tuple[str, ...]  # Flags of a reader, each of which prevents the fault.
    since: str  # The build date of the first release with the fault; "" if all old releases have it.
    mended: str  # The build date of the first release without the fault again; "" if no release is without it.
    written_before: str  # Only artifacts of writers built before this day have the fault; "" if of all writers.
    concerns: Mapping[str, Any]  # The properties of the artifacts that have the fault, by the keys of `concerns.HOLDS`.

    def holds_for(self, built: str) -> bool:
        """Return whether a release of the consumer with this build date, such as ``2026-10-25``, has the fault."""
        return (not self.since or built >= self.since) and (not self.mended or built < self.mended)

    def holds_with(self, platform: str, settings: tuple[str, ...]) -> bool:
        """Return whether the fault happens on a platform and with these flags, in releases that have it."""
        return (
            (not self.platforms or platform in self.platforms)
            and (not self.settings or {*self.settings} <= {*settings})
            and (not self.unless or {*self.unless}.isdisjoint(settings))
        )


@functools.cache
def _rows() -> dict[str, list[list[Any]]]:
    with open(FILE, "rb") as file:  # noqa: PTH123
        rows: dict[str, list[list[Any]]] = json.loads(file.read())
    return rows


def consumers_of(name: str) -> tuple[str, ...]:
    """Return the consumers whose entries hold for this consumer: itself, and runtimes that run it, if there are any."""
    return name, *_PARTS.get(name, ())


@functools.cache
def entries_of(consumer: str) -> tuple[Entry, ...]:
    """Return the entries that hold for a consumer, such as `jaxlib`; an empty tuple if there are none."""
    return tuple(
        Entry(*row[:7], *(tuple(names) for names in row[7:10]), *row[10:])
        for name in consumers_of(consumer)
        for row in _rows().get(name, ())
    )
