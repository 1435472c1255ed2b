"""The content of `jaxexport report --trend`: in which release which outputs and costs changed, by how much.

It is shown, not judged. Nothing is compared again: comparisons and figures of finished runs are sorted by release.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from export_core.base.layout import aligned
from export_core.base.text import plural
from export_core.judge.causes import stretches
from export_core.judge.cost import CERTAIN, FIGURES, CostChange, change_in, cost_of, run_times, runs_of
from export_core.matrix import Verdict
from export_core.matrix.result import Cells, Result, WriterOf, grouped, release_name
from export_core.readers.placement import Mode
from export_core.releases import Release
from export_core.releases.names import title_of
from export_core.releases.runtimes import JAXLIB
from export_core.report.run_tables import map_releases
from export_core.report.wording import amount, error_size, times

SLOWER = 1.5  # The factor from which slower or faster repetitions of a cell are a step.

MOST = 40  # The most lines with steps. Goldens of a case that change alike share a line.


class Stretch(msgspec.Struct, frozen=True):
    """Releases next to each other by build date, oldest first, that gave the same bits.

    The golden's writer is among them even if the run did not replay it there: its outputs are those of the golden.
    """

    readers: tuple[Release, ...]  # The releases.
    outputs: str  # The digest of the bits; empty if only the writer gave them.
    as_written: bool  # Whether these are the bits that the writer saw.
    verdict: Verdict  # The verdict of their cells.
    max_abs_error: float | None  # The largest absolute error against the writer's outputs.
    max_rel_error: float | None  # The largest relative error against the writer's outputs.
    max_noise_error: float | None  # The largest error in units of the writer's noise.


class GoldenDrift(msgspec.Struct, frozen=True):
    """The outputs of one golden in one runtime, platform and kind of device; each stretch has different bits."""

    case: str  # The id of the case.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    platform: str  # The platform.
    device: str  # The kind of device; empty on a CPU.
    stretches: tuple[Stretch, ...]  # The stretches, oldest first.

    @property
    def written_elsewhere(self) -> bool:
        """Whether the writer's own release gives different bits here than the golden has."""
        return self.platform == self.writer.platform and any(
            self.writer.release in stretch.readers and not stretch.as_written for stretch in self.stretches
        )


class CostStep(msgspec.Struct, frozen=True, gc=False):
    """A change of a figure of one golden, on one platform, between neighbouring releases that report the figure."""

    case: str  # The id of the case.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    platform: str  # The platform.
    device: str  # The kind of device; empty on a CPU.
    before: Release  # The last release with the old value.
    after: Release  # The first release with the new value.
    change: CostChange  # The figure, with its old and new value.
    chance: float | None = None
    """For `run_seconds`: how likely the rank test finds such a difference by chance; null for the compiler's
    figures."""


class Costs(msgspec.Struct, frozen=True):
    """The costs of a run: how many goldens have them, in which releases, and each step, the largest first."""

    goldens: int  # How many goldens have figures of two or more releases.
    readers: tuple[Release, ...]  # The releases, oldest first.
    steps: tuple[CostStep, ...]  # The steps.


class Changed(StrEnum):
    """The part of a cell that changed from one run to the next."""

    BITS = "bits"
    """The bits of the outputs."""
    GOLDEN = "golden"
    """The numbers, of a golden that was written again between the runs: with other outputs, or another noise."""
    VERDICT = "verdict"
    """The verdict alone, such as that of a cell that crashed in one of the runs."""
    COST = "cost"
    """A figure of the compiler."""


class RunStep(msgspec.Struct, frozen=True, gc=False):
    """A cell that gave different numbers, or had different costs, in one run than in the run before it."""

    golden: str  # The golden, `case/writer`.
    reader: Release  # The release that ran it.
    platform: str  # The platform.
    before: str  # The earlier run: its number, and the day as of which it was judged.
    after: str  # The next run, named likewise.
    change: CostChange | None  # The figure that changed; null if something else did.
    error_before: float | None = None  # If bits or golden changed: the largest error before, in units of the noise.
    error_after: float | None = None  # If bits or golden changed: the largest error after, in units of the noise.
    what: Changed = Changed.COST  # What changed.
    as_written: tuple[bool, bool] = (False, False)
    """If bits or golden changed: whether the bits were those of the golden's outputs before, and after."""
    verdicts: tuple[str, str] | None = None  # If the verdict alone changed: both verdicts.


