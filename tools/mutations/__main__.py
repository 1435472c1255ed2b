"""A check that fast tests notice mutations of the modules that decide: `nox -s mutations`.

Cosmic Ray makes the mutations. modules.yaml lists the modules, the tests of each, and mutations without an effect, with
the reason. A sample of each module's mutations is tried, the same each time; `--all` tries every mutation. For each,
the tests that run the changed line are run, the fastest first. Each worker changes a copy, never the checkout.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tools.mutations.copies import ROOT, exit_code, make_copy, write
from tools.mutations.lines import MODULE, RECORD
from tools.mutations.operators import OPERATORS

_UNSEEN = re.compile(r"@dataclass\(|@functools\.|if TYPE_CHECKING:|class .*\bfrozen=True")
"""Beginnings of lines whose mutations no test has to notice: frozen classes, sizes of caches, imports for types."""


class Unseen(msgspec.Struct, forbid_unknown_fields=True):
    """A mutation without an effect.

    `line` is a part of the unchanged line, `operator` the mutation's operator, `reason` why there is no effect.
    """

    line: str
    operator: str
    reason: str


class Module(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of modules.yaml: a module, the tests that must notice its mutations, and mutations without an effect."""

    path: str
    tests: tuple[str, ...]
    unseen: tuple[Unseen, ...] = ()


UNCHANGED_SECONDS = 1200
"""The time limit of a module's tests without any mutation, which are slower: the lines that each runs are noted."""

TestLines = dict[str, tuple[float, frozenset[int]]]
"""The seconds that each test takes, and the lines of a module that the test runs, by the test's id."""


@dataclass(frozen=True)
class Mutation:
    """A change at one place of a module.

    `occurrence` counts, from 0, the places of the module that `operator` can change. `text` is the unchanged line.
    """

    module: Module
    operator: str
    occurrence: int
    line: int
    text: str

    @property
    def reason(self) -> str:
        """The reason that modules.yaml gives why the mutation has no effect; empty if it is not listed there."""
        listed = (one.reason for one in self.module.unseen if one.line in self.text and one.operator == self.operator)
        return next(listed, "")

    def __str__(self) -> str:
        return f"{self.module.path}:{self.line}: {self.operator}: {self.text.strip()}"


