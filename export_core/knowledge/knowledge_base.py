"""The entries of the knowledge base as a forecast needs them: those that say which artifacts they are about.

`data/entries.json` is made of `data/CONSUMER.yaml` by `python -m tools.knowledge`, with build dates in place of
versions; a test keeps it equal. The form that people write, with all that a report shows, is `KnownIssue` in
`policy/known_issues.py`.
"""

import functools
import json
import os.path
from collections.abc import Mapping
from typing import Any, NamedTuple

# Paths by os.path: pathlib takes 5 ms to import.
FILE = os.path.join(os.path.dirname(__file__), "data", "entries.json")  # noqa: PTH118, PTH120
CONSUMERS = ("jaxlib", "iree", "litert", "tensorflow", "savedmodel", "pjrt", "stablehlo")
_PARTS = {"savedmodel": ("tensorflow",)}  # A SavedModel is run by TensorFlow's XlaCallModule.


class Entry(NamedTuple):
    """A fact about some releases of a consumer."""

    id: str  # Its id.
    title: str  # What goes wrong, in a few words.
    effect: str  # What happens, in a sentence; empty where the title says it.
    todo: str  # What to do.
    outcome: str  # refused, error, crash, timeout, numerics or overwritten.
    stage: str  # The first stage where it shows.
    is_sure: bool  # Whether it happens always.
    platforms: tuple[str, ...]  # Where it happens; everywhere if empty.
    settings: tuple[str, ...]  # The reader's flags under which it holds; none are needed if empty.
    unless: tuple[str, ...]  # The reader's flags under which it does not hold.
    since: str  # The build date of the first release that has it; empty where all older ones have it.
    mended: str  # The build date of the first release that no longer has it; empty for none.
    written_before: str  # The build date of the first writer whose artifacts do not have it; empty for any writer.
    concerns: Mapping[str, Any]  # The properties of an artifact that it is about, by the keys of `concerns.py`.

    def holds_for(self, built: str, platform: str, settings: tuple[str, ...]) -> bool:
        """Return whether a release of its consumer built on a day has it, on a platform with these settings."""
        return (
            (not self.since or built >= self.since)
            and (not self.mended or built < self.mended)
            and (not self.platforms or platform in self.platforms)
            and set(self.settings) <= {*settings}
            and not {*settings} & {*self.unless}
        )


@functools.cache
def _rows() -> dict[str, list[list[Any]]]:
    with open(FILE, "rb") as file:  # noqa: PTH123
        rows: dict[str, list[list[Any]]] = json.loads(file.read())
    return rows


def consumers_of(name: str) -> tuple[str, ...]:
    """Return the consumers whose entries hold for a consumer: itself, and what it is made of."""
    return name, *_PARTS.get(name, ())


@functools.cache
def entries_of(consumer: str) -> tuple[Entry, ...]:
    """Return the entries that hold for a consumer, such as `jaxlib`; none for a consumer without entries."""
    return tuple(
        Entry(*row[:7], *(tuple(names) for names in row[7:10]), *row[10:])
        for name in consumers_of(consumer)
        for row in _rows().get(name, ())
    )
