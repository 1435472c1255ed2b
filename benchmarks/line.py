"""One row of the table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A measured budget; `measured` and `against` are the two numbers with their units, `result` what is held against `budget`."""

    what: str
    measured: str
    against: str
    result: str
    budget: str
    ok: bool
