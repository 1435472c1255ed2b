"""Which results count as bad in a bisection: by verdict, by message, by an error of numbers, or by a cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from export_core.base.phrases import signal_name
from export_core.features.why.errors import WhyError
from export_core.judge import Result
from export_core.judge.causes import failure_signature
from export_core.judge.cost import cost_of
from export_core.matrix import Verdict

Answer = bool | None
"""Of a release: True where it fails as the bad one does, False where it does not, None where it says nothing."""
FACTOR = 1.1
"""How many times the cost of the good release a release has to cost to be like the bad one, unless it is said."""


class BisectBy(StrEnum):
    """By what results are alike."""

    VERDICT = "verdict"  # By the verdict alone.
    MESSAGE = "message"  # By verdict, stage, signal, and the message without numbers, addresses and quoted names.
    NUMBERS = "numbers"  # By the largest error, in units of the noise that the writer measured.
    COST = "cost"  # By a figure of the compiler, such as temp_bytes.


@dataclass(frozen=True)
class Measure:
    """By what results are compared: for numbers and cost also the figure, and from which size on it is bad.

    `least` is a threshold in units of noise, or a factor of the good release's cost; None stands for the middle between
    both ends, or `FACTOR`.
    """

    by: BisectBy = BisectBy.MESSAGE
    figure: str = "temp_bytes"
    least: float | None = None

    @property
    def is_size(self) -> bool:
        """Whether results are compared by a size, and not by what happened."""
        return self.by in (BisectBy.NUMBERS, BisectBy.COST)

    def size(self, result: Result) -> float | None:
        """What is measured of a result; None where it has no such figure, or nothing is measured."""
        if self.by is BisectBy.COST:
            return cost_of(result, self.figure)
        if self.by is not BisectBy.NUMBERS or not result.verdict.is_compared:
            return None
        # A result has no number that JSON has not: infinity, and an error where there must be none.
        error = result.max_noise_error
        return math.inf if error is None and result.verdict is Verdict.NUMERICS else error

    def known_size(self, result: Result) -> float:
        """The size of a result. Raises `WhyError` where it has none."""
        if (size := self.size(result)) is not None:
            return size
        where = f"{result.golden} in {result.reader.title} on {result.platform}"
        if self.by is BisectBy.COST:
            raise WhyError(
                f"--by cost: {where} ended in {result.verdict} and says no {self.figure}. Name another --figure."
            )
        if not result.verdict.is_compared:
            raise WhyError(
                f"--by numbers: {where} ended in {result.verdict}, and gave no numbers. Bisect it by message."
            )
        raise WhyError(
            f"--by numbers: {where} has no error in units of noise, since the golden's writer measured none. "
            f"`jaxexport goldens verify --noise {result.golden}` measures it."
        )

    def label(self, result: Result) -> str:
        """The class of a result in words, the same for results that are alike by verdict and message."""
        if result.verdict.works or self.by is BisectBy.VERDICT:
            return str(result.verdict)
        signal = signal_name(result.signal) if result.signal else ""
        # Most messages of a crash name the signal, and those of another limit do not.
        return f"{failure_signature(result)}{'' if signal in result.message else f': {signal}'}"


@dataclass(frozen=True)
class Criterion:
    """Which results are like the bad one. `threshold` is the size above which they are; None compares classes."""

    measure: Measure
    bad: Result
    threshold: float | None = None

    @classmethod
    def between(cls, measure: Measure, bad: Result, good: Result) -> Criterion:
        """What tells the bad result from the good one. Raises `WhyError` where one of both has no such figure."""
        if not measure.is_size:
            return cls(measure, bad)
        good_size, bad_size = measure.known_size(good), measure.known_size(bad)
        if measure.by is BisectBy.COST:
            return cls(measure, bad, good_size * (FACTOR if measure.least is None else measure.least))
        middle = (good_size + bad_size) / 2 if math.isfinite(bad_size) else 2 * good_size + 1
        return cls(measure, bad, middle if measure.least is None else measure.least)

    def is_bad(self, result: Result) -> Answer:
        """Whether a result is like the bad one; None where it says nothing."""
        if result.verdict is Verdict.NOT_RUN:
            return None
        if self.threshold is None:
            return self.measure.label(result) == self.measure.label(self.bad)
        size = self.measure.size(result)
        return None if size is None else size > self.threshold
