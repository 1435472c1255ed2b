"""A finding: one thing that a report says, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from export_core.judge import Result
from export_core.judge.causes import Cause
from export_core.report.wording import labelled_lines

NUMBERS_MOVED = "NUMBERS MOVED"
"""The title of what is broken, and looks like rounding."""
FAILING = ("BROKEN PROMISE", NUMBERS_MOVED, "NOT REPLAYABLE", "OWED", "OVER BUDGET", "FAIL ON", "STALE LIST")
"""The titles of what fails a run."""
MISSING = ("INCOMPLETE", "NOTHING PROMISED")
"""The titles of what leaves a run without an answer."""


@dataclass(frozen=True)
class Finding:
    """One thing that a report says. `rank` sorts findings, the worst lowest; `title` is its kind.

    `sentence` says it in a line, and `brief` in a shorter one, without the dates of a single cell; `details` are labels
    with texts of one line or more. `results` are the cells that it
    is about, and `cause` what they have in common: none where it is about the run.
    """

    rank: tuple[int, int]
    title: str
    sentence: str
    details: tuple[tuple[str, str], ...] = ()
    results: tuple[Result, ...] = ()
    cause: Cause | None = None
    brief: str = ""

    @property
    def text(self) -> str:
        """The sentence, then the details, each on lines of its own behind its label."""
        return "\n".join((self.sentence, *labelled_lines(self.details)))
