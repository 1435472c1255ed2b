"""The cost of calls: the compiler's figures of two cells compared, and their times by a rank test."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from export_core.matrix.result import Result
from export_core.readers.worker.protocol import Cost

FIGURES = Cost.__struct_fields__  # The figures of the compiler, which are the same each time.
LEAST_STEP = 0.01  # The part of itself by which a figure must change to be a step.
FEWEST_RUNS = 5  # Repetitions that both sides need: with fewer, no test can tell a slower cell from a busy machine.
CERTAIN = 0.01  # The probability, over all cells of a report together, that a cell is called slower by chance.


class CostChange(msgspec.Struct, frozen=True, gc=False):
    """A figure of a cell's cost, such as `temp_bytes`, with its different values in two cells."""

    figure: str  # The name of the figure, such as `temp_bytes`; `run_seconds` is the median of the repetitions.
    was: float  # In the cell that comes first: the older release, or the baseline.
    now: float  # In the other one.

    @property
    def size(self) -> tuple[float, float]:
        """The sort key of a change: the larger value divided by the smaller (infinite for 0), then the larger value."""
        low, high = sorted((self.was, self.now))
        return high / low if low else math.inf, high


class RunTimes(NamedTuple):
    """A comparison of the run times of two cells.

    It says how much slower the second cell is, and how likely chance alone makes such a difference.
    """

    was: float  # The median of the first cell, in seconds.
    now: float  # The median of the second cell, in seconds.
    fastest: float  # The fastest run of the second cell divided by the fastest run of the first.
    chance: float  # The p-value of the rank test: how likely equally fast cells give times that differ as much.

    @property
    def ratio(self) -> float:
        """The times of the second cell divided by those of the first: above 1 if the second is slower.

        It is the ratio of the medians or of the fastest runs, whichever is closer to 1, and 1 if they disagree on
        which cell is slower. A busy machine slows all runs of a cell, but the fastest run least.
        """
        ratios = sorted((self.now / self.was, self.fastest))
        return 1.0 if ratios[0] < 1 < ratios[1] else min(ratios, key=lambda ratio: abs(math.log(ratio)))


def cost_of(result: Result | None, figure: str) -> float | None:
    """Return a figure about a cell's cost, such as `temp_bytes`; None if the cell does not have it."""
    return getattr(result.cost, figure) if result and result.cost else None


def grows(was: float, now: float, figure: str, times: float) -> bool:
    """Return whether a figure grew to more than `times` its old value, and by enough to count."""
    return now > was * times and now - was >= _least(figure)


def change_in(was: Result, now: Result, figure: str) -> CostChange | None:
    """Return the change of a figure between two cells; None if it is too small to count, or a cell lacks the figure."""
    before, after = cost_of(was, figure), cost_of(now, figure)
    if before is None or after is None:
        return None
    low, high = sorted((before, after))
    return CostChange(figure, before, after) if grows(low, high, figure, 1 + LEAST_STEP) else None


def run_times(was: Result, now: Result) -> RunTimes | None:
    """Compare the run times of two cells; return None if one of the cells has fewer runs than `FEWEST_RUNS`.

    The chance is the p-value of Mann-Whitney's rank test, which assumes nothing about how times are distributed.
    """
    before, after = runs_of(was), runs_of(now)
    if min(len(before), len(after)) < FEWEST_RUNS:
        return None
    from scipy.stats import mannwhitneyu  # here: it takes a second to import

    chance = float(mannwhitneyu(after, before).pvalue)
    return RunTimes(statistics.median(before), statistics.median(after), min(after) / min(before), chance)


def runs_of(result: Result) -> Sequence[float]:
    """Return the run time of each repetition of a cell, in seconds; empty if the cell was not repeated."""
    return result.timings.runs if result.timings else ()


def _least(figure: str) -> float:
    """Return the smallest difference of a figure that counts; smaller ones may come from rounded buffer sizes."""
    if figure.endswith("bytes") or figure == "bytes_accessed":
        return 1024
    return {"run_seconds": 0, "instructions": 10, "fusions": 10}.get(figure, 1000)
