"""Which releases show the breaks of closed issues: `nox -s regressions` writes goldens, replays them, renews the page.

`-- [--goldens DIR --results DIR]`. A writer that gives a wrong answer itself writes no
golden, so a reader shows a break where it does not give what a golden expects.
"""

from __future__ import annotations

import argparse
import ast
import csv
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
from export_core.run.results import read_results

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
"""The writers, and the readers of what each has exported."""
ISSUE = re.compile(r"https://github\.com/(\w[\w-]*)/(\w+)/(?:issues|pull)/(\d+) \((\w+)\): (.*)")
WRONG = (Verdict.NUMERICS, Verdict.CRASH, Verdict.ERROR, Verdict.TIMEOUT)
LOADED = (Stage.COMPILE, Stage.RUN, Stage.COMPARE)
"""What a release does not load says nothing about what it would compute."""
RIGHT = "right"
NONE = "all give the right answer"
NO_GOLDEN = "every writer gives a wrong answer itself"
TEXT = """# Closed issues, release by release

Which releases show the wrong numbers, crashes and failed loads that issues of JAX and XLA tell of, on a CPU:
{number} programs, each with its issue, in {readers} releases from {first} to {last}.

| programs | what a release does, or several do |
|---|---|
{counts}

An issue that none of them shows may have been mended before {first}, or need another build, processor or size.

## Issues that releases show

| issue | program | shown by |
|---|---|---|
{shown}

Up to 0.9.2, all of linear algebra crashes in a new process, which is jax#29610, whatever else may be wrong. Its errors
are custom calls that were removed or changed.

[`regressions.csv`](regressions.csv) has a line for each program: where its issue says that it was bad, and for each
release *right*, or what it did. It is empty where the release could load none of the program's goldens. The programs
are in [`studies/corpus/regressions`](../../studies/corpus/regressions).

Made by `nox -s regressions`, with goldens by jaxlib {writers}.
A writer that gives a wrong answer itself writes no golden, so what a golden expects is right.
"""


def main() -> None:
    """Write, read, and renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goldens", type=Path, help="keep the goldens here, and write only those that are missing")
    parser.add_argument("--results", type=Path, help="keep the results here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        goldens, results = options.goldens or Path(folder, "golden"), options.results or Path(folder, "results")
        there = {golden.manifest.writer.jaxlib for golden in GoldenStore(goldens).goldens()}
        if missing := [writer for writer in READERS if writer not in there]:
            _jaxexport("goldens", "backfill", "--writers", ",".join(missing), "--", f"--goldens={goldens}", str(FOLDER))
        policy = ("--policy", str(FOLDER / "export_compat.yaml"), "--goldens", str(goldens))
        found: list[Result] = []
        for writer, readers in READERS.items():
            where = ("--results", str(results / writer), "--writers", writer, "--readers", readers)
            _jaxexport("matrix", *policy, *where, "--timeout", "60", "--quiet")
            found += read_results(results / writer)
    write(rows(found), DATA)
    PAGE.write_text(page(read(DATA)), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}")


def _jaxexport(*words: str) -> None:
    # What fails is what is looked for here.
    done = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=ROOT, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"jaxexport {words[0]}: expected that it runs; it ended with {done.returncode}")


Rows = list[dict[str, str]]
"""The lines of regressions.csv: program, issue, state, says, and what each release did, the newest first."""


def rows(results: Sequence[Result]) -> Rows:
    """What these results say of each program."""
    by_case: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_case[result.case].append(result)
    readers = _ordered({result.reader.jaxlib for result in results})
    return [
        _row(name, text, by_case[f"studies.corpus.regressions.{name}"], readers) for name, text in programs().items()
    ]


def programs() -> dict[str, str]:
    """The docstring of each test, by the name of its case."""
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


def write(table: Rows, path: Path) -> None:
    """Write regressions.csv."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        lines.writeheader()
        lines.writerows(table)


def read(path: Path) -> Rows:
    """The rows of regressions.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(table: Rows) -> str:
    """The page that shows these rows."""
    readers = list(table[0])[4:]
    counts = Counter(kind for row in table for kind in _kinds(row, readers))
    shown = [row for row in table if not {NONE, NO_GOLDEN} & _kinds(row, readers)]
    return TEXT.format(
        number=len(table),
        readers=len(readers),
        first=readers[-1],
        last=readers[0],
        counts="\n".join(f"| {counts[kind]} | {kind} |" for kind in (*WRONG, NONE, NO_GOLDEN) if counts[kind]),
        shown="\n".join(_line(row, readers) for row in shown),
        writers=", ".join(READERS),
    )


def _line(row: dict[str, str], readers: Sequence[str]) -> str:
    issue = "#".join(row["issue"].split("/")[4::2])
    kinds = _kinds(row, readers)
    did = "; ".join(f"{kind}: {_runs(row, kind, readers)}" for kind in WRONG if kind in kinds)
    return f"| [{issue}]({row['issue']}) {row['state']} | `{row['program']}` | {did} |"


def _kinds(row: dict[str, str], readers: Sequence[str]) -> set[str]:
    """What releases did wrong; where none did, `NONE` or `NO_GOLDEN`."""
    found = {kind for reader in readers for kind in row[reader].split(", ") if kind}
    return found - {RIGHT} or ({NONE} if found else {NO_GOLDEN})


def _runs(row: dict[str, str], kind: str, readers: Sequence[str]) -> str:
    """The releases that did so, those that follow each other as `first to last`."""
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
