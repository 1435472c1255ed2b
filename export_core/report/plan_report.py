"""A plan before it runs: its cells, its counts, and the jobs of a CI system that run it."""

import datetime
import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from rich.console import Console

from export_core.base.json_text import json_bytes
from export_core.base.layout import wrapped
from export_core.base.text import few, plural
from export_core.knowledge import YES
from export_core.matrix import Cell, Plan
from export_core.matrix.forecasts import CellForecasts
from export_core.matrix.plan import split
from export_core.matrix.result import WriterOf, cell_names
from export_core.readers.cached_environments import EnvironmentsCost
from export_core.readers.cell import promise_of_golden
from export_core.readers.placement import Mode
from export_core.releases import Direction, Release, Windows
from export_core.releases.names import title_of
from export_core.report.terminal import print_lines
from export_core.report.wording import counts_line

MOST_JOBS = 256
"""Jobs of one matrix of GitHub Actions. Source: its documentation, "Running variations of jobs in a workflow"."""


class PlannedCell(msgspec.Struct, frozen=True):
    """A cell of a plan, with its promise and its forecast."""

    case: str  # The id of the case.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    reader: Release  # The release that will run it.
    platform: str  # The platform of the cell.
    mode: Mode  # run or compile.
    direction: Direction  # Whether the reader was built after the writer, before it, or on the same day.
    days: int  # The days between the two build dates.
    promised: bool  # Whether the reader is inside the window of the writer.
    promised_until: datetime.date
    """The last build date of a reader in this direction that is promised: in forward direction the earliest day."""
    deployed: tuple[str, ...] = ()  # The names of the policy's deployment targets in which it has to run.
    forecast: str = ""
    """What is known of it before it runs: `yes`, it works; or `no`, `unknown` or `yes, but`, with the reasons. Empty
    where the golden must be refused."""


class PlanReport(msgspec.Struct, frozen=True):
    """The output of `jaxexport matrix --dry-run --json`: the planned cells, their counts and what environments cost."""

    as_of: datetime.date  # The day as of which releases exist and cells are judged.
    planned: int  # The number of cells.
    goldens: int  # The number of goldens.
    selection: dict[str, Any]  # What was asked for.
    counts: dict[str, dict[str, int]]  # Cells by reader, writer, platform, direction, and whether they are promised.
    cells: tuple[PlannedCell, ...]  # The cells, in the order in which they run.
    without_cells: str = ""  # The selected goldens that have no cell.
    warnings: tuple[str, ...] = ()  # What of the policy matches nothing.
    environments: EnvironmentsCost | None = None  # Those that a run on this machine needs.


def plan_report(plan: Plan, windows: Windows, cost: EnvironmentsCost | None = None) -> PlanReport:
    """Return a report about a plan that has not run: its cells with promises and forecasts, and their counts."""
    cells, forecasts = [], CellForecasts(plan.cells, plan.calendar)
    for cell in plan.cells:
        window = promise_of_golden(cell.golden, cell.reader, windows)
        dates = window.direction, window.days, window.promised, window.until
        cells.append(PlannedCell(*cell_names(cell), *dates, cell.deployed, forecasts.of(cell)))
    deployed = Counter(name for cell in cells for name in cell.deployed)
    return PlanReport(
        as_of=plan.as_of,
        planned=len(cells),
        goldens=len(plan.goldens),
        selection=plan.recorded_selection,
        counts={
            "reader": dict(Counter(_reader_name(plan, cell.reader) for cell in plan.cells)),
            "writer": dict(Counter(cell.golden.manifest.writer.id for cell in plan.cells)),
            "platform": dict(Counter(cell.platform for cell in cells)),
            "direction": dict(Counter(str(cell.direction) for cell in cells)),
            "promise": dict(Counter(_PROMISE[cell.promised] for cell in cells)),
            "forecast": dict(Counter(cell.forecast.partition(": ")[0] or "not made" for cell in cells)),
            **({"deployment target": deployed} if deployed else {}),
        },
        cells=tuple(cells),
        without_cells=plan.without_cells,
        warnings=plan.warnings,
        environments=cost,
    )


LEFT_OUT = (
    "a promised cell that is refused for what its runtime's promise leaves out, such as a custom call, is outside"
)
"""Why a run may count fewer promised cells of runtimes that are not jaxlib."""
_PROMISE = {True: "promised", False: "outside"}
# Before each name: "4 0.9.2" would be two numbers.
_OF = {"reader": "in ", "writer": "by ", "platform": "on ", "deployment target": "for "}


def print_plan(console: Console, plan: Plan) -> None:
    """Print how many cells a plan has, of which goldens and in which readers, and which goldens have no cell."""
    cases = {golden.manifest.case for golden in plan.goldens}
    writers = dict.fromkeys(golden.manifest.writer.jaxlib for golden in plan.goldens)
    readers = [_reader_name(plan, release) for release in plan.readers]
    lines = [
        f"{plural(len(plan.cells), 'cell')} as of {plan.as_of}: {plural(len(plan.goldens), 'golden')} of "
        f"{plural(len(cases), 'case')} by jaxlib {', '.join(writers)}, in {plural(len(readers), 'reader')}",
        f"readers by build date: {', '.join(readers)}",
    ]
    for platform, left_out in plan.unexported.items():
        if left_out and len(plan.unexported) > 1:
            planned = len({cell.golden.id for cell in plan.cells if cell.platform == platform})
            lines.append(f"{platform}: {plural(planned, 'golden')}; {left_out} not exported for it")
    for line in lines:
        print_lines(console, wrapped(line, console.width, indent=0))
    for sentence in (plan.without_cells, *(f"warning: {warning}" for warning in plan.warnings)):
        if sentence:
            print_lines(console, wrapped(sentence, console.width, indent=2))


