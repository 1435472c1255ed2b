"""The table of all releases as writers and readers of the programs in `project/`, and its page.

`nox -s every_release [-- --writers V,V --readers V,V --docs FILE]`. The exit code is 1 if there is a writer of which no
golden passes in any reader, or a reader in which no golden passes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.policy import load_policy
from export_core.releases import Calendar
from tools.marked import filled, table
from tools.stored_results import read_results

PROJECT = Path(__file__).parent / "project"
POLICY = PROJECT / "export_compat.yaml"
FIRST = "0.4.24"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "every-release.md"
PROGRAMS = {
    "programs.test_plain": "plain",
    "programs.test_vjp": "derivatives",
    "programs.test_symbolic": "symbolic shapes",
    "programs.test_random_for_two_platforms": "random",
}
"""The cases of `project/programs.py`, each with its name on the page."""
PASS = "pass"
MEANING = {
    "unsupported version": "A release up to 0.8.1 reads only the serialization versions of its time.",
    "older than the": "Since 0.11.1 a release reads no artifact in the format of 0.8.1 and earlier.",
    "Failed to deserialize StableHLO": "The module needs a newer VHLO than the reader has.",
    "exported for N devices": "Since 0.9.1 the number of devices is in a field that releases up to 0.8.1 do not read.",
}
"""The meaning of messages, by words that the messages contain."""

Data = dict[str, Any]
"""The content of every-release.json: counts, releases by build date, the outcomes of each writer by reader, messages.
"""


def releases(calendar: Calendar) -> list[str]:
    """Return the jaxlib versions since `FIRST`, which is the first with today's export API, by build date."""
    return [version for version in calendar.versions() if calendar.built(version) >= calendar.built(FIRST)]


def write(writers: Sequence[str], goldens: Path) -> None:
    """Write the goldens of each of these releases that has no golden in the folder yet.

    Raises:
        SystemExit: a release cannot write all of them.
    """
    written = {golden.manifest.writer.jaxlib for golden in GoldenStore(goldens).goldens_so_far()}
    asked = [writer for writer in writers if writer not in written]
    if asked:
        # With "=": pytest would take a separate word for a folder of tests, and look for an ini file there.
        jaxexport("goldens", "backfill", "--writers", ",".join(asked), "--", f"--goldens={goldens}", good=(0,))


def read(writers: Sequence[str], readers: Sequence[str], goldens: Path, results: Path) -> list[Result]:
    """Replay the goldens of these writers in these readers; write the results into a folder, and return them."""
    words = ["--goldens", str(goldens), "--writers", ",".join(writers), "--readers", ",".join(readers)]
    jaxexport("matrix", *words, "--results", str(results), "--quiet", good=(0, 1), quiet=True)
    return read_results(results)


def moved_inside(goldens: Path) -> set[str]:
    """Return the writers with a golden whose noise was also measured by moved results inside the program.

    To measure that noise, a writer has to run a rewritten form of the program, which not every release can.
    """
    manifests = [golden.manifest for golden in GoldenStore(goldens).goldens()]
    return {manifest.writer.jaxlib for manifest in manifests if manifest.noise and manifest.noise.inside}


def jaxexport(*words: str, good: tuple[int, ...], quiet: bool = False) -> None:
    command = [sys.executable, "-m", "export_core", *words]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode not in good:
        problem = f"expected an exit code in {good}, found {done.returncode}"
        raise SystemExit(f"{' '.join(command)}: {problem}:\n{(done.stdout or '')[-4000:]}")


def data(results: Sequence[Result], writers: Sequence[str], readers: Sequence[str]) -> Data:
    """Return the data of the page, from the results of these writers in these readers."""
    inside = [result for result in results if result.promised]
    facts = {each.jaxlib: each for result in results for each in (result.writer, result.reader)}
    order = sorted(facts, key=lambda jaxlib: (facts[jaxlib].built, Version(jaxlib)))
    wrote, have_read = ([name for name in order if name in passed(results, which)] for which in ("writer", "reader"))
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        cells[result.writer.jaxlib, result.reader.jaxlib].append(result)
    return {
        "cells": dict(Counter(str(result.verdict) for result in results).most_common()),
        "promised": len(inside),
        "kept": sum(result.verdict is Verdict.PASS for result in inside),
        "writers": len(writers),
        "readers": len(readers),
        "wrote": len(wrote),
        "have_read": len(have_read),
        "releases": [f"{jaxlib} jax {facts[jaxlib].jax} {facts[jaxlib].built}" for jaxlib in order],
        "squares": {
            writer: {reader: square(cells[writer, reader]) for reader in order if (writer, reader) in cells}
            for writer in order
        },
        "said": list(kinds(results)),
    }


def passed(results: Sequence[Result], which: str) -> set[str]:
    """Return the releases with a passing cell as its writer, or as its reader: `which` is "writer" or "reader"."""
    return {getattr(result, which).jaxlib for result in results if result.verdict is Verdict.PASS}


def square(results: Sequence[Result]) -> str:
    """Return the outcome of a writer's programs in a reader, from its results.

    It is `pass`, or `refused` or `error` if none passes, or else the names of the programs that fail.
    """
    bad = [result for result in results if result.verdict is not Verdict.PASS]
    if len(bad) == len(results) > 1:
        return str(Verdict.REFUSED if all(result.verdict is Verdict.REFUSED for result in bad) else Verdict.ERROR)
    return ", ".join(name for case, name in PROGRAMS.items() if any(result.case == case for result in bad)) or PASS


