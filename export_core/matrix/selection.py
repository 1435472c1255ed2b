"""What was asked for: which readers, writers, cases and platforms, and where releases come from that are not published."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from export_core.environments.environment import Sources
from export_core.matrix.errors import MatrixError
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, Release, Windows, promise
from export_core.releases.calendar import version_key
from export_core.releases.wheels import Wheel, date_in_version, read_wheel, wheels_in, with_wheels
from export_core.urls import without_credentials

GROUPS = ("window", "all")
_PAIR = re.compile(r"(?P<jaxlib>.+?)(?:-jax(?P<jax>\d[^-/\\]*))?")


@dataclass(frozen=True)
class Selection:
    """What was asked for. `readers` is a comma-separated list of ``window``, ``all`` and single readers.

    A reader is a jaxlib version, one with the jax to go with it (``0.11.2-jax0.12.0.1``), or the path of a jaxlib wheel. `cases`
    are case ids or globs, `writers` jaxlib versions; empty takes all. `platforms` may name a mode (``cuda:run``), and `targets` other
    devices to compile for than the usual ones (``cuda=a100``). `touching` names a release: only cells in which it writes or
    reads. `wheels` are folders, `indexes` URLs of package indexes, for releases that are not published.
    """

    readers: str = "window"
    platforms: tuple[str, ...] = ("cpu",)
    cases: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    touching: str = ""
    wheels: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The parts of `readers`."""
        return tuple(part for each in self.readers.split(",") if (part := each.strip()))

    @property
    def whole(self) -> bool:
        """Whether every golden is in it, with the readers that its window names."""
        return any(part in GROUPS for part in self.named) and not (self.cases or self.writers or self.touching)

    def described(self) -> dict[str, Any]:
        """As summary.json keeps it: an index without its user and password."""
        shown = {
            name: value
            for name, value in asdict(self).items()
            if value or name not in ("touching", "wheels", "indexes", "targets")
        }
        if self.indexes:
            shown["indexes"] = tuple(without_credentials(url) for url in self.indexes)
        return {**shown, "whole": self.whole}


@dataclass(frozen=True)
class Readers:
    """The readers of a selection, and how they are had. `spelled` says how a person names each of them."""

    chosen: tuple[Release, ...]
    touching: Release | None
    calendar: Calendar
    sources: Sources
    spelled: dict[Release, str]


def choose_readers(
    selection: Selection, calendar: Calendar, windows: Windows, written: Iterable[datetime.date], as_of: datetime.date
) -> Readers:
    """The readers of a selection for goldens written on these build dates, oldest build first, as of a day.

    The calendar is extended by what wheels and indexes hold. Raises `ReleaseError` for a reader that does not exist, cannot be dated
    or is a pair that jax refuses, `MatrixError` where none is named.
    """
    if not selection.named:
        raise MatrixError(
            f"--readers: expected window, all or jaxlib versions such as 0.9.2,0.12.0.1, found {selection.readers!r}."
        )
    asked = [text for text in (*selection.named, selection.touching) if text and text not in GROUPS]
    files = {text: _wheel(path) for text in asked if (path := _parts(text)[0]).endswith(".whl")}
    held = [wheel for folder in selection.wheels for wheel in wheels_in(Path(folder))]
    known = with_wheels(calendar, (*files.values(), *held))
    for wheel in files.values():
        _same_date(wheel, known)
    if selection.indexes:
        known = _with_nightlies(known, [text for text in asked if text not in files])
    then = known.as_of(as_of)
    then.newest()  # an error where the day is before the first release

    def one(text: str) -> Release:
        jaxlib, jax = _parts(text)
        version = files[text].version if text in files else jaxlib
        return then.pair(version, jax) if jax else then.release(version)

    found: dict[Release, str] = {}
    for text in selection.named:
        if text == "all":
            found |= {then.release(version): version for version in then.versions()}
        elif text == "window":
            found |= {then.release(version): version for version in window_readers(written, then, windows)}
        else:
            found[one(text)] = text
    touching = one(selection.touching) if selection.touching else None
    if touching and any(part in GROUPS for part in selection.named):
        found.setdefault(touching, selection.touching)
    chosen = sorted(found, key=lambda release: (release.built, version_key(release.jaxlib), version_key(release.jax)))
    sources = Sources(tuple(dict.fromkeys(files.values())), tuple(held), selection.indexes)
    return Readers(tuple(chosen), touching, then, sources, found)


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


def _parts(text: str) -> tuple[str, str | None]:
    match = _PAIR.fullmatch(text)
    return (match["jaxlib"], match["jax"]) if match else (text, None)


def _wheel(path: str) -> Wheel:
    wheel = read_wheel(Path(path))
    if wheel.name != "jaxlib":
        raise MatrixError(
            f"--readers {path}: expected a wheel of jaxlib, found one of {wheel.name}. The jax that goes with a jaxlib is taken from a "
            "folder: --wheels DIR."
        )
    return wheel


def _same_date(wheel: Wheel, calendar: Calendar) -> None:
    # Two releases of one name, judged by one date: the wrong one for either of them.
    if calendar.built(wheel.version) != wheel.built:
        raise MatrixError(
            f"{wheel.path}: this wheel was built on {wheel.built}, and jaxlib {wheel.version} of the release calendar on "
            f"{calendar.built(wheel.version)}: it is not that release. Give it a version of its own."
        )


def _with_nightlies(calendar: Calendar, asked: Sequence[str]) -> Calendar:
    """The calendar with the nightlies that were asked for by version: an index holds them, and their versions name their days."""
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for text in asked:
        version, with_jax = _parts(text)
        other = with_jax or version  # nightlies of both are published together
        if version not in calendar.jaxlib and (built := date_in_version(version)):
            jaxlib[version] = JaxlibRelease(built)
        if other not in calendar.jax and (built := date_in_version(other)):
            # Its metadata says what it really needs: there the installer refuses a pair that does not go.
            jax[other] = JaxRelease(built, version)
    return calendar.extended(jaxlib, jax)
