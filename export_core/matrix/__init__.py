"""How goldens are replayed: plan, environments, cold workers, comparison."""

from export_core.matrix.building import cache_folder
from export_core.matrix.cell import Cell, Outcome, Stage, Verdict
from export_core.matrix.compare import Difference, compare_leaves
from export_core.matrix.environments import Environment, Sources, build_environment, this_interpreter
from export_core.matrix.errors import EnvironmentFailed, MatrixError, WorkerDied
from export_core.matrix.plan import Plan, make_plan
from export_core.matrix.request import Limits
from export_core.matrix.run import replay
from export_core.matrix.selection import Selection
from export_core.matrix.where import Mode

__all__ = [
    "Cell",
    "Difference",
    "Environment",
    "EnvironmentFailed",
    "Limits",
    "MatrixError",
    "Mode",
    "Outcome",
    "Plan",
    "Selection",
    "Sources",
    "Stage",
    "Verdict",
    "WorkerDied",
    "build_environment",
    "cache_folder",
    "compare_leaves",
    "make_plan",
    "replay",
    "this_interpreter",
]
