"""What fails a run beside a broken promise, where a project asks for it (`fail_on` in the policy, or --fail-on)."""

from __future__ import annotations

from collections.abc import Sequence

from export_core.base.phrases import plural
from export_core.judge.result import Result
from export_core.judge.verdicts import Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy

OUTSIDE, BONUS_LOST = "outside", "bonus-lost"


def failing_outside(results: Sequence[Result], policy: Policy) -> list[str]:
    """A sentence where cells outside the window fail otherwise than by a refusal, and the policy asks for none."""
    # A refusal is the expected end of a cell outside its window.
    failing = sum(
        result.judgement is Judgement.OUTSIDE and result.verdict.fails and result.verdict is not Verdict.REFUSED
        for result in results
    )
    if not failing or OUTSIDE not in policy.fail_on:
        return []
    return [f"{OUTSIDE}: {plural(failing, 'cell')} outside the window failed other than by a refusal"]


def lost_bonuses(cells: Sequence[tuple[Result | None, Result | None]], policy: Policy) -> list[str]:
    """A sentence where cells that were a bonus in a baseline fail now, and the policy asks for none.

    `cells` are the older and the newer result of each.
    """
    lost = sum(
        then is not None and now is not None and then.judgement is Judgement.BONUS and now.verdict.fails
        for then, now in cells
    )
    if not lost or BONUS_LOST not in policy.fail_on:
        return []
    return [f"{BONUS_LOST}: {plural(lost, 'cell')} that worked outside the window in the baseline failed"]
