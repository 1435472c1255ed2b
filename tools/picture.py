"""The README's picture, drawn from the results of a matrix run: ``python tools/picture.py RESULTS_DIR FILE.svg``."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console

from export_core.judge import Judgement
from export_core.report import findings, print_headline, print_table
from export_core.runs.results import read_run


def main(folder: Path, picture: Path) -> None:
    """Draw the table, the broken promises and known failures, and the headline."""
    results, summary, _ = read_run(folder)
    console = Console(record=True, width=150, file=io.StringIO(), force_terminal=True)
    print_table(console, results)
    for finding in findings(results, summary):
        if finding.title.lower() in ("broken promise", "known failure"):
            console.print(f"\n[bold]{finding.title}[/bold]  {finding.text}", soft_wrap=False, highlight=False)
    console.print()
    print_headline(console, summary)
    picture.parent.mkdir(parents=True, exist_ok=True)
    known = sum(result.judgement is Judgement.KNOWN for result in results)
    console.save_svg(str(picture), title=f"jaxexport matrix: {len(results)} cells, {known} known failures")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
