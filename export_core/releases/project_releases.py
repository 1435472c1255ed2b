"""The releases that a project adds to the shipped calendar: checking them, and editing its export_releases.yaml.

A project needs them after it has upgraded to a jaxlib that was published after this package, or never was: without a
build date, nothing can be said of it. JAX has a release each month, and a project upgrades the two apart.

Windows count from build dates, so whoever may date a release decides what is promised. The calendar decides: a project
adds releases, and changes none. Nor may its entry for a release contradict the calendar or the release's number.
"""

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from export_core.base.atomic import write_whole
from export_core.base.errors import Problem
from export_core.base.text import schema_problem
from export_core.base.untrusted import read_named
from export_core.base.yaml_text import decode_yaml
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, ReleaseError
from export_core.releases.calendar import CalendarFile, date_in_version, numbers_of, version_key

FILE = "export_releases.yaml"
HEADER = """\
# Releases of jaxlib and jax that the calendar of the installed pytest-jaxexport does not have: `jaxexport releases
# refresh` writes them. Commit this file: windows are counted from these dates.
"""

NIGHTLY_DAYS = 1  # The most days between a nightly's number and its files: they may be stamped after midnight.


def read_calendar(path: Path) -> CalendarFile:
    """Return the releases in a calendar file, shipped or of a project. Their dates and versions are not checked.

    Raises `ReleaseError` for a file that is not a calendar.
    """
    try:
        return decode_yaml(read_named(path), CalendarFile | None) or CalendarFile()
    except (OSError, msgspec.MsgspecError) as error:
        problem = error.strerror if isinstance(error, OSError) else schema_problem(error)
        raise ReleaseError.about(Problem(path, f"expected a calendar of releases: {problem}.")) from None


def project_calendar(shipped: Calendar, jaxlib: Mapping[str, JaxlibRelease], jax: Mapping[str, JaxRelease]) -> Calendar:
    """Return the shipped calendar with a project's releases added.

    For a release that the calendar has already, the project decides only what may have changed since: whether it was
    withdrawn, further versions of CPython, and the minimum jaxlib of a jax. Raises `ReleaseError` for a release that
    contradicts the calendar (`contradiction`).
    """
    for package, version, problem in contradictions(shipped, jaxlib, jax):
        raise ReleaseError.about(Problem(f"releases.{package}.{version}", problem))
    merged = dict(jaxlib)
    for version in jaxlib.keys() & shipped.jaxlib.keys():
        known, entry = shipped.jaxlib[version], jaxlib[version]
        pythons = tuple(sorted({*known.python, *entry.python}, key=version_key))
        merged[version] = msgspec.structs.replace(known, yanked=entry.yanked, python=pythons)
    return shipped.extended(merged, jax)


def contradiction(
    shipped: Mapping[str, JaxlibRelease] | Mapping[str, JaxRelease], version: str, entry: JaxlibRelease | JaxRelease
) -> str:
    """Return why a project's entry for a release cannot be right, as a sentence; "" if it may be right.

    A date is believed unless something contradicts it: it may be that of a source build, or of a release younger than
    this package. Raises `ReleaseError` for text that is not a version.
    """
    if isinstance(entry, JaxRelease) and (problem := _wrong_minimum(version, entry.minimum_jaxlib)):
        return problem
    if known := shipped.get(version):
        return _difference("in the calendar of this package", known.built, entry.built)
    number = version_key(version)
    # 0.12.0.1 and 0.12.0.1.0 are one release; as text they would be two, with two dates.
    if spelling := next((name for name in shipped if version_key(name) == number), ""):
        return f"expected the version {spelling}, as the calendar of this package writes this release."
    if (day := date_in_version(version)) and abs((entry.built - day).days) > NIGHTLY_DAYS:
        return _difference("its number says", day, entry.built)
    highest = max(shipped, key=version_key, default=None)
    is_final = not (number.is_prerelease or number.local)
    if highest and is_final and number > version_key(highest) and entry.built < shipped[highest].built:
        return (
            f"expected built: {shipped[highest].built} or later, since {highest} was built then and has a lower "
            f"number, found {entry.built}."
        )
    return ""


def _wrong_minimum(jax: str, minimum: str) -> str:
    """Return why a version cannot be the minimum jaxlib of this jax, as a sentence; "" if it can.

    Source: "Jax and Jaxlib versioning" in the documentation of jax.
    """
    found = f"found {minimum} of jax {jax}."
    if version_key(minimum).is_prerelease:
        return f"expected minimum_jaxlib: a released version, since no jax needs a jaxlib that is not released, {found}"
    if numbers_of(minimum) > numbers_of(jax):
        return f"expected minimum_jaxlib: {jax} or lower, since no jax works with a newer jaxlib than itself, {found}"
    return ""


