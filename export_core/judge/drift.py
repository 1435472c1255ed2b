"""How the outputs of goldens move from release to release, by build date, and where they change.

Shown and not judged: a change of bits may be far inside the tolerance. Nothing is compared here: what a run compared is
put in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from export_core.judge.result import ReaderOf, Result, WriterOf
from export_core.matrix import Verdict
from export_core.readers.placement import Mode

_AS_WRITTEN = "as written"
_FAILS = "fails"


class Stretch(msgspec.Struct, frozen=True):
    """Releases next to each other by build date, oldest first, that gave the same bits.

    The writer is one of them also where it was no reader of the run: its outputs are those of the golden.
    """

    readers: tuple[ReaderOf, ...]
    """The releases."""
    outputs: str
    """The digest of the bits, empty where only the writer gave them."""
    as_written: bool
    """Whether these are the bits that the writer saw."""
    verdict: Verdict
    """The verdict of their cells."""
    max_abs_error: float | None
    """The largest absolute error against the writer's outputs."""
    max_rel_error: float | None
    """The largest relative error against the writer's outputs."""
    max_noise_error: float | None
    """The largest error in units of the writer's noise."""


class GoldenDrift(msgspec.Struct, frozen=True):
    """The outputs of one golden on one platform, on one kind of device: the bits change from stretch to stretch."""

    case: str
    """The id of the case."""
    golden: str
    """The golden, `case/writer`."""
    writer: WriterOf
    """The release that exported it."""
    platform: str
    """The platform."""
    device: str
    """The kind of device; empty on a CPU."""
    stretches: tuple[Stretch, ...]
    """The stretches, oldest first."""

    @property
    def written_elsewhere(self) -> bool:
        """Whether the writer's own release gives other bits here than the golden has."""
        writer = self.writer.jax, self.writer.jaxlib
        return self.platform == self.writer.platform and any(
            (reader.jax, reader.jaxlib) == writer and not stretch.as_written
            for stretch in self.stretches
            for reader in stretch.readers
        )


@dataclass(frozen=True)
class FailingStretch:
    """Readers of one golden, next to each other by build date, that fail.

    `before` and `after` are the releases around them that work; None where there is none.
    """

    results: tuple[Result, ...]
    before: ReaderOf | None
    after: ReaderOf | None


@dataclass(frozen=True)
class _Point:
    """What one release gave: `group` is the same for releases that agree; the writer of a golden has no `result`."""

    reader: ReaderOf
    group: str
    result: Result | None


def number_drift(results: Iterable[Result]) -> tuple[GoldenDrift, ...]:
    """The drift of each golden, platform and device, by case and writer. Results without a digest are left out."""
    with_bits = (result for result in results if result.outputs)
    series = _series(with_bits, lambda result: _AS_WRITTEN if result.as_written else result.outputs, _AS_WRITTEN)
    drifts = (_drift(first, points) for first, points in series)
    return tuple(sorted(drifts, key=lambda drift: (drift.case, drift.writer.built, drift.golden, drift.platform)))


def failing_stretches(results: Sequence[Result], fails: Callable[[Result], bool]) -> Iterator[FailingStretch]:
    """The stretches of readers that fail, of results of one golden on one platform and kind of device."""
    points = _points(results, lambda result: _FAILS if fails(result) else _AS_WRITTEN, _AS_WRITTEN)
    stretches = [list(stretch) for _, stretch in itertools.groupby(points, lambda point: point.group)]
    for before, stretch, after in zip([None, *stretches], stretches, [*stretches[1:], None], strict=False):
        if stretch[0].group == _FAILS:
            yield FailingStretch(
                tuple(point.result for point in stretch if point.result),
                before=before[-1].reader if before else None,
                after=after[0].reader if after else None,
            )


def _series(
    results: Iterable[Result], group: Callable[[Result], str], written: str
) -> Iterator[tuple[Result, list[_Point]]]:
    """A result and all points of each golden, platform and device, by build date.

    `group` says which results agree, and `written` is the group of the writer's own outputs.
    """
    series: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        if result.mode is Mode.RUN and result.verdict.is_compared:
            series.setdefault((result.golden, result.platform, result.device), []).append(result)
    for compared in series.values():
        yield compared[0], _points(compared, group, written)


def _points(results: Sequence[Result], group: Callable[[Result], str], written: str) -> list[_Point]:
    points = [_Point(result.reader, group(result), result) for result in results]
    points.sort(key=lambda point: point.reader.date_order)
    return _with_writer(points, results[0], written)


def _with_writer(points: list[_Point], first: Result, written: str) -> list[_Point]:
    """The points with one for the writer, unless it is there as a reader or ran on another platform or machine."""
    writer = ReaderOf(first.writer.jax, first.writer.jaxlib, first.writer.built)
    if first.platform != first.writer.platform or any(point.reader == writer for point in points):
        return points
    place = sum(point.reader.date_order < writer.date_order for point in points)
    around = {point.group for point in points[max(place - 1, 0) : place + 1]}
    # Releases before and after it agree with each other and not with it: no release changed the numbers and changed
    # them back. The writer ran on another processor.
    if 0 < place < len(points) and len(around) == 1 and written not in around:
        return points
    return [*points[:place], _Point(writer, written, None), *points[place:]]


def _drift(first: Result, points: list[_Point]) -> GoldenDrift:
    stretches = tuple(_stretch(list(stretch)) for _, stretch in itertools.groupby(points, lambda point: point.group))
    return GoldenDrift(first.case, first.golden, first.writer, first.platform, first.device, stretches)


def _stretch(points: list[_Point]) -> Stretch:
    readers = tuple(point.reader for point in points)
    result = next((point.result for point in points if point.result), None)
    if result is None:
        return Stretch(readers, "", True, Verdict.PASS, 0.0, 0.0, None)
    errors = result.max_abs_error, result.max_rel_error, result.max_noise_error
    return Stretch(readers, result.outputs, result.as_written, result.verdict, *errors)
