"""Is the promise kept: the judgement of each cell, known failures, changes of custom calls, and the gate."""

from export_core.judge.custom_calls import JudgedChange, Phase, Standing, judge_changes, standing
from export_core.judge.gate import (
    JudgeError,
    ResultFile,
    Summary,
    read_results,
    read_summary,
    summarize,
    write_summary,
)
from export_core.judge.judgement import judge, judge_again, judge_verdict, reproduce_command
from export_core.judge.result import Judgement, Result

__all__ = [
    "JudgeError",
    "JudgedChange",
    "Judgement",
    "Phase",
    "Result",
    "ResultFile",
    "Standing",
    "Summary",
    "judge",
    "judge_again",
    "judge_changes",
    "judge_verdict",
    "read_results",
    "read_summary",
    "reproduce_command",
    "standing",
    "summarize",
    "write_summary",
]
