"""The evidence: what stored runs say of a golden in a release, as long as it is the same golden."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from export_core.goldens import Golden
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.matrix.comparisons import quirks_of
from export_core.policy import Policy
from export_core.readers.placement import Mode
from export_core.run.plan_record import hash_of
from export_core.run.results import read_run
from export_core.run.run import Run

Evidence = dict[tuple[str, str, str], Result]
"""Results by golden, jaxlib and platform."""

ASKED = "deploy"
"""The folder, inside that of the results, for the run that answers what is unknown."""

_BEFORE_ALL = datetime.datetime.min.replace(tzinfo=datetime.UTC)


def stored_evidence(
    folders: Iterable[Path],
    goldens: Sequence[Golden],
    policy: Policy,
    day: datetime.date,
    notify: Callable[[str], None],
) -> Evidence:
    """What the runs in these folders say of goldens as they are now: the run that ended last counts.

    `goldens` have the comparisons of the policy, on which a verdict depends as well. A run under a policy by which
    cells ran or were compared otherwise says nothing, as in `jaxexport judge`, and nor does any of a golden with a
    quirk that has expired by `day`: `notify` is told. Raises `RunError` for a folder without a finished run, or with a
    changed one.
    """
    runs = [read_run(folder) for folder in folders]
    hashes: dict[str, str] = {}
    for golden in goldens:
        if any(quirk.expires and quirk.expires < day for quirk in quirks_of(golden.manifest, policy.quirks)):
            notify(f"results of {golden.id} do not count: a quirk of it has expired")
        else:
            hashes[golden.id] = hash_of(golden.manifest)
    evidence: Evidence = {}
    for run in sorted(runs, key=lambda run: run.summary.identity.ended or _BEFORE_ALL):
        if name := policy.replays_otherwise(run.policy):
            notify(
                f"the results in {run.folder} do not count: since that run, `{name}` of the policy has another value"
            )
        else:
            evidence |= _of_run(run, hashes)
    return evidence


def _of_run(run: Run, hashes: dict[str, str]) -> Evidence:
    evidence: Evidence = {}
    for result in run.results:
        if run.goldens.get(result.golden) != hashes.get(result.golden, ""):
            continue
        key = result.golden, result.reader.jaxlib, result.platform
        # A jaxlib that was read with several jax is as good as the worst of them.
        if key not in evidence or _badness(result) > _badness(evidence[key]):
            evidence[key] = result
    return evidence


def ran(result: Result) -> bool:
    """Whether a cell was run, and gave the outputs of its golden each time; the artifact may be a converted one."""
    return result.verdict in (Verdict.PASS, Verdict.CONVERTED) and result.mode is Mode.RUN and not result.flaky


def _badness(result: Result) -> int:
    if ran(result):
        return 0
    return 2 if result.verdict.fails else 1
