"""Whether conversion fixes failing cells: each is converted for its reader, with the fewest rewrites, and replayed.

Also the finding about it: how many cells it fixes, by which rewrites, and why not the others.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import structs

from export_core.artifact.audit import WITH_XLA, only_jax, targets_of_jax
from export_core.base.errors import ExportCompatError
from export_core.base.scratch import scratch_folder
from export_core.base.text import plural
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
from export_core.features.convert.fix import FIX, FIXED_BY, FixByConversion, Level
from export_core.features.convert.programs import ModuleRewriter
from export_core.features.convert.proof import converted_golden, evidence_of, write_unstored
from export_core.knowledge import NO, forecasts_when_converted
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import Cells, Result
from export_core.matrix.verdicts import VERDICTS, FindingKind, Verdict
from export_core.numbers.nothing_compared import nothing_compared
from export_core.readers.cell import Cell, CellKey
from export_core.readers.placement import Mode
from export_core.report.document import Finding
from export_core.report.wording import first_lines, writer_and_reader
from export_core.run.run import Run


def with_conversions(
    results: Sequence[Result], cells: Sequence[Cell], options: ReplayOptions, notify: Callable[[str], None]
) -> Sequence[Result]:
    """Add the outcome of a conversion to the result of each cell that failed on a CPU (`--convert`).

    Judgements are unchanged.

    Args:
        results: The results of all cells.
        cells: The cells.
        options: How converted artifacts are replayed.
        notify: Gets a line about what happens.
    """
    rewrite_modules = ModuleRewriter(options.calendar, notify)  # where the envelope is not enough
    planned, fixes = {cell.key: cell for cell in cells}, dict[CellKey, FixByConversion]()
    for failing in Cells([result for result in results if can_be_tried(result)]).by_reader.values():
        tried = [planned[result.key] for result in failing.results]
        fixes |= {cell.key: fix for cell, fix in try_conversions(tried, rewrite_modules, options, notify)}
    return [structs.replace(result, facts=FIX.put(result.facts, fixes.get(result.key))) for result in results]


def can_be_tried(result: Result) -> bool:
    """Return whether conversion may fix a cell: it was run on a CPU and failed, with its original artifact."""
    fails = result.verdict.fails
    return fails and result.platform == "cpu" and result.mode is Mode.RUN and not result.converted


def try_conversions(
    cells: Sequence[Cell], rewrite_modules: RewriteModules, options: ReplayOptions, notify: Callable[[str], None]
) -> Iterator[tuple[Cell, FixByConversion]]:
    """Convert the artifact of each cell for its reader, replay it there, and yield each cell with the outcome.

    The cells must have the same reader, since a replay tells artifacts apart by the id of their golden. Nothing is
    stored.
    """
    with scratch_folder() as scratch, ThreadPoolExecutor(options.limits.jobs) as threads:
        folders = [scratch / str(number) for number in range(len(cells))]
        attempts = list(threads.map(partial(_attempt, rewrite_modules, options), cells, folders))
        made = {}
        for original, (cell, fix) in zip(cells, attempts, strict=True):
            if cell is None:
                yield original, fix
            else:
                made[cell.key] = original, cell, fix
        for cell, outcome in replay_here([cell for _, cell, _ in made.values()], options, notify=notify):
            original, _, fix = made[cell.key]
            if outcome.verdict in (Verdict.PASS, Verdict.CONVERTED):
                if nothing := nothing_compared(original.golden, "cpu", options.policy.tolerances, options.user_code):
                    yield original, FixByConversion(message=f"not shown: it runs, and nothing was compared: {nothing}")
                    continue
                yield original, structs.replace(fix, verdict=Verdict.CONVERTED)
            else:
                message = f"stage {outcome.stage}: {outcome.message}"
                yield original, structs.replace(fix, verdict=outcome.verdict, message=message)


def _attempt(
    rewrite_modules: RewriteModules, options: ReplayOptions, cell: Cell, folder: Path
) -> tuple[Cell | None, FixByConversion]:
    """Convert a cell's golden, with custom calls replaced only if nothing less helps; return the new cell.

    The second value says what was rewritten. If no conversion is possible, the cell is None and the second value says
    why.
    """
    try:
        if cell.platform != "cpu" or cell.mode is Mode.COMPILE:
            raise ConversionRefused(f"not tried: conversions are verified on the CPU, not on {cell.platform}.")
        try:
            converted = _convert(cell, options, rewrite_modules)
            level = Level.MODULE if converted.module_by else Level.ENVELOPE
        except ConversionRefused:
            converted = _convert(cell, options, rewrite_modules, replace_custom_calls=True)
            level = Level.CUSTOM_CALLS
        if converted.way == UNCHANGED:
            raise ConversionRefused(f"nothing to convert: {converted.why}, and the cell fails for another reason.")
        made = _with_artifact(cell, converted, options, folder)
    except ExportCompatError as error:
        return None, FixByConversion(message=str(error))
    return made, FixByConversion(level, None, "; ".join(converted.rewrites))


def _convert(
    cell: Cell, options: ReplayOptions, rewrite_modules: RewriteModules, *, replace_custom_calls: bool = False
) -> Converted:
    """Convert the artifact of a cell for its reader."""
    golden, reader = cell.golden, find_reader(cell.reader.name, options.calendar)
    allow = {**golden.compared_as.allow, **options.policy.allow}
    artifact = golden.read_artifact()
    return convert(artifact, reader, rewrite_modules, replace_custom_calls=replace_custom_calls, allow=allow)


def _with_artifact(cell: Cell, converted: Converted, options: ReplayOptions, folder: Path) -> Cell:
    """Return the cell with a golden, in a new folder, that has the converted artifact."""
    made = converted_golden(evidence_of(cell.golden), converted)
    golden = write_unstored(*made, folder, options.policy)
    return replace(cell, golden=golden.compared(cell.golden.compared_as))


def converted_cell(cell: Cell, options: ReplayOptions, folder: Path, notify: Callable[[str], None]) -> Cell | None:
    """Return the cell with its artifact converted for its reader.

    None if the reader takes the original, or if it cannot be converted. Custom calls are not replaced, since that would
    be a different algorithm.
    """
    try:
        converted = _convert(cell, options, ModuleRewriter(options.calendar, notify))
        return None if converted.way == UNCHANGED else _with_artifact(cell, converted, options, folder)
    except ExportCompatError:
        return None


def remedy(cell: Cell, options: ReplayOptions) -> str:
    """Return a sentence that says whether `jaxexport convert` can help a failing cell, with the command if so.

    Nothing is rewritten here.
    """
    jobs: list[ModuleJob] = []

    def rewrite(job: ModuleJob) -> RewrittenModules:
        jobs.append(job)
        raise ConversionRefused("its module has to be rewritten, which is not tried when only advice is asked for")

    command = f"jaxexport convert {shlex.quote(str(cell.golden.artifact))} --for {cell.reader.name}"
    try:
        done = _convert(cell, options, rewrite, replace_custom_calls=True)
    except ExportCompatError as error:
        if not jobs:
            return f"It cannot be converted: {error.message().partition(': not converted')[2].partition(': ')[2]}"
        option = " --replace-custom-calls" if jobs[0].replace else ""
        if option and cell.reader.runtime and cell.reader.family not in WITH_XLA:
            return f"Conversion seldom helps: {cell.reader.title} lacks most of what replaces its custom calls."
        # None that the golden allows is replaced. It allows them in a jaxlib.
        others = (*jobs[0].replace, *options.policy.allow)
        left = [call for call in targets_of_jax(cell.golden.manifest.custom_calls) if call not in others]
        if option and cell.reader.runtime and left:
            return f"Conversion does not help: {only_jax(left)}."
        if cell.reader.runtime and not option:
            reader = find_reader(cell.reader.name, options.calendar)
            (then,) = forecasts_when_converted(cell.golden.read_artifact(), [reader], cell.platform)
            if then.spoiled.answer == NO:
                why = "; ".join(map(str, then.spoiled.reasons))
                return f"Conversion does not help: afterwards {reader.release.title} {then.in_words} either: {why}."
        what = "its custom calls are replaced" if option else "its module is rewritten"
        return f"Convert it, and verify it there: `{command}{option} -o OUT` ({what})."
    if not done.rewrites:
        return "Conversion does not help: the reader takes the artifact as it is, and fails later."
    return f"Convert it, and verify it there: `{command} -o OUT` (only its envelope is rewritten)."


CONVERSION = FindingKind("CONVERSION", 7)


def conversion_findings(run: Run) -> Iterator[Finding]:
    """Yield one finding on how many failing cells conversion fixes, if that was tried (`--convert`)."""
    tried = [(result, fix) for result in run.results if (fix := FIX.of(result.facts))]
    if not tried:
        return
    fixed = {level: [result for result, one in tried if one.fixes and one.level is level] for level in Level}
    by = [f"{len(cells):,} by {FIXED_BY[level]}" for level, cells in fixed.items() if cells]
    number = sum(map(len, fixed.values()))
    counts = Counter(_reason(fix) for _, fix in tried if not fix.fixes)
    example = next((cells[0] for cells in reversed(fixed.values()) if cells), None)
    yield Finding(
        CONVERSION,
        2_000_000,
        f"It fixes {number:,} of {plural(len(tried), 'failing cell')}{': ' if by else ''}{', '.join(by)}.",
        (
            ("not fixed", first_lines([f"{count:,}: {reason}" for reason, count in counts.most_common()])),
            ("example", writer_and_reader(example) if example else ""),
            ("to do", _command(example, run.policy.goldens) if example else ""),
        ),
        tuple(result for result, _ in tried),
    )


def _reason(fix: FixByConversion) -> str:
    """Return why a cell is not fixed, without the artifact's name at the beginning of the message."""
    if fix.verdict is None:
        return fix.message.split(": ", 1)[-1]
    return f"the converted artifact {VERDICTS[fix.verdict].phrase} in {fix.message}"


def _command(example: Result, goldens: str) -> str:
    """Return the command that writes the converted golden of a fixed cell."""
    fix = FIX.of(example.facts)
    replace = ["--replace-custom-calls"] if fix and fix.level is Level.CUSTOM_CALLS else []
    words = ["jaxexport", "convert", f"{goldens}/{example.golden}", "--for", example.reader.name, *replace]
    return shlex.join([*words, "-o", "converted"])