def page(found: Data, text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of this data."""
    counts = (
        f"**{found['kept']:,} of {found['promised']:,} cells inside the windows of JAX's promise pass.** "
        f"{found['wrote']} of {found['writers']} releases wrote what some release reads, {found['have_read']} of "
        f"{found['readers']} read what some release wrote. Of all {sum(found['cells'].values()):,} cells:"
    )
    messages = (
        (
            *(one["cells"], one["verdict"], f"`{one['message'][:70]}` {meaning(one['message'])}"),
            *(one["writers"], one["readers"]),
        )
        for one in found["said"]
    )
    cells = ((verdict, f"{count:,}") for verdict, count in found["cells"].items())
    tables = {
        "counts": f"{counts}\n\n{table(('verdict', 'cells'), cells)}",
        "grid": grid(found["squares"]),
        "said": table(("cells", "verdict", "message, and what it means", "writers", "readers"), messages),
    }
    return filled(text, tables)


def meaning(message: str) -> str:
    return next((text for words, text in MEANING.items() if words in message), "")


def grid(squares: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table of outcomes with a row for each writer and a column for each reader, newest first.

    Neighbours with the same outcomes share a row or a column.
    """
    writers = [name for name in squares if squares[name]]
    readers = list(dict.fromkeys(name for writer in writers for name in squares[writer]))
    rows = alike(writers, lambda writer: [squares[writer].get(reader, "") for reader in readers])
    columns = alike(readers, lambda reader: [squares[writer].get(reader, "") for writer in writers])
    return table(
        ("writer ↓ reader →", *map(named, columns)),
        ((named(row), *(shown(squares[row[0]].get(column[0], "")) for column in columns)) for row in rows),
    )


def shown(square: str) -> str:
    return (
        square if square in ("", PASS, Verdict.REFUSED, Verdict.ERROR) else f"all but {square.replace(', ', ' and ')}"
    )


def alike(names: Sequence[str], key: Callable[[str], object]) -> list[list[str]]:
    """Return the groups of consecutive names with the same key, the last group first."""
    return [list(group) for _, group in itertools.groupby(names, key)][::-1]


def named(group: Sequence[str]) -> str:
    return group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}"


def kinds(results: Sequence[Result]) -> Iterator[Data]:
    """Yield each kind of message of cells that do not pass, with the number of cells and where it occurs.

    Messages are of the same kind if they differ only in numbers and names of functions.
    """
    found: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.verdict is not Verdict.PASS:
            message = re.sub(r"^(vjp|call|refused)\d: ", "", result.message.partition("\n")[0])
            message = re.sub(r"\bFunction \S+", "Function F", re.sub(r"\d+", "N", message))[:150].rstrip()
            found[result.verdict, result.stage, message].append(result)
    for (verdict, stage, message), those in sorted(found.items(), key=lambda each: -len(each[1])):
        yield {
            "cells": len(those),
            "promised": sum(each.promised for each in those),
            "verdict": str(verdict),
            "stage": str(stage),
            "programs": [name for case, name in PROGRAMS.items() if any(case == each.case for each in those)],
            "writers": span(those, "writer"),
            "readers": span(those, "reader"),
            "message": message,
        }


def span(results: Sequence[Result], which: str) -> str:
    """Return the oldest and the newest writer or reader of these results, as text."""
    found = sorted({(getattr(result, which).built, getattr(result, which).jaxlib) for result in results})
    return found[0][1] if len(found) == 1 else f"{found[0][1]} to {found[-1][1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", help="jaxlib releases V,V; all if not given")
    parser.add_argument("--readers", help="jaxlib releases V,V; all if not given")
    parser.add_argument(
        "--goldens", type=Path, help="store the goldens here; releases that have some here do not write again"
    )
    parser.add_argument("--results", type=Path, help="store the results here")
    parser.add_argument("--docs", type=Path, help="write this page too, and its data beside it")
    options = parser.parse_args()
    known = releases(load_policy(POLICY).calendar())
    writers, readers = (named.split(",") if named else known for named in (options.writers, options.readers))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        goldens = options.goldens.resolve() if options.goldens else Path(scratch) / "golden"
        write(writers, goldens)
        folder = options.results.resolve() if options.results else Path(scratch) / "results"
        results = read(writers, readers, goldens, folder)
        not_moved = [writer for writer in writers if writer not in moved_inside(goldens)]
    found = data(results, writers, readers)
    text = page(found, PAGE.read_text(encoding="utf-8"))
    print(text, f"{len(writers) - len(not_moved)} of {len(writers)} releases measured inner noise", sep="\n")
    print(*([f"not {', '.join(not_moved)}"] if not_moved else []), f"{time.monotonic() - started:.0f} s", sep="\n")
    if options.docs:
        options.docs.write_text(text, encoding="utf-8")
        data_text = json.dumps(found, indent=1, ensure_ascii=False)
        options.docs.with_suffix(".json").write_text(f"{data_text}\n", encoding="utf-8")
    return 0 if {*writers} <= passed(results, "writer") and {*readers} <= passed(results, "reader") else 1


if __name__ == "__main__":
    sys.exit(main())
