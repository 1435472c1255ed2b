"""The finding about conversion: how many of the cells that fail it fixes, by what, and why not the others."""

import shlex
from collections import Counter
from collections.abc import Iterator

from export_core.base.phrases import plural
from export_core.judge import Result
from export_core.judge.result import FixByConversion, Level
from export_core.judge.verdicts import VERDICTS, Kind
from export_core.report.document import Finding
from export_core.report.wording import FIXED_BY, first_lines, writer_and_reader
from export_core.run.run import Run

CONVERSION = Kind("CONVERSION", 7)


def conversion_findings(run: Run) -> Iterator[Finding]:
    """One finding where conversion was tried (`--convert`), else none."""
    tried = [(result, result.fixed_by_conversion) for result in run.results if result.fixed_by_conversion]
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
    """Why a cell is not fixed, without the name of its artifact, which a message begins with."""
    if fix.verdict is None:
        return fix.message.split(": ", 1)[-1]
    return f"the converted artifact {VERDICTS[fix.verdict].phrase} in {fix.message}"


def _command(example: Result, goldens: str) -> str:
    """The command that writes the converted golden of a fixed cell."""
    fix = example.fixed_by_conversion
    replace = ["--replace-custom-calls"] if fix and fix.level is Level.CUSTOM_CALLS else []
    words = ["jaxexport", "convert", f"{goldens}/{example.golden}", "--for", example.reader.jaxlib, *replace]
    return shlex.join([*words, "-o", "converted"])
