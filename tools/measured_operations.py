"""The writer of the table of operations that work in other runtimes: `python -m tools.measured_operations`.

It makes export_core/knowledge/data/measured.json from two records in studies/runtimes. record.json has what the goldens
did (`nox -s runtimes`), operations.json what small programs did (`nox -s operations`). The table lists each operation
with the element types for which it has worked, and what has failed in each program.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from export_core.artifact.bytecode.element_types import element_types
from export_core.artifact.readers import loads
from export_core.goldens import Golden, GoldenStore
from export_core.knowledge.concerns import CALL
from export_core.knowledge.measured import MEASURED
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.names import parts_of
from studies.runtimes.operations import RECORD as PROGRAMS
from studies.runtimes.record import RECORD, read_record
from tools import renew

GOLDENS = Path(__file__).parents[1] / "golden"
PLAIN = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")
"""Operations that most programs contain in addition to the operations that they test."""
MOST_OWN = 2
"""A failing program shows which operation fails if it has at most so many, counted with their element types."""
ALIKE = ("tensorflow", "savedmodel", "stablehlo")
"""Runtimes in which every operation works for all element types alike: XLA, and the interpreter of StableHLO.

Evidence: 41 goldens need an operation with element types for which no other case has that operation. All of them ran,
or an entry of the knowledge base says that they do not."""
LEAST_FAILED = 3
"""An operation or an element type counts as failing if at least so many programs failed that have nothing else unseen.

Three, since one or two programs may have failed for a reason of their own."""
USUAL = frozenset(("f32", "i32", "i1"))
"""Element types of which one must have failed, before an operation counts as failing with all of them."""
WORKS, NUMBERS, FAILS = "works", "numbers", "fails"
UNPARSED = (
    "dialect 'sdy' does not",
    "unregistered operation 'vhlo",
    "unknown vhlo",
    "no element type for",
    "has no dtype",
)
"""What a program did whose bytecode a reader does not parse, or whose arguments or results it cannot pass.

A forecast knows it from the dialects, versions and types of the program."""
ReleasesThatRan = dict[str, dict[str, dict[str, set[str]]]]
"""The releases that ran an operation with some element types, by runtime, operation and types."""


class Run(NamedTuple):
    """One run of a golden or of a small program in a reader that loads it."""

    reader: str
    program: str  # The case of the golden, or the name of the program.
    outcome: str  # WORKS, NUMBERS (other numbers) or FAILS.
    operations: Mapping[str, Collection[str]]  # The operations, each with its element types.

    @property
    def place(self) -> tuple[str, str]:
        """The runtime and its release."""
        return parts_of(self.reader)[:2]

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The operations, each with one of its element types, or "" if it has none."""
        return {(name, of) for name, types in self.operations.items() for of in types or ("",)}


def recorded_runs() -> tuple[ReleasesThatRan, ReleasesThatRan, ReleasesThatRan]:
    """Return what ran, what also failed in some programs, and what releases do not run, from the two records.

    Each has the releases by operation and element types. If an operation failed in a release in fewer programs than it
    ran in, the release is in the first and the second; if in as many or more, in neither. The third is of `failing`.
    """
    found: ReleasesThatRan = {}
    programs = [*runs_of_programs()]
    runs = [*programs, *runs_of_goldens()]
    works: Counter[tuple[str, str, str]] = Counter()
    fails: Counter[tuple[str, str, str]] = Counter()
    for run in runs:
        if run.outcome == WORKS:
            add(found, run.reader, run.operations)
            works.update((run.reader, *pair) for pair in run.pairs)
    failed = failing(found, runs)  # before a contested operation is taken out of `found`: it has run
    for run in programs:
        if run.outcome != WORKS:
            fails.update((run.reader, *pair) for pair in contested(found, run.reader, run.operations))
    some: ReleasesThatRan = {}
    for (name, operation, of), count in fails.items():
        runtime, release, _ = parts_of(name)
        if works[name, operation, of] > count:
            add(some, name, {operation: [of]})
        else:
            found[runtime][operation][of].discard(release)
    return found, some, failed


