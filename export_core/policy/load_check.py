"""The check of an artifact before it is loaded: whether a release loads it, and promises its custom calls."""

from __future__ import annotations

import datetime
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from export_core.artifact import read, read_bytes
from export_core.artifact.audit import DISABLED, UNCHECKED, calls_of_jax, only_jax
from export_core.artifact.readers import Reader, readers_of, readers_of_runtime, refusal_in_words, without_advice
from export_core.artifact.writers import audit_calls, find_writer
from export_core.base.checked_arguments import require_type
from export_core.base.platforms import PLATFORMS, PlatformError, similar_platform
from export_core.knowledge import NO, UNKNOWN, YES, Forecast, forecast
from export_core.policy.terms import Terms, promised_days
from export_core.releases.calendar_entries import CalendarEntry, runtime_entries, shipped_entries, withdrawn_entry
from export_core.releases.errors import ReleaseError
from export_core.releases.jaxlib_settings import jaxlib_settings
from export_core.releases.names import parts_of, title_of
from export_core.releases.windows import Windows

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from export_core.artifact import Artifact
    from export_core.artifact.writers import WrittenBy
    from export_core.releases.calendar import Calendar

__all__ = ["LoadCheck", "PlatformError", "check"]

_ONE_RELEASE = re.compile(r"(\d|[A-Za-z]\w*==\w)[^\s,<>=]*(\[.*\])?")
"""The form of a release's name: a jaxlib by its version, or a runtime and its version; maybe with settings."""


@dataclass(frozen=True)
class LoadCheck:
    """Whether one release loads and runs an artifact, and whether JAX promises that. Its text is a sentence."""

    reader: str  # The jaxlib that was asked about, or another runtime, such as tensorflow==2.21.0.
    loads: bool | None  # Whether it loads the artifact; None if that is not known.
    reasons: tuple[str, ...]  # Why it does not load the artifact, or what is not known.
    compiles: str  # Whether it compiles the artifact, as far as is known: `yes`, `yes, but`, `unknown` or `no`.
    runs: str  # Whether it runs the artifact, in the same words.
    numbers: str  # Whether its results are those of the writer, in the same words.
    known: str  # Why it loads the artifact but does not run it, or on which condition it does; else empty.
    custom_calls: tuple[str, ...]  # The targets of all custom calls.
    unpromised: tuple[str, ...]
    """Targets that the writer or the reader does not promise, and unknown parts of the artifact; for other runtimes
    than jaxlib, targets that only jax registers."""
    promised: bool | None
    """Whether the reader is inside the window; None where the writer or a build date is not known."""
    promised_since: datetime.date | None
    """The first build date of a jaxlib that is promised to load it, whichever jaxlib wrote it; None if not known."""
    promised_until: datetime.date | None  # The last build date of such a jaxlib.
    exported: bool = True
    """Whether jax.export wrote it. Of a bare module JAX promises nothing, and its custom calls are only listed."""
    unchecked: tuple[str, ...] = ()  # Those of `unpromised` that the reader lists; the writer is not known.

    @property
    def ok(self) -> bool | None:
        """Whether the artifact loads with all its custom calls promised; None if it is not known whether it loads.

        False also if the reader is known not to compile or run the artifact, or to compute other numbers. A bare module
        has no promise, so its custom calls need only be on JAX's list.
        """
        return False if self.unpromised or self.numbers == NO else self.loads

    def __str__(self) -> str:
        return in_words(self)


def check(
    path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview,
    reader: str | None = None,
    platform: str = "",
) -> LoadCheck:
    """Check whether an artifact will load, without jax, by the releases and windows of this package.

    Args:
        path_or_bytes: The artifact, or the path of its file.
        reader: The release to load the artifact in; None for the installed jax and jaxlib.
        platform: The platform to run it on; "" for a CPU, or else the first platform of the artifact.

    Raises:
        ArtifactError: The artifact cannot be read.
        PlatformError: There is no such platform.
        ReleaseError: The calendar lacks the reader, or no jaxlib is installed.
    """
    if platform:
        require_type(platform, str, "platform", f"one of {', '.join(PLATFORMS)}", PlatformError)
    if platform and platform not in PLATFORMS:
        expected = f"expected one of {', '.join(PLATFORMS)}, found {platform!r}.{similar_platform(platform)}"
        raise PlatformError(f"platform: {expected}")
    if reader is not None:
        _require_one_release(reader)
    data = path_or_bytes
    artifact = read_bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else read(data)
    terms = _shipped_terms()
    return check_load(artifact, terms, _installed_reader() if reader is None else find_reader(reader, terms), platform)


