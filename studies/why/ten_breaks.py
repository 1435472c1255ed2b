"""The session of ten real breaks: `nox -s why` bisects and reduces each, and runs the bundles of three by uv alone.

Each break is a cell: a reader with a golden of this project, or with one that an older release has exported from
studies/why/breaks.py. A row of a table is printed for each break. The exit code is 0 if each break begins in its known
release, and every bundle fails as its cell does, else 1. `--docs FILE` writes the table into that page, and `--only
NAME,NAME` runs some breaks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from export_core.features.why.explain.bundle import SCRIPT
from export_core.readers.build import find_python, uv_command
from tools.marked import filled, table

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".nox" / "why"
OWN = WORK / "golden"
WRITER = "0.9.0.1"
"""The release that exports studies/why/breaks.py."""
REDUCED = re.compile(r"^([\d,]+) operations? → (\d+),", re.MULTILINE)
HEAD = ("break", "golden in reader", "last good", "first bad", "operations")


@dataclass(frozen=True)
class Break:
    """A cell that fails, with the known releases between which it breaks: the last good and the first bad.

    The good release may be younger than the bad one. `words` are more options of `bisect`. `bundle` is the expected
    exit status of the script in the cell's bundle, or None if the script is not run.
    """

    name: str
    case: str
    writer: str
    reader: str
    good: str
    bad: str
    platform: str = "cpu"
    words: tuple[str, ...] = ()
    reduce: bool = True
    bundle: int | None = None


BREAKS = (
    Break("LAPACK crash", "*.test_linear_algebra.test_cholesky", "0.9.2", "0.9.2", "0.10.0", "0.9.2", bundle=-11),
    Break("0 devices", "*.test_first_order", "0.9.2", "0.8.1", "0.8.2", "0.8.1", bundle=1),
    Break("expired window", "*.test_top_k", "0.6.2", "0.12.0.1", "0.11.0", "0.11.1"),
    Break("rank-8 crash", "*.test_rank_8", "0.9.2", "0.10.2", "0.10.1", "0.10.2", bundle=-11),
    Break("int4", "*.test_transposed_int4", WRITER, "0.8.1", "0.8.2", "0.8.1"),
    Break("GSPMD reduction", "*.test_sum_over_four_devices", "0.6.2", "0.7.0", "0.6.2", "0.7.0", "tpu"),
    Break("Triton payload", "*.test_pallas_on_cuda", "0.9.2", "0.11.0", "0.9.2", "0.10.0", "cuda", reduce=False),
    Break("IndivisibleError", "*.test_constraint_on_another_mesh", WRITER, "0.9.1", WRITER, "0.9.1"),
    Break("composite_v2", "*.test_top_k", "0.12.0.1", "0.9.0", "0.9.2", "0.9.1"),
    Break(
        *("bf16 accumulation", "*.test_bf16_accumulation", WRITER, "0.11.2", "0.11.1", "0.11.2"),
        words=("--by", "numbers"),
        reduce=False,  # within the writer's noise, so there is no failure to reduce
    ),
)


def main() -> None:
    """Export missing programs, bisect and reduce each break, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="some of the breaks, by their names, with commas")
    parser.add_argument("--docs", type=Path, help="write the table into this page")
    options = parser.parse_args()
    names = [name.strip() for name in options.only.split(",") if name.strip()]
    if unknown := set(names) - {each.name for each in BREAKS}:
        parser.error(f"--only: expected names of {', '.join(each.name for each in BREAKS)}; found {', '.join(unknown)}")
    export_programs()
    rows, problems = [], []
    for each in BREAKS:
        if not names or each.name in names:
            row, found = examined(each)
            rows.append(row)
            problems += [f"{each.name}: {problem}" for problem in found]
            print(" | ".join(row), *found, sep="\n", file=sys.stderr, flush=True)
    text = table(HEAD, rows)
    print(text)
    if options.docs:
        options.docs.write_text(filled(options.docs.read_text(), {"breaks": text}))
    print(
        "\n".join(problems) or f"{len(rows)} breaks begin in their known releases, every bundle fails as its cell does"
    )
    sys.exit(1 if problems else 0)


