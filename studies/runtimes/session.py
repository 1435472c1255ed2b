"""The session that runs this project's goldens in other runtimes, and writes the record and the page.

`nox -s runtimes [-- --readers tensorflow==2.21.0,… --only replay|record|page --results DIR] [-- MATRIX OPTIONS]`

Results are in .nox/runtimes/results, so every other command can use them: `jaxexport explain --results
.nox/runtimes/results CELL`. Cells with a cached outcome are not run again, so an interrupted session continues where it
was. The exit code is 1 if a cell has wrong numbers that explained.yaml does not explain.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.runtimes.page import PAGE, page_text
from studies.runtimes.record import EXPLAINED, RECORD, load_explained, problems_of, read_record, record_of, write_record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".nox" / "runtimes" / "results"
WRITERS = ("0.6.2", "0.9.2", "0.12.0.1")
READERS = (
    *(f"tensorflow=={version}" for version in ("2.16.2", "2.18.1", "2.19.1", "2.20.0", "2.21.0")),
    "savedmodel==2.21.0",
    *(f"iree=={version}[--iree-input-demote-f64-to-f32=false]" for version in ("3.0.0", "3.6.0", "3.9.0", "3.13.0")),
    "iree==3.13.0",
    *(f"litert=={version}" for version in ("2.1.2", "2.3.0")),
    "litert==2.3.0[canonicalizing_inf_as_min_max_float=false]",
    *(f"{runtime}=={version}" for runtime in ("pjrt", "stablehlo") for version in ("0.9.2", "0.12.0.1")),
)


def main() -> int:
    """Replay the goldens, write the record and the page, and print what is not explained; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", default=",".join(READERS), help="the releases, with commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the matrix")
    parser.add_argument("--only", choices=["replay", "record", "page"], help="one of the three steps alone")
    options, matrix = parser.parse_known_args()
    if options.only in (None, "replay"):
        replay(options.readers, options.results, matrix)
    if options.only in (None, "record"):
        write_record(record_of(options.results), RECORD)
    if options.only == "replay":
        return 0
    record, explained = read_record(RECORD), load_explained(EXPLAINED)
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8"), record, explained), encoding="utf-8")
    problems = problems_of(record, explained)
    print("\n".join(problems) or f"{PAGE.relative_to(ROOT)}: every difference of numbers is explained")
    return 1 if problems else 0


def replay(readers: str, results: Path, more: Sequence[str]) -> None:
    """Replay this project's goldens by `WRITERS` in these readers.

    Args:
        readers: the readers, separated by commas.
        results: the folder of the results.
        more: more options of `jaxexport matrix`.

    Raises:
        SystemExit: the matrix ended without a judgement.
    """
    command = [sys.executable, "-m", "export_core", "matrix", "--readers", readers, "--writers", ",".join(WRITERS)]
    done = subprocess.run([*command, "--results", str(results), *more], cwd=ROOT, check=False)
    if done.returncode not in (0, 1, 3, 4):  # 3: a cell was not run, or nothing was promised
        raise SystemExit(f"jaxexport matrix: expected exit code 0, 1, 3 or 4, found {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
