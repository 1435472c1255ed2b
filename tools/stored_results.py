"""A reader of a run's results for studies, benchmarks and tests: without checks, and also while the run continues."""

from __future__ import annotations

from pathlib import Path

from export_core.judge import Result
from export_core.run.results import RESULTS, bytes_of_results, results_in


def read_results(folder: Path) -> list[Result]:
    """Return the results in the folder of a run.

    Commands use `read_run` instead, which checks that the files of a run belong together.

    Raises:
        RunError: a line is not a result; the message names the line.
    """
    path = folder / RESULTS
    return list(results_in(path, bytes_of_results(path)))
