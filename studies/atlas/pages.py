"""The files of the atlas in docs/atlas, written from a finished run: data, tables, breaks, an interactive page."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from export_core.base.json_text import safe_json
from export_core.base.text import first_line
from export_core.judge import Result
from export_core.judge.causes import causes_in
from export_core.matrix import Verdict
from export_core.policy.known_issues import known_issues
from export_core.run.results import read_run
from studies.atlas.parts import CORPUS, HARNESSES, JAX, OWN, REGRESSIONS, part_of
from studies.atlas.scores import atlas_of
from studies.atlas.tables import atlas_markdown, percent
from tools.marked import filled, table

COLUMNS = (
    *("golden", "reader", "platform", "mode", "promised", "days", "verdict", "stage", "cause", "noise_error"),
    *("new_bits", "temp_bytes", "flops"),
)
"""The columns of cells.csv.gz, which has a line for each cell. `reader` is the jaxlib, and the jax if it differs."""
LABELS = {
    OWN: "goldens of this project",
    JAX: "JAX's own goldens",
    REGRESSIONS: "closed regressions",
    HARNESSES: "JAX's harnesses",
}
"""The names of the parts of the corpus on the page; all other parts are real programs."""
LINK = re.compile(r"https://github\.com/(?:jax-ml/jax|openxla/xla)/(?:issues|pull)/\d+")


def write_pages(results: Path, folder: Path) -> None:
    """Write cells.csv.gz, atlas.json, breaks.json, page.html, and the tables in index.md.

    Args:
        results: the folder of the finished run.
        folder: the folder to write into.
    """
    run = read_run(results)
    atlas = atlas_of(run.results, run.summary.as_of)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cells.csv.gz").write_bytes(compressed(run.results))
    (folder / "atlas.json").write_bytes(safe_json(atlas, indent=2) + b"\n")
    breaks = breaks_in(run.results, CORPUS / "regressions")
    (folder / "breaks.json").write_bytes(safe_json(breaks, indent=1) + b"\n")
    report = ["report", os.path.relpath(results), "--html", str(folder / "page.html")]
    subprocess.run([sys.executable, "-m", "export_core", *report], check=True)
    parts = {
        "tables": atlas_markdown(atlas),
        "parts": part_table(run.results),
        "breaks": break_table(breaks),
    }
    page = folder / "index.md"
    page.write_text(filled(page.read_text(), parts))


def compressed(results: Iterable[Result]) -> bytes:
    """Return the cells as a gzip-compressed CSV file. The same cells give the same bytes."""
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
    """Return the name, on the page, of the part of the corpus that a case belongs to."""
    return LABELS.get(part_of(case), "real programs")


def part_table(results: Sequence[Result]) -> str:
    """Return a table of the parts of the corpus: cases, goldens, cells, and the share of promised cells that work."""
    labels = {result.case: label_of(result.case) for result in results}
    rows = []
    for part in sorted(set(labels.values())):
        cells = [result for result in results if labels[result.case] == part]
        promised = [result for result in cells if result.promised]
        kept = sum(result.verdict.works for result in promised)
        numbers = len({cell.case for cell in cells}), len({cell.golden for cell in cells}), len(cells), len(promised)
        rows.append((part, *(f"{number:,}" for number in numbers), percent(kept, len(promised))))
    return table(("part", "cases", "goldens", "cells", "promised", "kept, %"), rows)


class Break(msgspec.Struct, frozen=True):
    """A cause of failures inside the window: a line of breaks.json."""

    promised: int
    """The number of promised cells that fail by this cause."""
    verdict: str
    message: str
    own_writer: bool
    """Whether the goldens fail in their own writers too, so that no later release is to blame."""
    example: str
    """A golden that fails, and the release in which it does."""
    written_by: str
    read_by: str
    known: str
    """The known issue of JAX, or the closed issue from which the program was made; empty if there is neither."""
    link: str
    again: tuple[str, ...]
    """Commands that write the example's golden, and replay it in a new process."""


def breaks_in(results: Sequence[Result], folder: Path) -> list[Break]:
    """Return the causes of broken promises: crashes and errors first, then wrong numbers; causes of most cells first.

    Args:
        results: the cells.
        folder: the programs of closed issues; the docstring of each program has the link to its issue.
    """
    issues = {issue.id: issue for issue in known_issues()}
    found = []
    for cause in causes_in(results):
        if cause.promised:
            case, _, named = cause.example.golden.partition("/")
            issue = issues.get(cause.upstream)
            link = issue.issue if issue else closed_issue(case, folder)
            part = part_of(case)
            by = "" if part in (OWN, JAX, HARNESSES) else f" --writers {named.split('-')[0]}"
            found.append(
                Break(
                    promised=cause.promised,
                    verdict=str(cause.verdict),
                    message=first_line(cause.message),
                    own_writer=cause.not_replayable,
                    example=f"{cause.example.golden} in {cause.example.reader}",
                    written_by=_some(cause.writers),
                    read_by=_some(cause.readers),
                    known=issue.id if issue else f"{link.split('/')[4]} {link.rpartition('/')[2]}" if link else "",
                    link=link,
                    again=(f"nox -s atlas -- --parts {part}{by} --only write", cause.reproduce),
                )
            )
    return sorted(found, key=lambda one: (one.verdict == Verdict.NUMERICS, -one.promised))


def break_table(breaks: Sequence[Break]) -> str:
    """Return a table of broken promises with a line for each cause."""
    rows = []
    for one in breaks:
        case = one.example.partition("/")[0]
        name = case.split(".")[1] if part_of(case) == JAX else case.rpartition(".")[2]
        known = f"[{one.known}]({one.link})" if one.link else one.known
        own = ", in its own writer too" if one.own_writer else ""
        rows.append((one.promised, f"{one.verdict}{own}", f"`{name}`", one.read_by, known))
    return table(("promised cells", "verdict", "example", "read by", "known"), rows)


def closed_issue(case: str, folder: Path) -> str:
    """Return the link to the closed issue of a case, from its docstring in a file of `folder`; "" if it has none."""
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and case == f"studies.corpus.regressions.{path.stem}.{node.name}":
                found = LINK.search(ast.get_docstring(node) or "")
                return found.group() if found else ""
    return ""


def _some(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]} ({len(versions)})"
