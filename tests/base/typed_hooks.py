"""The functions that features name for each hook, as values of the hook's type: mypy checks them, nothing runs them.

`tests/base/test_feature_hooks.py` finds a function of a feature that is missing here.
"""

from collections.abc import Sequence

from export_core.base.feature import QuickStart
from export_core.cli.goldens import CoverageText
from export_core.cli.report import ShowTrend
from export_core.features.compare_runs.comparison import compared
from export_core.features.compare_runs.trend import trend
from export_core.features.convert.fixed_by_conversion import (
    conversion_findings,
    converted_cell,
    remedy,
    with_conversions,
)
from export_core.features.costs.costs_svg import costs_picture
from export_core.features.costs.findings import cost_findings, newest_costs, row_line
from export_core.features.costs.over_budget import with_budgets
from export_core.features.deploy.answer_lines import target_findings
from export_core.features.forecast.windows_svg import windows_picture
from export_core.features.forecast.wrong import wrong_forecasts
from export_core.features.inspect.coverage import coverage_text
from export_core.features.inspect.screen import quick_start
from export_core.features.remote.dispatch import replay_at
from export_core.matrix.replay_options import ConvertCell, SayRemedy
from export_core.report.document import CompareRuns, MakeFindings, MakePicture, MakeRowLine, MakeTable
from export_core.run.run import JudgeByRule
from export_core.run.session import ExtendResults, ReplayAt

QUICK_START: Sequence[QuickStart] = (quick_start,)
FINDINGS: Sequence[MakeFindings] = (conversion_findings, cost_findings, target_findings, wrong_forecasts)
TABLE: Sequence[MakeTable] = (newest_costs,)
PICTURE: Sequence[MakePicture] = (costs_picture, windows_picture)
ROW_LINE: Sequence[MakeRowLine] = (row_line,)
COMPARE: Sequence[CompareRuns] = (compared,)
TREND: Sequence[ShowTrend] = (trend,)
COVERAGE: Sequence[CoverageText] = (coverage_text,)
RULE: Sequence[JudgeByRule] = (with_budgets,)
AFTER_REPLAY: Sequence[ExtendResults] = (with_conversions,)
EXECUTOR: Sequence[ReplayAt] = (replay_at,)
REMEDY: Sequence[SayRemedy] = (remedy,)
CONVERTED: Sequence[ConvertCell] = (converted_cell,)
