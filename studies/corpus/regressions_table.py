"""The table of releases that show the breaks of closed issues: `nox -s regressions [-- --goldens DIR --results DIR]`.

It writes goldens, replays them, and renews the page. A writer that gives a wrong answer itself writes no golden. So a
reader shows a break if it does not give what a golden expects.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from tools.marked import csv_text, filled, table
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("regressions")
PAGE = ROOT / "docs" / "evidence" / "regressions.md"
DATA = PAGE.with_suffix(".csv")
OLD = "0.4.31,0.4.33,0.4.36,0.5.0,0.5.3,0.6.0,0.6.1,0.6.2,0.7.0,0.7.2,0.8.0,0.8.1,0.8.2,0.9.2"
READERS = {
    "0.4.31": OLD,
    "0.5.3": OLD,
    "0.9.0.1": "0.7.2,0.8.0,0.8.1,0.8.2,0.9.0,0.9.2,0.10.0",
    "0.10.1": "0.8.2,0.9.0,0.9.2,0.10.0,0.10.1,0.10.2,0.11.0,0.11.1,0.11.2,0.12.0.1",
    "0.12.0.1": "0.9.0,0.9.2,0.10.0,0.10.1,0.10.2,0.11.0,0.11.1,0.11.2,0.12.0,0.12.0.1",
}
"""The writers, each with the readers in which its goldens are replayed."""
ISSUE = re.compile(r"https://github\.com/(\w[\w-]*)/(\w+)/(?:issues|pull)/(\d+) \((\w+)\): (.*)")
WRONG = (Verdict.NUMERICS, Verdict.CRASH, Verdict.ERROR, Verdict.TIMEOUT)
LOADED = (Stage.COMPILE, Stage.RUN, Stage.COMPARE)
"""The stages of cells that count: if a release does not load an artifact, that says nothing about what it computes."""
RIGHT = "right"
NONE = "all give the right answer"
NO_GOLDEN = "every writer gives a wrong answer itself"
KINDS = (*WRONG, NONE, NO_GOLDEN)


def main() -> None:
    """Write the goldens, replay them, and renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goldens", type=Path, help="keep the goldens here, and write only those that are missing")
    parser.add_argument("--results", type=Path, help="keep the results here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        goldens, results = options.goldens or Path(folder, "golden"), options.results or Path(folder, "results")
        there = {golden.manifest.writer.jaxlib for golden in GoldenStore(goldens).goldens_so_far()}
        if missing := [writer for writer in READERS if writer not in there]:
            _jaxexport("goldens", "backfill", "--writers", ",".join(missing), "--", f"--goldens={goldens}", str(FOLDER))
        policy = ("--policy", str(FOLDER / "export_compat.yaml"), "--goldens", str(goldens))
        found: list[Result] = []
        for writer, readers in READERS.items():
            where = ("--results", str(results / writer), "--writers", writer, "--readers", readers)
            _jaxexport("matrix", *policy, *where, "--timeout", "60", "--quiet")
            found += read_results(results / writer)
    table_of_all = rows(found)
    DATA.write_text(csv_text(table_of_all), encoding="utf-8")
    PAGE.write_text(page(table_of_all, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}")


def _jaxexport(*words: str) -> None:
    # What fails is what is looked for here.
    done = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=ROOT, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"jaxexport {words[0]}: expected that it runs; it ended with {done.returncode}")


Rows = list[dict[str, str]]
"""The lines of regressions.csv: program, issue, the issue's state and title, and the outcome in each release."""


def rows(results: Sequence[Result]) -> Rows:
    """Return a line of regressions.csv for each program, from the results of all runs."""
    by_case: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_case[result.case].append(result)
    readers = _ordered({result.reader.jaxlib for result in results})
    return [
        _row(name, text, by_case[f"studies.corpus.regressions.{name}"], readers) for name, text in programs().items()
    ]


def programs() -> dict[str, str]:
    """Return the docstring of each program, by its file and name."""
    return {
        f"{path.stem}.{node.name}": ast.get_docstring(node) or ""
        for path in sorted(FOLDER.glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _row(name: str, text: str, results: Sequence[Result], readers: Sequence[str]) -> dict[str, str]:
    issue = ISSUE.search(text)
    assert issue, text
    row = {"program": name, "issue": issue[0].split(" ")[0], "state": issue[4], "says": issue[5].rstrip(".")}
    for reader in readers:
        there = [result for result in results if result.reader.jaxlib == reader]
        wrong = {str(each.verdict) for each in there if each.verdict in WRONG and each.stage in LOADED}
        passed = any(each.verdict is Verdict.PASS for each in there)
        row[reader] = ", ".join(sorted(wrong)) or (RIGHT if passed else "")
    return row


def _ordered(releases: Iterable[str]) -> list[str]:
    calendar = load_calendar()
    return sorted(releases, key=lambda version: calendar.release(version).built, reverse=True)


def page(found: Rows, text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of these rows."""
    readers = list(found[0])[4:]
    kinds = [_kinds(row, readers) for row in found]
    counts = Counter(kind for each in kinds for kind in each)
    first = f"{len(found)} programs, each of an issue, in {len(readers)} releases from {readers[-1]} to {readers[0]}:"
    head = "programs", "what a release does, or several do"
    tables = {
        "counts": f"{first}\n\n{table(head, ((counts[kind], kind) for kind in KINDS if counts[kind]))}",
        "shown": table(
            ("issue", "program", "shown by"),
            (_line(row, readers) for row, each in zip(found, kinds, strict=True) if each <= {*WRONG}),
        ),
    }
    return filled(text, tables)


def _line(row: dict[str, str], readers: Sequence[str]) -> Sequence[object]:
    issue = "#".join(row["issue"].split("/")[4::2])
    kinds = _kinds(row, readers)
    did = "; ".join(f"{kind}: {_runs(row, kind, readers)}" for kind in WRONG if kind in kinds)
    return f"[{issue}]({row['issue']}) {row['state']}", f"`{row['program']}`", did


def _kinds(row: dict[str, str], readers: Sequence[str]) -> set[str]:
    """Return the kinds of wrong answers that readers gave, or `NONE` or `NO_GOLDEN` if no reader gave any."""
    found = {kind for reader in readers for kind in row[reader].split(", ") if kind}
    return found - {RIGHT} or ({NONE} if found else {NO_GOLDEN})


def _runs(row: dict[str, str], kind: str, readers: Sequence[str]) -> str:
    """Return the readers that gave a kind of wrong answer, as text; consecutive readers are `first to last`."""
    runs: list[list[str]] = []
    before = ""
    for reader in reversed(readers):
        if kind in row[reader].split(", "):
            if runs and runs[-1][-1] == before:
                runs[-1].append(reader)
            else:
                runs.append([reader])
        before = reader
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


if __name__ == "__main__":
    main()
