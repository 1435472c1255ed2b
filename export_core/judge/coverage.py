"""The coverage of a run: if no cell shows what it was asked to show, it is incomplete, whatever its cells say."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from export_core.judge.result import Judgement, Result, by_build_date
from export_core.matrix import Verdict
from export_core.policy import Required


def must_run(result: Result, required: Required) -> bool:
    """Whether a cell that was planned counts as incomplete when it was not run, though it is outside the window."""
    return (
        required.outside
        or any(fnmatch.fnmatchcase(result.reader.jaxlib, pattern) for pattern in required.readers)
        or any(fnmatch.fnmatchcase(result.writer.jaxlib, pattern) for pattern in required.writers)
    )


def uncovered(results: Sequence[Result], required: Required, platforms: Sequence[str]) -> list[str]:
    """What no cell that ran covers, a sentence each. `platforms` are those that were asked for."""
    ran = [result for result in results if result.verdict is not Verdict.NOT_RUN]
    # Cells that had to run and did not are said to be incomplete already.
    planned = bool(results) and not any(result.judgement is Judgement.INCOMPLETE for result in results)
    missing = ["No cell ran, and nothing was shown."] if planned and not ran else []
    planned_on = {result.platform for result in results}
    for platform in platforms:
        if platform not in planned_on:
            missing.append(
                f"Platform {platform} was asked for and has no cell: no golden of this run was exported for it. Export "
                "for it (platforms= of the marker), or leave it out of --platforms and the policy."
            )
    if len(ran) < required.cells:
        missing.append(f"required.cells: expected at least {required.cells} cells that ran, found {len(ran)}.")
    seen = {
        "readers": by_build_date(result.reader for result in ran),
        "writers": by_build_date(result.writer for result in ran),
        "platforms": sorted({result.platform for result in ran}),
    }
    for name, values in seen.items():
        missing += [
            f"required.{name}: expected a cell that ran for {pattern}, found {', '.join(values) or 'none'}."
            for pattern in getattr(required, name)
            if not fnmatch.filter(values, pattern)
        ]
    return missing
