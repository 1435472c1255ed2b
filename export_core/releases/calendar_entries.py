"""The calendar as reading an artifact needs it: one entry for each jaxlib, without the libraries of the whole calendar.

`data/entries.json` is made from `data/releases.yaml`, and `data/runtimes.json` from the releases of the runtimes that
ship, by `python -m tools.calendar_entries`; tests keep them equal. The whole calendar takes 100 ms of a processor to
read with msgspec, packaging and YAML, and these files 25. All of `jaxexport inspect` may take a tenth of what
jax.export takes as a process, which is 117.
"""

from __future__ import annotations

import functools
import os.path
from collections.abc import Iterable, Mapping

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.releases.names import Titled

if TYPE_CHECKING:
    from typing import Any

    from export_core.releases.calendar import Calendar, RuntimeRelease
    from export_core.releases.runtimes import Runtime

# Paths by os.path: pathlib takes 5 ms to import.
FILE = os.path.join(os.path.dirname(__file__), "data", "entries.json")  # noqa: PTH118, PTH120
RUNTIMES = os.path.join(os.path.dirname(FILE), "runtimes.json")  # noqa: PTH118, PTH120


class _Entry(NamedTuple):
    jaxlib: str  # The version of jaxlib; empty for a runtime that is not jaxlib, unless it is a part of jaxlib.
    built: str  # The build date, such as 2026-10-20; empty for a release that is in no calendar.
    jax: str  # The newest jax that works on it; empty for a runtime that is not jaxlib.
    # The StableHLO versions: for jaxlib the current one, those of 4 and of 12 weeks before; None if not measured.
    stablehlo: tuple[str | None, ...]
    # All versions of jax that work on it: the writer of an artifact by such a jax may be a jaxlib with another number.
    all_jax: tuple[str, ...] = ()
    runtime: str = ""  # The name of another runtime with its version, such as tensorflow==2.21.0; empty for jaxlib.
    convention: int | None = None  # The highest calling convention that it takes; None for any.
    dialects: tuple[str, ...] = ()  # The dialects beside VHLO that it parses, if they do not follow from a jaxlib.
    with_settings: str = ""  # The settings of a jaxlib, such as `[JAX_ENABLE_X64=true]`.


class CalendarEntry(Titled, _Entry):
    """A jaxlib, or a release of another runtime, with the facts that decide which artifacts it can read."""

    __slots__ = ()

    @property
    def row(self) -> tuple[Any, ...]:
        """The entry as a list, for `data/entries.json` or, for another runtime, `data/runtimes.json`."""
        if self.runtime:
            return self.version, self.built, self.stablehlo[0], self.convention, self.dialects
        return self.jaxlib, self.built, self.jax, self.stablehlo, self.all_jax


RuntimeEntries = str | tuple[CalendarEntry, ...]
"""The releases of a runtime, oldest build first; or the name of the runtime whose releases it has, such as jaxlib."""


@functools.cache  # a server asks about each artifact that it loads
def shipped_entries() -> tuple[CalendarEntry, ...]:
    """Return every jaxlib of the shipped calendar that can be installed, oldest build first."""
    import json  # 3 ms, which reading alone does not need; tests/artifact/test_light.py

    with open(FILE, "rb") as file:  # noqa: PTH123
        return from_rows(json.loads(file.read()))


def from_rows(rows: Any) -> tuple[CalendarEntry, ...]:
    """Return the entries of jaxlibs from JSON, in which each entry is a list in the form of `CalendarEntry.row`."""
    return tuple(
        CalendarEntry(jaxlib, built, jax, tuple(stablehlo), tuple(all_jax))
        for jaxlib, built, jax, stablehlo, all_jax in rows
    )


def calendar_entries(calendar: Calendar) -> tuple[CalendarEntry, ...]:
    """Return an entry for each jaxlib of a calendar that can be installed, oldest build first.

    For the shipped calendar, `shipped_entries` is faster, since it reads them from a file.
    """
    return tuple(_entry_of(jaxlib, calendar) for jaxlib in calendar.versions())


def withdrawn_entry(jaxlib: str, calendar: Calendar) -> CalendarEntry | None:
    """Return the entry of a jaxlib that its index withdrew: it can still be named. None if it is not such a one.

    Raises `ReleaseError` if no jax works on it.
    """
    known = calendar.jaxlib.get(jaxlib)
    return _entry_of(jaxlib, calendar) if known is not None and known.yanked else None


def _entry_of(jaxlib: str, calendar: Calendar) -> CalendarEntry:
    return CalendarEntry(
        jaxlib,
        str(calendar.built(jaxlib)),
        calendar.release(jaxlib).jax,
        calendar.jaxlib[jaxlib].stablehlo,
        tuple(calendar.all_matching_jax(jaxlib)),
    )


def shipped_runtimes() -> dict[str, RuntimeEntries]:
    """Return the releases of every runtime that ships with this package, by its name."""
    import json  # see `shipped_entries`

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
    """Return an entry for each release of a runtime, or the name of another runtime with the same releases.

    `added` are releases that a project adds; an entry of the runtime itself takes precedence over them.
    """
    releases = {**added, **runtime.releases}
    own = ((version, str(release.built), release) for version, release in releases.items())
    return runtime.releases_of or tuple(
        _runtime_entry(runtime.name, version, built, release.stablehlo, release.convention, release.dialects)
        for version, built, release in sorted(own, key=lambda row: row[1])
    )
