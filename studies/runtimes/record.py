"""The record of the goldens in each runtime: counts, the verdict of each golden, and how numbers differ.

A record is made from the results of a matrix. It is small enough to be in the repository, so that the page can be
written and checked without running anything.
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
SEVERAL_DEVICES = "several devices"  # The reason of a refusal before anything runs, so no message of a runtime has it.
UNKNOWN = " "  # The letter for a golden that has no cell in a reader.


class Reader(msgspec.Struct, frozen=True):
    """The verdicts of all goldens in a reader."""

    verdicts: str  # A letter for each golden, in the order of the record: of LETTERS, or UNKNOWN.
    refusals: dict[str, int]  # The number of refusals by their meaning.
    broken: int  # The number of broken cells: promised cells that fail, and cells with wrong numbers.
    promised: int  # The number of promised cells.
    numerics: dict[str, str]  # A text that says how the numbers differ, for each golden with wrong numbers.

    def count(self, verdict: Verdict) -> int:
        """Return the number of cells with this verdict."""
        return self.verdicts.count(LETTERS[verdict])

    @property
    def cells(self) -> int:
        """The number of goldens that have a cell in this reader."""
        return len(self.verdicts.replace(UNKNOWN, ""))


class Record(msgspec.Struct, frozen=True):
    """The goldens of a run, and their verdicts in each reader, with the version of jaxexport and the day of the run."""

    tool: str
    as_of: str
    goldens: tuple[str, ...]
    readers: dict[str, Reader]


class Explained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An explanation of why some goldens give wrong numbers in some readers."""

    readers: tuple[str, ...]  # Globs of readers, such as iree==3.*.
    goldens: tuple[str, ...]  # Globs of goldens.
    whose: Literal["runtime", "caller", "project"]  # Who has made the fault.
    why: str  # What is wrong, in a sentence.
    evidence: str  # What shows the fault.
    show: str = ""  # A cell for which `jaxexport explain --bundle` shows the fault by means of the runtime alone.

    def is_about(self, golden: str, reader: str) -> bool:
        """Return whether the explanation is about a golden in a reader."""
        return any(fnmatch.fnmatchcase(reader, pattern) for pattern in self.readers) and any(
            fnmatch.fnmatchcase(golden, pattern) for pattern in self.goldens
        )


def record_of(folder: Path) -> Record:
    """Return the record of a finished matrix, without its readers that are jaxlib."""
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
    """Return the verdicts of all goldens in a reader.

    Args:
        name: the reader.
        goldens: the goldens of the record, in order.
        results: the results of the reader.
    """
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
    """Return the meaning of a refusal, by the runtime's list of known messages, without what to do about it."""
    refusal = runtime.refusal(f"{result.message}\n{result.stderr}")
    return refusal.meaning.partition(":")[0] if refusal else SEVERAL_DEVICES


def write_record(record: Record, path: Path) -> None:
    """Write a record as JSON into a file, with a line for each golden."""
    path.write_text(json.dumps(msgspec.to_builtins(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_record(path: Path) -> Record:
    """Read a record from a file.

    Raises:
        msgspec.ValidationError: the file is not a record.
    """
    return msgspec.json.decode(path.read_bytes(), type=Record)


def load_explained(path: Path) -> list[Explained]:
    """Read the explanations of wrong numbers from a file such as explained.yaml.

    Raises:
        msgspec.ValidationError: a key is unknown, or a value is not allowed.
    """
    return msgspec.yaml.decode(path.read_bytes(), type=list[Explained])


def problems_of(record: Record, explained: Sequence[Explained]) -> list[str]:
    """Return a line for each cell with wrong numbers that is not explained, and for each explanation without a cell."""
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
