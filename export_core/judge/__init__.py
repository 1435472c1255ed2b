"""Is the promise kept: the judgement of each cell, known failures, changes of custom calls, and the gate."""

from export_core.judge.accepted import Accepted, accepted_in
from export_core.judge.comparison import Change, Compared, Comparison, compare_runs
from export_core.judge.custom_calls import JudgedChange, Phase, Standing, judge_changes, standing
from export_core.judge.gate import (
    JudgeError,
    ShardOf,
    Summary,
    in_order,
    read_results,
    read_run,
    read_summary,
    result_line,
    summarize,
    write_summary,
)
from export_core.judge.judgement import judge, judge_again, judge_verdict, reproduce_command
from export_core.judge.known import matching_entry
from export_core.judge.merge import Merged, merge_shards
from export_core.judge.result import Judgement, Result
from export_core.judge.resumed import cells_left, results_so_far

__all__ = [
    "Accepted",
    "Change",
    "Compared",
    "Comparison",
    "JudgeError",
    "JudgedChange",
    "Judgement",
    "Merged",
    "Phase",
    "Result",
    "ShardOf",
    "Standing",
    "Summary",
    "accepted_in",
    "cells_left",
    "compare_runs",
    "in_order",
    "judge",
    "judge_again",
    "judge_changes",
    "judge_verdict",
    "matching_entry",
    "merge_shards",
    "read_results",
    "read_run",
    "read_summary",
    "reproduce_command",
    "result_line",
    "results_so_far",
    "standing",
    "summarize",
    "write_summary",
]
