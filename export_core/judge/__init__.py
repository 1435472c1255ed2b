"""Is the promise kept: the judgement of each cell, known failures, and the gate."""

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
    "Judgement",
    "Result",
    "ResultFile",
    "Summary",
    "judge",
    "judge_again",
    "judge_verdict",
    "read_results",
    "read_summary",
    "reproduce_command",
    "summarize",
    "write_summary",
]
