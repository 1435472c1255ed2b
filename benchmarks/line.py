"""A row of the table of measurements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A measurement, and what it is compared with, each as text with its unit.

    `budget` is the limit of `result`, or "" if there is no limit. `ok` tells whether `result` is within the limit.
    """

    what: str
    measured: str
    against: str
    result: str
    budget: str
    ok: bool
