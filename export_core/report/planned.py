"""How a plan is told before it runs: its cells, its counts, and the jobs of a CI system that run it."""

from __future__ import annotations

import datetime
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console

from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Mode, Plan
from export_core.releases import Direction, Release, Windows, promise
from export_core.report.terminal import print_plan

MOST_JOBS = 256
"""Jobs of one matrix that GitHub Actions starts. Source: its documentation, "Running variations of jobs in a workflow"."""


class PlannedCell(msgspec.Struct, frozen=True):
    """A cell before it runs; `days` lie between the two build dates."""

    case: str
    golden: str
    writer: WriterOf
    reader: ReaderOf
    platform: str
    mode: Mode
    direction: Direction
    days: int
    promised: bool
    promised_until: datetime.date


class Planned(msgspec.Struct, frozen=True):
    """What `jaxexport plan --json` prints. `counts` are cells by reader, writer, platform, direction, and whether they are promised."""

    as_of: datetime.date
    planned: int
    goldens: int
    selection: dict[str, Any]
    counts: dict[str, dict[str, int]]
    cells: tuple[PlannedCell, ...]


def planned(plan: Plan, windows: Windows) -> Planned:
    """All that is known of a plan before it runs."""
    cells = []
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("reader", "writer", "platform", "direction", "promise")
    }
    for cell in plan.cells:
        golden, reader = cell.golden.manifest, cell.reader
        found = promise(golden.writer.built, reader.built, windows)
        wrote = WriterOf(golden.writer.jax, golden.writer.jaxlib, golden.writer.platform, golden.writer.built)
        cells.append(
            PlannedCell(
                golden.case,
                cell.golden.id,
                wrote,
                ReaderOf(reader.jax, reader.jaxlib, reader.built),
                cell.platform,
                cell.mode,
                found.direction,
                found.days,
                found.promised,
                found.until,
            )
        )
        counts["reader"][_spelled(plan, reader)] += 1
        counts["writer"][golden.writer.id] += 1
        counts["platform"][cell.platform] += 1
        counts["direction"][found.direction] += 1
        counts["promise"]["promised" if found.promised else "outside"] += 1
    return Planned(
        plan.as_of,
        len(cells),
        len(plan.goldens),
        plan.selection.described(),
        {name: dict(counter) for name, counter in counts.items()},
        tuple(cells),
    )


def print_planned(console: Console, plan: Plan, windows: Windows) -> None:
    """Each cell on a line, then the counts."""
    told = planned(plan, windows)
    for cell in told.cells:
        standing = "promised" if cell.promised else "outside"
        console.print(
            f"{cell.golden}  in {cell.reader.jaxlib} with jax {cell.reader.jax} on {cell.platform}  "
            f"{cell.direction} {cell.days} days  {standing}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    console.print()
    print_plan(console, plan)
    for name, counter in told.counts.items():
        counts = ", ".join(f"{count} {value}" for value, count in counter.items())
        console.print(f"by {name}: {counts}", markup=False, highlight=False, soft_wrap=True)


def github_jobs(plan: Plan, options: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """A job matrix for GitHub Actions: ``{"include": [{"name", "options", "cells"}, …]}`` with at most 256 jobs.

    A job has one reader on one platform, since its environment is what costs; or several readers where there would be too many
    jobs. `options` are those that every job is given beside.
    """
    groups: dict[str, dict[Release, int]] = {}
    for cell in plan.cells:
        readers = groups.setdefault(cell.platform, {})
        readers[cell.reader] = readers.get(cell.reader, 0) + 1
    size = next(
        size
        for size in range(1, len(plan.cells) + 1)
        if sum(-(-len(readers) // size) for readers in groups.values()) <= MOST_JOBS
    )
    jobs = []
    for platform, readers in groups.items():
        every = list(readers)
        for some in (every[start : start + size] for start in range(0, len(every), size)):
            names = ",".join(_spelled(plan, reader) for reader in some)
            words = ["--readers", names, "--platforms", platform, *options]
            jobs.append(
                {
                    "name": f"jaxlib {names} on {platform}",
                    "options": shlex.join(words),
                    "cells": sum(readers[reader] for reader in some),
                }
            )
    return {"include": jobs}


def _spelled(plan: Plan, reader: Release) -> str:
    return plan.spelled.get(reader, reader.jaxlib)
