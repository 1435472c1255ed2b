"""What travels to another machine, and comes back? Cells of one reader with the content of their goldens; an outcome for each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.environments.environment import PUBLISHED, Sources
from export_core.environments.placement import Mode, Target
from export_core.goldens import Golden, Manifest
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.matrix.fingerprints import tool
from export_core.matrix.limits import Limits
from export_core.matrix.local_replay import replay_here
from export_core.matrix.outcome_cache import Kept
from export_core.releases import Calendar, Release
from export_core.tolerances import Tolerances
from export_core.worker.protocol import Stage


@dataclass(frozen=True)
class How:
    """What is the same for all jobs of a run. Wheels in `sources` do not travel: each machine must have them at the same path.

    `tool` is the code that asks: another one may see other things, and its outcomes are not mixed in.
    """

    calendar: Calendar
    limits: Limits
    allow: Mapping[str, str]
    tolerances: Tolerances
    tool: str
    sources: Sources = PUBLISHED
    cache: bool = False


@dataclass(frozen=True)
class Content:
    """A golden as it travels: its manifest, and the bytes of each file but those for the eye."""

    manifest: Manifest
    files: Mapping[str, bytes]
    mode: Mode


@dataclass(frozen=True)
class Job:
    """Cells of one reader on one platform, with everything it takes to run them where nothing else of the project is."""

    reader: Release
    platform: str
    goldens: tuple[Content, ...]
    how: How
    target: Target | None = None


@dataclass(frozen=True)
class Done:
    """What comes back: an outcome for each golden of the job, in its order, and what was told on the way.

    `where` is the machine that ran it, as its cluster names it; empty where that has no names.
    """

    ended: tuple[Kept, ...]
    notes: tuple[str, ...] = ()
    where: str = ""


def make_job(cells: Sequence[Cell], how: How) -> Job:
    """A job of cells that share their reader and platform. Reads the files of their goldens."""
    first = cells[0]
    return Job(first.reader, first.platform, tuple(_packed(cell) for cell in cells), how, first.target)


def run_job(job: Job, replay: Callable[..., Generator[Outcome, None, None]] = replay_here) -> Done:
    """Run a job here: build the reader's environment, replay each cell cold. Never raises for what a cell does."""
    how = job.how
    if problem := _unable(how):
        return Done(
            tuple(
                Kept(Stage.ENVIRONMENT, Verdict.NOT_RUN, problem, None, "", None, 0.0, mode=content.mode)
                for content in job.goldens
            )
        )
    notes: list[str] = []
    ended: dict[str, Kept] = {}
    with tempfile.TemporaryDirectory(prefix="jaxexport-") as scratch:
        cells = [_unpacked(content, job, Path(scratch) / str(number)) for number, content in enumerate(job.goldens)]
        for outcome in replay(
            cells,
            how.calendar,
            how.sources,
            limits=how.limits,
            allow=how.allow,
            tolerances=how.tolerances,
            cache=how.cache,
            notify=notes.append,
        ):
            ended[outcome.cell.id] = Kept(*(getattr(outcome, name) for name in Kept.__struct_fields__))
        return Done(tuple(ended[cell.id] for cell in cells), tuple(notes))


def _unable(how: How) -> str:
    """Why this machine runs none of it; empty where it can."""
    if how.tool != tool():
        return (
            f"the worker has pytest-jaxexport {tool()}, and who asks has {how.tool}: install the same on all machines"
        )
    lacking = [str(wheel.path) for wheel in (*how.sources.files, *how.sources.held) if not wheel.path.exists()]
    if lacking:
        return f"the worker has no {', '.join(lacking)}: wheels do not travel, put them where all machines see them"
    return ""


def _packed(cell: Cell) -> Content:
    manifest = cell.golden.manifest
    names = [name for name in manifest.files if name not in FOR_THE_EYE]
    return Content(manifest, {name: (cell.golden.folder / name).read_bytes() for name in names}, cell.mode)


def _unpacked(content: Content, job: Job, folder: Path) -> Cell:
    folder.mkdir()
    for name, data in content.files.items():
        (folder / name).write_bytes(data)
    return Cell(Golden(content.manifest, folder), job.reader, job.platform, content.mode, job.target)
