"""Is the promise kept: the judgement of each cell, known failures, changes of custom calls, and the gate."""

from export_core.judge.accepted import Accepted, accepted_in
from export_core.judge.custom_calls import ChangeStatus, JudgedChange, Phase, judge_changes, status_of
from export_core.judge.gate import ShardOf, Summary, in_order, summarize
from export_core.judge.judgement import judge, judge_again, judge_verdict, reproduce_command
from export_core.judge.known import matching_entry
from export_core.judge.result import Judgement, Result

__all__ = [
    "Accepted",
    "ChangeStatus",
    "JudgedChange",
    "Judgement",
    "Phase",
    "Result",
    "ShardOf",
    "Summary",
    "accepted_in",
    "in_order",
    "judge",
    "judge_again",
    "judge_changes",
    "judge_verdict",
    "matching_entry",
    "reproduce_command",
    "status_of",
    "summarize",
]
