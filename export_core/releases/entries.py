"""The calendar as reading an artifact needs it: one entry for each jaxlib, without the libraries of the whole calendar.

`data/entries.json` is made from `data/releases.yaml` by `python -m tools.calendar_entries`; a test keeps both equal.
The whole calendar takes 100 ms to import with msgspec and YAML; `jaxexport inspect` takes 45 in all.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from export_core.releases.calendar import Calendar

# Paths by os.path: pathlib takes 5 ms to import.
FILE = os.path.join(os.path.dirname(__file__), "data", "entries.json")  # noqa: PTH118, PTH120


class CalendarEntry(NamedTuple):
    """A jaxlib that can be installed: its build date (2026-10-20), the newest jax on it, its StableHLO versions.

    These are the current one, that of 4 weeks before and that of 12 weeks before; None where it was not measured.
    `all_jax` are all that work on it: an artifact by one of them need not be by the jaxlib with the same number.
    """

    jaxlib: str
    built: str
    jax: str
    stablehlo: tuple[str | None, ...]
    all_jax: tuple[str, ...]


def shipped_entries() -> tuple[CalendarEntry, ...]:
    """Every jaxlib of the shipped calendar that can be installed, oldest build first."""
    with open(FILE, "rb") as file:  # noqa: PTH123
        return from_rows(json.loads(file.read()))


def from_rows(rows: Any) -> tuple[CalendarEntry, ...]:
    """Entries as JSON holds them: a list each."""
    return tuple(
        CalendarEntry(jaxlib, built, jax, tuple(stablehlo), tuple(all_jax))
        for jaxlib, built, jax, stablehlo, all_jax in rows
    )


def calendar_entries(calendar: Calendar) -> tuple[CalendarEntry, ...]:
    """The entries of a calendar that was read whole, such as one with a project's own releases."""
    return tuple(
        CalendarEntry(
            jaxlib,
            str(calendar.built(jaxlib)),
            calendar.release(jaxlib).jax,
            calendar.jaxlib[jaxlib].stablehlo,
            tuple(calendar.all_matching_jax(jaxlib)),
        )
        for jaxlib in calendar.versions()
    )
