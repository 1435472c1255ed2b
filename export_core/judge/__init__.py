"""Is the promise kept: the judgement of each cell, known failures, changes of custom calls, and the gate."""

from export_core.judge.gate import RunFacts, Summary, calendar_facts
from export_core.judge.judgement import judge, judge_again
from export_core.matrix.result import Result
from export_core.matrix.verdicts import Judgement

__all__ = ["Judgement", "Result", "RunFacts", "Summary", "calendar_facts", "judge", "judge_again"]
