"""Whether conversion fixes cells that fail: each is converted for its reader, as little as possible, and replayed."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import structs

from export_core.base.errors import ExportCompatError
from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import (
    UNCHANGED,
    ModuleJob,
    RewriteModules,
    RewrittenModules,
    convert,
    find_reader,
)
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.programs import ModuleRewriter
from export_core.features.convert.proof import converted_golden, evidence_of, unstored_golden
from export_core.judge.result import FixByConversion, Level, Result, grouped
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.outcome import Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy.run_options import RunOptions
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode


def with_conversions(
    results: Sequence[Result],
    cells: Sequence[Cell],
    asked: RunOptions,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Sequence[Result]:
    """With `--convert`, add the result of a conversion to each result of a cell that failed on a CPU.

    No judgement changes. `options` say how converted artifacts are replayed; `notify` is called with a line about what
    happens meanwhile.
    """
    if not asked.convert:
        return results
    failing = {result.key for result in results if can_be_tried(result)}
    tried = [cell for cell in cells if cell.key in failing]
    rewrite_modules = ModuleRewriter(options.calendar, notify)  # where the envelope is not enough
    fixes = {cell.key: fix for cell, fix in try_conversions(tried, rewrite_modules, options, notify)}
    return [structs.replace(result, fixed_by_conversion=fixes.get(result.key)) for result in results]


def can_be_tried(result: Result) -> bool:
    """Whether a cell fails in a way that conversion may fix: it was run on a CPU, and its artifact was there."""
    fails = result.verdict.fails
    return fails and result.platform == "cpu" and result.mode is Mode.RUN and not result.converted


def try_conversions(
    cells: Sequence[Cell], rewrite_modules: RewriteModules, options: ReplayOptions, notify: Callable[[str], None]
) -> Iterator[tuple[Cell, FixByConversion]]:
    """Convert the artifact of each cell for its reader, and replay it there: each with its result. Nothing is kept."""
    # One replay for each reader: in it, the id of a golden stands for one artifact.
    by_reader = grouped(cells, lambda cell: (cell.reader.jaxlib, cell.reader.jax))
    for _, group in sorted(by_reader.items()):
        with scratch_folder() as scratch, ThreadPoolExecutor(options.limits.jobs) as threads:
            folders = [scratch / str(number) for number in range(len(group))]
            attempts = list(threads.map(partial(_attempt, rewrite_modules, options), group, folders))
            made = {}
            for original, (cell, fix) in zip(group, attempts, strict=True):
                if cell is None:
                    yield original, fix
                else:
                    made[cell.key] = original, cell, fix
            for outcome in replay_here([cell for _, cell, _ in made.values()], options, notify=notify):
                original, _, fix = made[outcome.cell.key]
                if outcome.verdict in (Verdict.PASS, Verdict.CONVERTED):
                    yield original, structs.replace(fix, verdict=Verdict.CONVERTED)
                else:
                    message = f"stage {outcome.stage}: {outcome.message}"
                    yield original, structs.replace(fix, verdict=outcome.verdict, message=message)


def _attempt(
    rewrite_modules: RewriteModules, options: ReplayOptions, cell: Cell, folder: Path
) -> tuple[Cell | None, FixByConversion]:
    """A cell of the converted golden, by the first level that does it, and what was rewritten; or why none does it."""
    try:
        if cell.platform != "cpu" or cell.mode is Mode.COMPILE:
            raise ConversionRefused(f"not tried: conversions are verified on the CPU, not on {cell.platform}.")
        artifact = cell.golden.read_artifact()
        reader = find_reader(cell.reader.jaxlib, options.calendar)
        allow = {**cell.golden.manifest.options.allow, **options.policy.allow}
        try:
            converted = convert(artifact, reader, rewrite_modules, allow=allow)
            level = Level.MODULE if converted.module_by else Level.ENVELOPE
        except ConversionRefused:
            converted = convert(artifact, reader, rewrite_modules, replace_custom_calls=True, allow=allow)
            level = Level.CUSTOM_CALLS
        if converted.way == UNCHANGED:
            raise ConversionRefused(f"nothing to convert: {converted.why}, and it fails there for another reason.")
        made = converted_golden(evidence_of(cell.golden), converted)
        golden = unstored_golden(*made, folder, options.policy)
    except ExportCompatError as error:
        return None, FixByConversion(message=str(error))
    return replace(cell, golden=golden), FixByConversion(level, None, "; ".join(converted.rewrites))


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
