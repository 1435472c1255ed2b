"""The data of the corpus: goldens by several writers and what every reader answers, by the commands of the tool."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.environments.environment import ReaderEnvironments
from export_core.environments.placement import Placement
from export_core.goldens import Golden, GoldenStore, Leaf
from export_core.goldens.arrays import from_npz
from export_core.policy import load_policy
from export_core.runs.results import read_results

ROOT = Path(__file__).parents[2]
TEST = "benchmarks/numbers/test_corpus.py"
POLICY = Path(__file__).with_name("policy.yaml")
WRITTEN = (0, 1)
"""Exit codes of a backfill: with 1 there are programs without a golden, which the findings name."""
JUDGED = (0, 1, 3, 4)
"""Exit codes of a matrix that ran: what was broken is in its results."""


@dataclass(frozen=True)
class Folders:
    """Where the data of a run is."""

    work: Path

    @property
    def goldens(self) -> Path:
        """Goldens of the programs."""
        return self.work / "goldens"

    @property
    def wrong(self) -> Path:
        """What the programs answer with errors planted in them, by writer."""
        return self.work / "wrong"

    @property
    def results(self) -> Path:
        """The results of a matrix for each writer."""
        return self.work / "results"

    @property
    def outputs(self) -> Path:
        """What the readers answered, by reader, case and writer."""
        return self.work / "outputs"


@dataclass(frozen=True)
class Read:
    """One golden in one reader: the verdict of the matrix, and the outputs if it ran."""

    golden: Golden
    reader: str
    verdict: str
    outputs: tuple[Leaf, ...] | None

    @property
    def program(self) -> str:
        """The program's name."""
        return program_of(self.golden)

    @property
    def writer(self) -> str:
        """The jaxlib that wrote the golden."""
        return self.golden.manifest.writer.jaxlib


def program_of(golden: Golden) -> str:
    """The name of the program: the parameter of its test."""
    return golden.manifest.case.partition("[")[2].rstrip("]")


def write(folders: Folders, writers: Sequence[str], programs: Sequence[str]) -> None:
    """Goldens and wrong outputs by every writer that has not written yet; of these programs, or of all."""
    calendar = load_policy(POLICY).calendar()
    tests = [f"{TEST}::test_program[{name}]" for name in programs] or [TEST]
    for writer in writers:
        marker = folders.goldens / f".{writer}"
        if marker.exists():
            continue
        words = ["-m", "export_core", "backfill", "--writers", writer, "--", *tests, f"--goldens={folders.goldens}"]
        run([*words, "-q"], WRITTEN)
        with ReaderEnvironments(calendar) as environments:
            python = environments.build(Placement(calendar.release(writer))).python
            run(["-m", "benchmarks.numbers.wrong", str(folders.wrong / writer), *programs], python=str(python))
        marker.touch()


def read(folders: Folders, writers: Sequence[str], readers: Sequence[str]) -> None:
    """Replay the goldens of each writer in every reader, unless an earlier run has done so.

    Outcomes of earlier runs are not used: they have no outputs.
    """
    for writer in writers:
        results = folders.results / writer
        if (results / "summary.json").exists():
            continue
        words = ["-m", "benchmarks.numbers.saving", "matrix", "--goldens", folders.goldens, "--policy", POLICY]
        words += ["--results", results, "--writers", writer, "--readers", ",".join(readers), "--no-cache", "--quiet"]
        run(list(map(str, words)), JUDGED, OUTPUTS=str(folders.outputs))


def run(words: Sequence[str], allowed: Sequence[int] = (0,), *, python: str = sys.executable, **variables: str) -> None:
    """A Python command in this checkout. Raises `SystemExit` where it ends with another code than those allowed."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    code = subprocess.run([python, *words], cwd=ROOT, env=given, check=False).returncode
    if code not in allowed:
        raise SystemExit(f"{python} {' '.join(words)} ended with {code}")


def reads(folders: Folders) -> Iterator[Read]:
    """The cells of the matrix with what the readers answered."""
    goldens = {golden.id: golden for golden in GoldenStore(folders.goldens).goldens()}
    runs = (folder for folder in sorted(folders.results.iterdir()) if folder.is_dir())
    results = [result for folder in runs for result in read_results(folder)]
    for result in results:
        golden, reader = goldens[result.golden], result.reader.jaxlib
        file = folders.outputs / reader / result.case / f"{golden.folder.name}.npz"
        yield Read(golden, reader, result.verdict, from_npz(file) if file.exists() else None)


def wrong_outputs(folders: Folders, golden: Golden) -> dict[str, tuple[Leaf, ...]]:
    """What a golden's program answers with an error in it, by the kind of error."""
    files = (folders.wrong / golden.manifest.writer.jaxlib).glob(f"{program_of(golden)}.*.npz")
    return {file.name.split(".")[-2]: from_npz(file) for file in files}
