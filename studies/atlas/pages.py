"""The pages of the atlas, from a finished run: data of every cell, the interactive page, tables, breaks."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from export_core.base.escaping import for_markdown, safe_json
from export_core.base.phrases import first_line
from export_core.judge import Result
from export_core.judge.causes import causes_in
from export_core.policy.known_issues import known_issues
from export_core.run.results import read_run
from studies.atlas.parts import CORPUS, HARNESSES, JAX, OWN, REGRESSIONS, part_of
from studies.atlas.scores import atlas_of
from studies.atlas.tables import atlas_markdown

COLUMNS = (
    *("golden", "reader", "platform", "mode", "promised", "days", "verdict", "stage", "cause", "noise_error"),
    *("new_bits", "temp_bytes", "flops"),
)
"""Of cells.csv.gz, a line for each cell. `reader` is the jaxlib, with its jax where that has another number."""
LABELS = {
    OWN: "goldens of this project",
    JAX: "JAX's own goldens",
    REGRESSIONS.name: "closed regressions",
    HARNESSES.name: "JAX's harnesses",
}
"""The parts of the corpus in words; the others are real programs."""
LINK = re.compile(r"https://github\.com/(?:jax-ml/jax|openxla/xla)/(?:issues|pull)/\d+")
MARKED = re.compile(r"(<!-- nox -s atlas, (\w+): begin -->\n).*?(<!-- nox -s atlas, \2: end -->)", re.DOTALL)


def write_pages(results: Path, folder: Path) -> None:
    """Write cells.csv.gz, atlas.json, page.html, and the marked parts of index.md."""
    run = read_run(results)
    atlas = atlas_of(run.results, run.summary.as_of)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cells.csv.gz").write_bytes(compressed(run.results))
    (folder / "atlas.json").write_bytes(safe_json(atlas, indent=2) + b"\n")
    report = [
        sys.executable,
        "-m",
        "export_core",
        "report",
        os.path.relpath(results),
        "--html",
        str(folder / "page.html"),
    ]
    subprocess.run(report, check=True)
    parts = {
        "tables": "\n".join(atlas_markdown(atlas)),
        "parts": "\n".join(part_lines(run.results)),
        "breaks": "\n".join(break_lines(run.results, CORPUS / "regressions")),
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


def label_of(case: str) -> str:
    """The part of the corpus that a case is of, in words."""
    return LABELS.get(part_of(case), "real programs")


def part_lines(results: Sequence[Result]) -> Iterator[str]:
    """A table of the parts: how many cases, goldens, cells, and the share of promised cells that work."""
    yield "| part | cases | goldens | cells | promised | kept |"
    yield "| - | - | - | - | - | - |"
    labels = {result.case: label_of(result.case) for result in results}
    for part in sorted(set(labels.values())):
        cells = [result for result in results if labels[result.case] == part]
        promised = [result for result in cells if result.promised]
        kept = sum(result.verdict.works for result in promised)
        share = f"{100 * kept / len(promised):.1f} %" if promised else "-"
        numbers = len({cell.case for cell in cells}), len({cell.golden for cell in cells}), len(cells), len(promised)
        yield f"| {part} | {' | '.join(f'{number:,}' for number in numbers)} | {share} |"


def break_lines(results: Sequence[Result], folder: Path) -> Iterator[str]:
    """A table of what breaks a promise, a line for each cause, and commands that show its example again.

    A program of a closed issue is known by that issue: its docstring, in a file of `folder`, has the link.
    """
    issues = {issue.id: issue for issue in known_issues()}
    broken = sorted((cause for cause in causes_in(results) if cause.promised), key=lambda cause: -cause.promised)
    yield "| | cells | what happens | example | written by | read by | known |"
    yield "| - | - | - | - | - | - | - |"
    for number, cause in enumerate(broken, 1):
        issue = issues.get(cause.upstream)
        link = issue.issue if issue else closed_issue(cause.example.golden.split("/")[0], folder)
        named = issue.id if issue else f"{link.split('/')[4]} {link.rpartition('/')[2]}" if link else "-"
        known = f"[{named}]({link})" if link else named
        own = " (in its own writer)" if cause.not_replayable else ""
        said = for_markdown(f"{cause.verdict}{own}: {first_line(cause.message)}")
        example = f"`{cause.example.golden}` in {cause.example.reader}"
        where = f"{_some(cause.writers)} | {_some(cause.readers)}"
        yield f"| {number} | {cause.promised} | {said} | {example} | {where} | {known} |"
    yield from ("", "The example of each again, in a process of its own:", "", "```sh")
    for number, cause in enumerate(broken, 1):
        case, _, named = cause.example.golden.partition("/")
        writer = named.split("-")[0]
        part = part_of(case)
        by = "" if part in (OWN, JAX, HARNESSES.name) else f" --writers {writer}"
        yield f"# {number}"
        yield f"nox -s atlas -- --parts {part}{by} --only write"
        yield cause.reproduce
    yield "```"


def closed_issue(case: str, folder: Path) -> str:
    """The link in the docstring of a program of closed issues; "" for other cases."""
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and case == f"studies.corpus.regressions.{path.stem}.{node.name}":
                found = LINK.search(ast.get_docstring(node) or "")
                return found.group() if found else ""
    return ""


def _some(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]} ({len(versions)})"