def export_programs() -> None:
    """Write the goldens of studies/why/breaks.py, unless an earlier run has written them."""
    if all(map(golden_folder, BREAKS)):
        return
    command = [sys.executable, "-m", "export_core", "goldens", "backfill", "--writers", WRITER, "--install", ".", "--"]
    programs = ["--goldens", str(OWN), "studies/why/breaks.py", "-q"]
    subprocess.run([*command, *programs], cwd=ROOT, check=True)


def golden_folder(one: Break) -> Path | None:
    """Return the folder of goldens that has the golden of a break, or None if it has not been exported yet."""
    return next((folder for folder in (ROOT / "golden", OWN) if any(folder.glob(one.case))), None)


def examined(one: Break) -> tuple[list[str], list[str]]:
    """Bisect and reduce a break, and run its bundle; return its row of the table, and what is not as expected."""
    goldens = golden_folder(one) or OWN
    cell = ["--cases", one.case, "--writers", one.writer, "--readers", one.reader, "--platforms", one.platform]
    cell += ["--goldens", str(goldens)]
    done = jaxexport("bisect", *cell, *one.words, "--json", "--quiet")
    problems = []
    if done.returncode:
        text = (done.stderr or done.stdout).strip()[-500:]
        problems.append(f"bisect: expected exit code 0, found {done.returncode}: {text}")
        return [one.name, f"{one.case} by {one.writer} in {one.reader}", *["-"] * 3], problems
    found = json.loads(done.stdout)
    good, bad = found["last_good"]["jaxlib"], found["first_bad"]["jaxlib"]
    if (good, bad) != (one.good, one.bad):
        problems.append(f"expected {one.good} good and {one.bad} bad, found {good} and {bad}")
    operations = "not reduced"
    if one.reduce:
        operations, problem = reduction(one, cell)
        problems += [problem] if problem else []
    if one.bundle is not None and (problem := run_bundle(one, cell)):
        problems.append(problem)
    golden = f"{one.case[2:]} by {one.writer} in {one.reader}"
    return [one.name, golden, good, bad, operations], problems


def reduction(one: Break, cell: list[str]) -> tuple[str, str]:
    """Reduce a break; return the number of its operations before and after as text, and the problem, if any, or "".

    Args:
        one: the break.
        cell: the options that name its cell.
    """
    folder = WORK / "reduced" / one.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = jaxexport("reduce", *cell, "--output", str(folder), "--quiet")
    match = REDUCED.search(done.stdout)
    if done.returncode or not match:
        text = (done.stderr or done.stdout).strip()[-500:]
        return "-", f"reduce: expected exit code 0, found {done.returncode}: {text}"
    return f"{match[1]} → {match[2]}", ""


def run_bundle(one: Break, cell: list[str]) -> str:
    """Write the bundle of a break, and run its script with `uv run`, outside any project.

    Return "" if the script fails as the cell does, or else what is wrong.

    Args:
        one: the break.
        cell: the options that name its cell.
    """
    folder = WORK / "bundles" / one.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    reduced = WORK / "reduced" / folder.name
    words = ["--reduced", str(reduced)] if reduced.is_dir() else []
    done = jaxexport("explain", *cell, "--bundle", str(folder), *words)
    if done.returncode:
        return f"explain: expected exit code 0, found {done.returncode}: {done.stderr.strip()[-500:]}"
    others = ("PYTHON", "JAX", "XLA", "VIRTUAL")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    uv = uv_command()
    command = [uv, "run", "--no-project", "--python", find_python("3.12", uv), SCRIPT]
    done = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    if done.returncode not in (one.bundle, 128 - one.bundle if one.bundle and one.bundle < 0 else one.bundle):
        return f"the bundle: expected exit status {one.bundle}, found {done.returncode}: {done.stderr.strip()[-500:]}"
    return ""


def jaxexport(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `jaxexport` in the root of this project, and return its exit code and what it printed."""
    command = [sys.executable, "-m", "export_core", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
