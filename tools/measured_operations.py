"""The writer of the table of operations that work in other runtimes: `python -m tools.measured_operations`.

It makes export_core/knowledge/data/measured.json from two records in studies/runtimes. record.json has the goldens that
passed (`nox -s runtimes`), operations.json the small programs that worked (`nox -s operations`). The table lists each
operation with the element types for which it has worked.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from export_core.artifact.bytecode.element_types import element_types
from export_core.goldens import Golden, GoldenStore
from export_core.knowledge.concerns import CALL
from export_core.knowledge.measured import MEASURED
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
ReleasesThatRan = dict[str, dict[str, dict[str, set[str]]]]
"""The releases that ran an operation with some element types, by runtime, operation and types."""


def recorded_runs() -> tuple[ReleasesThatRan, ReleasesThatRan]:
    """Return the operations that ran, by the two records, and those of them that fail in some programs.

    An operation that fails in as many programs as it works in, or more, is in neither.
    """
    found: ReleasesThatRan = {}
    record = read_record(RECORD)
    goldens = {golden.id: golden for golden in GoldenStore(GOLDENS).goldens()}
    needed = {name: needed_by(goldens[name]) for name in record.goldens if name in goldens}
    for name, reader in record.readers.items():
        for golden, letter in zip(record.goldens, reader.verdicts, strict=True):
            if letter == "p" and golden in needed:
                add(found, name, needed[golden])
    programs = json.loads(PROGRAMS.read_text(encoding="utf-8")).values()
    runs = [
        (name, outcome == "works", program["operations"])
        for program in programs
        for name, outcome in program["in"].items()
    ]
    works: Counter[tuple[str, str, str]] = Counter()
    fails: Counter[tuple[str, str, str]] = Counter()
    for name, is_good, operations in runs:
        if is_good:
            add(found, name, operations)
            works.update((name, operation, of) for operation, types in operations.items() for of in types)
    for name, is_good, operations in runs:
        if not is_good:
            fails.update((name, operation, of) for operation, of in contested(found, name, operations))
    some: ReleasesThatRan = {}
    for (name, operation, of), count in fails.items():
        runtime, release, _ = parts_of(name)
        if works[name, operation, of] > count:
            add(some, name, {operation: [of]})
        else:
            found[runtime][operation][of].discard(release)
    return found, some


def contested(
    found: ReleasesThatRan, reader: str, operations: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the operations of a failing program, with their types, if each of them ran in a different program.

    If a program has more than `MOST_OWN` operations, nothing is yielded, since nobody can tell which of them failed.
    In the program that ran, the operation had a different form, or a converter dropped it, as with x == x.

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


def text_of(found: ReleasesThatRan, some: ReleasesThatRan) -> str:
    """Return the text of measured.json, in which each operation is a line.

    Args:
        found: the operations that ran.
        some: those of them that fail in some programs.
    """
    runtimes = []
    for runtime, operations in sorted(found.items()):
        ran = {release for types in operations.values() for releases in types.values() for release in releases}
        releases = sorted(ran, key=Version)
        head = f' {json.dumps(runtime)}: {{"releases": {json.dumps(releases)}'
        parts = [
            f' "{key}": {{\n' + ",\n".join(rows(table, releases)) + "\n }"
            for key, table in (("operations", operations), ("some", some.get(runtime, {})))
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
            for kind in of.replace("->", ",").split(","):
                found.setdefault(kind, set()).update(ran)
    found.pop("", None)
    return found


def rows(operations: Mapping[str, Mapping[str, set[str]]], releases: Sequence[str]) -> Iterator[str]:
    """Yield a line of JSON for each operation: by element types, which of `releases` ran it, as bits."""
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