def runs_of_programs() -> Iterator[Run]:
    """Yield the runs of the small programs of operations.json, without those of `UNPARSED`."""
    for name, program in json.loads(PROGRAMS.read_text(encoding="utf-8")).items():
        for reader, text in program["in"].items():
            outcome = WORKS if text == WORKS else FAILS if text.startswith(FAILS) else NUMBERS
            if not any(message in text for message in UNPARSED):
                yield Run(reader, name, outcome, program["operations"])


def runs_of_goldens() -> Iterator[Run]:
    """Yield the runs of goldens in record.json that passed, and those that failed because of an operation.

    A failure says nothing about operations if the reader does not load the golden, or if the golden needs several
    devices.
    """
    record, terms = read_record(RECORD), Terms(shipped_entries())
    goldens = {golden.id: golden for golden in GoldenStore(GOLDENS).goldens()}
    readers = [find_reader(name, terms) for name in record.readers]
    for place, name in enumerate(record.goldens):
        if (golden := goldens.get(name)) is None:
            continue
        artifact, operations = golden.read_artifact(), needed_by(golden)
        for load, (reader, row) in zip(loads(artifact, readers), record.readers.items(), strict=True):
            letter = row.verdicts[place]
            # A golden with assertions of shapes also fails if a call that must be refused was not.
            is_refused = letter in "rc" or (letter == "e" and "shape_assertion" not in operations.get(CALL, ()))
            if letter == "p" or (is_refused and load.ok is not False and artifact.devices == 1):
                yield Run(reader, name.partition("/")[0], WORKS if letter == "p" else FAILS, operations)


def failing(found: ReleasesThatRan, runs: Iterable[Run]) -> ReleasesThatRan:
    """Return the operations, element types and custom calls that a release does not run, as failed programs show.

    None of them ever ran in the release, and at least `LEAST_FAILED` programs failed there in which all else has run.
    In one of these programs, an operation must have types in `USUAL` alone. For a custom call, one program is enough,
    since a runtime has a target or lacks it.

    An operation is listed with the type "*", an element type with the operation "*", and a custom call with its target
    in place of a type.

    Args:
        found: what ran.
        runs: the runs.
    """
    evidence: dict[tuple[str, str, str, str], set[str]] = {}
    usual: set[tuple[str, str, str, str]] = set()
    kinds = {runtime: types_in(operations) for runtime, operations in found.items()}
    for run in runs:
        if run.outcome != FAILS:
            continue
        runtime, release = run.place
        ran = found.get(runtime, {})
        new = {(name, of) for name, of in run.pairs if release not in ran.get(name, {}).get(of, ())}
        names = {name for name, _ in new}
        if names == {CALL}:
            if len(new) == 1:
                evidence.setdefault((runtime, release, *next(iter(new))), set()).add(run.program)
            continue
        if len(names) == 1 and not any(release in releases for releases in ran.get(*names, {}).values()):
            key = (runtime, release, *names, "*")
            evidence.setdefault(key, set()).add(run.program)
            if {kind for _, of in new for kind in kinds_in(of)} <= USUAL:
                usual.add(key)
        unknown = [{kind for kind in kinds_in(of) if release not in kinds[runtime].get(kind, ())} for _, of in new]
        if new and CALL not in names and len(common := set[str].intersection(*unknown)) == 1:
            key = (runtime, release, "*", *common)
            evidence.setdefault(key, set()).add(run.program)
            usual.add(key)
    failed: ReleasesThatRan = {}
    for key, programs in evidence.items():
        runtime, release, name, of = key
        if name == CALL or (key in usual and len(programs) >= LEAST_FAILED):
            failed.setdefault(runtime, {}).setdefault(name, {}).setdefault(of, set()).add(release)
    return failed


