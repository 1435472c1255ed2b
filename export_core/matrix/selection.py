"""The selection of a run: which goldens, readers and platforms, and where releases that are not published come from."""

import contextlib
import dataclasses
import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from export_core.base.errors import ExportCompatError
from export_core.base.text import did_you_mean
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget
from export_core.policy.run_options import COMPARISONS, GROUPS, Selection
from export_core.readers.environment import Sources
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, Release, ReleaseError, Windows, promise
from export_core.releases.calendar import date_in_version, version_key
from export_core.releases.jaxlib_settings import jaxlib_settings
from export_core.releases.project_releases import NIGHTLY_DAYS
from export_core.releases.runtimes import known_runtimes, names_runtime, runtime_readers
from export_core.releases.wheels import Wheel, read_wheel, wheels_in, with_wheels

NEWEST = "newest"
DEPLOYED = "deployed"
WORDS = (*GROUPS, NEWEST, DEPLOYED)  # The words that --readers takes beside releases.
# The jax part has no slash or dash: a wheel's path may have "-jax0" in the name of a folder.
_PAIR = re.compile(r"(?P<jaxlib>.+?)(?:-jax(?P<jax>\d[^-/\\]*))?")


class MatrixError(ExportCompatError):
    """A plan that cannot be made or run as asked."""


@dataclass(frozen=True)
class Readers:
    """The readers of a selection, and where they come from."""

    chosen: tuple[Release, ...]
    touching: Release | None
    calendar: Calendar
    sources: Sources
    spelled: dict[Release, str]  # How a person names each reader.
    for_targets: frozenset[Release] = frozenset()  # Readers that only run what deployment targets have to run.
    for_writers: Mapping[Release, frozenset[datetime.date]] = field(default_factory=dict)
    """The readers that only run the goldens of some writers, each with the build dates of those writers."""


@dataclass(frozen=True)
class KnownReleases:
    """A calendar with the releases that a user's wheels and package indexes add."""

    calendar: Calendar
    files: dict[str, Wheel]  # The wheels that are named as readers, by their path as it was named.
    wheels: tuple[Wheel, ...]


def selection_by_policy(policy: Policy) -> Selection:
    """Return what a policy selects: its readers, those of its deployment targets, and its platforms."""
    has_targets = {*GROUPS, DEPLOYED} & {*Selection(readers=policy.readers).named}  # a group has them anyway
    readers = policy.readers if has_targets or not policy.deployed else f"{policy.readers},{DEPLOYED}"
    return Selection(readers=readers, platforms=policy.spelled_platforms())


def completed(selection: Selection, policy: Policy) -> Selection:
    """Return the selection with the readers and platforms of the policy in place of those that are empty."""
    by_policy = selection_by_policy(policy)
    return selection.or_else(by_policy.readers, by_policy.platforms)


def readers_left_out(readers: str, policy: Policy, day: datetime.date | None = None) -> set[str]:
    """Return the readers that a policy selects and the text `readers` lacks, each as the policy names it.

    `deployed` is left out only if a release is that runs in a deployment target in force on `day`; if that is None,
    in any. A release that is in a range, or that is the newest, is not left out.
    """
    named = Selection(readers=readers)
    missing = {*selection_by_policy(policy).named}.difference(named.named)
    if named.has_group:  # a group has those of the deployment targets
        missing.discard(DEPLOYED)
    if DEPLOYED in missing:
        targets = policy.deployed if day is None else policy.targets_on(day)
        if {target.release for target in targets} <= _names_meant(named.named, policy, day):
            missing.discard(DEPLOYED)
    if "all" in named.named:  # every jaxlib, and no other runtime
        missing = {name for name in missing if name not in WORDS and names_runtime(name)}
    return missing


def _names_meant(named: Iterable[str], policy: Policy, day: datetime.date | None) -> set[str]:
    """Return the parts of --readers, and the names of the releases that ranges and `newest` mean among them.

    They mean the releases that exist on `day`; if that is None, all of the calendar.
    """
    names = {*named}
    wide = [text for text in names if text == NEWEST or text[0] in COMPARISONS or names_runtime(text)]
    if wide:
        calendar = policy.calendar() if day is None else policy.calendar().as_of(day)
        for text in wide:
            with contextlib.suppress(MatrixError, ReleaseError):  # nothing is in the range on that day
                names |= {
                    release.name for release in _releases_named(calendar.newest() if text == NEWEST else text, calendar)
                }
    return names


