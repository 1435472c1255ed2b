"""The judgement of one cell: by the table of verdict and window, by known issues, and by its control."""

import datetime
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from export_core.base.text import whole_first_line
from export_core.goldens import Golden
from export_core.judge.causes import failure_signature, lacks_registration, message_class
from export_core.judge.known import matching_entry, upstream_of
from export_core.matrix import Verdict
from export_core.matrix.result import Control, Result, Series, shared_result
from export_core.matrix.verdicts import VERDICTS, Judgement
from export_core.policy import Policy
from export_core.policy.entries import matches, names_of
from export_core.policy.known_issues import known_issues
from export_core.readers.cell import promise_of
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases.runtimes import runtime_of


def judge_verdict(
    verdict: Verdict, *, promised: bool, required: bool = True, deployed: Sequence[str] = ()
) -> Judgement:
    """Return the judgement of a verdict by the table in `matrix/verdicts.py`.

    Args:
        verdict: What happened in the cell.
        promised: Whether the cell is inside its window.
        required: Whether the cell is incomplete if it was not run.
        deployed: The deployment targets that need the cell; a failure that would be `outside` is then `owed`.
    """
    if verdict is Verdict.NOT_RUN and (required or deployed):
        return Judgement.INCOMPLETE
    judgement = VERDICTS[verdict].inside if promised else VERDICTS[verdict].outside
    return Judgement.OWED if deployed and judgement is Judgement.OUTSIDE else judgement


def judge(
    outcome: Result,
    golden: Golden,
    policy: Policy,
    reproduce: str = "",
    as_of: datetime.date | None = None,
    foreseen: str = "",
    forecast: str = "",
) -> Result:
    """Judge the outcome of a cell by its build dates, and by the policy's deployment targets and known failures.

    Args:
        outcome: The outcome of the cell, which has no judgement yet.
        golden: The golden of the cell.
        policy: The policy.
        reproduce: The shell command that runs just this cell again.
        as_of: Only deployment targets in force on this day count; without a day, all of them.
        foreseen: The `foreseen_note` of the cell.
        forecast: The forecast of the cell as text, from `CellForecasts`.

    Returns:
        The result of the cell.
    """
    verdict, shown = outcome.verdict, ""
    if outcome.converted and verdict.works:
        verdict = Verdict.CONVERTED
    # The table is read only where something fails: most runs of pytest never need it.
    # What the audit stops, no consumer has seen.
    if not verdict.works and not outcome.fails_audit:
        shown = upstream_of(outcome, golden, known_issues(policy.known_issues))
    result = replace(
        outcome, verdict=verdict, upstream=shown, reproduce=reproduce, foreseen=foreseen, forecast=forecast
    )
    return judge_again(shared_result(result), policy, as_of)


def judge_again(result: Result, policy: Policy, as_of: datetime.date | None = None) -> Result:
    """Return a result with a new judgement, by the windows, targets, known failures and requirements of a policy.

    A cell that was not run is incomplete, unless it is outside the window, no deployment target needs it, and the
    policy says that such cells need not run.
    """
    cell = result.case, result.reader.name, result.platform
    targets = names_of(policy.deployed, *cell, as_of, runs_on=result.runs_on)
    window = promise_of(
        result.reader,
        result.writer.built,
        policy.window_lengths(),
        devices=result.devices,
        converted=result.converted,
        left_out=_is_left_out(result) or result.control is Control.ALIKE,
    )
    required = policy.required
    must_run = required.outside or any(matches(result.reader.name, pattern) for pattern in required.readers)
    must_run = must_run or any(matches(result.writer.jaxlib, pattern) for pattern in required.writers)
    judged = replace(
        result,
        direction=window.direction,
        days=window.days,
        promised=window.promised,
        promised_until=window.until,
        deployed=targets,
        judgement=judge_verdict(result.verdict, promised=window.promised, required=must_run, deployed=targets),
    )
    # Which custom calls may appear is a promise about artifacts, not about dates: no window ends it, and what accepts a
    # call is `allow`, with a reason, and not the list of known failures.
    if result.fails_audit:
        return replace(judged, judgement=Judgement.BROKEN)
    # Only what is broken can be excused: an entry never makes a bonus, or a cell that was not run, look better.
    is_known = judged.judgement.is_breach and matching_entry(judged, policy.known_failures)
    return replace(judged, judgement=Judgement.KNOWN) if is_known else judged


