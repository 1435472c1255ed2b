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
CERTAIN = 0.01  # The probability that any of all the cells of a report is called slower by chance.


class CostChange(msgspec.Struct, frozen=True, gc=False):
    """A figure that is not the same in two cells."""

    figure: str  # The name of the figure, such as `temp_bytes`; `run_seconds` is the median of the repetitions.
    was: float  # In the cell that comes first: the older release, or the baseline.
    now: float  # In the other one.

    @property
    def size(self) -> tuple[float, float]:
        """Sort key: how many times more or less it is, infinite from or to 0; then the larger of the two."""
        low, high = sorted((self.was, self.now))
        return high / low if low else math.inf, high


class RunTimes(NamedTuple):
    """How long the repetitions of two cells take."""

    was: float  # The median of the first cell.
    now: float  # The median of the second.
    fastest: float  # How many times slower its fastest run is.
    chance: float  # How likely the rank test finds such ranks by chance.

    @property
    def ratio(self) -> float:
        """How many times slower, below 1 where faster: by the medians or the fastest runs, whichever says less.

        A busy machine moves all runs of a cell, and a rank test takes that for a difference; it moves the fastest
        least.
        """
        ratios = sorted((self.now / self.was, self.fastest))
        return 1.0 if ratios[0] < 1 < ratios[1] else min(ratios, key=lambda ratio: abs(math.log(ratio)))


def cost_of(result: Result | None, figure: str) -> float | None:
    """Return a figure of a cell; None where the cell has none."""
    return getattr(result.cost, figure) if result and result.cost else None


def grows(was: float, now: float, figure: str, times: float) -> bool:
    """Return whether a figure is more than `times` its old value, and grew by more than what is too small to count."""
    return now > was * times and now - was >= _least(figure)


def change_in(was: Result, now: Result, figure: str) -> CostChange | None:
    """Return the change of a figure; None where it is less than a step, or one of the two cells lacks it."""
    before, after = cost_of(was, figure), cost_of(now, figure)
    if before is None or after is None:
        return None
    low, high = sorted((before, after))
    return CostChange(figure, before, after) if grows(low, high, figure, 1 + LEAST_STEP) else None


def run_times(was: Result, now: Result) -> RunTimes | None:
    """Return the run times of two cells compared; None where one of them was not repeated often enough.

    Mann-Whitney's test, exact for so few: it asks only whether the runs of one tend to be longer than those of the
    other, and nothing about how times are distributed.
    """
    before, after = runs_of(was), runs_of(now)
    if min(len(before), len(after)) < FEWEST_RUNS:
        return None
    from scipy.stats import mannwhitneyu  # here: it takes a second to import

    chance = float(mannwhitneyu(after, before).pvalue)
    return RunTimes(statistics.median(before), statistics.median(after), min(after) / min(before), chance)


def runs_of(result: Result) -> Sequence[float]:
    """Return the seconds of the repetitions of a cell."""
    return result.timings.runs if result.timings else ()


def _least(figure: str) -> float:
    """Return the smallest difference of a figure that counts, since a compiler rounds buffers up."""
    if figure.endswith("bytes") or figure == "bytes_accessed":
        return 1024
    return {"run_seconds": 0, "instructions": 10, "fusions": 10}.get(figure, 1000)
