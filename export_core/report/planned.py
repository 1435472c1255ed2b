"""How a plan is told before it runs: its cells, its counts, and the jobs of a CI system that run it."""

from __future__ import annotations

import datetime
import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from rich.console import Console

from export_core.environments.placement import Mode
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Cell, Plan
from export_core.matrix.shards import split
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
    """What `jaxexport plan --json` prints. `counts` are cells by reader, writer, platform, direction, and whether they are promised.

    `without_cells` tells of selected goldens that have none.
    """

    as_of: datetime.date
    planned: int
    goldens: int
    selection: dict[str, Any]
    counts: dict[str, dict[str, int]]
    cells: tuple[PlannedCell, ...]
    without_cells: str = ""


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
        plan.without_cells,
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
    """A job matrix for GitHub Actions of at most 256 jobs.

    ``{"include": [{"name", "shard", "options", "platforms", "environments", "cells"}, …]}``

    Each job is a shard of the plan, so that `jaxexport merge` puts their results together: one reader on one platform, since its
    environment is what costs, or several where there would be too many jobs. `options` select the whole plan; ``platforms`` are those
    that the job's machine must have; ``environments`` is the same for jobs that need the same ones: a part of a cache's key.
    """
    groups = {(cell.reader, cell.platform) for cell in plan.cells}
    parts = split(plan.cells, min(len(groups), MOST_JOBS))
    jobs = []
    for index, part in enumerate(parts, 1):
        readers = ",".join(dict.fromkeys(_spelled(plan, cell.reader) for cell in part))
        platforms = ",".join(dict.fromkeys(cell.platform for cell in part))
        jobs.append(
            {
                "name": f"jaxlib {readers} on {platforms}",
                "shard": index,
                "options": shlex.join([*options, "--shard", f"{index}/{len(parts)}"]),
                "platforms": platforms,
                "environments": _environments(plan, part),
                "cells": len(part),
            }
        )
    return {"include": jobs}


def _environments(plan: Plan, cells: Sequence[Cell]) -> str:
    """A name for what is installed to run these cells: letters that any cache takes, in a key without a comma."""
    readers = dict.fromkeys((cell.reader, cell.platform) for cell in cells)
    content = [[reader.pair, platform, plan.sources.content(reader)] for reader, platform in readers]
    digest = hashlib.sha256(msgspec.json.encode([version("pytest-jaxexport"), content])).hexdigest()[:12]
    return f"{cells[0].reader.pair}-{digest}" if len(readers) == 1 else f"{len(readers)}-readers-{digest}"


def _spelled(plan: Plan, reader: Release) -> str:
    return plan.spelled.get(reader, reader.jaxlib)
