"""A job: what travels to another machine, the cells of one reader with their goldens; and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_core.base.scratch import scratch_folder
from export_core.base.tolerances import Sources
from export_core.goldens import Golden, Manifest
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.cache_keys import tool
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.outcome import Outcome, Verdict
from export_core.matrix.outcome_cache import CachedOutcome
from export_core.matrix.replay_options import ReplayOptions, user_code_within
from export_core.readers.cell import Cell, CellKey
from export_core.readers.placement import Mode, Target
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release


@dataclass(frozen=True)
class PackedGolden:
    """A golden as it travels: its manifest, and the bytes of each file but those for the eye."""

    manifest: Manifest
    sources: Sources
    files: Mapping[str, bytes]
    mode: Mode


@dataclass(frozen=True)
class Job:
    """Cells of one reader on one platform, with everything that it takes to run them on a bare machine.

    Wheels in `options.sources` do not travel: each machine must have them at the same path. `tool` is the code that
    sent the job: another version may see other things, and its outcomes are not mixed in.
    """

    reader: Release
    platform: str
    goldens: tuple[PackedGolden, ...]
    options: ReplayOptions
    tool: str
    target: Target | None = None


@dataclass(frozen=True)
class JobResult:
    """What comes back: an outcome for each golden of the job, in its order, and the notes of the replay.

    `machine` is the one that ran it, as its cluster names it; empty if that has no names.
    """

    outcomes: tuple[CachedOutcome, ...]
    notes: tuple[str, ...] = ()
    machine: str = ""


def make_job(cells: Sequence[Cell], options: ReplayOptions) -> Job:
    """A job of cells that share their reader and platform. Reads the files of their goldens."""
    first = cells[0]
    options = replace(options, user_code=None)  # a process does not travel: each machine has its own
    return Job(first.reader, first.platform, tuple(map(_pack, cells)), options, tool(), first.target)


def run_job(job: Job, replay: Callable[..., Generator[Outcome, None, None]] = replay_here) -> JobResult:
    """Run a job here: build the reader's environment, replay each cell cold. Never raises for what a cell does."""
    if problem := _why_not_here(job):
        not_run = (
            CachedOutcome(Stage.ENVIRONMENT, Verdict.NOT_RUN, problem, None, "", None, 0.0, mode=golden.mode)
            for golden in job.goldens
        )
        return JobResult(tuple(not_run))
    notes: list[str] = []
    own_user_code = user_code_within(job.options.limits, job.options.policy.environment)
    with scratch_folder() as scratch, own_user_code as user_code:
        cells = [_unpack(golden, job, scratch / str(number)) for number, golden in enumerate(job.goldens)]
        # They arrive in the order in which they end; what is sent back has the order of the job's goldens.
        outcomes: dict[CellKey, CachedOutcome] = {}
        for outcome in replay(cells, replace(job.options, user_code=user_code), notify=notes.append):
            outcomes[outcome.cell.key] = CachedOutcome.from_outcome(outcome)
        return JobResult(tuple(outcomes[cell.key] for cell in cells), tuple(notes))


def _why_not_here(job: Job) -> str:
    """Why this machine cannot run a job; empty if it can."""
    if job.tool != tool():
        return (
            f"this machine has pytest-jaxexport {tool()}, and the job was sent by {job.tool}: "
            "install the same version on all machines"
        )
    # They are some 100 MB each, and would travel with every job.
    sources = job.options.sources
    missing = [str(wheel.path) for wheel in (*sources.files, *sources.held) if not wheel.path.exists()]
    if missing:
        return (
            f"this machine has no {', '.join(missing)}: wheels are not sent along, "
            "put them in a folder that all machines can read"
        )
    return ""


def _pack(cell: Cell) -> PackedGolden:
    manifest = cell.golden.manifest
    # No cell reads the others, and no key of an outcome covers them.
    names = [name for name in manifest.files if name not in FOR_THE_EYE]
    return PackedGolden(manifest, cell.golden.sources, {name: cell.golden.content(name) for name in names}, cell.mode)


def _unpack(golden: PackedGolden, job: Job, folder: Path) -> Cell:
    folder.mkdir()
    for name, data in golden.files.items():
        (folder / name).write_bytes(data)
    return Cell(Golden(golden.manifest, folder, golden.sources), job.reader, job.platform, golden.mode, job.target)