def is_whole(selection: Selection, policy: Policy, day: datetime.date | None = None) -> bool:
    """Return whether a selection has every golden, with the policy's readers or a group of readers such as `all`.

    `day` decides which deployment targets are in force; if it is None, all are.
    """
    left_out = not selection.has_group and readers_left_out(selection.readers, policy, day)
    return selection.has_every_golden and not left_out


def known_releases(selection: Selection, calendar: Calendar) -> KnownReleases:
    """Return the calendar, extended by the wheels and the nightlies of a selection.

    Raises:
        MatrixError: A name is not that of a reader, an index is neither a URL nor a folder, a wheel that is named as a
            reader is not one of jaxlib, or a wheel's build date is not that of the calendar.
        ReleaseError: A wheel cannot be dated.
    """
    for text in selection.named or (selection.readers,):
        _check_letters(text)
    named = [
        text
        for text in (*selection.named, selection.touching)
        if text and text not in WORDS and text[0] not in COMPARISONS and not names_runtime(text)
    ]
    files = {text: _jaxlib_wheel(path) for text in named if (path := _split_pair(text)[0]).endswith(".whl")}
    wheels = tuple(wheel for folder in selection.wheels for wheel in wheels_in(Path(folder)))
    known = with_wheels(calendar, (*files.values(), *wheels))
    for wheel in files.values():
        _check_date(wheel, known)
    # Not each of them: a wheel for a CPython that came later is built later, and its release keeps its date.
    for version in sorted({wheel.version for wheel in wheels if wheel.name == "jaxlib"} & calendar.jaxlib.keys()):
        own = [wheel for wheel in wheels if (wheel.name, wheel.version) == ("jaxlib", version)]
        if not any(abs((wheel.built - calendar.built(version)).days) <= NIGHTLY_DAYS for wheel in own):
            _check_date(own[0], calendar)
    for wheel in wheels:  # of a release that an index has too, the installer takes the index's
        entry = calendar.jax.get(wheel.version) if wheel.name == "jax" else None
        if entry and abs((wheel.built - entry.built).days) > NIGHTLY_DAYS:
            raise MatrixError(_other_date(wheel, entry.built))
    for index in selection.indexes:
        # uv ignores a folder that does not exist, and a password is cut from URLs only.
        if "://" not in index and not Path(index).is_dir():
            raise MatrixError(
                "--index: expected a URL such as https://nightlies.example/simple or a folder, found neither in "
                f"{index.rpartition('@')[2]!r}."
            )
    if selection.indexes:
        known = _with_nightlies(known, [text for text in named if text not in files])
    return KnownReleases(known, files, wheels)


def _check_letters(text: str) -> None:
    """Raise `MatrixError` for a text without digits, which names no release, unless --readers knows it as a word."""
    if text not in WORDS and not any(letter.isdigit() for letter in text) and not names_runtime(text):
        raise MatrixError(
            "--readers: expected window, all, newest, deployed, jaxlib versions such as 0.9.2,0.12.0.1, or "
            f"releases of a runtime ({', '.join(known_runtimes())}) such as tensorflow==2.21.0, found {text!r}."
            f"{did_you_mean(NEWEST if text == 'latest' else text, (*WORDS, *known_runtimes()))}"
        )


def problem_of_reader(text: str, calendar: Calendar) -> str:
    """Return why a plan cannot have the readers that a part of --readers names, by a calendar; "" if it can.

    Nothing is said of a wheel file, which only a plan reads.
    """
    try:
        _check_letters(text)
        if text not in WORDS and not text.endswith(".whl"):
            _releases_named(text, calendar)
    except ExportCompatError as error:
        return str(error).removeprefix("--readers: ")
    return ""


def _jaxlib_wheel(path: str) -> Wheel:
    """Return the wheel at a path that is named as a reader. Raises `MatrixError` if it is not a wheel of jaxlib."""
    if (wheel := read_wheel(Path(path))).name == "jaxlib":
        return wheel
    raise MatrixError(
        f"--readers {path}: expected a wheel of jaxlib, found one of {wheel.name}. The jax that goes with a jaxlib is "
        "taken from a folder: --wheels DIR."
    )


