"""How well numbers are judged: `python -m benchmarks.numbers --work DIR`. `nox -s numbers` calls this.

Writes a corpus of programs with several releases, reads it with others, plants errors, and prints the false alarms and
the misses of three rules. What is in the folder already is not written or read again.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.numbers import collect, tables
from benchmarks.numbers.findings import find
from export_core.atomic import write_whole

WRITERS = "0.6.2,0.9.2,0.12.0.1"
READERS = "0.6.2,0.7.2,0.8.3,0.9.0,0.9.2,0.10.2,0.11.0,0.11.2,0.12.0.1"
BEGIN, END = "<!-- nox -s numbers: begin -->\n", "<!-- nox -s numbers: end -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.numbers", description=__doc__)
    parser.add_argument("--work", type=Path, help="a folder for the data, which stays there; else a temporary one")
    parser.add_argument("--writers", default=WRITERS, help=f"releases that write. Default: {WRITERS}")
    parser.add_argument("--readers", default=READERS, help=f"releases that read. Default: {READERS}")
    parser.add_argument("--programs", default="", help="some of the programs, A,B")
    parser.add_argument("--details", type=int, default=20, help="how many of the farthest cells to print")
    parser.add_argument(
        "--docs", type=Path, help="write the tables into this page too, such as docs/explanation/comparing.md"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = collect.Folders((options.work or Path(scratch)).resolve())
        writers, readers = options.writers.split(","), options.readers.split(",")
        collect.write(folders, writers, [name for name in options.programs.split(",") if name])
        collect.read(folders, writers, readers)
        findings = find(folders)
    text = tables.markdown(findings)
    print(*tables.details(findings, options.details), "", text, sep="\n")
    if options.docs:
        write_page(options.docs, text)


def write_page(page: Path, text: str) -> None:
    """Replace what is between the marks of a page, all or nothing."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    write_whole(page, [f"{before}{BEGIN}{text}\n{END}{after}".encode()])


if __name__ == "__main__":
    main()
