"""A result, one line of results.jsonl: what happened to a cell, and what it means.

Nothing here can be part of a reference cycle, and a run holds a hundred thousand of them: `gc=False` keeps the garbage
collector from visiting each of them again and again.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from export_core.environments.placement import Mode
from export_core.goldens import Writer
from export_core.matrix.cell import CellKey, Verdict
from export_core.releases import Direction, Release
from export_core.worker.protocol import Stage

WORST_FIRST = (
    *(Verdict.NUMERICS, Verdict.CRASH, Verdict.TIMEOUT, Verdict.ERROR, Verdict.REFUSED),
    *(Verdict.COMPILED, Verdict.PASS, Verdict.NOT_RUN),
)
"""Verdicts, from a silently wrong number down to what is not a failure."""


class Judgement(StrEnum):
    """What a verdict means, given the two dates."""

    KEPT = "kept"
    BROKEN = "broken"
    BONUS = "bonus"
    OUTSIDE = "outside"
    KNOWN = "known"
    INCOMPLETE = "incomplete"


class WriterOf(msgspec.Struct, frozen=True, gc=False):
    """The release that exported it."""

    jax: str
    jaxlib: str
    platform: str
    built: datetime.date


class ReaderOf(msgspec.Struct, frozen=True, gc=False):
    """The release that ran it."""

    jax: str
    jaxlib: str
    built: datetime.date

    @property
    def date_order(self) -> tuple[datetime.date, str, str]:
        """Sort key: by build date; one jaxlib may be read with several jax."""
        return self.built, self.jaxlib, self.jax


def release_name(release: WriterOf | ReaderOf) -> str:
    """``jaxlib 0.11.2 with jax 0.12.0.1 (built 2026-09-17)``; jax only where it has another number."""
    jax = "" if release.jax == release.jaxlib else f" with jax {release.jax}"
    return f"jaxlib {release.jaxlib}{jax} (built {release.built})"


def by_build_date(releases: Iterable[WriterOf | ReaderOf]) -> list[str]:
    """The jaxlib versions of releases, each once, oldest build first, as every list of releases is."""
    return list(
        dict.fromkeys(jaxlib for _, jaxlib in sorted({(release.built, release.jaxlib) for release in releases}))
    )


# Many thousand results share a writer or a reader: each is in memory once.
@functools.cache
def writer_of(writer: Writer) -> WriterOf:
    """The writer of a golden as a result names it."""
    return WriterOf(writer.jax, writer.jaxlib, writer.platform, writer.built)


@functools.cache
def reader_of(reader: Release) -> ReaderOf:
    """A release as a result names it."""
    return ReaderOf(reader.jax, reader.jaxlib, reader.built)


class Result(msgspec.Struct, frozen=True, gc=False):
    """A judged cell.

    `days` are those between the two build dates; `seconds` are wall time; errors are None if nothing was compared.
    `max_noise_error` is in units of the noise that the golden's writer measured, None if it measured none. `allowed`
    says by which rules numbers were compared, whether they passed or failed. `outputs` is a digest of the bits of all
    outputs, empty if nothing was compared: two readers of a golden with the same one gave the same bits. `as_written`
    says whether they are those that the writer saw.

    `flaky` says which other verdict the same content had the last time, ``was crash on 2026-11-20``; the judgement is
    of this one. `device` is the kind of device that it ran on or, in mode `compile`, was compiled for; `driver` what
    drove it; `foreseen` what the artifact's bytes say of the platform. All are empty on a CPU.

    `test` is the id by which pytest knows the case, ``tests/test_a.py::test_f``. `upstream` is the id of the known
    upstream issue that a failing cell shows, `cause` that of its cause: cells with the same one fail alike. Both are
    empty for a cell that works; a cause is known when the run has ended.
    """

    case: str
    golden: str
    writer: WriterOf
    reader: ReaderOf
    platform: str
    mode: Mode
    stage: Stage
    verdict: Verdict
    message: str
    signal: int | None
    stderr: str
    max_abs_error: float | None
    max_rel_error: float | None
    seconds: float
    custom_calls: tuple[str, ...]
    direction: Direction
    days: int
    promised: bool
    promised_until: datetime.date
    judgement: Judgement
    reproduce: str
    flaky: str = ""
    device: str = ""
    driver: str = ""
    foreseen: str = ""
    max_noise_error: float | None = None
    allowed: str = ""
    outputs: str = ""
    as_written: bool = False
    test: str = ""
    upstream: str = ""
    cause: str = ""

    @property
    def golden_order(self) -> tuple[str, datetime.date, str]:
        """Sort key of its golden: by case, then by the build date of the writer."""
        return self.case, self.writer.built, self.golden

    @property
    def key(self) -> CellKey:
        """The name of its cell."""
        return CellKey(self.golden, self.reader.jaxlib, self.reader.jax, self.platform)
