"""Which releases show the breaks of closed issues: `nox -s regressions` writes goldens, replays them, renews the page.

`-- [--goldens DIR --results DIR]`. A writer that gives a wrong answer itself writes no
golden, so a reader shows a break where it does not give what a golden expects.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
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
WRONG = {
    Verdict.NUMERICS: "other numbers",
    Verdict.CRASH: "died",
    Verdict.ERROR: "error",
    Verdict.TIMEOUT: "no end",
}
LOADED = (Stage.COMPILE, Stage.RUN, Stage.COMPARE)
"""What a release does not load says nothing about what it would compute."""
PAGE_HEAD = """# Closed issues, release by release

Programs of issues of JAX and XLA about wrong numbers, crashes and failed loads on CPUs. They are in
[`studies/corpus/regressions`](../../studies/corpus/regressions). Made by `nox -s regressions`: jaxlibs {writers} write
goldens. {number} jaxlibs, from {first} to {last}, read them. A writer that gives a wrong answer itself writes no
golden: what a golden expects is right.

*Shown by* names the readers that did not give the right answer, with what they did. A reader that cannot load any of
the goldens is in neither column. *First … last* are all readers between these two. Up to 0.9.2, all of linear algebra
dies of jax#29610 in a new process, whatever else may be wrong. Its *error* is a custom call that was removed or
changed.

| program | issue | it says | shown by | right in |
|---|---|---|---|---|
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
            _jaxexport("backfill", "--writers", ",".join(missing), "--", f"--goldens={goldens}", str(FOLDER))
        policy = ("--policy", str(FOLDER / "export_compat.yaml"), "--goldens", str(goldens))
        found: list[Result] = []
        for writer, readers in READERS.items():
            where = ("--results", str(results / writer), "--writers", writer, "--readers", readers)
            _jaxexport("matrix", *policy, *where, "--timeout", "60", "--quiet")
            found += read_results(results / writer)
        PAGE.write_text(page(found), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}")


def _jaxexport(*words: str) -> None:
    # What fails is what is looked for here.
    done = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=ROOT, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"jaxexport {words[0]}: expected that it runs; it ended with {done.returncode}")


def page(results: Sequence[Result]) -> str:
    """The page with these results."""
    by_case: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_case[result.case].append(result)
    readers = _ordered({result.reader.jaxlib for result in results})
    rows = [_row(text, by_case[f"studies.corpus.regressions.{name}"], readers) for name, text in programs().items()]
    written = ", ".join(_ordered({result.writer.jaxlib for result in results}))
    head = PAGE_HEAD.format(writers=written, number=len(readers), first=readers[0], last=readers[-1])
    return head + "".join(f"| `{name}` {row}" for name, row in zip(programs(), rows, strict=True))


def programs() -> dict[str, str]:
    """The docstring of each test, by the name of its case."""
    return {
        f"{path.stem}.{node.name}": ast.get_docstring(node) or ""
        for path in sorted(FOLDER.glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _row(text: str, results: Iterable[Result], readers: Sequence[str]) -> str:
    issue = ISSUE.search(text)
    assert issue, text
    shown: dict[str, set[str]] = defaultdict(set)
    right = set()
    for result in results:
        if result.verdict in WRONG and result.stage in LOADED:
            shown[WRONG[result.verdict]].add(result.reader.jaxlib)
        elif result.verdict is Verdict.PASS:
            right.add(result.reader.jaxlib)
    wrong = "; ".join(f"{what}: {_runs(releases, readers)}" for what, releases in shown.items())
    cells = [
        f"[{issue[2]}#{issue[3]}]({issue[0].split(' ')[0]}) {issue[4]}",
        issue[5].rstrip("."),
        wrong or ("none" if right else "every writer gives a wrong answer itself"),
        _runs(right.difference(*shown.values()), readers),
    ]
    return f"| {' | '.join(cells)} |\n"


def _ordered(releases: Iterable[str]) -> list[str]:
    calendar = load_calendar()
    return sorted(releases, key=lambda version: calendar.release(version).built)


def _runs(releases: set[str], readers: Sequence[str]) -> str:
    """Releases, those that follow each other among the readers as `first … last`."""
    runs: list[list[str]] = []
    for before, reader in zip(("", *readers), readers, strict=False):
        if reader in releases:
            if runs and runs[-1][-1] == before:
                runs[-1].append(reader)
            else:
                runs.append([reader])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs)


if __name__ == "__main__":
    main()