def in_words(check: LoadCheck, *, converted: bool = False) -> str:
    """Return a check as a sentence.

    If the artifact was `converted`, the sentence does not mention windows, and does not advise to export it again.
    """
    name = check.reader.rpartition("==")[0]
    how = {True: "loads it", False: refusal_in_words(check.reasons), None: "may or may not load it"}[check.loads]
    reasons = [without_advice(reason) for reason in check.reasons] if converted else check.reasons
    why = f" ({'; '.join(reasons)})" if reasons else ""
    calls = "it makes no custom call that only jax registers" if name else "every custom call is promised"
    if check.unpromised:
        only = only_jax(check.unpromised) if name else ""
        calls = f"it cannot compile it: {only}" if name else f"{not_promised(check)}: {', '.join(check.unpromised)}"
        calls = "" if only and only in check.known else calls
    elif not check.exported and not name:
        calls = "its custom calls are listed or allowed" if check.custom_calls else "it makes no custom call"
    how = "; ".join(filter(None, (f"{title_of(check.reader)} {how}{why}", check.known, calls)))
    if not check.exported:
        return f"{how}; JAX promises nothing of a module without an envelope"
    if converted:
        return how
    window = {True: "inside", False: "outside", None: "not known to be inside"}[check.promised]
    built = f"built from {check.promised_since} to {check.promised_until}"
    days = f" ({built if name else f'jaxlibs {built}'})" if check.promised_until else ""
    if name and not days:
        return f"{how}; nothing is promised there"
    return f"{how}; it is {window} the window{f' of {name}' if name else ''}{days}"


def not_promised(check: LoadCheck) -> str:
    """Return "not promised" for the custom calls in `check.unpromised`, with the reason if the writer is not known."""
    is_writer_unknown = {*check.unpromised} <= {*check.unchecked}
    return f"not promised{', since its writer is not known' if is_writer_unknown else ''}"


def _require_one_release(reader: str) -> None:
    """Raise `ReleaseError` for a reader that is not one release, such as ``newest``, which only commands accept."""
    if not isinstance(reader, str) or not _ONE_RELEASE.fullmatch(reader):
        raise ReleaseError(f"reader: expected one release, such as 0.12.0.1 or iree==3.13.0, found {reader!r}.")
    if reader.startswith("jaxlib=="):
        raise ReleaseError(
            f"reader: expected a release of jaxlib as its version alone, such as 0.12.0.1, found {reader!r}."
        )


def check_load(
    artifact: Artifact, terms: Terms, reader: Reader, platform: str = "", writer: WrittenBy | None = None
) -> LoadCheck:
    """Return whether a reader loads and runs an artifact, and whether that is promised, by the terms of a project.

    `platform` is the platform to run it on; "" for a CPU, or else the first platform of the artifact. Without `writer`,
    the writer is read from the artifact's bytes. Raises `ArtifactError` if a StableHLO module cannot be read.
    """
    writer = writer or find_writer(artifact, terms.releases)
    listed_by = None if reader.release.runtime else reader.release.jaxlib
    findings = [x for x in audit_calls(artifact, writer, terms.allow, listed_by) if x.standing != DISABLED]
    unpromised = tuple(finding.target for finding in findings if not finding.ok)
    windows: Windows | None = terms.windows
    if reader.release.runtime:
        from export_core.releases.runtimes import runtime_of  # YAML and msgspec: 135 ms, for other runtimes

        own = runtime_of(reader.release.runtime).promise
        unpromised = calls_of_jax(artifact)
        windows = Windows(own.backward_days, own.forward_days) if own else None
    known = forecast(artifact, reader, platform)
    promised, since, until = None, None, None
    days = promised_days(writer, terms._replace(windows=windows)) if windows and artifact.envelope else None
    if days is not None:
        since, until = map(datetime.date.fromisoformat, (days.since[-1], days.until[0]))
        if built := reader.release.built:
            # Of several possible writers: promised if all promise it, not promised if none does.
            inside = {first <= built <= last for first, last in zip(days.since, days.until, strict=True)}
            promised = inside.pop() if len(inside) == 1 else None
    return LoadCheck(
        reader=reader.release.name,
        loads=known.load.ok,
        reasons=known.load.reasons,
        compiles=known.compiles.answer,
        runs=known.runs.answer,
        numbers=known.numbers.answer,
        known=_known(known, () if reader.release.runtime else unpromised),
        custom_calls=tuple(finding.target for finding in findings if finding.count),
        unpromised=unpromised,
        promised=promised,
        promised_since=since,
        promised_until=until,
        exported=artifact.envelope is not None or artifact.saved_model is not None,
        unchecked=tuple(finding.target for finding in findings if finding.standing == UNCHECKED),
    )


