"""The other way of a conversion: a release that reads the artifact exports it again, as its own releases read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from export_core.artifact import read_bytes
from export_core.artifact.readers import Reader, loads, version_numbers, version_pair
from export_core.base.scratch import scratch_folder
from export_core.features.convert import formats
from export_core.features.convert.convert import EXPORTED_AGAIN, Converted, check_converted, find_reader
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.programs import JOB, run_program
from export_core.goldens.adopt import needs_x64
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.releases.entries import calendar_entries

if TYPE_CHECKING:
    from export_core.artifact import Artifact
    from export_core.releases import Calendar
    from export_core.releases.entries import CalendarEntry

PROGRAM = Path(__file__).parent / "rewriting" / "export_again.py"
_MOST = 2
"""Releases that are tried: each may have to be installed first."""


def export_again(
    artifact: Artifact, reader: Reader, calendar: Calendar, allow: Mapping[str, str], notify: Callable[[str], None]
) -> Converted:
    """Export an artifact again, in a release that reads it and writes what the reader takes.

    Derivatives and symbolic shapes stay. What the module calls stays too: its custom calls are not replaced.

    Raises:
        ConversionRefused: no release does that.
        ArtifactError: the artifact cannot be read.
    """
    refusal = f"{artifact.name}: not exported again for jaxlib {reader.jaxlib}"
    envelope = artifact.envelope
    if envelope is None or envelope.nr_devices > 1:
        raise ConversionRefused(f"{refusal}: only an artifact of jax.export for one device is.")
    problems = []
    for release in list(_between(artifact, reader, calendar))[:_MOST]:
        try:
            converted = _exported_by(release, artifact, reader, calendar, notify)
            check_converted(artifact, converted.artifact, reader, allow)
            return converted
        except (ConversionRefused, EnvironmentFailed) as error:
            problems.append(f"jaxlib {release}: {str(error).rstrip('.')}")
    reason = "; ".join(problems) or "no known release reads it and writes what that one takes"
    raise ConversionRefused(f"{refusal}: {reason}.")


def _between(artifact: Artifact, reader: Reader, calendar: Calendar) -> Iterator[str]:
    """The releases that read an artifact and write what a reader takes, those with the nearest numbers first."""
    entries = calendar_entries(calendar)
    place = next(number for number, entry in enumerate(entries) if entry.jaxlib == reader.jaxlib)
    for _, entry in sorted(enumerate(entries), key=lambda numbered: abs(numbered[0] - place)):
        if entry.jaxlib != reader.jaxlib and _writes_for(entry, reader):
            (load,) = loads(artifact, [find_reader(entry.jaxlib, calendar)])
            if load.ok:
                yield entry.jaxlib


def _writes_for(entry: CalendarEntry, reader: Reader) -> bool:
    """Whether what a release exports is in a format, and for a StableHLO, that a reader takes."""
    number, reads = formats.format_of(entry.jax), version_numbers(reader.jax)
    written = entry.stablehlo[1] if len(entry.stablehlo) > 1 else None
    if written is None or reader.stablehlo is None or version_pair(written) > version_pair(reader.stablehlo):
        return False
    fields, version = formats.fields_of(number), formats.wire_version(number)
    if reads < (0, 8, 2):
        # jax 0.9.1 has stopped writing the 16-bit number of devices, without a new format.
        return "nr_devices_short" in fields and version_numbers(entry.jax) < (0, 9, 1) and version in (2, 3)
    return reads < (0, 11, 1) or "nr_devices" in fields


def _exported_by(
    jaxlib: str, artifact: Artifact, reader: Reader, calendar: Calendar, notify: Callable[[str], None]
) -> Converted:
    """What one release exports. Raises `ConversionRefused`, or `EnvironmentFailed`."""
    envelope = artifact.envelope
    assert envelope is not None
    with ReaderEnvironments(calendar, notify=notify) as environments, scratch_folder() as folder:
        environment = environments.build(Placement(calendar.release(jaxlib)))
        (folder / "original.jaxexport").write_bytes(artifact.data)
        job = {"vjp_order": envelope.vjp_order, "x64": needs_x64(envelope)}
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        result, (data,) = run_program(environment, PROGRAM, folder, ("again.jaxexport",))
    return Converted(
        read_bytes(data, f"{artifact.name} exported again for jaxlib {reader.jaxlib}"),
        reader,
        EXPORTED_AGAIN,
        f"jaxlib {jaxlib} reads the original, and exports what jaxlib {reader.jaxlib} takes",
        (f"deserialized and exported again by jaxlib {jaxlib}",),
        result.by,
    )