class Trend(msgspec.Struct, frozen=True):
    """What `jaxexport report --trend` shows of a run: how outputs drift, and where costs change."""

    numbers: tuple[GoldenDrift, ...]  # A drift for each golden, platform and device; empty with `--trend cost`.
    cost: Costs | None = None  # The costs of the run; null with `--trend numbers`.
    runs: tuple[RunStep, ...] = ()  # What changed in the same cell from run to run; empty for a single run.


def trend(
    runs: Mapping[str, Sequence[Result]], goldens: Mapping[str, Mapping[str, str]], *, numbers: bool, cost: bool
) -> tuple[Trend, list[str]]:
    """Return how outputs and costs change, as data and as lines for people.

    Args:
        runs: The results of each run by its name, oldest first. Changes from release to release are those of the last
            run.
        goldens: The hash of each golden of a run by the golden's id, by the name of the run.
        numbers: Whether changes of outputs are asked for.
        cost: Whether changes of costs are asked for.
    """
    results = [*runs.values()][-1]
    steps = tuple(run_steps(runs, goldens, numbers=numbers, cost=cost))
    shown = Trend(number_drift(results) if numbers else (), cost_steps(results) if cost else None, steps)
    lines = [*trend_lines(shown)] if numbers else []
    lines += [""] if numbers and cost else []
    lines += [*cost_lines(shown.cost)] if shown.cost else []
    names = map_releases(Cells([result for results in runs.values() for result in results]).readers)
    readers = {reader: title_of(name.in_words) for reader, name in names.items()}
    return shown, [*lines, *(["", *run_lines(steps, [*runs], readers)] if len(runs) > 1 else [])]


def number_drift(results: Iterable[Result]) -> tuple[GoldenDrift, ...]:
    """Return how the outputs of each golden changed from release to release, per platform and device.

    Results without a digest are left out. A change of bits may be far inside the tolerance: nothing is compared again,
    what the run compared is only sorted by release.
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
    return GoldenDrift(first.case, first.golden, first.writer, first.platform, first.device, tuple(same_bits))


def trend_lines(trend: Trend) -> Iterator[str]:
    """Yield the changes of all goldens' outputs, by the release that made them; then how many goldens have none."""
    drifts = trend.numbers
    releases = sorted(
        {reader for drift in drifts for stretch in drift.stretches for reader in stretch.readers},
        key=lambda reader: reader.date_order,
    )
    if len(releases) < 2:
        yield "Nothing to compare: no golden has outputs of two releases. `jaxexport matrix --readers all` runs all."
        return
    goldens = len({drift.golden for drift in drifts})
    yield (
        f"numbers of {plural(goldens, 'golden')} in {_by_build_date(releases)}; "
        "errors are those against the writer's outputs"
    )
    steps = [(drift, *pair) for drift in drifts for pair in pairwise(drift.stretches)]
    between = {(old.readers[-1], new.readers[0]) for _, old, new in steps}
    for before, after in sorted(between, key=lambda pair: (pair[1].date_order, pair[0].date_order)):
        rows = [
            (*_from_to(_error(drift, old), _error(drift, new)), f"{drift.golden} {_where(drift)}")
            for drift, old, new in steps
            if (old.readers[-1], new.readers[0]) == (before, after)
        ]
        yield ""
        yield f"{release_name(after)} gives other bits than {release_name(before)}: {plural(len(rows), 'golden')}"
        yield from aligned(sorted(rows, key=lambda row: row[-1]), gap=" ", indent="  ")
    yield ""
    groups = grouped(drifts, _consumer)
    for name, group in groups.items():
        # A golden is in each group in which it ran: only the goldens of one group add up.
        of, among = (f" of {name}", f" of {len(group):,}") if len(groups) > 1 else ("", "")
        one = [drift for drift in group if len(drift.stretches) == 1]
        same = [drift for drift in one if len(drift.stretches[0].readers) > 1]
        as_written = sum(drift.stretches[0].as_written for drift in same)
        if same or len(groups) == 1:
            counted = _goldens(len(same), among)
            yield f"the same bits in all releases{of}: {counted}, {as_written} of them as written"
        if len(one) > len(same):
            yield f"compared in one release{of} only: {_goldens(len(one) - len(same), among)}"
    if elsewhere := sum(drift.written_elsewhere for drift in drifts):
        yield (
            f"other bits here than in the golden, by the writer's own release: {plural(elsewhere, 'golden')}. Perhaps "
            "another processor wrote them, the program is not deterministic, or the stored outputs were changed"
        )


def _consumer(drift: GoldenDrift) -> str:
    """Return the runtime, platform and device of a drift as text, such as ``jaxlib`` or ``iree on cuda H100``."""
    reader = drift.stretches[0].readers[0]
    return f"{reader.family or f'{JAXLIB}{reader.with_settings}'} {_where(drift)}".rstrip()


