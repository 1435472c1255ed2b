"""The content of a report of a run: headline, findings, tables, pictures, and the difference from an earlier run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from export_core.base.errors import ExportCompatError
from export_core.base.exit_code import ExitCode
from export_core.base.feature import hooks
from export_core.base.layout import labelled_lines
from export_core.base.text import plural
from export_core.judge import Judgement, Result, Summary
from export_core.judge.causes import Cause
from export_core.matrix.result import grouped
from export_core.matrix.verdicts import FindingKind
from export_core.policy.known_issues import KnownIssue
from export_core.readers.cell import CellKey
from export_core.report.wording import doubts, headline, shown_exit_code
from export_core.run.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    import msgspec
    from markupsafe import Markup

RowLine = tuple[str, tuple[float | None, ...]]
"""The small line beside a row of the page's table: its text, and a number for each cell (None: not known)."""


class ReportError(ExportCompatError):
    """An error for a report that cannot be written."""


@dataclass(frozen=True)
class Finding:
    """One fact that a report shows, with its evidence.

    `number` orders the findings whose kinds have the same rank. `sentence` states the fact in one line; `brief` is a
    shorter sentence, without the dates of a single cell. `details` are pairs of a label and a text of one or more
    lines. `results` are the cells that the finding is about; a finding about the run has no cells. `cause` is what its
    cells have in common, or None. `fault` says whether the golden's own writer fails too, and so who is to blame;
    `sentence` and `brief` end with it.
    """

    kind: FindingKind
    number: int
    sentence: str
    details: tuple[tuple[str, str], ...] = ()
    results: tuple[Result, ...] = ()
    cause: Cause | None = None
    brief: str = ""
    fault: str = ""

    @property
    def title(self) -> str:
        """The title under which the finding is shown, which is that of its kind."""
        return self.kind.title

    @property
    def rank(self) -> tuple[int, int]:
        """The sort key by which findings are shown, the worst first."""
        return self.kind.rank, self.number

    @property
    def advice(self) -> list[tuple[str, str]]:
        """The details that hold for all of the finding's cells: the known issue, and what to do."""
        return [pair for pair in self.details if pair[0] in ("known as", "to do")]

    @property
    def text(self) -> str:
        """The sentence, followed by each detail with its label on new lines."""
        return "\n".join((self.sentence, *labelled_lines(self.details)))


def issue_of(cause: Cause | None, summary: Summary) -> KnownIssue | None:
    """Return the known upstream issue that explains a cause; None if no known issue does."""
    return next((issue for issue in summary.known_issues if cause and issue.id == cause.upstream), None)


@dataclass(frozen=True)
class Picture:
    """A picture with a title and a hint.

    The hint is text that explains the picture, with backticks around commands.
    """

    title: str
    hint: str
    svg: Markup


@dataclass(frozen=True)
class RunDifference:
    """The difference of a run from an earlier run."""

    line: str  # The counts of all changes, in one line.
    caveats: Sequence[Finding]  # Why a change may not come from the cell itself.
    changes: Sequence[Finding]  # How cells changed, the worst first.
    others: Sequence[Finding]  # Changes that are not changes of cells.
    run: Run  # The new run, which may fail because of the earlier one.
    before: Run  # The earlier run, judged by the policy of the new one.
    runs: Sequence[str]  # The names of all runs that are compared, the oldest first, the new one last.
    cells: Mapping[CellKey, tuple[Sequence[str], Sequence[str]]]
    """How a cell ended in each of the runs, and how it changed between runs."""
    measured: Mapping[CellKey, Sequence[tuple[float | None, ...]]]
    """For each of the runs, a cell's error in units of noise and its costs; empty if that run lacks the cell."""
    section: Callable[[], Markup]  # Makes a section of the page that shows the whole difference.
    as_json: Callable[[], msgspec.Struct]  # Makes the whole difference as data for other programs.

    @property
    def findings(self) -> Sequence[Finding]:
        """All findings of the difference: the caveats, the changes of cells, and other changes."""
        return [*self.caveats, *self.changes, *self.others]


class MakeFindings(Protocol):
    """The hook `findings`: a function of a feature that returns the feature's findings about a run."""

    def __call__(self, run: Run) -> Iterable[Finding]:
        """Return the feature's findings about a run, in any order."""


class MakeTable(Protocol):
    """The hook `table`: a function of a feature that returns a table for the full report of a run."""

    def __call__(self, run: Run) -> Sequence[str]:
        """Return the lines of the feature's table about a run; an empty list if there is nothing to show."""


class MakePicture(Protocol):
    """The hook `picture`: a function of a feature that returns a picture for the HTML page of a run."""

    def __call__(self, run: Run) -> Picture | None:
        """Return the feature's picture of a run; None if there is nothing to show."""


