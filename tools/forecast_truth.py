"""A comparison of forecasts with cells that were run: ``python -m tools.forecast_truth [RESULTS_DIR…]``.

It takes the cells of these folders of results, such as those of `nox -s runtimes`, or else all cells of
docs/evidence/surface.csv, and of studies/runtimes/record.json for other runtimes. With `--heldout SET`, it writes and
runs programs from which no entry of the knowledge base was made. The exit code is 1 if a cell that was forecast to run
has failed, or if too many forecasts are unknown.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from export_core.artifact import Artifact, read
from export_core.artifact.readers import Reader
from export_core.goldens import Golden
from export_core.goldens.manifest_file import load_manifest
from export_core.goldens.store import MANIFEST
from export_core.knowledge import NO, UNKNOWN, YES, Forecast, forecast
from export_core.knowledge.forecasting import MATRIX
from export_core.matrix.verdicts import Verdict
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries
from export_core.run.results import read_run
from studies.forecast_heldout import session
from studies.runtimes.record import LETTERS, RECORD, read_record
from studies.runtimes.record import UNKNOWN as NO_CELL
from tools import surface_page

GOLDENS = Path(__file__).parents[1] / "golden"
MOST_UNKNOWN = 0.02  # of the cells of jaxlib
MOST_UNKNOWN_ELSEWHERE = 0.25
SHOWN = 40


class RunCell(NamedTuple):
    """A cell that was run, and whether it worked."""

    golden: str
    reader: str  # The reader's name, such as 0.12.0 or iree==3.13.0.
    jax: str  # The reader's version of jax. Empty if its runtime is not jaxlib.
    platform: str
    worked: bool
    outcome: str  # What happened, such as "refused: …".


def surface_cells() -> Iterator[RunCell]:
    """Yield the cells of docs/evidence/surface.csv."""
    for golden, by_reader in surface_page.read(surface_page.DATA).items():
        for name, outcome in by_reader.items():
            jaxlib, _, jax = name.removesuffix(")").partition(" (jax ")
            yield RunCell(golden, jaxlib, jax or jaxlib, "cpu", outcome.endswith(" pass"), outcome)


def runtime_cells() -> Iterator[RunCell]:
    """Yield the cells of studies/runtimes/record.json that ran: all goldens in runtimes other than jaxlib."""
    record, verdicts = read_record(RECORD), {letter: verdict for verdict, letter in LETTERS.items()}
    for name, reader in record.readers.items():
        for golden, letter in zip(record.goldens, reader.verdicts, strict=True):
            if letter not in (NO_CELL, LETTERS[Verdict.NOT_RUN]):
                yield RunCell(golden, name, "", "cpu", verdicts[letter].works, str(verdicts[letter]))


def cells_of(folder: Path) -> Iterator[RunCell]:
    """Yield the cells of a stored run that were executed, without those that were only compiled, or were converted."""
    for result in read_run(folder).results:
        if result.verdict not in (Verdict.NOT_RUN, Verdict.COMPILED) and not result.converted:
            outcome = f"{result.verdict}: {result.ending}"
            yield RunCell(
                result.golden, result.reader.name, result.reader.jax, result.platform, result.verdict.works, outcome
            )


@functools.cache
def artifact_of(golden: str) -> Artifact | None:
    """Return the artifact of a golden of this project, by the golden's id.

    Return None if the golden is missing, or if its test says that the artifact must be refused on the CPU.
    """
    folder = GOLDENS / golden
    if not (folder / MANIFEST).is_file():
        return None
    options = Golden(load_manifest(folder / MANIFEST), folder).manifest.options
    return None if "cpu" in options.refused_on else read(folder / "artifact.jaxexport")


@functools.cache
def reader_of(name: str, jax: str) -> Reader:
    """Return the reader of this name, such as 0.12.0 or iree==3.13.0, combined with this version of jax."""
    reader = find_reader(name, Terms(shipped_entries()))
    return reader._replace(release=reader.release._replace(jax=jax))


def forecast_of(cell: RunCell) -> Forecast | None:
    """Return the forecast of a cell, or None if `artifact_of` gives no artifact for its golden."""
    artifact = artifact_of(cell.golden)
    return artifact and forecast(artifact, reader_of(cell.reader, cell.jax), cell.platform, MATRIX)


def main(words: Sequence[str]) -> int:
    """Compare forecasts with the cells that the options choose; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="RESULTS_DIR", help="folders of results")
    parser.add_argument("--heldout", choices=session.SETS, help="write and run these programs")
    parser.add_argument(
        "--goldens", type=Path, help="with --heldout: store the goldens here, write only what is missing"
    )
    parser.add_argument("--results", type=Path, help="with --heldout: store the results here")
    parser.add_argument("--record", default="", metavar="NAME", help="with --heldout: record it under a name")
    options = parser.parse_args(words)
    if options.heldout:
        return session.run(options.heldout, options.goldens, options.results, options.record)
    return compared(options.folders)


def compared(folders: Sequence[Path]) -> int:
    """Print how often each answer was forecast for cells that worked, and for cells that failed.

    Args:
        folders: folders of results of runs. If there are none, the cells of docs/evidence/surface.csv and of
            studies/runtimes/record.json are taken.

    Returns:
        The exit code: 1 if a cell that was forecast to run has failed, or if too many forecasts are unknown.
    """
    counts: Counter[tuple[str, str, bool]] = Counter()
    wrong: list[str] = []
    recorded = chain.from_iterable(map(cells_of, folders)) if folders else chain(surface_cells(), runtime_cells())
    for cell in recorded:
        known = forecast_of(cell)
        family = cell.reader.partition("==")[0] if "==" in cell.reader else "jaxlib"
        if known is None:
            counts[family, "not asked", cell.worked] += 1
            continue
        answer = known.numbers.answer
        counts[family, answer, cell.worked] += 1
        counts[family, f"loads: {known.loads.answer}", cell.worked] += 1
        if (answer, cell.worked) in ((YES, False), (NO, True)):
            why = "; ".join(map(str, known.numbers.reasons))
            wrong.append(f"{answer}, and {cell.outcome} in {cell.reader} with jax {cell.jax}: {cell.golden} {why}")
    code = 0
    for family in dict.fromkeys(name for name, *_ in counts):
        print(family)
        own = {(answer, worked): count for (name, answer, worked), count in counts.items() if name == family}
        for answer in sorted({answer for answer, _ in own}):
            print(f"  {answer:<20}{own.get((answer, True), 0):>8} worked{own.get((answer, False), 0):>8} failed")
        asked = sum(count for (answer, _), count in own.items() if answer != "not asked" and ":" not in answer)
        unknown = own.get((UNKNOWN, True), 0) + own.get((UNKNOWN, False), 0)
        most = MOST_UNKNOWN if family == "jaxlib" else MOST_UNKNOWN_ELSEWHERE
        print(f"  {asked} asked: {own.get((YES, False), 0)} false `{YES}`, {unknown / max(asked, 1):.1%} unknown")
        if own.get((YES, False)) or unknown > most * asked:
            code = 1
    print("\n".join(wrong[:SHOWN]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
