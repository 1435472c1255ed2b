"""The calendar as reading an artifact needs it: one entry for each jaxlib, without the libraries of the whole calendar.

`data/entries.json` is made from `data/releases.yaml`, and `data/runtimes.json` from the releases of the runtimes that
ship, by `python -m tools.calendar_entries`; tests keep them equal. The whole calendar takes 100 ms of a processor to
read with msgspec, packaging and YAML, and these files 25. All of `jaxexport inspect` may take a tenth of what
jax.export takes as a process, which is 117.
"""

from __future__ import annotations

import functools
import json
import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from export_core.releases.names import Titled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from export_core.releases.calendar import Calendar, RuntimeRelease
    from export_core.releases.runtimes import Runtime

# Paths by os.path: pathlib takes 5 ms to import.
FILE = os.path.join(os.path.dirname(__file__), "data", "entries.json")  # noqa: PTH118, PTH120
RUNTIMES = os.path.join(os.path.dirname(FILE), "runtimes.json")  # noqa: PTH118, PTH120


class _Entry(NamedTuple):
    jaxlib: str  # Empty for a runtime that is not jaxlib, unless it is a part of jaxlib.
    built: str  # 2026-10-20; empty where it is in no calendar.
    jax: str  # The newest jax on it; empty for a runtime that is not jaxlib.
    # Of jaxlib the current version, those of 4 and of 12 weeks before; None where it was not measured.
    stablehlo: tuple[str | None, ...]
    # All jax that work on it: an artifact by one of them may be by a jaxlib with another number.
    all_jax: tuple[str, ...] = ()
    runtime: str = ""  # Its name: tensorflow==2.21.0.
    convention: int | None = None  # The highest calling convention that it takes; None for any.
    dialects: tuple[str, ...] = ()  # The dialects beside VHLO that it parses, where they do not follow from a jaxlib.
    with_settings: str = ""  # What is set in a jaxlib, `[JAX_ENABLE_X64=true]`.


class CalendarEntry(Titled, _Entry):
    """A jaxlib that can be installed, or a release of another runtime, with the facts that say what it reads."""

    __slots__ = ()

    @property
    def row(self) -> tuple[Any, ...]:
        """The list that `data/entries.json` and `data/runtimes.json` have of it."""
        if self.runtime:
            return self.version, self.built, self.stablehlo[0], self.convention, self.dialects
        return self.jaxlib, self.built, self.jax, self.stablehlo, self.all_jax


RuntimeEntries = str | tuple[CalendarEntry, ...]
"""The releases of a runtime, oldest build first; or the name of the one whose releases it has, such as jaxlib."""


@functools.cache  # a server asks about each artifact that it loads
def shipped_entries() -> tuple[CalendarEntry, ...]:
    """Return every jaxlib of the shipped calendar that can be installed, oldest build first."""
    with open(FILE, "rb") as file:  # noqa: PTH123
        return from_rows(json.loads(file.read()))


def from_rows(rows: Any) -> tuple[CalendarEntry, ...]:
    """Return entries from their rows in JSON, a list each."""
    return tuple(
        CalendarEntry(jaxlib, built, jax, tuple(stablehlo), tuple(all_jax))
        for jaxlib, built, jax, stablehlo, all_jax in rows
    )


def calendar_entries(calendar: Calendar) -> tuple[CalendarEntry, ...]:
    """Return the entries of a calendar that was read whole, such as one with a project's own releases."""
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


def shipped_runtimes() -> dict[str, RuntimeEntries]:
    """Return the releases of every runtime that ships with this package, by its name."""
    with open(RUNTIMES, "rb") as file:  # noqa: PTH123
        rows = json.loads(file.read())
    return {
        name: own if isinstance(own, str) else tuple(_runtime_entry(name, *row) for row in own)
        for name, own in rows.items()
    }


def _runtime_entry(
    name: str, version: str, built: str, stablehlo: str | None, convention: int | None, dialects: Iterable[str]
) -> CalendarEntry:
    runtime = f"{name}=={version}"
    return CalendarEntry("", built, "", (stablehlo,), (), runtime, convention, tuple(dialects))


def runtime_entries(runtime: Runtime, added: Mapping[str, RuntimeRelease] = {}) -> RuntimeEntries:
    """Return the entries of a runtime that was read whole, such as one of another package.

    The releases that a project adds are among them.
    """
    releases = {**added, **runtime.releases}
    own = ((version, str(release.built), release) for version, release in releases.items())
    return runtime.releases_of or tuple(
        _runtime_entry(runtime.name, version, built, release.stablehlo, release.convention, release.dialects)
        for version, built, release in sorted(own, key=lambda row: row[1])
    )
