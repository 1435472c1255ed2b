"""The finding about conversion: how many of the cells that fail it heals, by what, and why not the others."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from export_core.base.phrases import plural
from export_core.judge import Result
from export_core.judge.result import Healing, Level
from export_core.judge.verdicts import VERDICTS, Kind
from export_core.report.document import Finding
from export_core.report.wording import HEALED_BY, first_lines, writer_and_reader
from export_core.run.run import Run

CONVERSION = Kind("CONVERSION", 7)


def healing_findings(run: Run) -> Iterator[Finding]:
    """One finding where conversion was tried (`--convert`), else none."""
    tried = [(result, result.healing) for result in run.results if result.healing]
    if not tried:
        return
    healed = {level: [result for result, one in tried if one.heals and one.level is level] for level in Level}
    by = [f"{len(cells):,} by {HEALED_BY[level]}" for level, cells in healed.items() if cells]
    number = sum(map(len, healed.values()))
    counts = Counter(_reason(healing) for _, healing in tried if not healing.heals)
    example = next((cells[0] for cells in reversed(healed.values()) if cells), None)
    yield Finding(
        CONVERSION,
        2_000_000,
        f"It heals {number:,} of {plural(len(tried), 'failing cell')}{': ' if by else ''}{', '.join(by)}.",
        (
            ("not healed", "\n".join(first_lines([f"{count:,}: {reason}" for reason, count in counts.most_common()]))),
            ("example", writer_and_reader(example) if example else ""),
            ("to do", _command(example, run.policy.goldens) if example else ""),
        ),
        tuple(result for result, _ in tried),
    )


def _reason(healing: Healing) -> str:
    """Why a cell is not healed, without the name of its artifact, which a message begins with."""
    if healing.verdict is None:
        return healing.message.split(": ", 1)[-1]
    return f"the converted artifact {VERDICTS[healing.verdict].phrase} in {healing.message}"


def _command(example: Result, goldens: str) -> str:
    """The command that writes the converted golden of a healed cell."""
    replace = ["--replace-custom-calls"] if example.healing and example.healing.level is Level.CUSTOM_CALLS else []
    words = ["jaxexport", "convert", f"{goldens}/{example.golden}", "--for", example.reader.jaxlib, *replace]
    return shlex.join([*words, "-o", "converted"])
