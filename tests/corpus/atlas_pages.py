"""The pages of the atlas, from a finished run: data of every cell, the interactive page, tables, breaks."""

from __future__ import annotations

import csv
import gzip
import io
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from export_core.escaping import for_markdown, safe_json
from export_core.judge import Result
from export_core.judge.atlas import atlas_of
from export_core.judge.causes import causes_in
from export_core.matrix.cell import WORKS
from export_core.policy.known_issues import known_issues
from export_core.report.terminal.atlas_text import atlas_markdown
from export_core.report.wording import first_line
from export_core.runs.results import read_run

COLUMNS = (
    *("golden", "reader", "platform", "mode", "promised", "days", "verdict", "stage", "cause", "noise_error"),
    *("new_bits", "temp_bytes", "flops"),
)
"""Of cells.csv.gz, a line for each cell. `reader` is the jaxlib, with its jax where that has another number."""
PARTS = {
    "jax.": "JAX's own goldens",
    "tests.corpus.regressions.": "closed regressions",
    "tests.corpus.programs.": "real programs",
    "tests.corpus.harnesses.": "JAX's harnesses",
}
"""The parts of the corpus, by how the ids of their cases begin."""
MARKED = re.compile(r"(<!-- nox -s atlas, (\w+): begin -->\n).*?(<!-- nox -s atlas, \2: end -->)", re.DOTALL)


def write_pages(results: Path, folder: Path) -> None:
    """Write cells.csv.gz, atlas.json, page.html, and the marked parts of index.md."""
    run = read_run(results)
    atlas = atlas_of(run.results, run.summary.as_of)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cells.csv.gz").write_bytes(compressed(run.results))
    (folder / "atlas.json").write_bytes(safe_json(atlas, indent=2) + b"\n")
    report = [sys.executable, "-m", "export_core", "report", str(results), "--html", str(folder / "page.html")]
    subprocess.run(report, check=True)
    parts = {
        "tables": "\n".join(atlas_markdown(atlas)),
        "parts": "\n".join(part_lines(run.results)),
        "breaks": "\n".join(break_lines(run.results)),
    }
    page = folder / "index.md"
    page.write_text(MARKED.sub(lambda found: f"{found[1]}{parts[found[2]]}\n{found[3]}", page.read_text()))


def compressed(results: Iterable[Result]) -> bytes:
    """The cells as a gzip-compressed CSV file: the same bytes for the same cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        reader = result.reader
        named = reader.jaxlib if reader.jax == reader.jaxlib else f"{reader.jaxlib}-jax{reader.jax}"
        noise = "" if result.max_noise_error is None else f"{result.max_noise_error:.3g}"
        moved = "" if not result.outputs else int(not result.as_written)
        figures = (result.cost.temp_bytes, result.cost.flops) if result.cost else (None, None)
        named_cell = result.golden, named, result.platform, result.mode, int(result.promised), result.days
        writer.writerow((*named_cell, result.verdict, result.stage, result.cause, noise, moved, *figures))
    return gzip.compress(text.getvalue().encode(), mtime=0)


def part_of(case: str) -> str:
    """The part of the corpus that a case is of."""
    return next((part for start, part in PARTS.items() if case.startswith(start)), "goldens of this project")


def part_lines(results: Sequence[Result]) -> Iterator[str]:
    """A table of the parts: how many cases, goldens, cells, and the share of promised cells that work."""
    yield "| part | cases | goldens | cells | promised | kept |"
    yield "| - | - | - | - | - | - |"
    for part in sorted({part_of(result.case) for result in results}):
        cells = [result for result in results if part_of(result.case) == part]
        promised = [result for result in cells if result.promised]
        kept = sum(result.verdict in WORKS for result in promised)
        share = f"{100 * kept / len(promised):.1f} %" if promised else "-"
        numbers = len({cell.case for cell in cells}), len({cell.golden for cell in cells}), len(cells), len(promised)
        yield f"| {part} | {' | '.join(f'{number:,}' for number in numbers)} | {share} |"


def break_lines(results: Sequence[Result]) -> Iterator[str]:
    """A table of what breaks a promise: one line for each cause, with an example and whether JAX knows it."""
    issues = {issue.id: issue for issue in known_issues()}
    broken = [cause for cause in causes_in(results) if cause.promised]
    yield "| cells | what happens | example | written by | read by | known |"
    yield "| - | - | - | - | - | - |"
    for cause in sorted(broken, key=lambda cause: -cause.promised):
        issue = issues.get(cause.upstream)
        known = f"[{issue.id}]({issue.issue})" if issue and issue.issue else (issue.id if issue else "-")
        own = " (in its own writer)" if cause.not_replayable else ""
        said = for_markdown(f"{cause.verdict}{own}: {first_line(cause.message)}")
        example = f"`{cause.example.golden}` in {cause.example.jaxlib}"
        yield f"| {cause.promised} | {said} | {example} | {_some(cause.writers)} | {_some(cause.readers)} | {known} |"


def _some(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]} ({len(versions)})"
