"""Results: the record of each cell, which is a line of results.jsonl; and groups of results.

A replay makes a result, which is called an outcome until it is judged. `judge` and the rules of features add to it.

A run has a hundred thousand results. They cannot be part of a reference cycle, so `gc=False` saves the garbage
collector from visiting each of them again and again.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from export_core.base.error_grid import ErrorGrid, is_far_off, is_garbage, times_allowed
from export_core.base.text import first_line
from export_core.base.tolerances import ROUNDING
from export_core.goldens import Writer
from export_core.matrix.verdicts import Judgement, Verdict
from export_core.readers.cell import Cell, CellKey
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.releases import Direction, Release
from export_core.releases.names import title_of

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Series = tuple[str, str, str, Mode, str]  # Golden, platform, device, mode, and the reader's runtime and settings.


class Control(StrEnum):
    """How a golden ended in its writer's release, in the same run, compared with a cell that failed on that device."""

    ALIKE = "fails alike"  # The compiler of that device cannot do it, whichever release asks.
    OTHERWISE = "fails otherwise"
    WORKS = "works"
    NOT_RUN = "not run"


class WriterOf(Release, frozen=True, gc=False, omit_defaults=True):
    """The release of jaxlib that exported a golden, and the platform on which it did so."""

    # Declared again, and not as keyword-only: a file then has the platform before the day, in the order of the
    # contract.
    jax: str  # The version of its jax.
    jaxlib: str  # The version of its jaxlib.
    platform: str  # The platform on which it exported, such as cpu.

    @property
    def release(self) -> Release:
        """The writer as a plain release, without its platform."""
        return Release(jax=self.jax, jaxlib=self.jaxlib, built=self.built)


def release_name(release: Release) -> str:
    """Return the name of a release, such as ``jaxlib 0.11.2 with jax 0.12.0.1 (built 2026-09-17)``.

    The jax is named only if its version is not that of the jaxlib.
    """
    jax = "" if release.jax == release.jaxlib else f" with jax {release.jax}"
    return f"{release.title}{jax} (built {release.built})"


def by_build_date(releases: Iterable[Release]) -> list[str]:
    """Return the names of releases without duplicates: jaxlibs by build date, then those of each other runtime."""
    by_date = sorted({*releases}, key=lambda release: release.date_order)
    return list(dict.fromkeys(release.name for release in by_date))


def titles(readers: Iterable[Release]) -> str:
    """Return the names of readers for a sentence, sorted as by `by_build_date`: ``jaxlib 0.9.2, tensorflow 2.21.0``."""
    return title_of(", ".join(by_build_date(readers)))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items grouped by the key that `key` returns for each; a group has its items in their original order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@functools.cache  # many thousand results share a writer: each is in memory once
def writer_of(writer: Writer) -> WriterOf:
    """Return the writer in a golden's manifest as the `WriterOf` that results have."""
    return WriterOf(jax=writer.jax, jaxlib=writer.jaxlib, built=writer.built, platform=writer.platform)


def _of_cell(cell: Cell) -> dict[str, Any]:
    """Return the fields of a result that are the same for every outcome of its cell, such as case and reader."""
    manifest = cell.golden.manifest
    return {
        "case": manifest.case,
        "golden": cell.golden.id,
        "writer": writer_of(manifest.writer),
        "reader": cell.reader,
        "platform": cell.platform,
        "mode": cell.mode,
        "custom_calls": manifest.custom_calls,
        "test": manifest.test,
        "converted": manifest.converted_from is not None,
        "devices": manifest.options.devices,
        "must_be_refused": cell.platform not in manifest.runs_on,
    }


def is_of_cell(result: Result, cell: Cell) -> bool:
    """Return whether a result belongs to a cell: each field that the cell determines has the cell's value.

    The mode may differ, since a result has the mode in which the cell was run.
    """
    return all(getattr(result, name) == value for name, value in _of_cell(cell).items() if name != "mode")


def cell_names(cell: Cell) -> tuple[str, str, WriterOf, Release, str, Mode]:
    """Return the first fields of every record about a cell: case, golden, writer, reader, platform and mode."""
    case, writer = cell.golden.manifest.case, writer_of(cell.golden.manifest.writer)
    return case, cell.golden.id, writer, cell.reader, cell.platform, cell.mode


