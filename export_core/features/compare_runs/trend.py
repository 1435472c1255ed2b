"""What `jaxexport trend` shows, and says to people: in which release which outputs changed, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from export_core.base.layout import aligned
from export_core.base.phrases import plural
from export_core.features.compare_runs.cost_steps import Costs
from export_core.judge.causes import stretches
from export_core.judge.result import ReaderOf, Result, WriterOf, release_name
from export_core.matrix import Verdict
from export_core.readers.placement import Mode
from export_core.report.wording import error_size
from export_core.run.run import Cells


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
        return self.platform == self.writer.platform and any(
            self.writer.release in stretch.readers and not stretch.as_written for stretch in self.stretches
        )


class Trend(msgspec.Struct, frozen=True):
    """What `jaxexport trend` shows of a run: how outputs drift, and where costs change."""

    numbers: tuple[GoldenDrift, ...]
    """A drift for each golden, platform and device; none with `--cost` alone."""
    cost: Costs | None = None
    """What the run shows of costs; null with `--numbers` alone."""


def number_drift(results: Iterable[Result]) -> tuple[GoldenDrift, ...]:
    """The drift of each golden, platform and device, by case and writer. Results without a digest are left out.

    A change of bits may be far inside the tolerance. Nothing is compared here: what a run compared is put in order.
    """
    compared = [
        result for result in results if result.outputs and result.mode is Mode.RUN and result.verdict.is_compared
    ]
    drifts = map(_drift, Cells(compared).by_series.values())
    return tuple(sorted(drifts, key=lambda drift: (drift.case, drift.writer.built, drift.golden, drift.platform)))


def _drift(results: Sequence[Result]) -> GoldenDrift:
    first, written = results[0], "as written"
    same_bits = []
    for points in stretches(results, lambda result: written if result.as_written else result.outputs, written):
        readers = tuple(point.reader for point in points)
        result = next((point.result for point in points if point.result), None)
        if result is None:
            same_bits.append(Stretch(readers, "", True, Verdict.PASS, 0.0, 0.0, None))
        else:
            errors = result.max_abs_error, result.max_rel_error, result.max_noise_error
            same_bits.append(Stretch(readers, result.outputs, result.as_written, result.verdict, *errors))
    named = first.case, first.golden, first.writer, first.platform, first.device
    return GoldenDrift(*named, tuple(same_bits))


def trend_lines(trend: Trend) -> Iterator[str]:
    """The steps of all goldens, by the release that made them; then how many goldens have none."""
    drifts = trend.numbers
    releases = sorted(
        {reader for drift in drifts for stretch in drift.stretches for reader in stretch.readers},
        key=lambda reader: reader.date_order,
    )
    if len(releases) < 2:
        yield "Nothing to compare: no golden has outputs of two releases. `jaxexport matrix --readers all` runs all."
        return
    yield (
        f"numbers of {plural(len(drifts), 'golden')} in {len(releases)} releases by build date, "
        f"from {release_name(releases[0])} to {release_name(releases[-1])}; "
        "errors are those against the writer's outputs"
    )
    steps = [(drift, *pair) for drift in drifts for pair in pairwise(drift.stretches)]
    between = {(old.readers[-1], new.readers[0]) for _, old, new in steps}
    for before, after in sorted(between, key=lambda pair: (pair[1].date_order, pair[0].date_order)):
        rows = [
            (_error(drift, old), "->", f"{_error(drift, new)} ", _name(drift))
            for drift, old, new in steps
            if (old.readers[-1], new.readers[0]) == (before, after)
        ]
        yield ""
        yield f"{release_name(after)} gives other bits than {release_name(before)}: {plural(len(rows), 'golden')}"
        yield from aligned(sorted(rows, key=lambda row: row[-1]), gap=" ", indent="  ")
    yield ""
    one = [drift for drift in drifts if len(drift.stretches) == 1]
    same = [drift for drift in one if len(drift.stretches[0].readers) > 1]
    as_written = sum(drift.stretches[0].as_written for drift in same)
    yield f"the same bits in all releases: {plural(len(same), 'golden')}, {as_written} of them as written"
    if len(one) > len(same):
        yield f"compared in one release only: {plural(len(one) - len(same), 'golden')}"
    if elsewhere := sum(drift.written_elsewhere for drift in drifts):
        yield (
            f"other bits here than in the golden, by the writer's own release: {plural(elsewhere, 'golden')}. Another "
            "processor wrote them, or the program is not deterministic"
        )


def _name(drift: GoldenDrift) -> str:
    where = [drift.platform] * (drift.platform != drift.writer.platform) + [drift.device] * bool(drift.device)
    return " ".join((drift.golden, *(["on", *where] if where else ())))


def _error(drift: GoldenDrift, stretch: Stretch) -> str:
    if stretch.as_written:
        return "as written"
    size = "equal values" if stretch.max_abs_error == 0 else error_size(stretch.max_noise_error, stretch.max_abs_error)
    size += ", out of tolerance" if stretch.verdict is Verdict.NUMERICS else ""
    earlier = next(other for other in drift.stretches if other.outputs == stretch.outputs)
    return size if earlier is stretch else f"{size}, as in {earlier.readers[-1].jaxlib}"