def _known(known: Forecast, unpromised: Sequence[str]) -> str:
    """Return a clause on whether a reader that loads an artifact runs it too, with the reasons in parentheses.

    It is "" if the reader is known to run it, or not to load it. Reasons about `unpromised` custom calls are left out,
    since the audit reports them.
    """
    spoiled = known.spoiled
    reasons = [reason for reason in known.doubts if not any(call in reason.text for call in unpromised)]
    if not known.load.ok or spoiled.answer == YES or not reasons:
        return ""
    why = "; ".join(f"{reason}: {reason.todo.rstrip('.')}" if reason.todo else str(reason) for reason in reasons)
    if spoiled.answer == NO:
        return f"it {known.in_words} ({why})"
    return f"whether it runs is not known ({why})" if spoiled.answer == UNKNOWN else f"there is a caveat ({why})"


def find_reader(name: str, terms: Terms, calendar: Calendar | None = None) -> Reader:
    """Return the reader with this name: a jaxlib such as ``0.12.0.1``, or another runtime's release, with settings.

    `calendar` has the releases of runtimes that a project adds, and withdrawn ones, which `terms` lacks; None is that
    of this package. Raises `ReleaseError` if there is no such release.
    """
    readers, title = _readers(terms.releases), f"jaxlib {name}"
    release = name.removesuffix(parts_of(name)[2])  # settings change nothing of what a release reads
    if "==" in release:
        from export_core.releases.runtimes import known_runtimes, runtime_of  # as above

        added = calendar.runtimes if calendar else {}
        runtimes = {name: runtime_entries(other, added.get(name, {})) for name, other in known_runtimes().items()}
        of_runtime = readers_of_runtime(runtime_of(name).name, runtimes, terms.releases)
        readers, title = {reader.release.runtime: reader for reader in of_runtime}, name.replace("==", " ")
    if release not in readers:
        from export_core.releases.calendar import about_unknown, load_calendar, similar_release  # as above

        if withdrawn := withdrawn_entry(release, calendar or load_calendar()):
            readers = readers_of((withdrawn,))
    if release not in readers:
        runtime, equals, version = release.rpartition("==")
        if equals:
            known = [reader.release.version for reader in readers.values()]
            about = f"{similar_release(version, known)} `jaxexport releases list --runtime {runtime}` shows all."
        else:
            about = about_unknown(release, {jaxlib: reader.release.built for jaxlib, reader in readers.items()})
        raise ReleaseError(f"{title} is not in the release calendar.{about}")
    reader = readers[release]
    if release == name:
        return reader
    if reader.release.runtime:
        return reader._replace(release=reader.release._replace(runtime=name))
    settings = jaxlib_settings(parts_of(name)[2].strip("[]").split(";"))
    return reader._replace(release=reader.release._replace(with_settings=settings))


@functools.cache
def _shipped_terms() -> Terms:
    return Terms(shipped_entries())


_readers = functools.lru_cache(maxsize=4)(readers_of)


@functools.cache
def _installed_reader() -> Reader:
    """Return the installed jax and jaxlib as a reader, of versions alone if the calendar lacks this jaxlib."""
    from importlib.metadata import PackageNotFoundError, version  # 50 ms, where no reader is named

    try:
        jaxlib = Version(version("jaxlib")).public  # old ones for CUDA are called 0.4.18+cuda12
    except PackageNotFoundError:
        advice = "Install it, or name the reader: check(…, reader='0.12.0.1')."
        raise ReleaseError(f"expected an installed jaxlib, found none. {advice}") from None
    known = _readers(_shipped_terms().releases).get(jaxlib, Reader(CalendarEntry(jaxlib, "", jaxlib, ()), None))
    try:
        return known._replace(release=known.release._replace(jax=version("jax")))
    except PackageNotFoundError:
        return known