def print_plan_report(console: Console, plan: Plan, windows: Windows, cost: EnvironmentsCost | None = None) -> None:
    """Print each cell of a plan on a line, then counts, then the cost of the environments that must be built."""
    report = plan_report(plan, windows, cost)
    for cell in report.cells:
        with_jax = f" with jax {cell.reader.jax}" if cell.reader.jax else ""
        line = (
            f"{cell.golden}  in {cell.reader.label}{with_jax} on {cell.platform}  "
            f"{cell.direction} {plural(cell.days, 'day')}  {_PROMISE[cell.promised]}"
            f"{f'  for {few(cell.deployed)}' if cell.deployed else ''}"
            f"{'' if cell.forecast in ('', YES) else f'  forecast: {cell.forecast}'}"
        )
        print_lines(console, wrapped(line, console.width, indent=2))
    console.print()
    print_plan(console, plan)
    for name, counts in report.counts.items():
        line = counts_line({f"{_OF.get(name, '')}{value}": count for value, count in counts.items()})
        if name == "promise" and any(cell.promised and cell.reader.runtime for cell in report.cells):
            line += f"; {LEFT_OUT}"
        print_lines(console, wrapped(f"by {name}: {line}", console.width, indent=2))
    if pairs := _just_before_writers(plan):
        line = f"{few(pairs)}: the release just before a writer, with the newest jax of that day, for its goldens alone"
        print_lines(console, wrapped(line, console.width, indent=2))
    if cost:
        print_lines(console, wrapped(cost_in_words(cost), console.width, indent=2))


def _just_before_writers(plan: Plan) -> list[str]:
    """Return the readers that a plan has only because each is the release just before a writer, with an older jax.

    They are named with this jax, since the same jaxlib is also a reader with a newer jax. Readers that the user has
    named are left out.
    """
    named, spelled = {*plan.selection.named}, plan.spelled
    pairs = (reader.pair for reader in plan.readers if not reader.runtime and spelled.get(reader) == reader.pair)
    return [pair for pair in pairs if pair not in named]


def cost_in_words(cost: EnvironmentsCost) -> str:
    """Return sentences that say how many environments a run needs and builds, and their disk space and downloads."""
    text, missing = f"environments already built: {cost.built} of {cost.needed}", cost.needed - cost.built
    if not missing:
        return text
    unknown = f" The size of {cost.unmeasured} is not known, and not counted." if cost.unmeasured else ""
    return (
        f"{text}. A run builds the other {missing}: at most {cost.megabytes / 1e3:.1f} GB of disk and "
        f"{cost.download_megabytes / 1e3:.1f} GB of downloads. It is less where environments share files, and where "
        f"uv's cache has packages.{unknown}"
    )


def github_jobs(plan: Plan, options: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return a job matrix for GitHub Actions of at most 256 jobs.

    ``{"include": [{"name", "shard", "options", "platforms", "environments", "cells"}, …]}``

    Each job is a shard of the plan, so that `jaxexport judge` can merge the results. A job has one reader on one
    platform, because building environments is expensive, or several readers if there would be too many jobs.
    ``platforms`` are the platforms that the job's machine must have. ``environments`` is a text for a cache key, equal
    for jobs that need the same environments. The parameter `options` has the options that select the whole plan.
    """
    groups = {(cell.reader, cell.platform) for cell in plan.cells}
    # `jaxexport matrix --shard` splits in the same way: a job names its part by number only.
    shards = split(plan.cells, min(len(groups), MOST_JOBS))
    jobs = []
    for index, cells in enumerate(shards, 1):
        readers = ",".join(dict.fromkeys(_reader_name(plan, cell.reader) for cell in cells))
        platforms = ",".join(dict.fromkeys(cell.platform for cell in cells))
        jobs.append(
            {
                "name": f"{title_of(readers)} on {platforms}",
                "shard": index,
                "options": shlex.join([*options, "--shard", f"{index}/{len(shards)}"]),
                "platforms": platforms,
                "environments": _environments_key(plan, cells),
                "cells": len(cells),
            }
        )
    return {"include": jobs}


def _environments_key(plan: Plan, cells: Sequence[Cell]) -> str:
    """Return a cache key for the environments of these cells, in characters that every cache accepts."""
    readers = dict.fromkeys((cell.reader, cell.platform) for cell in cells)
    content = [[reader.pair, platform, plan.sources.content(reader)] for reader, platform in readers]
    # With our version, since another one may build the environment of a reader in another way.
    digest = hashlib.sha256(json_bytes([version("pytest-jaxexport"), content])).hexdigest()[:12]
    return f"{cells[0].reader.pair}-{digest}" if len(readers) == 1 else f"{len(readers)}-readers-{digest}"


def _reader_name(plan: Plan, reader: Release) -> str:
    """Return a reader's name as the user wrote it on the command line, such as a wheel file, or else its usual name."""
    return plan.spelled.get(reader, reader.name)
