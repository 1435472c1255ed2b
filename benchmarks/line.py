"""A row of the table of measurements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A measurement and what it is compared with, with units. `result` is what `budget` limits; it may have none."""

    what: str
    measured: str
    against: str
    result: str
    budget: str
    ok: bool