def contested(
    found: ReleasesThatRan, reader: str, operations: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the operations, each with a type, by which a program may fail although all its operations ran elsewhere.

    In the programs that ran, the operation had a different form, or a converter dropped it, as with x == x. Operations
    in `PLAIN` are left out. If more than `MOST_OWN` remain, nothing is yielded, since any of them may have failed.

    Args:
        found: what ran.
        reader: the name of the reader in which the program fails.
        operations: the element types of each operation of the program.
    """
    runtime, release, _ = parts_of(reader)
    releases_that_ran = [
        found[runtime].get(name, {}).get(of, set()) for name, types in operations.items() for of in types or ("",)
    ]
    typed = {name: types for name, types in operations.items() if types}
    own = {name: types for name, types in typed.items() if name not in PLAIN} or typed
    if all(release in ran for ran in releases_that_ran) and sum(map(len, own.values())) <= MOST_OWN:
        yield from ((name, of) for name, types in own.items() for of in types)


def needed_by(golden: Golden) -> dict[str, set[str]]:
    """Return the operations in the modules that the calls of a golden run, each with its element types.

    For custom calls, the targets stand in place of element types.
    """
    modules = golden.read_artifact().modules
    needed: dict[str, set[str]] = {}
    for order in {0, *(check.vjp for check in golden.manifest.checks)}:
        for name, types in element_types(modules[order]).items() if order < len(modules) else ():
            needed.setdefault(name, set()).update(types)
    if CALL in needed:
        needed[CALL] = {call.target for call in golden.read_artifact().custom_calls}
    return needed


def add(found: ReleasesThatRan, reader: str, operations: Mapping[str, Iterable[str]]) -> None:
    """Add to `found` the operations that a reader has run, with their element types."""
    runtime, release, _ = parts_of(reader)
    for name, types in operations.items():
        by_types = found.setdefault(runtime, {}).setdefault(name, {})
        for of in [*types] or [""]:
            by_types.setdefault(of, set()).add(release)


def text_of(found: ReleasesThatRan, some: ReleasesThatRan, failed: ReleasesThatRan) -> str:
    """Return the text of measured.json, in which each operation is a line.

    Args:
        found: the operations that ran.
        some: those of them that fail in some programs.
        failed: what releases do not run, as `failing` returns it.
    """
    runtimes = []
    for runtime, operations in sorted(found.items()):
        ran = {release for types in operations.values() for releases in types.values() for release in releases}
        releases = sorted(ran, key=Version)
        head = f' {json.dumps(runtime)}: {{"releases": {json.dumps(releases)}'
        parts = [
            f' "{key}": {{\n' + ",\n".join(rows(table, releases)) + "\n }"
            for key, table in (
                ("operations", operations),
                ("some", some.get(runtime, {})),
                ("failed", failed.get(runtime, {})),
            )
        ]
        kinds = {kind: bits(ran, releases) for kind, ran in sorted(types_in(operations).items())}
        own = json.dumps(kinds if runtime in ALIKE else {})
        runtimes.append(", ".join([head, *parts, f' "types": {own}']) + "}")
    return "{\n" + ",\n".join(runtimes) + "\n}\n"


def types_in(operations: Mapping[str, Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """Return, for each element type, the releases that ran any operation with it."""
    found: dict[str, set[str]] = {}
    for name, types in operations.items():
        for of, ran in types.items() if name != CALL else ():
            for kind in kinds_in(of):
                found.setdefault(kind, set()).update(ran)
    return found


def kinds_in(of: str) -> set[str]:
    """Return the single element types of a text such as ``f32,i32->f32``."""
    return {kind for kind in of.replace("->", ",").split(",") if kind}


def rows(operations: Mapping[str, Mapping[str, set[str]]], releases: Sequence[str]) -> Iterator[str]:
    """Yield a line of JSON for each operation: which of `releases` ran it with which element types, as `bits`."""
    for name, types in sorted(operations.items()):
        ran = {of: bits(types[of], releases) for of in sorted(types) if types[of]}
        yield f"  {json.dumps(name)}: {json.dumps(ran)}"


def bits(ran: Iterable[str], releases: Sequence[str]) -> int:
    """Return the releases `ran` as bits of a number: bit 0 is the first of `releases`."""
    return sum(1 << releases.index(release) for release in {*ran})


def main() -> int:
    """Write measured.json, and return 0 as the exit code."""
    renew(Path(MEASURED), text_of(*recorded_runs()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
