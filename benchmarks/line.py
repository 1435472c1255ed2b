"""A row of the table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """What was measured and against what, with units; `result` is what the budget limits. An empty `budget` is none."""

    what: str
    measured: str
    against: str
    result: str
    budget: str
    ok: bool
