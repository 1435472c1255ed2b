"""Whether conversion heals cells that fail: each is converted for its reader, as little as possible, and replayed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from export_core.base.errors import ExportCompatError
from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import (
    UNCHANGED,
    Converted,
    ModuleJob,
    RewriteModules,
    RewrittenModules,
    convert,
    find_reader,
)
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.programs import ModuleRewriter
from export_core.features.convert.proof import converted_golden, evidence_of, unstored_golden
from export_core.goldens.store import ARTIFACT
from export_core.judge.result import Healing, Level, Result, grouped
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.outcome import Verdict
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode

if TYPE_CHECKING:
    from export_core.matrix.replay_options import ReplayOptions
    from export_core.policy.run_options import RunOptions


def with_healings(
    results: Sequence[Result],
    cells: Sequence[Cell],
    asked: RunOptions,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Sequence[Result]:
    """With `--convert`, add the result of a conversion to each result of a cell that failed on a CPU.

    No judgement changes.

    Args:
        results: of the cells.
        cells: of the plan.
        asked: the options of the run.
        options: how converted artifacts are replayed.
        notify: called with a line about what happens meanwhile.
    """
    if not asked.convert:
        return results
    # Where the envelope is not enough.
    rewrite_modules = ModuleRewriter(options.calendar, notify)
    failing = {result.key for result in results if can_be_tried(result)}
    tried = [cell for cell in cells if cell.key in failing]
    healings = {cell.key: healing for cell, healing in heal(tried, rewrite_modules, options, notify)}
    return [structs.replace(result, healing=healings.get(result.key)) for result in results]


def can_be_tried(result: Result) -> bool:
    """Whether a cell fails in a way that conversion may heal: it was run on a CPU, and its artifact was there."""
    fails = result.verdict.fails
    return fails and result.platform == "cpu" and result.mode is Mode.RUN and not result.converted


@dataclass(frozen=True)
class _Made:
    """A cell of the converted artifact of another cell."""

    original: Cell
    cell: Cell
    level: Level
    rewrites: tuple[str, ...]


def heal(
    cells: Sequence[Cell],
    rewrite_modules: RewriteModules,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Iterator[tuple[Cell, Healing]]:
    """Convert the artifact of each cell for its reader, and replay it there. Nothing is kept.

    Args:
        cells: failing cells. Each is yielded once, with its result.
        rewrite_modules: called where a module has to be rewritten.
        options: how converted artifacts are replayed.
        notify: called with a line about what happens meanwhile.
    """
    # One replay for each reader: in it, the id of a golden stands for one artifact.
    readers = grouped(cells, lambda cell: (cell.reader.jaxlib, cell.reader.jax))
    for _, group in sorted(readers.items()):
        with scratch_folder() as scratch:
            yield from _heal_in_one_reader(group, rewrite_modules, options, notify, scratch)


def _heal_in_one_reader(
    cells: Sequence[Cell],
    rewrite_modules: RewriteModules,
    options: ReplayOptions,
    notify: Callable[[str], None],
    scratch: Path,
) -> Iterator[tuple[Cell, Healing]]:
    def make(number: int, cell: Cell) -> _Made | Healing:
        try:
            return _made(cell, rewrite_modules, options, scratch / str(number))
        except ExportCompatError as error:
            return Healing(message=str(error))

    with ThreadPoolExecutor(options.limits.jobs) as threads:
        tried = list(threads.map(make, range(len(cells)), cells))
    made = {}
    for cell, one in zip(cells, tried, strict=True):
        if isinstance(one, Healing):
            yield cell, one
        else:
            made[one.cell.key] = one
    for outcome in replay_here([one.cell for one in made.values()], options, notify=notify):
        one = made[outcome.cell.key]
        if outcome.verdict in (Verdict.PASS, Verdict.CONVERTED):
            yield one.original, Healing(one.level, Verdict.CONVERTED, "; ".join(one.rewrites))
        else:
            yield one.original, Healing(one.level, outcome.verdict, f"stage {outcome.stage}: {outcome.message}")


def _made(cell: Cell, rewrite_modules: RewriteModules, options: ReplayOptions, folder: Path) -> _Made:
    """Convert the golden of a cell, by the first level that does it. Raises `ExportCompatError` where none does."""
    if cell.platform != "cpu" or cell.mode is Mode.COMPILE:
        raise ConversionRefused(f"not tried: conversions are verified on the CPU, not on {cell.platform}.")
    converted, level = _converted(cell, rewrite_modules, options)
    if converted.way == UNCHANGED:
        raise ConversionRefused(f"nothing to convert: {converted.why}, and it fails there for another reason.")
    evidence = evidence_of(cell.golden)
    made = converted_golden(evidence, converted, converted.origin(evidence.manifest.files[ARTIFACT]))
    golden = unstored_golden(*made, folder, options.policy)
    return _Made(cell, replace(cell, golden=golden), level, converted.rewrites)


def _converted(cell: Cell, rewrite_modules: RewriteModules, options: ReplayOptions) -> tuple[Converted, Level]:
    """What its reader takes, without other custom calls if that is enough. Raises `ConversionRefused`."""
    artifact = cell.golden.read_artifact()
    reader = find_reader(cell.reader.jaxlib, options.calendar)
    allow = {**cell.golden.manifest.options.allow, **options.policy.allow}
    try:
        done = convert(artifact, reader, rewrite_modules, allow=allow)
    except ConversionRefused:
        done = convert(artifact, reader, rewrite_modules, replace_custom_calls=True, allow=allow)
        return done, Level.CUSTOM_CALLS
    return done, Level.MODULE if done.module_by else Level.ENVELOPE


def remedy(cell: Cell, options: ReplayOptions) -> str:
    """Whether `jaxexport convert` makes an artifact that the reader takes, as a step. Nothing is rewritten here."""
    golden = cell.golden
    jobs: list[ModuleJob] = []

    def rewrite(job: ModuleJob) -> RewrittenModules:
        jobs.append(job)
        raise ConversionRefused("its module would have to be rewritten")

    command = f"jaxexport convert {shlex.quote(str(golden.artifact))} --for {cell.reader.jaxlib}"
    try:
        reader = find_reader(cell.reader.jaxlib, options.calendar)
        allow = {**golden.manifest.options.allow, **options.policy.allow}
        done = convert(golden.read_artifact(), reader, rewrite, replace_custom_calls=True, allow=allow)
    except ExportCompatError as error:
        if not jobs:
            return f"It cannot be converted: {error.message().partition(': not converted')[2].partition(': ')[2]}"
        option = " --replace-custom-calls" if jobs[0].replace else ""
        what = "its custom calls are replaced" if option else "its module is rewritten"
        return f"Convert it, and verify it there: `{command}{option} -o OUT` ({what})."
    if not done.rewrites:
        return "Conversion does not help: the reader takes the artifact as it is, and fails later."
    return f"Convert it, and verify it there: `{command} -o OUT` (its envelope alone is rewritten)."