@functools.lru_cache(maxsize=None, typed=True)  # typed: a float is never answered by an equal whole number
def _interned(value: Hashable) -> Any:
    """Return the one object that stands for all values equal to this one, so that results share memory."""
    return value


class Result(msgspec.Struct, frozen=True, gc=False):
    """The result of a cell: what happened and its judgement. Without a judgement, it is called an outcome."""

    case: str  # The id of the case, such as `tests.test_model.test_attention`.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    reader: Release  # The release that ran it.
    platform: str  # The platform of the cell: cpu, cuda, rocm or tpu.
    mode: Mode  # run; or compile, if the cell was compiled only.
    stage: Stage  # How far the cell got.
    verdict: Verdict  # What happened.
    message: str  # What happened in words, one line or more; often empty for a cell that works.
    signal: int | None  # The number of the signal that ended its process, null for none.
    stderr: str  # The end of what native libraries printed.
    max_abs_error: float | None  # The largest absolute error of an element, null if nothing was compared.
    max_rel_error: float | None  # The largest relative error of an element, null if nothing was compared.
    seconds: float  # Wall time of the cell.
    custom_calls: tuple[str, ...]  # The targets of the custom calls in the artifact.
    direction: Direction
    """Whether the reader was built after the writer (backward), before it (forward), or on the same day."""
    days: int  # The days between the two build dates, never negative.
    promised: bool  # Whether the reader is inside the window of the writer. Never for a converted artifact.
    promised_until: datetime.date
    """The last build date of a promised reader in this direction: in forward direction the earliest day."""
    judgement: Judgement  # What the verdict means.
    reproduce: str  # The shell command that runs this cell again.
    flaky: str = ""
    """Which different verdict the same content had the last time, such as `was crash on 2026-11-20`; empty if none. The
    judgement uses `verdict`."""
    device: str = ""  # The kind of device that it ran on or, in mode compile, was compiled for; empty on a CPU.
    driver: str = ""  # The driver of the device; empty on a CPU.
    foreseen: str = ""  # What the artifact says about this platform; empty on a CPU.
    forecast: str = ""
    """What was forecast of the cell before it ran: `yes`, it works; or `no`, `unknown` or `yes, but`, with the reasons.
    Empty if the golden must be refused, and in a run of pytest."""
    max_noise_error: float | None = None
    """The largest error in units of the noise that the golden's writer measured, null if it measured none."""
    allowed: str = ""  # The rules by which numbers were compared, whether they passed or failed.
    outputs: str = ""
    """A digest of the bits of all outputs, empty if nothing was compared. Two readers of a golden with the same digest
    gave the same bits."""
    as_written: bool = False  # Whether the outputs have the bits that the writer saw.
    cost: Cost | None = None  # What the compiler says that the call needs, null if nothing was compiled.
    timings: Timings | None = None  # How long each stage of the call took, null if it did not begin.
    test: str = ""  # The id by which pytest knows the case, such as `tests/test_model.py::test_attention`.
    converted: bool = False
    """Whether the artifact is one that `jaxexport convert` made, for which JAX promises nothing."""
    devices: int = 1
    """How many devices the artifact is for. A runtime that is not jaxlib is promised artifacts for one."""
    must_be_refused: bool = False  # Whether the golden must be refused on this platform.
    upstream: str = ""  # The id of the known upstream issue that it shows; empty for none, and for a cell that works.
    deployed: tuple[str, ...] = ()
    """The names of the policy's deployment targets, in force on the day of the judgement, in which it has to run."""
    looks_like: str = ""
    """What the difference of numbers looks like, such as rounding; empty if it fits no known pattern."""
    error_grid: ErrorGrid | None = None
    """For numbers that differ: where the errors are in the output that the message names, and what is allowed."""
    processors: str = ""
    """For numbers that differ: which processor wrote the golden and which one read it, with its settings, such as
    `written on x86_64 AVX2, read on x86_64 SSE4_2`; empty if they are the same or not known."""
    cause: str = ""
    """The id of its cause: cells with the same id fail alike. Empty for a cell that works, and until the run has
    ended."""
    control: Control | None = None
    """For a cell that an accelerator's compiler refuses: what the release that wrote the golden does with it for the
    same device, in the same run. Null for every other cell, and until the run has ended."""
    facts: dict[str, Any] = {}  # What features add, each under its own key.

    def __hash__(self) -> int:
        """Return a hash by golden, reader and platform, which are different for each result of a run."""
        return hash((self.golden, self.reader, self.platform))

    @property
    def runs_on(self) -> tuple[str, ...]:
        """The platform of the cell, if the golden runs on it; empty if it must be refused there."""
        return () if self.must_be_refused else (self.platform,)

    @property
    def is_rounding(self) -> bool:
        """Whether every differing output of the cell looks like rounding."""
        return self.looks_like.startswith(ROUNDING)

    @property
    def is_garbage(self) -> bool:
        """Whether the cell's wrong numbers are beyond any tolerance: not finite, zero, or far outside the range."""
        return self.verdict is Verdict.NUMERICS and is_garbage(self.max_abs_error, self.looks_like)

    @property
    def times_allowed(self) -> float | None:
        """The cell's largest error as a multiple of the allowed error; None if no error is allowed or known.

        Without noise, it is the largest multiple in the output that the message names.
        """
        return times_allowed(self.max_noise_error, self.error_grid)

    @property
    def is_beyond_rounding(self) -> bool:
        """Whether the cell's numbers are too wrong for rounding: garbage, or far beyond the allowed error.

        If the allowed error is not known, only garbage counts.
        """
        return self.is_garbage or (self.verdict is Verdict.NUMERICS and is_far_off(self.times_allowed))

    @property
    def fails_audit(self) -> bool:
        """Whether the audit stopped the cell: no reader may compile its artifact, and no window excuses that."""
        return self.stage is Stage.AUDIT and self.verdict.fails

    @property
    def ending(self) -> str:
        """One line about how the cell ended: the stage, then the first line of the message, or the verdict."""
        return f"stage {self.stage}: {first_line(self.message) or self.verdict}"

    @property
    def error_lines(self) -> str:
        """The stderr lines that mention an error, as the exception may not; empty unless the verdict is `error`."""
        lines = self.stderr.splitlines() if self.verdict is Verdict.ERROR else []
        return "\n".join(line for line in lines if "error" in line.lower())[:600]

    @property
    def golden_order(self) -> tuple[str, datetime.date, str]:
        """The sort key of the cell's golden: by case, then by the build date of the writer."""
        return self.case, self.writer.built, self.golden

    @property
    def key(self) -> CellKey:
        """The key of the cell: its golden, reader and platform."""
        return CellKey(self.golden, self.reader.name, self.reader.jax, self.platform)

    @property
    def series(self) -> Series:
        """The key of cells whose costs and numbers are compared: golden, platform, device, mode, runtime and settings.

        Such cells differ only in the release that reads.
        """
        reader = f"{self.reader.family}{self.reader.with_settings}"
        return self.golden, self.platform, self.device, self.mode, reader


