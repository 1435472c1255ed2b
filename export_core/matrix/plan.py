"""Which cells are there to run?"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from export_core.goldens import Golden
from export_core.matrix.cell import Cell
from export_core.matrix.comparators import check_comparator
from export_core.matrix.errors import MatrixError
from export_core.releases import Calendar, Release, Windows, promise

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True)
class Selection:
    """What was asked for. `readers` is ``window``, ``all`` or a comma-separated list of jaxlib versions.

    `cases` are case ids or globs, `writers` jaxlib versions; empty takes all.
    """

    readers: str = "window"
    platforms: tuple[str, ...] = ("cpu",)
    cases: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every golden is in it, with the readers that its window names."""
        return self.readers in ("window", "all") and not self.cases and not self.writers

    def described(self) -> dict[str, Any]:
        """As summary.json keeps it."""
        return {**asdict(self), "whole": self.whole}


@dataclass(frozen=True)
class Plan:
    """The cells of one run, ordered by reader, oldest first; `as_of` is the day they are judged for."""

    cells: tuple[Cell, ...]
    as_of: datetime.date
    calendar: Calendar
    selection: Selection

    @property
    def readers(self) -> tuple[Release, ...]:
        """Each reader once, oldest build first."""
        return tuple(dict.fromkeys(cell.reader for cell in self.cells))

    @property
    def goldens(self) -> tuple[Golden, ...]:
        """Each golden once, by its writer's build date."""
        found = {cell.golden.id: cell.golden for cell in self.cells}
        return tuple(sorted(found.values(), key=lambda golden: (golden.manifest.writer.built, golden.id)))


def make_plan(
    goldens: Sequence[Golden], calendar: Calendar, windows: Windows, selection: Selection, as_of: datetime.date
) -> Plan:
    """Plan every selected golden in every selected reader, as of a day.

    Raises `MatrixError` when nothing is left to run: an empty plan must never look like a success, and for a comparator that
    is not there; users' own are imported, with the working folder first on `sys.path`. Raises `ReleaseError` for a reader that does
    not exist.
    """
    for platform in selection.platforms:
        if platform not in PLATFORMS:
            raise MatrixError(f"--platforms: expected some of {', '.join(PLATFORMS)}, found {platform!r}.")
    then = calendar.as_of(as_of)
    chosen = _chosen(goldens, then, selection, as_of)
    for name in dict.fromkeys(golden.manifest.comparison.compare for golden in chosen):
        check_comparator(name, Path.cwd())
    readers = [then.release(reader) for reader in _readers(chosen, then, windows, selection.readers)]
    cells = [
        Cell(golden, reader, platform)
        for reader in readers
        for golden in chosen
        for platform in dict.fromkeys(selection.platforms)
        if platform in golden.manifest.replayed_on
    ]
    if not cells:
        exported = sorted({platform for golden in chosen for platform in golden.manifest.replayed_on})
        raise MatrixError(
            f"The plan is empty: the {len(chosen)} selected goldens were exported for {', '.join(exported)}, and none for "
            f"{', '.join(selection.platforms)}. Choose other --platforms, or export for more: platforms= of the marker."
        )
    return Plan(tuple(cells), as_of, then, selection)


def window_readers(writers: Iterable[datetime.date], calendar: Calendar, windows: Windows) -> list[str]:
    """What ``--readers window`` means for goldens written on these build dates.

    Every release with at least one promised cell, the newest, and the release just before each writer: published pairs
    seldom fall into the forward window, and that one is what is deployed when a writer is new.
    """
    dates = sorted(set(writers))
    versions = calendar.versions()
    chosen = {calendar.newest()} if versions else set()
    for position, version in enumerate(versions):
        built = calendar.built(version)
        if any(promise(date, built, windows).promised for date in dates):
            chosen.add(version)
        following = calendar.built(versions[position + 1]) if position + 1 < len(versions) else None
        if following is not None and any(built < date <= following for date in dates):
            chosen.add(version)
    return [version for version in versions if version in chosen]


def _chosen(goldens: Sequence[Golden], then: Calendar, selection: Selection, as_of: datetime.date) -> list[Golden]:
    if not goldens:
        raise MatrixError(
            "There is no golden to replay: expected at least one in the golden folder. Mark a test with "
            "@pytest.mark.export_compat and run `pytest --update-goldens`."
        )
    for writer in selection.writers:
        if not any(golden.manifest.writer.jaxlib == writer for golden in goldens):
            known = sorted({golden.manifest.writer.jaxlib for golden in goldens})
            raise MatrixError(
                f"--writers: no golden was written by jaxlib {writer}. There are goldens by {', '.join(known)}."
            )
    cases = {golden.manifest.case for golden in goldens}
    for pattern in selection.cases:
        if not any(_matches(golden.manifest.case, pattern, cases) for golden in goldens):
            raise MatrixError(f"--cases: no case is called or matches {pattern!r}. `jaxexport goldens list` shows all.")
    chosen = [
        golden
        for golden in goldens
        if (not selection.writers or golden.manifest.writer.jaxlib in selection.writers)
        and (not selection.cases or any(_matches(golden.manifest.case, pattern, cases) for pattern in selection.cases))
    ]
    existing = [golden for golden in chosen if golden.manifest.writer.built <= as_of]
    if not existing:
        raise MatrixError(
            f"The plan is empty: of {len(chosen)} selected goldens none was written by a jaxlib built on or before {as_of}. "
            "Choose a later --as-of, or other --cases and --writers."
        )
    for golden in existing:
        then.built(golden.manifest.writer.jaxlib)
    return existing


def _matches(case: str, pattern: str, cases: Collection[str]) -> bool:
    # A case id may contain brackets, which are a character class to fnmatch: an id that exists names itself and nothing else.
    return case == pattern if pattern in cases else fnmatch.fnmatchcase(case, pattern)


def _readers(goldens: Sequence[Golden], calendar: Calendar, windows: Windows, asked: str) -> list[str]:
    if asked == "all":
        return calendar.versions()
    if asked == "window":
        return window_readers((golden.manifest.writer.built for golden in goldens), calendar, windows)
    named = [version.strip() for version in asked.split(",") if version.strip()]
    if not named:
        raise MatrixError(
            f"--readers: expected window, all or jaxlib versions such as 0.9.2,0.12.0.1, found {asked!r}."
        )
    return sorted(dict.fromkeys(named), key=calendar.built)
