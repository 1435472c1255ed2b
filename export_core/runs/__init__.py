"""The files of a run: plan, journal, results, summary; and runs that are continued, merged or compared."""

from export_core.runs.errors import IncompleteResults, RunError
from export_core.runs.results import RecordedRun, read_run

__all__ = ["IncompleteResults", "RecordedRun", "RunError", "read_run"]
