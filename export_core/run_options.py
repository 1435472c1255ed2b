"""How a matrix is run, and the commands that run its cells in the same way again."""

from __future__ import annotations

import datetime
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.matrix import Cell, Limits, Plan, Selection
from export_core.matrix.limits import GIB
from export_core.matrix.shards import Shard
from export_core.urls import without_credentials
from export_core.variables import kernel_settings

RESULTS = Path(".jaxexport")
"""The folder of results unless another is named."""
REPRODUCED = "reproduced"
"""The folder, inside `RESULTS`, for the results of a command that runs one cell again."""


@dataclass(frozen=True)
class RunOptions:
    """How a matrix is run: the options of `jaxexport matrix` beside those of a `Selection`."""

    results: Path | None = RESULTS
    """The folder for results.jsonl and summary.json; None writes nothing."""
    goldens: Path | None = None
    """The folder of goldens; None is that of the policy."""
    policy_file: str | None = None
    """The file of the policy; None is that of the project."""
    as_of: datetime.date | None = None
    """The day for which cells are judged; None is today."""
    shard: Shard | None = None
    """A part of the plan; None is all of it."""
    executor: str = "local"
    """`local`, or `dask:ADDRESS`."""
    jobs: int | None = None
    """How many cells run at once; None is the number of cores here, and 1 in each task on a cluster."""
    device_jobs: int = 1
    """How many cells run at once on an accelerator."""
    timeout: float = 120.0
    """Seconds for one cell."""
    memory: int = 8 * GIB
    """Bytes for one cell."""
    resume: bool = False
    """Whether to continue the run in `results`."""
    cache: bool = True
    """Whether to reuse outcomes of earlier runs."""
    repeat: int = 0
    """How many more times each cell makes its call, for its time alone."""
    dump_ir: Path | None = None
    """A folder for every module as text; None writes none."""
    convert: bool = False
    """Whether each cell that fails is converted for its reader, to see whether that heals it."""

    @property
    def limits(self) -> Limits:
        """The limits of each cell."""
        cores = 1 if self.executor != "local" else os.cpu_count() or 1
        return Limits(self.jobs or cores, self.timeout, self.memory, device_jobs=self.device_jobs, repeat=self.repeat)


def command_options(selection: Selection, options: RunOptions) -> list[str]:
    """The command-line options with which other cells of the same goldens would run just as these do.

    Options that choose among the cells are left out, and so is the folder of results.
    """
    defaults = RunOptions()
    words = [
        ("--goldens", options.goldens),
        ("--policy", options.policy_file),
        ("--as-of", options.as_of),
        *(("--target", target) for target in selection.targets),
        *(("--wheels", folder) for folder in selection.wheels),
        *(("--index", without_credentials(url)) for url in selection.indexes),
        ("--executor", without_credentials(options.executor) if options.executor != defaults.executor else None),
        ("--timeout", f"{options.timeout:g}" if options.timeout != defaults.timeout else None),
        ("--memory", f"{options.memory / GIB:g}" if options.memory != defaults.memory else None),
        ("--repeat", options.repeat or None),
    ]
    return [word for option, value in words if value is not None for word in (option, str(value))]


def reproduce_options(selection: Selection, options: RunOptions) -> list[str]:
    """What the commands that reproduce the cells of a run have in common.

    Their results have a folder of their own, since a run replaces what is in its folder.
    """
    results = RESULTS / REPRODUCED
    if options.results and options.results.resolve() == results.resolve():  # this run reproduces another one
        results /= REPRODUCED
    # An outcome from the cache would reproduce nothing.
    return [*command_options(selection, options), "--no-cache", "--results", str(results)]


def reproduce_command(plan: Plan, cell: Cell, options: Sequence[str]) -> str:
    """The shell command that runs one cell of a plan again, just as it was run; `options` of `reproduce_options`."""
    golden = cell.golden.manifest
    reader = plan.spelled.get(cell.reader, cell.reader.jaxlib)
    # Without the mode, another machine would run what this one compiled, or the other way round.
    platform = cell.platform if cell.platform == "cpu" else f"{cell.platform}:{cell.mode}"
    words = ["jaxexport", "matrix", "--cases", golden.case, "--writers", golden.writer.jaxlib]
    command = shlex.join([*words, "--readers", reader, "--platforms", platform, *options])
    return " ".join([*kernel_settings(os.environ), command])
