"""The writer of docs/evidence/surface.md and surface.csv from results: `python -m tools.surface_page [RESULTS_DIR]`."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from export_core.base.text import first_line, for_markdown
from export_core.judge import Judgement, Result
from export_core.policy.known_issues import known_issues
from export_core.run.results import read_run
from tools import renew
from tools.marked import csv_rows, csv_text, filled, table

ROOT = Path(__file__).parents[1]
COMPAT = ROOT / "tests" / "compat"
PAGE = ROOT / "docs" / "evidence" / "surface.md"
DATA = PAGE.with_suffix(".csv")
ISSUES = {issue.id: issue.title for issue in known_issues()}

Outcomes = Mapping[str, Mapping[str, str]]
"""The outcome of each golden in each reader, by golden and then by reader.

An outcome is a text such as `promised pass`, or `outside error: ` followed by the id of a known issue or a message.
"""


def outcomes(results: Iterable[Result]) -> Outcomes:
    """Return the outcome of each golden in each reader, the newest reader first."""
    found: dict[str, dict[str, str]] = {}
    for result in sorted(results, key=lambda each: (each.reader.built, each.reader.jax), reverse=True):
        jax, jaxlib = result.reader.jax, result.reader.jaxlib
        reader = jaxlib if jax == jaxlib else f"{jaxlib} (jax {jax})"
        found.setdefault(result.golden, {})[reader] = _outcome(result)
    return dict(sorted(found.items()))


def _outcome(result: Result) -> str:
    known = ", known" if result.judgement is Judgement.KNOWN else ""
    failed = (
        "" if result.verdict.works else f": {result.cause if result.cause in ISSUES else first_line(result.message)}"
    )
    return f"{'promised' if result.promised else 'outside'} {result.verdict}{known}{failed[:120]}"


def page(found: Outcomes, as_of: str, text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of these outcomes.

    Args:
        found: the outcomes.
        as_of: the day of the run, which decides which cells are promised.
        text: the page.
    """
    cells = [(golden, reader, what) for golden, by_reader in found.items() for reader, what in by_reader.items()]
    readers = list(dict.fromkeys(reader for _, reader, _ in cells))
    of_module = {
        module: [what for golden, _, what in cells if _module(golden) == module] for module in map(_module, found)
    }
    promised, passed, *_ = _counts(what for *_, what in cells)
    known = sum(what.startswith("promised") and ", known: " in what for *_, what in cells)
    counts = (
        f"{len(found)} goldens in each release of the window of {as_of}: **{passed:,} of {promised:,} promised cells "
        f"pass**; of the others {known} are listed as known failures, and {promised - passed - known} are not."
    )
    head = "release", "promised", "pass", "outside the promise", "pass"
    tables = {
        "counts": f"{counts}\n\n{table(head, _readers(cells, readers))}",
        "failures": table(("promised", "outside", "what happens", "releases"), _failures(cells, readers)),
        "modules": table(
            ("", *head[1:3]), ((about(module), *_counts(texts)[:2]) for module, texts in sorted(of_module.items()))
        ),
    }
    return filled(text, tables)


def _module(golden: str) -> str:
    return golden.split(".")[2]


def _counts(texts: Iterable[str]) -> tuple[int, int, int, int]:
    """Return four numbers of cells: promised, promised that pass, not promised, not promised that pass."""
    counts = Counter((text.startswith("promised"), text.endswith(" pass")) for text in texts)
    inside, outside = counts[True, True], counts[False, True]
    return inside + counts[True, False], inside, outside + counts[False, False], outside


def _readers(cells: Sequence[tuple[str, str, str]], readers: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield a row of counts for each reader; consecutive readers with the same counts share a row."""
    counts = {each: _counts(text for _, reader, text in cells if reader == each) for each in readers}
    for same, group in itertools.groupby(readers, counts.__getitem__):
        yield _between(list(group)), *same


def _between(readers: Sequence[str]) -> str:
    return readers[0] if len(readers) == 1 else f"{readers[-1]} to {readers[0]}"


def _failures(cells: Sequence[tuple[str, str, str]], readers: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield a row for each known issue that cells show, and a row for all other failures.

    Rows with the most promised cells come first. A row also has the range of readers in which the failure is seen.
    """
    shown: dict[str, Counter[str]] = {}
    indexes: dict[str, set[int]] = {}
    for _, reader, text in cells:
        inside, _, what = text.partition(" ")
        if what != "pass":
            issue = what.partition(": ")[2]
            title = f"{for_markdown(ISSUES[issue])} (`{issue}`)" if issue in ISSUES else "something else"
            shown.setdefault(title, Counter())[inside] += 1
            indexes.setdefault(title, set()).add(readers.index(reader))
    for title, counts in sorted(shown.items(), key=lambda each: (-each[1]["promised"], -each[1]["outside"])):
        between = _between(readers[min(indexes[title]) : max(indexes[title]) + 1])
        yield counts["promised"], counts["outside"], title, between


def about(module: str) -> str:
    """Return what a file of tests/compat is about: the first line of its docstring, up to a colon or semicolon."""
    text = ast.get_docstring(ast.parse((COMPAT / f"{module}.py").read_text(encoding="utf-8")))
    return re.split("[:;]", (text or module).splitlines()[0])[0].rstrip(".")


def read(path: Path) -> Outcomes:
    """Return the outcomes in a file such as surface.csv."""
    return {row.pop("golden"): {reader: what for reader, what in row.items() if what} for row in csv_rows(path)}


if __name__ == "__main__":
    run = read_run(Path(*sys.argv[1:] or [".jaxexport"]))
    found = outcomes(run.results)
    readers = dict.fromkeys(reader for by_reader in found.values() for reader in by_reader)
    rows = [
        {"golden": golden} | {each: by_reader.get(each, "") for each in readers} for golden, by_reader in found.items()
    ]
    renew(DATA, csv_text(rows))
    renew(PAGE, page(found, str(run.summary.as_of), PAGE.read_text(encoding="utf-8")))
