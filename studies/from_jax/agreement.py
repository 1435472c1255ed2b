"""JAX's own goldens by JAX's own test and by this project, golden by golden: `nox -s from_jax`.

Adopts the goldens of a release's wheel, replays them in many readers, compiles those for cuda and tpu, and runs JAX's
test of each CPU golden in the release that they came with. Prints a row for each golden. Ends with 1 if a golden is
refused, or where the two verdicts differ. `--docs FILE` writes the counts into that page, and the rows beside it.
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
"""What one golden did, by the columns in `HEAD`."""
HEAD = ("golden", "on", "JAX's own test", "here", "in all readers")
SAME = {Verdict.REFUSED: "error"}
"""What a verdict is where there is no list of the messages that a release is known to use."""


def main() -> None:
    """Adopt, replay, run JAX's tests, compare."""
    calendar = load_calendar()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default=calendar.newest(), help="the release whose goldens these are")
    parser.add_argument("--readers", default="all", help="on the CPU, as of `jaxexport matrix`, and the release itself")
    parser.add_argument("--compiling", default="", help="more readers that compile for cuda and tpu; `none` for none")
    parser.add_argument("--only", default="", help="those goldens whose names have this part")
    parser.add_argument("--work", type=Path, default=ROOT / ".nox" / "from_jax-data", help="where goldens are kept")
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
            where = ["--goldens", str(goldens), "--results", str(folder)]
            jaxexport(options.work, "matrix", "--readers", asked, "--platforms", platforms, *where, "--quiet", *chosen)
            for result in read_results(folder):
                results[result.case.removeprefix("jax.")].append(result)
    theirs = jax_verdicts(options.release, options.only)
    rows, problems = compared(results, theirs, options.release)
    print(table(HEAD, (list(row.values()) for row in rows)), counts(rows), sep="\n\n")
    if options.docs:
        options.docs.with_suffix(".csv").write_text(csv_text(rows), encoding="utf-8")
        options.docs.write_text(page(rows, options.docs.read_text()))
    if imported:
        problems.append(f"nox -s jax_goldens ended with {imported}")
    agreed = f"{len(theirs)} CPU goldens of jax {options.release}: JAX's own test and this project agree on each"
    print("\n".join(problems) or agreed)
    sys.exit(1 if problems or not theirs else 0)


def compared(
    results: Mapping[str, Sequence[Result]], theirs: Mapping[str, str], release: str
) -> tuple[list[Row], list[str]]:
    """A row for each golden, and each difference."""
    rows: list[Row] = []
    problems = []
    for name in sorted(results.keys() | theirs.keys()):
        cells = results.get(name, ())
        platform = cells[0].platform if cells else "cpu"
        own = next((cell for cell in cells if cell.reader.jaxlib == release), None)
        ours = "not run" if own is None else SAME.get(own.verdict, str(own.verdict))
        said = theirs.get(name, "" if platform != "cpu" else "not run")
        if platform == "cpu" and said.partition(":")[0] != ours:
            problems.append(f"{name}: JAX's own test: {said}; here: {ours}: {own.message if own else ''}")
        counts = Counter(str(cell.verdict).replace("_", " ") for cell in cells)
        everywhere = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        rows.append(dict(zip(HEAD, (name, platform, said.partition(":")[0], ours, everywhere), strict=True)))
    return rows, problems


def page(rows: Sequence[Row], text: str) -> str:
    """The page, with the counts of these rows."""
    return filled(text, {"counts": counts(rows)})


def counts(rows: Sequence[Row]) -> str:
    """How many goldens of each platform end how, and those of the CPU by operation, in Markdown."""
    platforms = []
    for platform in sorted({row["on"] for row in rows}):
        theirs, ours = (Counter(row[who] for row in rows if row["on"] == platform) for who in (HEAD[2], HEAD[3]))
        platforms.append((platform, ours.total(), _said(theirs) or "cannot be run", _said(ours)))
    alike = Counter((row["golden"].partition(".")[0], row[HEAD[4]]) for row in rows if row["on"] == "cpu")
    by_file = ((f"`{file}`", goldens, everywhere) for (file, everywhere), goldens in alike.items())
    tables = (
        table(("platform", "goldens", HEAD[2], HEAD[3]), platforms),
        table(("goldens for the CPU", "", "in all releases, each"), by_file),
    )
    return "\n\n".join(tables)


def _said(found: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in found.most_common() if verdict)


def jax_verdicts(release: str, part: str) -> dict[str, str]:
    """The verdict of JAX's own test for each CPU golden, and the message of one that does not pass."""
    calendar = load_calendar()
    found: dict[str, str] = {}
    # absl-py is what the runner in the wheel imports; an environment of a reader does not have it.
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
                raise SystemExit(f"{PROGRAM.name} ended with {done.returncode}, and not in a golden")
            found[last] = f"crash: died by {signal_name(-done.returncode)}"  # the others are run without it


def lines(text: str) -> Iterator[dict[str, str]]:
    """The lines of JSON in what the program printed."""
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def jaxexport(folder: Path, *words: str) -> int:
    """Run a command in a folder without a policy; its exit code. A matrix that cannot be done ends this program."""
    code = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=folder, check=False).returncode
    if code == 2 and words[0] == "matrix":
        raise SystemExit(f"jaxexport {' '.join(words)}: ended with {code}")
    return code


if __name__ == "__main__":
    main()