class MakeRowLine(Protocol):
    """The hook `row_line`: a function of a feature that returns the small line beside a row of the page's table."""

    def __call__(self, results: Sequence[Result]) -> RowLine | None:
        """Return the feature's line about the cells of a table row; None if there is nothing to show."""


class CompareRuns(Protocol):
    """The hook `compare`: a function of a feature that compares a run with earlier runs."""

    def __call__(self, run: Run, *baselines: Path) -> RunDifference:
        """Return the difference of a run from the newest of the runs in the folders `baselines`.

        The older runs among them only add to the history of cells.
        """


@dataclass(frozen=True, eq=False)
class Document:
    """The content of a run's report, from which each medium is drawn. The function `view` makes it.

    Parts that only some media show are computed when they are first used.
    """

    run: Run
    findings: Sequence[Finding]  # All findings, the worst first.
    comparison: RunDifference | None = None
    folder: Path | None = None  # The folder of the file that it is written into; None for standard output.

    @cached_property
    def headline(self) -> tuple[str, str]:
        """The two lines of the headline: what the run shows, with numbers; then all counts, the date, the exit code.

        If the judgement may not be that of today, the first line begins with that, such as ``OUTDATED, was KEPT``.
        """
        line, counts = headline(self.run.summary, self.run.readers)
        return (f"{self.doubt}, was {line}" if self.doubt else line), counts

    @cached_property
    def doubt(self) -> str:
        """Why the judgement may not hold today, as the title of a finding, such as ``OUTDATED``; "" without doubt."""
        return next((kind.title for kind in doubts(self.run)), "")

    @property
    def headline_parts(self) -> tuple[str, str, str]:
        """The headline in three parts: what the run shows, the rest such as the affected readers, and the counts."""
        line, counts = self.headline
        fact, _, rest = line.removesuffix(".").partition("; ")
        # The words before the counts of a run that fails in several ways, or by several causes.
        summary = self.run.summary
        below = counts.partition(f"{summary.results:,} of {summary.planned:,} planned cells")[0]
        if rest:  # The page has room for one of both above the map: what else fails comes with the counts.
            return fact, rest, counts
        return fact, below.strip().removesuffix("."), counts.removeprefix(below)

    @property
    def look(self) -> ExitCode:
        """The exit code whose symbol and colour the headline has; for a kept run in doubt it is INCOMPLETE."""
        look = shown_exit_code(self.run.summary)
        return ExitCode.INCOMPLETE if self.doubt and look is ExitCode.KEPT else look

    @cached_property
    def row_line(self) -> Callable[[Sequence[Result]], RowLine | None]:
        """The function that returns the small line beside a row of the page's table, or None if no feature has one."""
        makers = hooks("row_line", MakeRowLine)
        return lambda cells: next((line for make in makers if (line := make(cells))), None)

    @cached_property
    def tables(self) -> Sequence[Sequence[str]]:
        """The tables that features add to the full report, each as a list of lines."""
        return [lines for make in hooks("table", MakeTable) if (lines := make(self.run))]

    @cached_property
    def pictures(self) -> Sequence[Picture]:
        """The pictures that features add to the HTML page."""
        return [picture for make in hooks("picture", MakePicture) if (picture := make(self.run))]


def by_kind(findings: Iterable[Finding]) -> dict[FindingKind, list[Finding]]:
    """Return the findings grouped by kind, with kinds and findings in their original order."""
    return grouped(findings, lambda finding: finding.kind)


def capped(findings: Iterable[Finding], most: int) -> tuple[list[Finding], Counter[FindingKind]]:
    """Return the first findings of each kind, at most `most`, and how many findings of each kind are left out.

    So findings of one kind never crowd out those of another kind.
    """
    shown: list[Finding] = []
    counts: Counter[FindingKind] = Counter()
    for finding in findings:
        counts[finding.kind] += 1
        if counts[finding.kind] <= most:
            shown.append(finding)
    return shown, Counter({kind: count - most for kind, count in counts.items() if count > most})


def cells_of(findings: Sequence[Finding], summary: Summary | None = None) -> str:
    """Return in words how many cells some findings of one kind are about, such as ``12 cells``; "" if about no cell.

    Pass `summary` only if these are all findings of their kind. Then the text about cells outside the window also
    counts the refused ones, which have no finding.
    """
    cells = sum(len(finding.results) for finding in findings)
    is_outside = findings[0].kind is Judgement.OUTSIDE.facts.kind
    outside = summary.judgements.get(Judgement.OUTSIDE, 0) if summary and is_outside else 0
    if outside > cells:
        return f"{cells:,} of {outside:,} cells; the others were refused, as expected"
    return plural(cells, "cell") if cells else ""
