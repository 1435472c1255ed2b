"""A comparison of the verdicts of JAX's own tests and of this project on JAX's own goldens: `nox -s from_jax`.

It adopts the goldens in a release's wheel, replays those for the CPU in many readers, and compiles those for cuda and
tpu. It runs JAX's test of each CPU golden in that release. It prints a row for each golden. The exit code is 1 if a
golden is refused, or if the two verdicts on a golden differ. `--docs FILE` writes the counts into that page, and the
rows into a CSV file beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from export_core.base.processes import signal_name
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from studies.from_jax.jax_goldens import store_goldens
from tools.marked import csv_text, filled, table
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("jax_verdicts.py")
Row = dict[str, str]
"""The row of a golden in the table, by the columns in `HEAD`."""
HEAD = ("golden", "on", "JAX's own test", "here", "in all readers")
SAME = {Verdict.REFUSED: "error"}
"""Verdicts that JAX's own tests report under a different name: without a list of known messages, they cannot tell a
refusal from an error."""


def main() -> None:
    """Adopt and replay the goldens, run JAX's tests, and compare."""
    calendar = load_calendar()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default=calendar.newest(), help="the release whose goldens these are")
    parser.add_argument("--readers", default="all", help="on the CPU, as of `jaxexport matrix`, and the release itself")
    parser.add_argument("--compiling", default="", help="more readers that compile for cuda and tpu; `none` for none")
    parser.add_argument("--only", default="", help="only goldens whose names contain this text")
    parser.add_argument("--work", type=Path, default=ROOT / ".nox" / "from_jax-data", help="where goldens are stored")
    parser.add_argument("--docs", type=Path, help="write the counts into this page, the rows beside it")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    goldens = options.work / f"golden-{options.release}"
    imported = store_goldens(options.release, goldens, Policy(), quiet=True)
    results: dict[str, list[Result]] = defaultdict(list)
    chosen = ["--cases", f"jax.*{options.only}*"] if options.only else []
    for platforms, readers in (("cpu", options.readers), ("cuda,tpu", options.compiling)):
        if readers != "none":
            folder = options.work / f"results-{options.release}-{platforms}"
            asked = readers if readers == "all" else f"{options.release},{readers}".strip(",")
            folders = ["--goldens", str(goldens), "--results", str(folder)]
            jaxexport(
                options.work, "matrix", "--readers", asked, "--platforms", platforms, *folders, "--quiet", *chosen
            )
            for result in read_results(folder):
                results[result.case.removeprefix("jax.")].append(result)
    theirs = jax_verdicts(options.release, options.only)
    rows, problems = compared(results, theirs, options.release)
    print(table(HEAD, (list(row.values()) for row in rows)), counts(rows), sep="\n\n")
    if options.docs:
        options.docs.with_suffix(".csv").write_text(csv_text(rows), encoding="utf-8")
        options.docs.write_text(page(rows, options.docs.read_text()))
    if imported:
        problems.append(f"expected all goldens of jax to be stored, found some refused (exit code {imported})")
    agreed = f"{len(theirs)} CPU goldens of jax {options.release}: JAX's own test and this project agree on each"
    print("\n".join(problems) or agreed)
    sys.exit(1 if problems or not theirs else 0)


def compared(
    results: Mapping[str, Sequence[Result]], theirs: Mapping[str, str], release: str
) -> tuple[list[Row], list[str]]:
    """Return a row for each golden, and a line for each CPU golden on which the two verdicts differ.

    Args:
        results: the results of each golden in all readers.
        theirs: the verdict of JAX's own test for each CPU golden.
        release: the release in which JAX's tests ran.
    """
    rows: list[Row] = []
    problems = []
    for name in sorted(results.keys() | theirs.keys()):
        cells = results.get(name, ())
        platform = cells[0].platform if cells else "cpu"
        own = next((cell for cell in cells if cell.reader.jaxlib == release), None)
        ours = "not run" if own is None else SAME.get(own.verdict, str(own.verdict))
        their_verdict = theirs.get(name, "" if platform != "cpu" else "not run")
        if platform == "cpu" and their_verdict.partition(":")[0] != ours:
            message = own.message if own else ""
            problems.append(f"{name}: expected {their_verdict}, as in JAX's own test, found {ours}: {message}")
        counts = Counter(str(cell.verdict).replace("_", " ") for cell in cells)
        everywhere = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        rows.append(dict(zip(HEAD, (name, platform, their_verdict.partition(":")[0], ours, everywhere), strict=True)))
    return rows, problems


def page(rows: Sequence[Row], text: str) -> str:
    """Return `text`, the page, with its counts replaced by those of these rows."""
    return filled(text, {"counts": counts(rows)})


def counts(rows: Sequence[Row]) -> str:
    """Return a table of the verdicts by platform, and a table of the verdicts on the CPU by data file."""
    platforms = []
    for platform in sorted({row["on"] for row in rows}):
        theirs, ours = (Counter(row[who] for row in rows if row["on"] == platform) for who in (HEAD[2], HEAD[3]))
        platforms.append((platform, ours.total(), _verdict_counts(theirs) or "cannot be run", _verdict_counts(ours)))
    alike = Counter((row["golden"].partition(".")[0], row[HEAD[4]]) for row in rows if row["on"] == "cpu")
    by_file = ((f"`{file}`", goldens, everywhere) for (file, everywhere), goldens in alike.items())
    tables = (
        table(("platform", "goldens", HEAD[2], HEAD[3]), platforms),
        table(("goldens for the CPU", "", "in all releases, each"), by_file),
    )
    return "\n\n".join(tables)


def _verdict_counts(found: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in found.most_common() if verdict)


def jax_verdicts(release: str, part: str) -> dict[str, str]:
    """Run JAX's own tests of its CPU goldens in a release; return the verdict for each golden.

    If a golden does not pass, the message follows the verdict. After a crash, the remaining goldens are run again.

    Args:
        release: the release.
        part: only goldens whose names contain this text are tested.
    """
    calendar = load_calendar()
    found: dict[str, str] = {}
    # JAX's runner imports absl-py, which a reader's environment does not have.
    with ReaderEnvironments(calendar, packages=("absl-py",), notify=print) as environments:
        environment = environments.build(Placement(calendar.release(release)))
        while True:
            done = subprocess.run(
                [str(environment.python), str(PROGRAM), part, *found],
                env=dict(environment.variables),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            last = ""
            for line in lines(done.stdout):
                last = line["name"]
                if "verdict" in line:
                    found[last] = f"{line['verdict']}: {line['message']}".removesuffix(": ")
            if done.returncode == 0:
                return found
            if not last or last in found:
                raise SystemExit(f"{PROGRAM.name}: expected a crash in a golden, found exit code {done.returncode}")
            found[last] = f"crash: died by {signal_name(-done.returncode)}"  # the others are run without it


def lines(text: str) -> Iterator[dict[str, str]]:
    """Yield the lines of JSON, decoded, in what jax_verdicts.py printed."""
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def jaxexport(folder: Path, *words: str) -> int:
    """Run `jaxexport` in a folder without a policy, and return its exit code.

    Raises:
        SystemExit: the command is a matrix, and cannot run.
    """
    code = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=folder, check=False).returncode
    if code == 2 and words[0] == "matrix":
        raise SystemExit(f"jaxexport {' '.join(words)}: expected a matrix that runs, found exit code {code}")
    return code


if __name__ == "__main__":
    main()
