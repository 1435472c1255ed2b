"""The coverage of a run: if no cell shows what it was asked to show, it is incomplete, whatever its cells say.

Also which targets of the policy it shows something about, what it is only a part of, and whether anything was promised.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from export_core.base.phrases import few
from export_core.judge.result import Result, by_build_date
from export_core.judge.verdicts import Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy, Required
from export_core.policy.entries import matches
from export_core.policy.run_options import BACKWARD, Selection


class DeploymentTargetSummary(msgspec.Struct, frozen=True):
    """A deployment target of the policy, and how its cells ended."""

    name: str
    """Its name."""
    jaxlib: str
    """The jaxlib that runs there."""
    platform: str
    """Its platform."""
    until: datetime.date | None
    """The last day of its obligation; null for no end."""
    cells: int
    """How many cells of the run it has."""
    judgements: dict[str, int]
    """These cells by judgement."""

    @property
    def works(self) -> int:
        """How many cells of the deployment target work."""
        return sum(self.judgements.values()) - sum(self.failing.values())

    @property
    def failing(self) -> dict[str, int]:
        """How many cells of the deployment target do not work, by judgement."""
        works = [judgement for judgement in Judgement if judgement.facts.works]
        return {name: count for name, count in self.judgements.items() if name not in works}


def must_run(result: Result, required: Required) -> bool:
    """Whether a cell that was planned counts as incomplete when it was not run, though it is outside the window."""
    return (
        required.outside
        or any(matches(result.reader.jaxlib, pattern) for pattern in required.readers)
        or any(matches(result.writer.jaxlib, pattern) for pattern in required.writers)
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
            if not any(matches(value, pattern) for value in values)
        ]
    return missing


def summaries_of(results: Iterable[Result], policy: Policy, as_of: datetime.date) -> list[DeploymentTargetSummary]:
    """The deployment targets in force on a day, in the order of the policy."""
    targets = policy.targets_on(as_of)
    counts: dict[str, Counter[str]] = {target.name: Counter() for target in targets}
    for result in results:
        for name in result.deployed:
            if name in counts:
                counts[name][str(result.judgement)] += 1
    return [
        DeploymentTargetSummary(
            *(target.name, target.jaxlib, target.platform, target.until),
            cells=counts[target.name].total(),
            judgements=dict(sorted(counts[target.name].items())),
        )
        for target in targets
    ]


def without_cells(targets: Sequence[DeploymentTargetSummary], platforms: Sequence[str]) -> list[str]:
    """A sentence for each target without a cell, in a run that had every golden. `platforms` were asked for."""
    return [
        f"deployed {target.name}: it has no cell, since no golden of its cases was exported for {target.platform}. "
        "Correct the entry, or write such goldens."
        for target in targets
        if not target.cells and target.platform in platforms
    ]


def nothing_promised(results: Sequence[Result], policy: Policy) -> str:
    """A sentence where no cell of a run was promised or of a target, whatever happened to them; empty where one was."""
    # A deployment target of the policy is a reason to run it, as good as a promise.
    if not results or any(result.promised or result.deployed for result in results):
        return ""
    windows = policy.windows
    what = (
        f"No cell of this run is inside its window ({windows.backward} days backward, {windows.forward} forward), so "
        "it shows nothing about the promise. "
    )
    if policy.unpromised:
        return f"{what}Such a run is meant: {policy.unpromised}"
    return (
        f"{what}Choose readers of the window (--readers window), write goldens with newer releases, or say why such a "
        "run is meant: unpromised: REASON in the policy, or --unpromised REASON."
    )


def left_out(selection: Mapping[str, Any], policy: Policy, shard: str) -> str:
    """How a run is only a part of what its project asks for: ``shard 1/7, only cases t.a``; empty where it is all.

    `selection` is as `Selection.described` has it. The readers and platforms that the policy names are the project's.
    """
    parts = [f"shard {shard}"] if shard else []
    parts += [f"only {name} {few(selection[name])}" for name in ("cases", "writers") if selection.get(name)]
    if touching := selection.get("touching"):
        parts.append(f"only cells that jaxlib {touching} wrote or reads")
    if only := selection.get("only"):
        kinds = ["only promised cells"]
        kinds += ["those of deployment targets"] if policy.deployed else []
        kinds += ["those of younger readers"] if only == BACKWARD else []
        parts.append(" and ".join(kinds))
    readers = Selection(readers=selection.get("readers", policy.readers)).named
    if "all" not in readers and not {*Selection(readers=policy.readers).named} <= {*readers}:
        parts.append(f"only readers {few(readers)}")
    platforms = _names(selection.get("platforms", policy.spelled_platforms()))
    if not {*_names(policy.spelled_platforms())} <= {*platforms}:
        parts.append(f"only platforms {few(platforms)}")
    return ", ".join(parts)


def _names(platforms: Iterable[str]) -> list[str]:
    """Platforms without their modes."""
    return [platform.partition(":")[0] for platform in platforms]
