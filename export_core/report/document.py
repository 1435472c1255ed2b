"""What a report says, whatever shows it: findings."""

from __future__ import annotations

from dataclasses import dataclass

from export_core.base.errors import ExportCompatError
from export_core.base.layout import labelled_lines
from export_core.judge import Result
from export_core.judge.causes import Cause
from export_core.judge.verdicts import Kind


@dataclass(frozen=True)
class Finding:
    """One thing that a report says. `number` is its place among the findings of kinds with one rank.

    `sentence` says it in a line, and `brief` in a shorter one, without the dates of a single cell; `details` are labels
    with texts of one line or more. `results` are the cells that it
    is about, and `cause` what they have in common: none where it is about the run.
    """

    kind: Kind
    number: int
    sentence: str
    details: tuple[tuple[str, str], ...] = ()
    results: tuple[Result, ...] = ()
    cause: Cause | None = None
    brief: str = ""

    @property
    def title(self) -> str:
        """The title of its kind."""
        return self.kind.title

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key: the worst first."""
        return self.kind.rank, self.number

    @property
    def text(self) -> str:
        """The sentence, then the details, each on lines of its own behind its label."""
        return "\n".join((self.sentence, *labelled_lines(self.details)))


class ReportError(ExportCompatError):
    """A report that cannot be written."""