def mutations_of(module: Module) -> Iterator[Mutation]:
    """Yield all mutations of a module, except in parameter lists and in lines that `_UNSEEN` matches."""
    source = (ROOT / module.path).read_text(encoding="utf-8")
    lines = source.splitlines()
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in OPERATORS.items():
        positions = ((node, position) for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (node, ((line, _), _)) in enumerate(positions):
            unseen = _UNSEEN.match(lines[line - 1])
            is_of_signature = node.parent is not None and node.parent.type == "parameters"  # `*` is no product there
            if not unseen and not is_of_signature:
                yield Mutation(module, name, occurrence, line, lines[line - 1])


def noticed(mutation: Mutation, ran: TestLines, folder: Path) -> bool:
    """Return whether a test of the module fails after this mutation, in a copy of the checkout.

    Args:
        mutation: the change to make; it is undone afterwards.
        ran: the lines that each test runs.
        folder: the copy.
    """
    target = folder / mutation.module.path
    original = target.read_text(encoding="utf-8")
    changed = mutate_code(original, OPERATORS[mutation.operator], mutation.occurrence)
    if changed is None or changed == original:
        raise SystemExit(f"{mutation}: expected Cosmic Ray to change the module, but it did not")
    running = sorted((seconds, test) for test, (seconds, lines) in ran.items() if mutation.line in lines)
    # A line that no test runs, such as the value of a constant, is run when the tests import the module.
    tests = [test for _, test in running] or mutation.module.tests
    write(target, changed)
    try:
        return exit_code(tests, folder) != 0
    finally:
        write(target, original)


def ran_by(module: Module, folder: Path) -> TestLines:
    """Run the tests of a module without any mutation; return the seconds of each test, and the lines that it runs.

    Args:
        module: the module.
        folder: the copy of the checkout in which the tests run.

    Raises:
        SystemExit: a test fails, or all together take longer than `UNCHANGED_SECONDS`.
    """
    record = folder / "lines.json"
    variables = {MODULE: str(folder / module.path), RECORD: str(record)}
    options = "-p", "tools.mutations.lines"
    if exit_code(module.tests, folder, *options, seconds=UNCHANGED_SECONDS, **variables) != 0:
        raise SystemExit(
            f"{module.path}: expected its tests to pass without any mutation within {UNCHANGED_SECONDS} s, but one "
            "fails or they take longer. On a busy machine, wait until it is quiet."
        )
    return msgspec.json.decode(record.read_bytes(), type=TestLines)


def main() -> None:
    """Try the chosen mutations, and print each that no test notices; the exit code is 1 if too many are not noticed."""
    parser = argparse.ArgumentParser(prog="tools.mutations", description=__doc__)
    parser.add_argument("--sample", type=int, default=4, help="mutations of each module. Default: 4")
    parser.add_argument("--seed", type=int, default=0, help="another sample")
    parser.add_argument("--all", action="store_true", help="every mutation, which takes hours")
    parser.add_argument("--modules", default="", help="only modules whose path matches this regular expression")
    options = parser.parse_args()
    listed = msgspec.yaml.decode((ROOT / "tools/mutations/modules.yaml").read_bytes(), type=list[Module])
    chosen: list[Mutation] = []
    for module in listed:
        if re.search(options.modules, module.path):
            found = list(mutations_of(module))
            count = len(found) if options.all else min(options.sample, len(found))
            chosen += random.Random(f"{options.seed} {module.path}").sample(found, count)
    with tempfile.TemporaryDirectory() as scratch:
        results = tried(chosen, [Path(scratch) / str(number) for number in range(os.cpu_count() or 1)])
    report(chosen, results)


def tried(mutations: Sequence[Mutation], folders: Sequence[Path]) -> list[bool]:
    """Try mutations in copies of the checkout, one at a time in each of `folders`; return whether each was noticed.

    A mutation that is listed as having no effect counts as noticed, and is not tried.
    """
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        make_copy(folder)
        free.put(folder)

    @contextmanager
    def free_copy() -> Iterator[Path]:
        folder = free.get()
        try:
            yield folder
        finally:
            free.put(folder)

    def record(module: Module) -> tuple[str, TestLines]:
        with free_copy() as folder:
            return module.path, ran_by(module, folder)

    def one(mutation: Mutation) -> bool:
        with free_copy() as folder:
            was_noticed = bool(mutation.reason) or noticed(mutation, ran[mutation.module.path], folder)
        if not was_noticed:
            print(f"not noticed: {mutation}", flush=True)
        return was_noticed

    modules = {mutation.module.path: mutation.module for mutation in mutations}
    with ThreadPoolExecutor(len(folders)) as pool:
        ran = dict(pool.map(record, modules.values()))
        return list(pool.map(one, mutations))


def report(mutations: Sequence[Mutation], results: Sequence[bool]) -> None:
    """Print how many mutations were noticed, and exit: with 1 if fewer than 97 % of those with an effect were noticed.

    Args:
        mutations: the mutations that were tried.
        results: whether each was noticed.
    """
    effective: dict[str, list[bool]] = {}
    for mutation, was_noticed in zip(mutations, results, strict=True):
        if not mutation.reason:
            effective.setdefault(mutation.module.path, []).append(was_noticed)
    for path, of_module in effective.items():
        print(f"{path}: noticed {sum(of_module)} of {len(of_module)}")
    every = [was_noticed for of_module in effective.values() for was_noticed in of_module]
    share = sum(every) / len(every) if every else 1.0
    print(f"{len(mutations)} mutations, {len(mutations) - len(every)} of them without an effect")
    print(f"noticed: {sum(every)} of {len(every)}, {share:.1%}")
    sys.exit(share < 0.97)


if __name__ == "__main__":
    main()
