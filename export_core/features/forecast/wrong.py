"""Cells that contradict their forecast: the knowledge base lacks an entry, or has one that is no longer true."""

from collections.abc import Callable, Iterator, Sequence

from export_core.base.text import plural
from export_core.base.tolerances import WITHIN_NOISE
from export_core.judge import Result
from export_core.judge.causes import fails_in_own_writer
from export_core.knowledge import NO, YES
from export_core.matrix.verdicts import FindingKind, Verdict
from export_core.report.document import Finding
from export_core.report.wording import first_lines
from export_core.run.run import Run

WRONG_FORECAST = FindingKind("FORECAST", 8, "bold yellow")
_TO_DO = (
    "Report this to the maintainers of pytest-jaxexport: its knowledge base is wrong about this reader. "
    "Until it is corrected, add an entry to a table that `known_issues` of the policy names."
)
_NUMBERS_TO_DO = (
    "Where only numbers differ: the forecast does not know the comparator and the tolerances that you ask for. If "
    "these make the cell fail, it was not wrong. Else: "
)


def wrong_forecasts(run: Run) -> Iterator[Finding]:
    """Yield at most two findings: cells forecast to work that failed, and cells forecast to fail that worked.

    A failed cell does not count in three cases, which show nothing wrong in the knowledge base. Its numbers differ, and
    the golden's own writer gives different numbers on this machine too. Its numbers are within the noise, and it fails
    only because the marker or the policy asks for more, for example by `exact`. Or it ended by its time limit, as on a
    busy machine.
    """
    doubtful = {result.golden for result in run.results if fails_in_own_writer(result) and _is_numerics(result)}
    failed = [
        result
        for result in run.results
        if result.verdict.fails
        and result.verdict is not Verdict.TIMEOUT
        and result.forecast == YES
        and not (_is_numerics(result) and (result.looks_like.startswith(WITHIN_NOISE) or result.golden in doubtful))
    ]
    worked = [result for result in run.results if result.verdict.works and _is_refusal(result)]
    if failed:
        yield _finding(failed, 0, "forecast to work, and failed", lambda result: f"{result.verdict}, {result.ending}")
    if worked:
        yield _finding(worked, 1, "forecast to fail, and worked", lambda result: result.forecast.partition(": ")[2])


def _is_numerics(result: Result) -> bool:
    return result.verdict is Verdict.NUMERICS


def _is_refusal(result: Result) -> bool:
    """Return whether a cell was forecast to fail with its original, unconverted artifact."""
    return result.forecast.partition(": ")[0] == NO and not result.converted


def _finding(results: Sequence[Result], number: int, what: str, why: Callable[[Result], str]) -> Finding:
    lines = [f"{result.golden} in {result.reader.title} on {result.platform}: {why(result)}" for result in results]
    first = _NUMBERS_TO_DO if any(map(_is_numerics, results)) else ""
    details = (("cells", first_lines(lines)), ("to do", f"{first}{_TO_DO}"))
    return Finding(WRONG_FORECAST, number, f"{plural(len(results), 'cell')} {what}.", details, tuple(results))
