"""The results of a run as studies, benchmarks and tests read them: without checks, also while the run goes on."""

from __future__ import annotations

from pathlib import Path

from export_core.judge import Result
from export_core.run.results import RESULTS, bytes_of_results, results_in


def read_results(folder: Path) -> list[Result]:
    """Return the results in the folder of a run.

    Commands use `read_run` instead, which checks that the files of a run belong together.

    Raises:
        RunError: a line is no result; the message names it.
    """
    path = folder / RESULTS
    return list(results_in(path, bytes_of_results(path)))