def _with_nightlies(calendar: Calendar, named: Sequence[str]) -> Calendar:
    """Return the calendar, extended by those of the named readers that are nightly releases.

    Their packages come from an index, and their versions contain their build dates.
    """
    jaxlibs: dict[str, JaxlibRelease] = {}
    jaxes: dict[str, JaxRelease] = {}
    given_jax: dict[str, str] = {}
    for text in named:
        version, with_jax, _ = _split_pair(text)
        jax = with_jax or version  # nightlies of both packages are published together
        if version not in calendar.jaxlib and (built := date_in_version(version)):
            jaxlibs[version] = JaxlibRelease(built)
            given_jax[version] = jax
        if jax not in calendar.jax and (built := date_in_version(jax)):
            # What it really needs is in its metadata: the installer refuses a pair that does not fit.
            jaxes[jax] = JaxRelease(built, version)
    known = calendar.extended(jaxlibs, jaxes)
    return dataclasses.replace(known, given_jax={**known.given_jax, **given_jax})


def choose_readers(
    selection: Selection,
    known: KnownReleases,
    windows: Windows,
    written: Collection[datetime.date],
    as_of: datetime.date,
    targets: Sequence[DeploymentTarget] = (),
) -> Readers:
    """Return the readers of a selection as of a day: jaxlib first, each runtime by build date.

    Args:
        selection: which readers are asked for.
        known: the calendar, with the releases of the selection's wheels and indexes.
        windows: the windows of the promise.
        written: the build dates of the goldens' writers.
        as_of: the day, which decides which releases exist.
        targets: the deployment targets of the policy that are in force on that day.

    Raises:
        ReleaseError: A reader does not exist, cannot be dated, or is a jaxlib with a jax that refuses it.
        MatrixError: Only `deployed` is named, and no deployment target is in force.
    """
    existing = known.calendar.as_of(as_of)
    spelled = _spelled(selection, known.files, windows, written, existing)
    before = _just_before(written, existing) if "window" in selection.named else {}
    for_writers = {release: frozenset(dates) for release, dates in before.items() if release not in spelled}
    spelled |= {release: release.pair for release in for_writers}
    for_targets: dict[Release, str] = {}
    if not {*GROUPS, DEPLOYED}.isdisjoint(selection.named):
        releases = (reader_named(target.release, existing) for target in targets)
        for_targets = {release: release.name for release in releases if release not in spelled}
    if not spelled and not for_targets:
        raise MatrixError(
            f"--readers {selection.readers}: no deployment target of the policy (`deployed`) is in force on {as_of}, "
            "by its `since` and `until`. Name readers."
        )
    spelled |= for_targets
    touching = reader_named(selection.touching, existing, known.files) if selection.touching else None
    # A candidate that the group lacks would otherwise be tested as a writer only.
    if touching and any(part in GROUPS for part in selection.named):
        spelled.setdefault(touching, selection.touching)
    chosen = sorted(spelled, key=_in_order)
    sources = Sources(tuple(dict.fromkeys(known.files.values())), known.wheels, selection.indexes)
    return Readers(
        tuple(chosen), touching, existing, sources, spelled, frozenset(for_targets) - {touching}, for_writers
    )


def _spelled(
    selection: Selection,
    files: Mapping[str, Wheel],
    windows: Windows,
    written: Collection[datetime.date],
    existing: Calendar,
) -> dict[Release, str]:
    """Return the readers that --readers names, each as a person names it; without those of deployment targets."""
    spelled: dict[Release, str] = {}
    newest = existing.newest()  # an error if the day is before the first release
    for text in (newest if name == NEWEST else name for name in selection.named):
        if text in GROUPS:
            versions = existing.versions() if text == "all" else window_readers(written, existing, windows)
            spelled |= {existing.release(version): version for version in versions}
        elif text != DEPLOYED:
            spelled |= _releases_named(text, existing, files)
    return spelled


def _releases_named(text: str, calendar: Calendar, files: Mapping[str, Wheel] | None = None) -> dict[Release, str]:
    """Return the releases of a part of --readers that is not one of its words, each as a person names it.

    Raises:
        ReleaseError: The text names no release.
        MatrixError: The text is not a range, or no release is in it.
    """
    if text[0] in COMPARISONS:
        return {calendar.release(version): version for version in _in_range(text, calendar)}
    if names_runtime(text):
        return {release: release.name for release in runtime_readers(text, calendar)}
    return {reader_named(text, calendar, files): text}


