"""Is the promise kept: the judgement of each cell, known failures, changes of custom calls, and the gate."""

from export_core.judge.accepted import Accepted, accepted_in
from export_core.judge.custom_calls import ChangeStatus, JudgedChange, Phase, judge_changes, status_of
from export_core.judge.gate import RunFacts, ShardOf, Summary, calendar_facts, in_order, summarize
from export_core.judge.judgement import judge, judge_again, judge_verdict
from export_core.judge.known import matching_entry
from export_core.judge.result import Result
from export_core.judge.verdicts import Judgement

__all__ = [
    "Accepted",
    "ChangeStatus",
    "JudgedChange",
    "Judgement",
    "Phase",
    "Result",
    "RunFacts",
    "ShardOf",
    "Summary",
    "accepted_in",
    "calendar_facts",
    "in_order",
    "judge",
    "judge_again",
    "judge_changes",
    "judge_verdict",
    "matching_entry",
    "status_of",
    "summarize",
]