def _is_left_out(result: Result) -> bool:
    """Return whether a runtime other than jaxlib refused a cell for something that its promise does not cover.

    That may be a custom call, for example.
    """
    if not result.reader.runtime or result.verdict is not Verdict.REFUSED:
        return False
    runtime = runtime_of(result.reader.runtime)
    # The message begins with what the refusal means: another one's expression may be found in those words.
    meant = (refusal for refusal in runtime.known_refusals if result.message.startswith(refusal.meaning))
    refusal = next(meant, None) or runtime.refusal(f"{result.message}\n{result.stderr}")
    return refusal is None or not refusal.promised


def with_controls(results: Sequence[Result], policy: Policy, as_of: datetime.date | None = None) -> Sequence[Result]:
    """Return the results of a run with failures to compile for an accelerator judged again.

    Most goldens for accelerators are written on a CPU, so that their writer has not compiled them for the device. If
    the writer's release fails in the same way in this run, the device's compiler cannot compile the program, and no
    promise is broken. If that release works, fails otherwise, or was not run, the judgement stays.

    Args:
        results: All results of a run, each judged by `policy`.
        policy: The policy.
        as_of: Only deployment targets in force on this day count; without a day, all of them.

    Returns:
        The results in the same order.
    """
    if all(result.platform == "cpu" for result in results):  # most runs: the table of known issues is not read
        return results
    controls = {
        result.series: result
        for result in results
        if result.platform != "cpu" and result.reader == result.writer.release
    }
    # An operation that no compiler has; what a custom call lacks, such as its runtime, is missing beside the program.
    limits = {
        issue.id
        for issue in known_issues(policy.known_issues)
        if issue.any_reader and issue.concerns and {"uses", "operations"} & {*issue.concerns.given}
    }
    return [_by_control(result, controls, limits, policy, as_of) for result in results]


def _by_control(
    result: Result,
    controls: Mapping[Series, Result],
    limits: Collection[str],
    policy: Policy,
    as_of: datetime.date | None,
) -> Result:
    if not may_be_devices_limit(result, limits):
        return result
    # Without the control of an earlier judgement, by which a known failure would not be listed as one.
    result = judge_again(replace(result, control=None), policy, as_of)
    if result.judgement is Judgement.KNOWN:
        return result
    return judge_again(replace(result, control=_control_of(result, controls.get(result.series))), policy, as_of)


def may_be_devices_limit(result: Result, limits: Collection[str]) -> bool:
    """Return whether a cell may have failed because no compiler for its device can compile the program.

    It must have ended in an error of stage compile, not from a missing registration, and its golden must never have run
    on this platform. A known issue of some releases excludes it too; `limits` are the ids of issues that all releases
    have.
    """
    is_compilers = result.platform != "cpu" and (result.verdict, result.stage) == (Verdict.ERROR, Stage.COMPILE)
    has_run = result.mode is Mode.RUN and result.writer.platform == result.platform
    is_of_releases = bool(result.upstream) and result.upstream not in limits
    return is_compilers and not (has_run or is_of_releases or result.reader.runtime or lacks_registration(result))


def _control_of(result: Result, own: Result | None) -> Control:
    """Return how the golden of a failing cell ended in its own writer: not run, works, fails alike, or otherwise.

    `own` is the result in that writer, or None if the run has none.
    """
    if own is None or own.verdict is Verdict.NOT_RUN:
        return Control.NOT_RUN
    if own.verdict.works:
        return Control.WORKS
    # Some compilers say on the second line alone what they cannot do.
    reasons = {message_class(whole_first_line(cell.message)) for cell in (own, result)}
    is_alike = failure_signature(own) == failure_signature(result) and len(reasons) == 1
    return Control.ALIKE if is_alike else Control.OTHERWISE