def _goldens(count: int, among: str) -> str:
    return f"{count:,}{among} goldens" if among else plural(count, "golden")


def _from_to(before: str, after: str) -> tuple[str, str, str]:
    """Return the parts of a line that says how an error changed; for equal errors, that the bits differ."""
    return before, "->", f"{after}, in other bits " if before == after else f"{after} "


def _where(shown: GoldenDrift | CostStep) -> str:
    """Return the platform, if it is not the writer's, and the device as text, such as ``on cuda H100``.

    Empty if there is neither.
    """
    words = ("" if shown.platform == shown.writer.platform else shown.platform, shown.device)
    return f"on {' '.join(filter(None, words))}" if any(words) else ""


def _error(drift: GoldenDrift, stretch: Stretch) -> str:
    if stretch.as_written:
        return "as written"
    size = "equal values" if stretch.max_abs_error == 0 else error_size(stretch.max_noise_error, stretch.max_abs_error)
    size += ", out of tolerance" if stretch.verdict is Verdict.NUMERICS else ""
    earlier = next(other for other in drift.stretches if other.outputs == stretch.outputs)
    return size if earlier is stretch else f"{size}, as in {earlier.readers[-1].label}"


def cost_steps(results: Iterable[Result]) -> Costs:
    """Return the changes of the costs of all goldens, the largest first.

    A compiler's figures do not vary, so every change of more than a hundredth is a step. Run times vary: a step needs
    `--repeat`, a factor of at least `SLOWER`, and a rank test that confirms it, corrected for the number of tests.
    """
    known = sorted(
        (result for result in results if result.cost or result.timings), key=lambda result: result.reader.date_order
    )
    series = list(Cells(known).by_series.values())

    def step(before: Result, after: Result, change: CostChange, chance: float | None = None) -> CostStep:
        of_golden = after.case, after.golden, after.writer, after.platform, after.device
        return CostStep(*of_golden, before.reader, after.reader, change, chance)

    steps = [
        step(before, after, change)
        for cells in series
        for figure in FIGURES
        for before, after in pairwise(cell for cell in cells if cost_of(cell, figure) is not None)
        if (change := change_in(before, after, figure))
    ]
    repeated = [pair for cells in series for pair in pairwise(cell for cell in cells if runs_of(cell))]
    tests = [(*pair, test) for pair in repeated if (test := run_times(*pair))]
    steps += [
        step(before, after, CostChange("run_seconds", test.was, test.now), test.chance)
        for before, after, test in tests
        # Some of many tests find a difference by chance: so each one's chance is multiplied by their number.
        if not 1 / SLOWER < test.ratio < SLOWER and test.chance * len(tests) < CERTAIN
    ]
    steps.sort(key=lambda step: (step.golden, step.platform, step.change.figure))
    steps.sort(key=lambda step: step.change.size, reverse=True)
    return Costs(len({cells[0].golden for cells in series if len(cells) > 1}), Cells(known).readers, tuple(steps))


def _by_build_date(releases: Sequence[Release]) -> str:
    """Return a phrase with the number of releases, and the first and last of them by build date."""
    ordered = sorted(releases, key=lambda release: (release.built, release.date_order))
    return (
        f"{plural(len(releases), 'release')} by build date, from {release_name(ordered[0])} to "
        f"{release_name(ordered[-1])}"
    )


def cost_lines(costs: Costs) -> Iterator[str]:
    """Yield a line for each step, the largest first; after `MOST` lines, how many more steps there are."""
    if not costs.goldens:
        yield "Nothing to compare: no golden has the costs of two releases. `jaxexport matrix --readers all` runs all."
        return
    yield (
        f"costs of {plural(costs.goldens, 'golden')} in {_by_build_date(costs.readers)}: "
        f"{plural(len(costs.steps), 'step')}"
    )
    # Goldens of a case that changed alike share a line.
    rows = [(*_row(step), step.case) for step in costs.steps]
    counts, goldens = Counter(rows), dict(zip(rows, (step.golden for step in costs.steps), strict=True))
    groups = list(counts.items())[:MOST]
    lines = []
    for row, count in groups:
        *texts, where, case = row
        lines.append((*texts, goldens[row] if count == 1 else f"{case}, {count} goldens", where))
    yield from aligned(lines, indent="  ")
    if rest := len(costs.steps) - sum(count for _, count in groups):
        yield f"  and {plural(rest, 'smaller step')}: --json has all, --cases chooses"


