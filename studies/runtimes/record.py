"""The record of the goldens in each runtime: counts, the verdict of each golden, and why numbers differ.

A record is made of the results of a matrix. It is small enough to be in the repository, so that the page can be written
and checked without running anything.
"""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from packaging.version import Version

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.releases.names import parts_of
from export_core.releases.runtimes import Runtime, runtime_of
from export_core.run.results import read_run

HERE = Path(__file__).parent
RECORD = HERE / "record.json"
EXPLAINED = HERE / "explained.yaml"
LETTERS = {
    Verdict.PASS: "p",
    Verdict.NUMERICS: "n",
    Verdict.REFUSED: "r",
    Verdict.ERROR: "e",
    Verdict.CRASH: "c",
    Verdict.TIMEOUT: "t",
    Verdict.NOT_RUN: "-",
}
RUNTIMES = ("tensorflow", "savedmodel", "iree", "litert", "pjrt", "stablehlo")
"""The runtimes, in the order of the page."""
SEVERAL_DEVICES = "several devices"  # Refused before anything runs, so no message of a runtime has it.
UNKNOWN = " "  # of a golden that has no cell in this reader


class Reader(msgspec.Struct, frozen=True):
    """The goldens in one reader."""

    verdicts: str  # A letter of LETTERS for each golden, in the order of the record.
    refusals: dict[str, int]  # How many refusals have this meaning.
    broken: int  # How many cells are broken: promised ones that fail, and other numbers.
    promised: int  # How many cells are promised.
    numerics: dict[str, str]  # How the numbers differ, by golden.

    def count(self, verdict: Verdict) -> int:
        """Return the number of cells with this verdict."""
        return self.verdicts.count(LETTERS[verdict])

    @property
    def cells(self) -> int:
        """The number of goldens with a cell."""
        return len(self.verdicts.replace(UNKNOWN, ""))


class Record(msgspec.Struct, frozen=True):
    """The goldens of a run, and their verdicts in each reader."""

    tool: str
    as_of: str
    goldens: tuple[str, ...]
    readers: dict[str, Reader]


class Explained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An explanation of why some goldens give other numbers in some readers."""

    readers: tuple[str, ...]  # Globs of readers, such as iree==3.*.
    goldens: tuple[str, ...]  # Globs of goldens.
    whose: Literal["runtime", "caller", "project"]  # Whose fault it is.
    why: str  # What is wrong, in a sentence.
    evidence: str  # What shows it.
    show: str = ""  # A golden and reader of which `jaxexport explain --bundle` shows it with that runtime alone.

    def is_about(self, golden: str, reader: str) -> bool:
        """Return whether the explanation is about a golden in a reader."""
        return any(fnmatch.fnmatchcase(reader, pattern) for pattern in self.readers) and any(
            fnmatch.fnmatchcase(golden, pattern) for pattern in self.goldens
        )


def record_of(folder: Path) -> Record:
    """Return the record of a finished matrix, with its readers that are not jaxlib."""
    run = read_run(folder)
    results = [result for result in run.results if result.reader.runtime]
    goldens = tuple(sorted({result.golden for result in results}))
    readers: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: order_of(result.reader.runtime)):
        readers.setdefault(result.reader.runtime, []).append(result)
    return Record(
        run.plan.tool if run.plan else "",
        str(run.summary.as_of),
        goldens,
        {name: reader_of(name, goldens, found) for name, found in readers.items()},
    )


def order_of(reader: str) -> tuple[int, Version, str]:
    """Return a key that sorts readers by runtime, then by release, then by settings."""
    runtime, version, settings = parts_of(reader)
    return RUNTIMES.index(runtime), Version(version), settings


def reader_of(name: str, goldens: Sequence[str], results: Sequence[Result]) -> Reader:
    """Return the record of one reader."""
    letters = {result.golden: LETTERS[result.verdict] for result in results}
    refused = [meaning_of(runtime_of(name), result) for result in results if result.verdict is Verdict.REFUSED]
    return Reader(
        "".join(letters.get(golden, UNKNOWN) for golden in goldens),
        dict(Counter(refused).most_common()),
        sum(result.judgement is Judgement.BROKEN for result in results),
        sum(result.promised for result in results),
        {
            result.golden: result.message.splitlines()[0]
            for result in sorted(results, key=lambda result: result.golden)
            if result.verdict is Verdict.NUMERICS
        },
    )


def meaning_of(runtime: Runtime, result: Result) -> str:
    """Return what a refusal means, without what to do about it."""
    refusal = runtime.refusal(f"{result.message}\n{result.stderr}")
    return refusal.meaning.partition(":")[0] if refusal else SEVERAL_DEVICES


def write_record(record: Record, path: Path) -> None:
    """Write a record as JSON, with a line for each golden."""
    path.write_text(json.dumps(msgspec.to_builtins(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        msgspec.ValidationError: the file is no record.
    """
    return msgspec.json.decode(path.read_bytes(), type=Record)


def load_explained(path: Path) -> list[Explained]:
    """Read the explanations.

    Raises:
        msgspec.ValidationError: a key or a word is unknown.
    """
    return msgspec.yaml.decode(path.read_bytes(), type=list[Explained])


def problems_of(record: Record, explained: Sequence[Explained]) -> list[str]:
    """Return the differences of numbers without an explanation, and the explanations without a difference."""
    differing = {
        (golden, name): message
        for name, reader in record.readers.items()
        for golden, message in reader.numerics.items()
    }
    unexplained = [
        f"{EXPLAINED.name}: expected why {golden} gives other numbers in {name}: {message}"
        for (golden, name), message in differing.items()
        if not any(one.is_about(golden, name) for one in explained)
    ]
    cells = [
        (golden, name)
        for name, reader in record.readers.items()
        for golden, letter in zip(record.goldens, reader.verdicts, strict=True)
        if letter != UNKNOWN
    ]
    unused = [
        f"{EXPLAINED.name}: no golden gives other numbers as in the entry of {', '.join((*one.readers, *one.goldens))}"
        for one in explained
        if (own := [cell for cell in cells if one.is_about(*cell)]) and not any(cell in differing for cell in own)
    ]
    return unexplained + unused