def existed_on(result: Result, day: datetime.date) -> bool:
    """Return whether a cell's writer and reader were built on or before a day: else no plan for it has the cell."""
    return result.writer.built <= day and result.reader.built <= day


_NOT_KNOWN: Mapping[str, Any] = {
    **dict.fromkeys(("signal", "max_abs_error", "max_rel_error")),
    "stderr": "",
    "seconds": 0.0,
    "direction": Direction.SAME,
    "days": 0,
    "promised": False,
    "promised_until": datetime.date.min,
    "judgement": Judgement.INCOMPLETE,
    "reproduce": "",
}
"""The values of required fields in a new outcome of which nothing else is known."""


def new_result(cell: Cell, stage: Stage, verdict: Verdict, message: str = "", **found: Any) -> Result:
    """Return the outcome of a cell, which is not judged yet.

    Args:
        cell: The cell, in the mode in which it was run.
        stage: How far the cell got.
        verdict: What happened.
        message: What happened in words.
        found: Further fields of the result that are known.
    """
    return Result(stage=stage, verdict=verdict, message=message, **{**_NOT_KNOWN, **_of_cell(cell), **found})


def without_cell(outcome: Result) -> Result:
    """Return an outcome without its case, golden and test, as the cache stores it.

    The cache uses it for all cells of equal content.
    """
    return msgspec.structs.replace(outcome, case="", golden="", test="")


