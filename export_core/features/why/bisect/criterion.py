"""Which results count as bad in a bisection: by verdict, by message, or by an error of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from export_core.base.phrases import signal_name
from export_core.features.why.errors import WhyError
from export_core.judge import Result
from export_core.judge.causes import failure_signature
from export_core.matrix import Verdict

Answer = bool | None
"""Of a release: True where it fails as the bad one does, False where it does not, None where it says nothing."""


class BisectBy(StrEnum):
    """By what results are alike."""

    VERDICT = "verdict"  # By the verdict alone.
    MESSAGE = "message"  # By verdict, stage, signal, and the message without numbers, addresses and quoted names.
    NUMBERS = "numbers"  # By the largest error, in units of the noise that the writer measured.

    def size(self, result: Result) -> float | None:
        """The error of a result; None where it has none, or nothing is measured."""
        if self is not BisectBy.NUMBERS or not result.verdict.is_compared:
            return None
        # A result has no number that JSON has not: infinity, and an error where there must be none.
        error = result.max_noise_error
        return math.inf if error is None and result.verdict is Verdict.NUMERICS else error

    def label(self, result: Result) -> str:
        """The class of a result in words, the same for results that are alike by verdict and message."""
        if result.verdict.works or self is BisectBy.VERDICT:
            return str(result.verdict)
        signal = signal_name(result.signal) if result.signal else ""
        # Most messages of a crash name the signal, and those of another limit do not.
        return f"{failure_signature(result)}{'' if signal in result.message else f': {signal}'}"


def known_size(result: Result) -> float:
    """The error of a result in units of noise. Raises `WhyError` where it has none."""
    if (size := BisectBy.NUMBERS.size(result)) is not None:
        return size
    where = f"--by numbers: {result.golden} in {result.reader.title} on {result.platform}"
    if not result.verdict.is_compared:
        raise WhyError(f"{where} ended in {result.verdict}, and gave no numbers. Bisect it by message.")
    raise WhyError(
        f"{where} has no error in units of noise, since the golden's writer measured none. "
        f"`jaxexport goldens verify --noise {result.golden}` measures it."
    )


@dataclass(frozen=True)
class Criterion:
    """Which results are like the bad one. `threshold` is the error above which they are; None compares classes."""

    by: BisectBy
    bad: Result
    threshold: float | None = None

    @classmethod
    def between(cls, by: BisectBy, bad: Result, good: Result) -> Criterion:
        """What tells the bad result from the good one. Raises `WhyError` where one of both has no error."""
        if by is not BisectBy.NUMBERS:
            return cls(by, bad)
        good_size, bad_size = known_size(good), known_size(bad)
        # The middle between both ends.
        return cls(by, bad, (good_size + bad_size) / 2 if math.isfinite(bad_size) else 2 * good_size + 1)

    def is_bad(self, result: Result) -> Answer:
        """Whether a result is like the bad one; None where it says nothing."""
        if result.verdict is Verdict.NOT_RUN:
            return None
        if self.threshold is None:
            return self.by.label(result) == self.by.label(self.bad)
        size = self.by.size(result)
        return None if size is None else size > self.threshold
