"""The results of a run as studies, benchmarks and tests read them: unchecked, also of a run that has not ended."""

from __future__ import annotations

from pathlib import Path

from export_core.judge import Result
from export_core.run.results import RESULTS, bytes_of_results, results_in


def read_results(folder: Path) -> list[Result]:
    """Return the results in the folder of a run. Raises `RunError`, which names a line that is none.

    Commands read a run with `read_run`, which checks that its files belong together.
    """
    path = folder / RESULTS
    return list(results_in(path, bytes_of_results(path)))
