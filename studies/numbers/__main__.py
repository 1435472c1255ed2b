"""The command of the measurement: `python -m studies.numbers --work DIR`, which `nox -s numbers` calls.

Several releases write sets of programs, and releases read them, also as if on other processors. Errors are planted into
outputs. The command prints the false alarms and the missed errors of three rules. Goldens and results that the folder
has already are not written again.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from export_core.base.atomic import write_whole
from studies.numbers import collect, tables
from studies.numbers.findings import Findings, find
from studies.numbers.sets import PROCESSORS, SETS, USUAL, groups_of

WRITERS = "0.6.2,0.9.2,0.10.2,0.12.0.1"
READERS = "window"
BEGIN, END = "<!-- counts -->\n", "<!-- end -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.numbers", description=__doc__)
    parser.add_argument("--work", type=Path, help="a folder for the data, which stays there; else a temporary one")
    parser.add_argument("--sets", default=",".join(USUAL), help=f"of {', '.join(SETS)}. Default: {','.join(USUAL)}")
    parser.add_argument("--writers", default=WRITERS, help=f"releases that write. Default: {WRITERS}")
    parser.add_argument("--readers", default=READERS, help=f"as `jaxexport matrix` takes them. Default: {READERS}")
    parser.add_argument("--programs", default="", help="some of the programs, A,B")
    parser.add_argument("--again", action="store_true", help="measure the noise of all goldens again, first")
    parser.add_argument("--details", type=int, default=20, help="how many of the farthest cells to print")
    parser.add_argument(
        "--docs", type=Path, help="write the tables into this page, and the data beside it as JSON: "
        "docs/evidence/numbers-measured.md"
    )  # fmt: skip
    options = parser.parse_args()
    sets = options.sets.split(",")
    if unknown := sorted(set(sets) - set(SETS)):
        parser.error(f"--sets: expected some of {', '.join(SETS)}, found {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as scratch:
        folders = collect.Folders((options.work or Path(scratch)).resolve())
        programs = [name for name in options.programs.split(",") if name]
        findings = measure(folders, sets, programs, options.writers.split(","), options.readers, options.again)
    found = tables.data(findings)
    text = tables.markdown(found)
    print(*tables.details(findings, options.details), "", text, sep="\n")
    if options.docs:
        write_page(options.docs, text)
        write_whole(options.docs.with_suffix(".json"), [as_json(found)])


def measure(
    folders: collect.Folders,
    sets: Sequence[str],
    programs: Sequence[str],
    writers: Sequence[str],
    readers: str,
    again: bool,
) -> Findings:
    """Write goldens, measure their noise, replay them and judge their outputs; return the findings.

    Args:
        folders: where the data is stored, and taken from if an earlier run has stored it.
        sets: the names of the sets of programs.
        programs: the names of some programs of these sets; all if empty.
        writers: the releases that write.
        readers: the releases that read, as `jaxexport matrix` takes them.
        again: whether the noise of all goldens is measured again.
    """
    groups = groups_of(sets, programs)
    collect.write(folders, groups, writers)
    across = PROCESSORS in sets
    if across:
        collect.write_elsewhere(folders, writers)
    collect.measure_noise(folders, again=again)
    replays = collect.replays(sets, groups, writers, readers, across=across)
    collect.read(folders, replays)
    findings = find(folders, replays)
    findings.not_written.extend(collect.missing(folders, groups, writers))
    return findings


def write_page(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace the text of a page between two marks, atomically."""
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    write_whole(page, [f"{before}{begin}{text}\n{end}{after}".encode()])


def as_json(found: tables.Data) -> bytes:
    """Return the data as JSON, with null in place of infinity and NaN, which JSON does not have."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: finite(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [finite(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return (json.dumps(finite(found), indent=1) + "\n").encode()


if __name__ == "__main__":
    main()
