"""The exit codes of a run: what each means, and how media show it. `gate.exit_code_of` decides which code a run has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Self


@dataclass(frozen=True)
class ExitCodeFacts:
    """The style, the symbol and the colours by which reports show a run that ends with an exit code."""

    style: str  # The style of text in a terminal, as the package rich names it.
    symbol: str  # The mark in Markdown.
    colour: str  # A background on which white text is readable.
    junit: str = ""  # The element of a failed test case in JUnit; empty if it passes.


class ExitCode(IntEnum):
    """The exit codes of a run."""

    facts: ExitCodeFacts

    def __new__(cls, code: int, facts: ExitCodeFacts) -> Self:
        """Return an exit code that has the facts `facts` and is equal to the number `code`."""
        member = int.__new__(cls, code)
        member._value_, member.facts = code, facts
        return member

    @classmethod
    def of(cls, code: int) -> ExitCode:
        """Return the exit code with this number."""
        return next(member for member in cls if member == code)

    KEPT = 0, ExitCodeFacts("bold green", "✅", "#2c8a58")
    """Every promise is kept."""
    BROKEN = 1, ExitCodeFacts("bold red", "❌", "#c62f38", "failure")
    """A promise is broken, a target does not run what it has to, a budget is exceeded, or `fail_on` asks for it."""
    BAD_INPUT = 2, ExitCodeFacts("bold red", "❔", "#6f7780", "error")
    """Bad input: nothing was judged."""
    INCOMPLETE = 3, ExitCodeFacts("bold magenta", "❔", "#6f7780", "error")
    """A planned, required or promised cell has no result that counts, which outranks broken; no shard has finished; no
    cell is promised or of a deployment target, and nothing is broken or stale; or a kept run's report cannot be
    written."""
    STALE = 4, ExitCodeFacts("bold yellow", "🟡", "#9a6a00", "failure")
    """All else is kept, and a known failure or a quirk has expired or is no longer true."""