def _in_range(text: str, calendar: Calendar) -> list[str]:
    """Return the jaxlib releases of a range such as ``>=0.11,<0.12``.

    Raises `MatrixError` if the text is not a range, or if no release is in it.
    """
    try:
        chosen = [*SpecifierSet(text).filter(calendar.versions(), prereleases=True)]
    except InvalidSpecifier:
        raise MatrixError(f"--readers: expected a range of jaxlib releases such as '>=0.11', found {text!r}.") from None
    if not chosen:
        about = calendar.about_unknown("")
        raise MatrixError(f"--readers: no known jaxlib is in the range {text}.{about}")
    return chosen


def _just_before(written: Iterable[datetime.date], calendar: Calendar) -> dict[Release, set[datetime.date]]:
    """Return the release just before each writer, with the build dates of the writers that follow it.

    Its jax is the newest that existed the day before the writer was built, since that is what was deployed. Its newest
    jax today may be the writer's: jaxlib 0.12.0 now goes with jax 0.12.0.1.
    """
    before: dict[Release, set[datetime.date]] = {}
    for date in {*written}:  # a project has many goldens of one writer
        earlier = calendar.as_of(date - datetime.timedelta(days=1))
        for version in earlier.versions()[-1:]:
            before.setdefault(earlier.release(version), set()).add(date)
    return before


def reader_named(text: str, calendar: Calendar, files: Mapping[str, Wheel] | None = None) -> Release:
    """Return the release that a text names: a version, a pair, a runtime's release, or a wheel among `files`.

    Examples are `0.12.0.1`, `0.11.2-jax0.12.0.1` and `tensorflow==2.21.0`. A jaxlib may have settings:
    `0.12.0.1[JAX_ENABLE_X64=true]`.

    Raises `ReleaseError` if it names no release.
    """
    if names_runtime(text) or text.isalpha():  # letters alone are a runtime, if one that nobody knows
        return runtime_readers(text, calendar)[-1]
    jaxlib, jax, settings = _split_pair(text)
    jaxlib = files[text].version if files and text in files else jaxlib
    release = calendar.pair(jaxlib, jax) if jax else calendar.release(jaxlib)
    return replace(release, with_settings=jaxlib_settings(settings.split(";")))


def _in_order(release: Release) -> tuple[str, datetime.date, Version, tuple[str, ...], Version]:
    """Return the sort key of a reader: jaxlib before other runtimes, then build date, version, settings and jax."""
    version, jax = version_key(release.version), version_key(release.jax or "0")
    return release.family, release.built, version, release.settings, jax


def window_readers(writers: Iterable[datetime.date], calendar: Calendar, windows: Windows) -> list[str]:
    """Return the jaxlib versions that ``--readers window`` means for goldens whose writers have these build dates.

    They are every release with a promised cell, the newest release, and the release just before each writer, which is
    what is deployed when the writer is new. Published pairs seldom fall into the forward window.
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


def _split_pair(text: str) -> tuple[str, str | None, str]:
    """Return the jaxlib, the jax (None if not named) and the settings (empty if none) of a reader's name."""
    # A path may have brackets too, but not at its end.
    named, _, settings = text[:-1].rpartition("[") if text.endswith("]") else (text, "", "")
    match = _PAIR.fullmatch(named)
    return (match["jaxlib"], match["jax"], settings) if match else (named, None, settings)


def _check_date(wheel: Wheel, calendar: Calendar) -> None:
    # Otherwise two releases of one version would be judged by one date, which is wrong for one of them.
    if calendar.built(wheel.version) != wheel.built:
        raise MatrixError(_other_date(wheel, calendar.built(wheel.version)))


def _other_date(wheel: Wheel, expected: datetime.date) -> str:
    return (
        f"{wheel.path}: this wheel was built on {wheel.built}, but the release calendar has {expected} for "
        f"{wheel.name} {wheel.version}: the wheel is not that release. Give the wheel another version."
    )


def unused_jax(readers: Iterable[Release], sources: Sources, published: Collection[str]) -> list[str]:
    """Return a sentence for each wheel of an unpublished jax among the sources of a run that no reader of it has."""
    used = {*published, *(reader.jax for reader in readers)}
    return [
        f"{wheel.path}: no reader of this run has jax {wheel.version}. It works with jaxlib "
        f"{wheel.entry.minimum_jaxlib} to {wheel.version}: name one of these with --readers."
        for wheel in sources.held
        if isinstance(wheel.entry, JaxRelease) and wheel.version not in used
    ]
