"""The limits of budgets that a cell exceeds: a fact of its result."""

import msgspec

from export_core.base.facts import Fact


class Exceeded(msgspec.Struct, frozen=True, gc=False):
    """A limit of the policy's `budgets` that a cell exceeds."""

    limit: str  # The key of the limit, such as `max_temp_bytes`.
    figure: str  # The figure that exceeds it, such as `temp_bytes`.
    allowed: float  # The most that the figure may be.
    found: float  # The value that was found.
    budget: str  # The line of the policy, such as `export_compat.yaml:12`, or `marker`.
    against: float | None = None  # For `max_growth`: the value that the figure grew from.
    whose: str = ""  # For `max_growth`: where that value is from, `writer` or `baseline`.

    def __str__(self) -> str:
        """Return ``temp_bytes 168,984,580, more than 101,391,782, which is 1.2 times the 84,493,152 of its writer``."""
        # Whole numbers and no units: the policy has the limit as a whole number too.
        text = f"{self.figure} {self.found:,.0f}, more than {self.allowed:,.0f}"
        if self.against is None:
            return text
        if not self.against:
            return f"{self.figure} {self.found:,.0f}, and 0 in its {self.whose}"
        return f"{text}, which is {self.allowed / self.against:.4g} times the {self.against:,.0f} of its {self.whose}"


def _lines(exceeded: tuple[Exceeded, ...]) -> list[str]:
    """Return a line for each limit, with the line of the policy that sets it."""
    return [f"{part} ({part.limit}, {part.budget})" for part in exceeded]


EXCEEDED = Fact("exceeded", tuple[Exceeded, ...], "The limits that an over-budget cell exceeds.", "budgets", _lines)