def for_cell(outcome: Result, cell: Cell) -> Result:
    """Return a cached outcome with the fields of this cell, such as its case, but with the mode in which it was run."""
    return msgspec.structs.replace(outcome, **{**_of_cell(cell), "mode": outcome.mode})


def shared_result(result: Result) -> Result:
    """Return an equal result whose fields are shared in memory with equal fields of other results."""
    parts = {name: _interned(getattr(result, name)) for name in _SHARED}
    if result.timings:  # most of a result's memory are these numbers, which have few digits
        seconds = msgspec.structs.asdict(result.timings).items()
        numbers = {name: _interned(value) for name, value in seconds if name != "runs"}
        parts["timings"] = msgspec.structs.replace(result.timings, **numbers)
    if not result.facts:
        parts["facts"] = _NO_FACTS
    return msgspec.structs.replace(result, **parts)


_NO_FACTS: dict[str, Any] = {}  # The facts of all results to which no feature adds any. It stays empty.
_SHARED = (
    *("case", "golden", "writer", "reader", "message", "stderr", "custom_calls", "allowed", "cost", "deployed"),
    *("error_grid", "test", "forecast", "outputs"),
)


# Equal only if they are the same object: comparing a hundred thousand results would take long.
@dataclass(frozen=True, eq=False)
class Cells:
    """A sequence of results, with their groups; each grouping is computed when it is first requested."""

    results: Sequence[Result]
    """The results. Those of a run are in order: by reader, oldest build first, then case, writer and platform."""

    @cached_property
    def readers(self) -> tuple[Release, ...]:
        """The readers of the cells, without duplicates, oldest build first."""
        return tuple(sorted({result.reader for result in self.results}, key=lambda reader: reader.date_order))

    @cached_property
    def writers(self) -> tuple[Release, ...]:
        """The writers of the cells' goldens, without platforms and duplicates, oldest build first."""
        releases = {writer.release for writer in {result.writer for result in self.results}}
        return tuple(sorted(releases, key=lambda release: release.date_order))

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the cells, in alphabetical order."""
        return tuple(sorted({result.platform for result in self.results}))

    @cached_property
    def fact_names(self) -> frozenset[str]:
        """The names of all facts that features have added to these results."""
        return frozenset(name for result in self.results for name in result.facts)

    @cached_property
    def by_cell(self) -> Mapping[CellKey, Result]:
        """The result of each cell, by the key of the cell."""
        return {result.key: result for result in self.results}

    @cached_property
    def by_golden(self) -> Mapping[tuple[str, str], Sequence[Result]]:
        """The results of each golden on each platform, by the golden's id and the platform."""
        return grouped(self.results, lambda result: (result.golden, result.platform))

    @cached_property
    def by_series(self) -> Mapping[Series, Sequence[Result]]:
        """Results that differ only in the reader, by golden, platform, device, mode, runtime and settings."""
        return grouped(self.results, lambda result: result.series)

    @cached_property
    def by_test(self) -> Mapping[str, Sequence[Result]]:
        """The results by pytest node id of the test, or by case without a test."""
        return grouped(self.results, lambda result: result.test or result.case)

    @cached_property
    def by_reader(self) -> Mapping[tuple[Release, str], Cells]:
        """The cells by reader and platform."""
        groups = grouped(self.results, lambda result: (result.reader, result.platform))
        return {key: Cells(results) for key, results in groups.items()}

    @cached_property
    def by_writer(self) -> Mapping[tuple[Release, str], Cells]:
        """The cells by writer and platform of the cell, sorted by the build date of the writer."""
        groups = grouped(self.results, lambda result: (result.writer.release, result.platform))
        by_date = sorted(groups, key=lambda key: (key[0].date_order, key[1]))
        return {key: Cells(groups[key]) for key in by_date}

    @cached_property
    def by_cause(self) -> Mapping[tuple[Judgement, str], Sequence[Result]]:
        """The results by judgement and by the id of their cause, which is ``""`` for cells that work."""
        return grouped(self.results, lambda result: (result.judgement, result.cause))

    @cached_property
    def by_judgement(self) -> Mapping[Judgement, Sequence[Result]]:
        """The results by judgement, the worst judgement first; judgements without a cell are left out."""
        groups = grouped(self.results, lambda result: result.judgement)
        return {judgement: groups[judgement] for judgement in Judgement if judgement in groups}
