"""What travels to another machine, and comes back? Cells of one reader with the content of their goldens; an outcome for each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from export_core.goldens import Golden, Manifest
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.cell import Cell, Mode, Outcome, Stage, Verdict
from export_core.matrix.compare import Difference
from export_core.matrix.environments import Environment, build_environment
from export_core.matrix.run import EnvironmentOf, Limits, replay
from export_core.releases import Calendar, Release


@dataclass(frozen=True)
class Content:
    """A golden as it travels: its manifest, and the bytes of each file but those for the eye."""

    manifest: Manifest
    files: Mapping[str, bytes]
    mode: Mode


@dataclass(frozen=True)
class Job:
    """Cells of one reader on one platform, with everything it takes to run them where nothing else of the project is.

    `tool` is the code that asks: another one may see other things, and its outcomes are not mixed in.
    """

    reader: Release
    platform: str
    goldens: tuple[Content, ...]
    calendar: Calendar
    limits: Limits
    allow: Mapping[str, str]
    tool: str


@dataclass(frozen=True)
class Ended:
    """An outcome without its cell."""

    stage: Stage
    verdict: Verdict
    message: str
    signal: int | None
    stderr: str
    difference: Difference | None
    seconds: float

    def of(self, cell: Cell) -> Outcome:
        """The outcome of this cell."""
        return Outcome(cell, **vars(self))


@dataclass(frozen=True)
class Done:
    """What comes back: an outcome for each golden of the job, in its order, and what was told on the way."""

    ended: tuple[Ended, ...]
    notes: tuple[str, ...] = ()


def make_job(cells: Sequence[Cell], calendar: Calendar, limits: Limits, allow: Mapping[str, str]) -> Job:
    """A job of cells that share their reader and platform. Reads the files of their goldens."""
    first = cells[0]
    contents = tuple(
        Content(
            cell.golden.manifest,
            {
                name: (cell.golden.folder / name).read_bytes()
                for name in cell.golden.manifest.files
                if name not in FOR_THE_EYE
            },
            cell.mode,
        )
        for cell in cells
    )
    return Job(first.reader, first.platform, contents, calendar, limits, allow, tool())


def run_job(job: Job, environment_of: EnvironmentOf | None = None) -> Done:
    """Run a job here: build the reader's environment, replay each cell cold. Never raises for what a cell does."""
    if job.tool != tool():
        problem = (
            f"the worker has pytest-jaxexport {tool()}, and who asks has {job.tool}: install the same on all machines"
        )
        refused = Ended(Stage.ENVIRONMENT, Verdict.NOT_RUN, problem, None, "", None, 0.0)
        return Done((refused,) * len(job.goldens))

    def build(release: Release) -> Environment:
        return build_environment(release, job.calendar)

    notes: list[str] = []
    ended: dict[str, Ended] = {}
    with tempfile.TemporaryDirectory(prefix="jaxexport-") as scratch:
        cells = [_unpacked(content, job, Path(scratch) / str(number)) for number, content in enumerate(job.goldens)]
        for outcome in replay(
            cells, environment_of or build, job.calendar, limits=job.limits, allow=job.allow, notify=notes.append
        ):
            told = {name: value for name, value in vars(outcome).items() if name != "cell"}
            ended[outcome.cell.id] = Ended(**told)
        return Done(tuple(ended[cell.id] for cell in cells), tuple(notes))


def tool() -> str:
    """Which code of this project runs here."""
    return version("pytest-jaxexport")


def _unpacked(content: Content, job: Job, folder: Path) -> Cell:
    folder.mkdir()
    for name, data in content.files.items():
        (folder / name).write_bytes(data)
    return Cell(Golden(content.manifest, folder), job.reader, job.platform, content.mode)
