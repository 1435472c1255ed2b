"""A job: the cells of one reader with their goldens, which travel to another machine, and the outcomes that return."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from export_core.base.scratch import scratch_folder
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.cache_keys import tool
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.outcome import not_run
from export_core.matrix.replay import Replayed
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import Result
from export_core.readers.cell import Cell, CellKey
from export_core.releases import ReleaseError
from export_core.releases.runtimes import runtime_of
from export_core.run.plan_record import different_parts, own_parts


@dataclass(frozen=True)
class Job:
    """Cells of one reader on one platform, with everything that a machine needs to run them.

    The wheels in `options.sources` do not travel: each machine must have them at the same path. `tool` is the version
    that sent the job: a machine with another version refuses it, since its outcomes may differ. `own_parts` is the
    evidence that each machine reads for itself; on all machines it must be the same.
    """

    cells: tuple[Cell, ...]  # Their goldens have no folder: another system cannot unpickle a path of this one.
    files: tuple[Mapping[str, bytes], ...]  # The files of each cell's golden, without those that only people read.
    options: ReplayOptions
    tool: str
    own_parts: Mapping[str, str]


@dataclass(frozen=True)
class JobResult:
    """The result of a job: an outcome for each of its cells, in the job's order, and notes for the user."""

    outcomes: tuple[Result, ...]
    notes: tuple[str, ...] = ()


def make_job(cells: Sequence[Cell], options: ReplayOptions) -> Job:
    """Return a job of cells that share their reader and platform, with the files of their goldens."""
    goldens = [cell.golden for cell in cells]
    # No cell reads the files for people, and no key of an outcome covers them.
    files = [{name: one.content(name) for name in one.manifest.files if name not in FOR_THE_EYE} for one in goldens]
    packed = [replace(cell, golden=replace(cell.golden, folder=cast("Any", None))) for cell in cells]
    # A process does not travel: each machine has its own for users' comparators. Forecasts are made here.
    return Job(
        tuple(packed),
        tuple(files),
        replace(options, user_code=None, forecast=None, silence=None),
        tool(),
        _own_parts(packed, options),
    )


def _own_parts(cells: Sequence[Cell], options: ReplayOptions) -> dict[str, str]:
    """Return the parts of the evidence that each machine reads for itself, as they are on this machine."""
    comparators = {cell.golden.compared_as.comparison.compare for cell in cells}
    return own_parts(options.policy, comparators, sorted(cell.golden.id for cell in cells))


def run_job(job: Job, replay: Callable[..., Generator[Replayed, None, None]] = replay_here) -> JobResult:
    """Run a job on this machine: build the reader's environment, and replay each cell cold.

    Whatever a cell does becomes an outcome, and raises nothing.
    """
    if problem := _why_not_here(job):
        return JobResult(tuple(not_run(cell, problem) for cell in job.cells))
    notes: list[str] = []
    with scratch_folder() as scratch:
        cells = []
        for number, (cell, files) in enumerate(zip(job.cells, job.files, strict=True)):
            folder = scratch / str(number)
            folder.mkdir()
            for name, data in files.items():
                (folder / name).write_bytes(data)
            cells.append(replace(cell, golden=replace(cell.golden, folder=folder)))
        # They arrive in the order in which they end; what is sent back has the order of the job's cells.
        outcomes: dict[CellKey, Result] = {}
        for cell, outcome in replay(cells, job.options, notify=notes.append):
            outcomes[cell.key] = outcome
        return JobResult(tuple(outcomes[cell.key] for cell in cells), tuple(notes))


def _why_not_here(job: Job) -> str:
    """Return why this machine cannot run a job; empty if it can."""
    if job.tool != tool():
        return (
            f"this machine has pytest-jaxexport {tool()}, and the job was sent by {job.tool}: "
            "install the same version on all machines"
        )
    if different := different_parts(job.own_parts, _own_parts(job.cells, job.options)):
        return (
            f"this machine has {'; '.join(different)}: their results cannot be in one run. Give all machines the same"
        )
    reader = job.cells[0].reader
    if reader.runtime:
        try:
            runtime_of(reader.runtime)
        except ReleaseError as error:
            return f"this machine does not know {reader.title}: {error}"
    # They are some 100 MB each, and would travel with every job.
    sources = job.options.sources
    missing = [str(wheel.path) for wheel in (*sources.files, *sources.held) if not wheel.path.exists()]
    if missing:
        return (
            f"this machine has no {', '.join(missing)}: wheels are not sent along, "
            "put them in a folder that all machines can read"
        )
    return ""
