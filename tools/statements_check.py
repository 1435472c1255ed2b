"""A check that the test of each statement in tests/statements.yaml fails if the statement is broken.

`nox -s statements` runs it. A row's mutation, which breaks its statement, is made in a copy of the checkout. Before
that, all these tests have to pass in the copy. The checkout itself is not changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tools.mutations.copies import ROOT, exit_code, make_copy, write
from tools.statements_page import Mutation, Statement, files_by_test, load_documents, statements

EIGHT_DEVICES = ("-o", "export_devices=8")
"""The options by which studies/tests/export_docs/test_apart.py runs the tests of apart.py."""


class Checks:
    """Copies of the checkout in which the tests of statements are run, one run at a time in each copy."""

    def __init__(self, rows: Iterable[Statement], folders: Iterable[Path]) -> None:
        self._files = files_by_test(list(rows))
        self._free: SimpleQueue[Path] = SimpleQueue()
        for folder in folders:
            make_copy(folder)
            self._free.put(folder)

    def fail_unchanged(self, tests: Iterable[str]) -> list[str]:
        """Run tests without any mutation, and return the files, without suffix, in which a test fails."""
        by_file: dict[str, list[str]] = {}
        for test in sorted(set(tests)):
            by_file.setdefault(test.partition("::")[0], []).append(test)
        folder = self._free.get()
        try:
            everything = [test for file, named in by_file.items() if file != "apart" for test in named]
            if all(self._ended(named, folder) == 0 for named in (everything, by_file.get("apart", [])) if named):
                return []
            return [file for file, named in by_file.items() if self._ended(named, folder) != 0]
        finally:
            self._free.put(folder)

    def problem(self, mutation: Mutation) -> str:
        """Make a mutation, run its test, and undo the mutation; return "" if the test fails, as it must.

        Otherwise return what is wrong: the test passes or cannot be imported, or the text to replace is not there once.
        """
        folder = self._free.get()
        target = folder / mutation.file
        original = target.read_text(encoding="utf-8")
        try:
            if original.count(mutation.replace) != 1:
                return (
                    f"expected {mutation.replace!r} once in {mutation.file}, "
                    f"found it {original.count(mutation.replace)} times"
                )
            write(target, original.replace(mutation.replace, mutation.by))
            ended = self._ended([mutation.test], folder)
            problems = {0: f"expected {mutation.test} to fail, but it passes", 1: ""}
            return problems.get(ended, f"{mutation.test} cannot be imported")
        finally:
            write(target, original)
            self._free.put(folder)

    def _ended(self, tests: list[str], folder: Path) -> int:
        nodes = []
        for test in tests:
            file = self._files[test.partition("[")[0]].relative_to(ROOT)
            nodes.append(f"{file}::{test.partition('::')[2]}")
        return exit_code(nodes, folder, *(EIGHT_DEVICES if tests[0].startswith("apart::") else ()))


def main() -> None:
    """Try the mutations of the chosen rows, and print those that no test notices.

    The exit code is 1 if a mutation is not noticed, or if a row has neither a mutation nor the reason why it has none.
    """
    parser = argparse.ArgumentParser(prog="tools.statements_check", description=__doc__)
    parser.add_argument("--rows", default="1-", help="only these rows, such as 1-20 or 7. Default: all")
    parser.add_argument("--file", default="", help="only mutations of files whose path has this text")
    parser.add_argument("--workers", type=int, default=2, help="mutations at the same time. Default: 2")
    options = parser.parse_args()
    first, dash, last = options.rows.partition("-")
    every = statements(load_documents())
    chosen = dict(enumerate(every, 1))
    final = int(last or len(every)) if dash else int(first)
    chosen = {number: row for number, row in chosen.items() if int(first) <= number <= final}
    # Rows about the same line share a mutation, and are shown by one run.
    mutations: dict[Mutation, list[int]] = {}
    for number, row in chosen.items():
        if row.mutation and options.file in row.mutation.file:
            mutations.setdefault(row.mutation, []).append(number)
    with tempfile.TemporaryDirectory() as scratch:
        checks = Checks(every, [Path(scratch) / str(number) for number in range(options.workers)])
        if failing := checks.fail_unchanged(mutation.test for mutation in mutations):
            raise SystemExit(f"expected all tests to pass without any mutation, found failures in {', '.join(failing)}")
        unnoticed = 0
        with ThreadPoolExecutor(options.workers) as pool:
            for numbers, problem in zip(mutations.values(), pool.map(checks.problem, mutations), strict=True):
                if problem:
                    unnoticed += len(numbers)
                    for number in numbers:
                        print(f"row {number}, {chosen[number].says} {problem}", flush=True)
    tried = sum(map(len, mutations.values()))
    alone = sum(bool(row.jax_alone) for row in chosen.values())
    neither = [number for number, row in chosen.items() if not row.jax_alone and row.mutation is None]
    print(f"{len(chosen)} rows, {alone} about jax alone; {len(mutations)} mutations of {tried}, {unnoticed} unnoticed")
    if neither:
        print(f"neither a mutation nor about jax alone: {', '.join(map(str, neither))}")
    sys.exit(bool(unnoticed or neither))


if __name__ == "__main__":
    main()
