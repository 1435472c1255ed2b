"""The file of releases that a project keeps beside the shipped calendar, and how lines come into such a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from export_core.releases.calendar import Calendar, CalendarFile, JaxlibRelease, JaxRelease, version_key
from export_core.releases.errors import ReleaseError

FILE = "export_releases.yaml"
HEADER = """\
# Releases of jaxlib and jax that the calendar of the installed pytest-jaxexport does not have: `jaxexport releases refresh` writes them.
# Commit this file: the windows of a judgement count from these days.
"""


def read_releases(path: Path) -> CalendarFile:
    """Read a file of releases. Raises `ReleaseError` naming the file and what is wrong in it."""
    try:
        found = msgspec.yaml.decode(path.read_bytes(), type=CalendarFile)
    except OSError as error:
        raise ReleaseError(f"{path}: cannot read this file of releases: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise ReleaseError(f"{path}: {' '.join(str(error).split())}.") from None
    for version in (*found.jaxlib, *found.jax, *(entry.minimum_jaxlib for entry in found.jax.values())):
        version_key(version)
    return found


def beside(shipped: Calendar, kept: CalendarFile, where: str) -> CalendarFile:
    """What a project's file adds to the calendar that is shipped, which may have its releases by now.

    Raises `ReleaseError` for a release that both have, with different days.
    """
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for version, entry in kept.jaxlib.items():
        own = shipped.jaxlib.get(version)
        _same_day(f"{where}: jaxlib {version}", own, entry)
        # The shipped line was measured; what may have come since is that it was withdrawn, or built for another CPython.
        pythons = tuple(sorted({*own.python, *entry.python}, key=version_key)) if own else entry.python
        jaxlib[version] = msgspec.structs.replace(own or entry, yanked=entry.yanked, python=pythons)
    for version, other in kept.jax.items():
        _same_day(f"{where}: jax {version}", shipped.jax.get(version), other)
        jax[version] = other
    return CalendarFile(jaxlib, jax)


def renewed(text: str, jaxlib: Mapping[str, JaxlibRelease], jax: Mapping[str, JaxRelease]) -> str:
    """The text of a file of releases with these entries, each on its line by version; every other line stays as it is."""
    lines = text.splitlines()
    for section, entries in (
        ("jaxlib", {version: jaxlib_line(version, entry) for version, entry in jaxlib.items()}),
        ("jax", {version: jax_line(version, other) for version, other in jax.items()}),
    ):
        for version, line in entries.items():
            _put(lines, section, version, line)
    return "\n".join(lines) + "\n"


def write_releases(path: Path, text: str, expected: CalendarFile) -> None:
    """Write a file of releases, all or nothing.

    Raises `ReleaseError` where its lines would not say what is expected, or it cannot be written.
    """
    try:
        says = msgspec.yaml.decode(text, type=CalendarFile)
    except msgspec.MsgspecError:
        says = None
    if says != expected:
        raise ReleaseError(
            f"{path}: expected one release a line, as `jaxexport releases refresh` writes them, found another form. Nothing was written."
        )
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise ReleaseError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from None


def jaxlib_line(version: str, entry: JaxlibRelease) -> str:
    """The line of a jaxlib."""
    said = [
        f"python: {json.dumps(entry.python)}",
        f"stablehlo: {json.dumps(entry.stablehlo)}",
        f"calling_convention: {json.dumps(entry.calling_convention)}",
        f"serialization_constant: {json.dumps(entry.serialization_constant)}",
    ]
    return f'  "{version}": {{{", ".join([*_dated(entry), *said])}}}'


def jax_line(version: str, entry: JaxRelease) -> str:
    """The line of a jax."""
    return f'  "{version}": {{{", ".join([*_dated(entry), f"minimum_jaxlib: {json.dumps(entry.minimum_jaxlib)}"])}}}'


def _dated(entry: JaxlibRelease | JaxRelease) -> list[str]:
    return [
        f"built: {entry.built}",
        *([f"yanked: {json.dumps(entry.yanked, ensure_ascii=False)}"] if entry.yanked else []),
    ]


def _put(lines: list[str], section: str, version: str, line: str) -> None:
    if f"{section}:" not in lines:
        # A calendar's file has jaxlib before jax.
        at = lines.index("jax:") if section == "jaxlib" and "jax:" in lines else len(lines)
        lines.insert(at, f"{section}:")
    at = lines.index(f"{section}:") + 1
    while at < len(lines) and (lines[at].startswith(("  ", "#")) or not lines[at].strip()):
        there = lines[at].strip().partition(":")[0].strip('"') if lines[at].startswith('  "') else ""
        if there == version:
            lines[at] = line
            return
        if (there and version_key(there) > version_key(version)) or lines[at].startswith("#"):
            break
        at += 1
    lines.insert(at, line)


def _same_day(what: str, shipped: JaxlibRelease | JaxRelease | None, kept: JaxlibRelease | JaxRelease) -> None:
    if shipped is not None and shipped.built != kept.built:
        raise ReleaseError(
            f"{what} was built on {kept.built} there, and on {shipped.built} in the release calendar of this package. Correct or delete "
            "the line."
        )