def unreleased_minimums(jaxlibs: Iterable[str], jax: Mapping[str, JaxRelease]) -> Iterator[tuple[str, str]]:
    """Yield the version of each jax of a project whose minimum jaxlib is unknown, with a sentence about the problem.

    `jaxlibs` are the versions of all known jaxlibs.
    """
    known = {version_key(name) for name in jaxlibs}
    for name, entry in jax.items():
        # A jaxlib older than all known ones was released before the calendar begins.
        if (minimum := version_key(entry.minimum_jaxlib)) not in known and minimum > min(known, default=minimum):
            yield (
                name,
                "expected minimum_jaxlib: a jaxlib of the calendar, since it is released before the jax that needs it, "
                f"found {entry.minimum_jaxlib}. Correct it, or add that jaxlib.",
            )


def _difference(source: str, expected: datetime.date, found: datetime.date) -> str:
    if expected == found:
        return ""
    return f"expected built: {expected}, as {source}, found {found}. Correct or delete the line."


def with_entries(text: str, jaxlib: Mapping[str, JaxlibRelease], jax: Mapping[str, JaxRelease]) -> str:
    """Return the text of a calendar file with these entries added or replaced.

    Each entry is a line of its own, in the order of versions. Other lines are unchanged.
    """
    lines = text.splitlines()
    for section, entries in (("jaxlib", jaxlib), ("jax", jax)):
        for version, entry in entries.items():
            _put_line(lines, section, version, release_line(version, entry))
    return "\n".join(lines) + "\n"


def write_releases(path: Path, text: str, expected: CalendarFile) -> None:
    """Write a calendar file, all or nothing.

    Raises `ReleaseError` if the text does not decode to `expected`, or if the file cannot be written.
    """
    try:
        releases = decode_yaml(text.encode(), CalendarFile)
    except msgspec.MsgspecError:
        releases = None
    # The text is edited line by line, to leave comments alone; this proves that the edit means what it should.
    if releases != expected:
        problem = "expected one release a line, as `jaxexport releases refresh` writes them, found another form."
        raise ReleaseError.about(Problem(path, problem, advice="Nothing was written."))
    try:
        write_whole(path, [text.encode()])
    except OSError as error:
        text = f"cannot be written: {error.strerror}."
        raise ReleaseError.about(Problem(path, text, advice="Nothing was changed.")) from None


def release_line(version: str, entry: JaxlibRelease | JaxRelease) -> str:
    """Return the line that a calendar file has for a release."""
    fields = [f"built: {entry.built}"]
    if entry.yanked:
        fields.append(f"yanked: {json.dumps(entry.yanked, ensure_ascii=False)}")
    if isinstance(entry, JaxlibRelease):
        fields += [f"python: {json.dumps(entry.python)}", f"stablehlo: {json.dumps(entry.stablehlo)}"]
    else:
        fields.append(f"minimum_jaxlib: {json.dumps(entry.minimum_jaxlib)}")
    return f'  "{version}": {{{", ".join(fields)}}}'


def _put_line(lines: list[str], section: str, version: str, line: str) -> None:
    """Put the line of a version into a section: in place of its old line, or else before the next higher version."""
    if f"{section}:" not in lines:
        # A calendar's file has jaxlib before jax.
        at = lines.index("jax:") if section == "jaxlib" and "jax:" in lines else len(lines)
        lines.insert(at, f"{section}:")
    at = lines.index(f"{section}:") + 1
    while at < len(lines) and (lines[at].startswith(("  ", "#")) or not lines[at].strip()):
        present = lines[at].strip().partition(":")[0].strip('"') if lines[at].startswith('  "') else ""
        if present == version:
            lines[at] = line
            return
        # A comment at the start of a line belongs to the next section.
        if (present and version_key(present) > version_key(version)) or lines[at].startswith("#"):
            break
        at += 1
    lines.insert(at, line)


def contradictions(
    shipped: Calendar, jaxlib: Mapping[str, JaxlibRelease], jax: Mapping[str, JaxRelease]
) -> Iterator[tuple[str, str, str]]:
    """Yield (package, version, problem) for each release of a project whose entry cannot be right."""
    for package, entries in (("jaxlib", jaxlib), ("jax", jax)):
        for version, entry in entries.items():
            if problem := contradiction(getattr(shipped, package), version, entry):
                yield package, version, problem
    for version, problem in unreleased_minimums(shipped.jaxlib.keys() | jaxlib.keys(), jax):
        yield "jax", version, problem
