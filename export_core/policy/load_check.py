"""The check before an artifact is loaded: does one release load it, and does it promise the custom calls."""

from __future__ import annotations

import datetime
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from export_core.artifact import read, read_bytes
from export_core.artifact.audit import DISABLED
from export_core.artifact.readers import Reader, loads, readers_of
from export_core.artifact.writers import audit_calls, find_writer
from export_core.base.phrases import did_you_mean
from export_core.policy.terms import Terms, promised_days
from export_core.releases.entries import CalendarEntry, shipped_entries
from export_core.releases.errors import ReleaseError

if TYPE_CHECKING:
    import os

    from export_core.artifact import Artifact


@dataclass(frozen=True)
class LoadCheck:
    """Whether one release loads an artifact, and whether JAX promises that. `print` shows it as a sentence."""

    reader: str  # The jaxlib that was asked about.
    loads: bool | None  # Whether it loads the artifact; None where that is not known.
    reasons: tuple[str, ...]  # Why not, or what is not known.
    custom_calls: tuple[str, ...]  # The targets of all custom calls.
    unpromised: tuple[str, ...]
    """Targets that the writer or the reader does not promise, and parts of the artifact that are not known."""
    promised: bool | None
    """Whether the reader is inside the window; None where the writer or a build date is not known."""
    promised_since: datetime.date | None
    """The first build date of a jaxlib that every possible writer promises to load it; None where none is known."""
    promised_until: datetime.date | None  # The last build date, likewise.
    exported: bool = True
    """Whether jax.export wrote it. Of a bare module JAX promises nothing, and its custom calls are only listed."""

    @property
    def ok(self) -> bool | None:
        """True if it loads and every custom call is promised (of a bare module: listed); None where nobody knows."""
        return False if self.unpromised else self.loads

    def __str__(self) -> str:
        how = {True: "loads it", False: "cannot load it", None: "may or may not load it"}[self.loads]
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        calls = "every custom call is promised"
        if self.unpromised:
            calls = "not promised: " + ", ".join(self.unpromised)
        elif not self.exported:
            calls = "its custom calls are listed or allowed" if self.custom_calls else "it makes no custom call"
        if not self.exported:
            return f"jaxlib {self.reader} {how}{why}; {calls}; JAX promises nothing of a module without an envelope"
        window = {True: "inside", False: "outside", None: "not known to be inside"}[self.promised]
        days = f" (jaxlibs built from {self.promised_since} to {self.promised_until})" if self.promised_until else ""
        return f"jaxlib {self.reader} {how}{why}; {calls}; it is {window} the window{days}"


def check(
    path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview, reader: str | None = None
) -> LoadCheck:
    """Check an artifact before it is loaded, without jax. Releases and windows are those of this package.

    Args:
        path_or_bytes: the artifact, or its file.
        reader: the jaxlib that is to load it; without it, the jax and jaxlib that are installed here.

    Raises:
        ArtifactError: it cannot be read.
        ReleaseError: the reader is in no calendar, or no jaxlib is installed.
    """
    data = path_or_bytes
    artifact = read_bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else read(data)
    terms = _shipped_terms()
    return check_load(artifact, terms, _installed_reader() if reader is None else find_reader(reader, terms))


def check_load(artifact: Artifact, terms: Terms, reader: Reader) -> LoadCheck:
    """Check an artifact by the terms of a project. Raises `ArtifactError` for a module that cannot be read."""
    writer = find_writer(artifact, terms.releases)
    findings = [x for x in audit_calls(artifact, writer, terms.allow, reader.jaxlib) if x.standing != DISABLED]
    (load,) = loads(artifact, (reader,))
    promised, since, until = None, None, None
    if artifact.envelope is not None and (days := promised_days(writer, terms)) is not None:
        since, until = map(datetime.date.fromisoformat, (days.since[-1], days.until[0]))
        built = next((release.built for release in terms.releases if release.jaxlib == reader.jaxlib), None)
        if built is not None:
            # Of several possible writers: promised if all promise it, not promised if none does.
            inside = {first <= built <= last for first, last in zip(days.since, days.until, strict=True)}
            promised = inside.pop() if len(inside) == 1 else None
    return LoadCheck(
        reader=reader.jaxlib,
        loads=load.ok,
        reasons=load.reasons,
        custom_calls=tuple(finding.target for finding in findings if finding.count),
        unpromised=tuple(finding.target for finding in findings if not finding.ok),
        promised=promised,
        promised_since=since,
        promised_until=until,
        exported=artifact.envelope is not None,
    )


def find_reader(jaxlib: str, terms: Terms) -> Reader:
    """The release of that number. Raises `ReleaseError` where there is none."""
    readers = _readers(terms.releases)
    if jaxlib not in readers:
        hint = did_you_mean(jaxlib, readers)
        raise ReleaseError(
            f"jaxlib {jaxlib} is not in the release calendar.{hint} `jaxexport releases list` shows all."
        )
    return readers[jaxlib]


@functools.cache
def _shipped_terms() -> Terms:
    return Terms(shipped_entries())


@functools.lru_cache(maxsize=4)
def _readers(releases: tuple[CalendarEntry, ...]) -> dict[str, Reader]:
    return readers_of(releases)


@functools.cache
def _installed_reader() -> Reader:
    """The jax and jaxlib that are installed here. Of a jaxlib outside the calendar, nothing more is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        jaxlib = Version(version("jaxlib")).public  # old ones for CUDA are called 0.4.18+cuda12
    except PackageNotFoundError:
        raise ReleaseError(
            "expected an installed jaxlib, found none. Install it, or name the reader: check(…, reader='0.12.0.1')."
        ) from None
    known = _readers(_shipped_terms().releases).get(jaxlib, Reader(jaxlib, jaxlib, None))
    try:
        return known._replace(jax=version("jax"))
    except PackageNotFoundError:
        return known