def _row(step: CostStep) -> tuple[str, ...]:
    """Return the parts of the line for a step, without its golden; goldens of a case with equal parts share a line."""
    figure, was, now = step.change.figure, step.change.was, step.change.now
    releases = step.before.label, step.after.label
    if releases[0] == releases[1]:  # one jaxlib with two jax
        releases = f"{releases[0]} with jax {step.before.jax}", f"{releases[1]} with jax {step.after.jax}"
    return (
        times(was, now),
        figure,
        f"{amount(figure, was)} -> {amount(figure, now)}",
        " -> ".join(releases),
        _where(step),
    )


def run_steps(
    runs: Mapping[str, Sequence[Result]], goldens: Mapping[str, Mapping[str, str]], *, numbers: bool, cost: bool
) -> Iterator[RunStep]:
    """Yield what changed in each cell from one run to the next, if both have it: numbers, and the compiler's figures.

    A golden that was written again, or a cell that crashes now, is a change of numbers too: the page draws both.
    """
    for (before, earlier), (after, later) in pairwise(runs.items()):
        was = {result.key: result for result in earlier}
        for now in later:
            if (then := was.get(now.key)) is None:
                continue
            cell = now.golden, now.reader, now.platform, before, after
            hashes = {golden for run in (before, after) if (golden := goldens.get(run, {}).get(now.golden))}
            if numbers and (what := _changed_numbers(then, now, is_same_golden=len(hashes) < 2)):
                if what is Changed.VERDICT:
                    yield RunStep(*cell, None, what=what, verdicts=(then.verdict, now.verdict))
                else:
                    errors, as_written = (then.max_noise_error, now.max_noise_error), (then.as_written, now.as_written)
                    yield RunStep(*cell, None, *errors, what, as_written)
            changes = (change_in(then, now, figure) for figure in FIGURES if cost)
            yield from (RunStep(*cell, change) for change in changes if change)


def _changed_numbers(then: Result, now: Result, *, is_same_golden: bool) -> Changed | None:
    """Return what changed in a cell from one run to the next, beside its cost; None if nothing did."""
    if then.outputs and now.outputs:
        if then.outputs != now.outputs:
            # Equal to the golden's outputs, as before, and yet others: these are others too.
            both_as_written = then.as_written and now.as_written
            return Changed.BITS if is_same_golden and not both_as_written else Changed.GOLDEN
        if (then.max_noise_error, then.max_abs_error) != (now.max_noise_error, now.max_abs_error):
            return Changed.GOLDEN
    return Changed.VERDICT if then.verdict != now.verdict else None


def run_lines(steps: Sequence[RunStep], runs: Sequence[str], readers: Mapping[Release, str]) -> Iterator[str]:
    """Yield a line for each change from run to run, in the order of the runs; `readers` has a name for each reader.

    A cell that gives the outputs of its golden before and after the golden was written again is counted at the end.
    """
    moved = [step for step in steps if not (step.what is Changed.GOLDEN and all(step.as_written))]
    yield f"from run to run, {runs[0]} to {runs[-1]}: {plural(len(moved), 'change')} in cells that both runs have"
    rows = []
    for step in moved[:MOST]:
        if step.change:
            was, now = (amount(step.change.figure, value) for value in (step.change.was, step.change.now))
            what = times(step.change.was, step.change.now), f"{step.change.figure} {was} -> {now}"
        elif step.verdicts:
            what = step.what, " -> ".join(step.verdicts)
        else:
            errors = zip((step.error_before, step.error_after), step.as_written, strict=True)
            was, now = ("as written" if as_written else _in_noise(error) for error, as_written in errors)
            also = ", in other bits" if was == now and step.what is Changed.BITS else ""
            what = step.what, f"{was} -> {now}{also}"
        platform = "" if step.platform == "cpu" else f" on {step.platform}"
        rows.append((*what, f"{step.before} -> {step.after}", f"{step.golden} in {readers[step.reader]}{platform}"))
    yield from aligned(rows, indent="  ")
    if len(moved) > MOST:
        yield f"  and {plural(len(moved) - MOST, 'more change')}: --json has all, --cases chooses"
    if goldens := {step.golden for step in steps if step.what is Changed.GOLDEN}:
        were = "1 golden was" if len(goldens) == 1 else f"{len(goldens):,} goldens were"
        unmoved = len(steps) - len(moved)
        left_out = f"; {plural(unmoved, 'cell')} as written before and after, not listed" if unmoved else ""
        yield (
            f"golden: {were} written again between the runs, so the errors are against other outputs or another noise"
            f"{left_out}"
        )


def _in_noise(error: float | None) -> str:
    """Return an error in units of noise as text, or that no noise is known."""
    return "no noise known" if error is None else error_size(error, None)
