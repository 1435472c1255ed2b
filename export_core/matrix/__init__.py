"""The cells of a run, and what happened to each: selection, plan, replay, cached replay."""

from export_core.matrix.plan import Plan, make_plan
from export_core.matrix.result import Result
from export_core.matrix.selection import MatrixError
from export_core.matrix.verdicts import Verdict
from export_core.policy.run_options import CellLimits, Selection
from export_core.readers.cell import Cell

__all__ = ["Cell", "CellLimits", "MatrixError", "Plan", "Result", "Selection", "Verdict", "make_plan"]
