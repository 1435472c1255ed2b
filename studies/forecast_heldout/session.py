"""A check of forecasts for held-out programs: `python -m tools.forecast_truth --heldout first|second|third`.

Writers export a set of programs. Then forecasts are made for each of 12 releases of jaxlib and five other runtimes, and
only then the cells run. `--record NAME` adds the result to record.json under a name. The exit code is 1 if a cell
failed at something that was forecast to work, or if too many forecasts are unknown.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from export_core.goldens import Golden, GoldenStore
from export_core.judge import Result
from export_core.knowledge import NO, UNKNOWN, YES, Forecast, forecasts
from export_core.knowledge.forecasting import COMPILES, LOADS, MATRIX, NUMBERS, RUNS
from export_core.matrix.verdicts import Verdict
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.readers.worker.protocol import Stage
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.names import parts_of
from studies.corpus.choosing import ROOT, choose
from tools.stored_results import read_results

RECORD = Path(__file__).with_name("record.json")
POLICY = Path(__file__).with_name("export_compat.yaml")
SETS = {group.name.removeprefix("forecast-"): group for group in choose("forecast", "held-out")}
"""The programs of each held-out set, by the name of the set."""
WRITERS = ("0.6.2", "0.12.0.1")
JAXLIBS = (
    *("0.4.31", "0.5.3", "0.6.2", "0.7.0", "0.8.1", "0.9.0.1"),
    *("0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.11.2", "0.12.0.1"),
)
RUNTIMES = ("iree==3.13.0", "litert==2.3.0", "tensorflow==2.21.0", "pjrt==0.12.0.1", "stablehlo==0.12.0.1")
READERS = (*JAXLIBS, *RUNTIMES)
PARTS = {"jaxlibs": (WRITERS, JAXLIBS), "runtimes": (WRITERS[-1:], RUNTIMES)}
"""The parts of the run, each with its writers and readers. Runtimes other than jaxlib run goldens of the newest jax."""
JAXLIB = "jaxlib"
MOST_UNKNOWN, MOST_UNKNOWN_ELSEWHERE = 0.05, 0.25
TIMEOUT = "600"  # seconds for a cell; on a busy machine, a compilation may take longer than the default limit
_ANSWERED = {
    **dict.fromkeys((Stage.DESERIALIZE, Stage.MODULE), LOADS),
    **dict.fromkeys((Stage.AUDIT, Stage.LOWER, Stage.COMPILE), COMPILES),
    Stage.RUN: RUNS,
    Stage.COMPARE: NUMBERS,
}
"""The first question of a forecast to which the answer is no if a cell fails in this stage."""
CellName = tuple[str, str]
"""The names of a golden and a reader."""


class Outcome(NamedTuple):
    """The forecast of a cell, and what happened in the cell."""

    golden: str  # The cell's golden.
    reader: str  # The cell's reader.
    known: Forecast  # The forecast, made before the cell ran.
    worked: int  # How many of the forecast's four questions, from the first on, have the true answer yes.
    what: str  # The verdict, without details that change from run to run.

    @property
    def answers(self) -> tuple[str, ...]:
        """The forecast's answers to its four questions."""
        return tuple(answer.answer for answer in self.known.answers)

    @property
    def is_false_yes(self) -> bool:
        """Whether the cell failed at something that was forecast to work."""
        return self.worked < len(self.answers) and self.answers[self.worked] == YES

    @property
    def is_false_no(self) -> bool:
        """Whether something worked in the cell that was forecast to fail."""
        return self.worked > 0 and self.answers[self.worked - 1] == NO


def write_goldens(name: str, folder: Path) -> None:
    """Export a set of programs with each of `WRITERS` that has no golden in the folder yet."""
    written = {golden.manifest.writer.jaxlib for golden in GoldenStore(folder).goldens_so_far()}
    if missing := [writer for writer in WRITERS if writer not in written]:
        words = ("--writers", ",".join(missing), "--", f"--goldens={folder}", *SETS[name].paths)
        _jaxexport("goldens", "backfill", *words)


def forecasts_of(goldens: Iterable[Golden]) -> dict[CellName, Forecast]:
    """Return the forecast of each golden in each reader."""
    readers = [find_reader(name, Terms(shipped_entries())) for name in READERS]
    return {
        (golden.id, each.reader.release.name): each
        for golden in goldens
        for each in forecasts(golden.read_artifact(), readers, "cpu", MATRIX)
    }


def compared(known: Mapping[CellName, Forecast], results: Iterable[Result]) -> list[Outcome]:
    """Return the forecast and the outcome of each cell that ran."""
    return [
        Outcome(result.golden, result.reader.name, own, _worked(result, own), _what(result))
        for result in results
        if result.verdict is not Verdict.NOT_RUN
        for own in (known[result.golden, result.reader.name],)
    ]


def _worked(result: Result, known: Forecast) -> int:
    if result.verdict.works:
        return NUMBERS + 1
    if result.stage is not Stage.READ:
        return _ANSWERED[result.stage]
    # Refused before the reader saw it, such as for too few devices. Then the first question without a yes counts.
    return next((question for question, answer in enumerate(known.answers) if answer.answer != YES), NUMBERS)


def _what(result: Result) -> str:
    return str(result.verdict) if result.verdict.works else f"{result.verdict} in stage {result.stage}"


def consumer_of(reader: str) -> str:
    """Return the consumer that a reader is a release of, such as ``jaxlib`` or ``iree``."""
    return parts_of(reader)[0] if "==" in reader else JAXLIB


def figures(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return the number of cells of a consumer, by the forecast's answer, and how many forecasts were false."""
    answers = Counter(outcome.answers[NUMBERS] for outcome in outcomes)
    return {
        "cells": len(outcomes),
        "worked": sum(outcome.worked > NUMBERS for outcome in outcomes),
        **{answer: answers[answer] for answer in ("yes", "yes, but", "unknown", "no")},
        "false yes": sum(outcome.is_false_yes for outcome in outcomes),
        "false no": sum(outcome.is_false_no for outcome in outcomes),
    }


def as_recorded(name: str, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Return what record.json stores about a run: the figures of each consumer, and a line for each false forecast."""
    by_consumer: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_consumer.setdefault(consumer_of(outcome.reader), []).append(outcome)
    false = [outcome for outcome in outcomes if outcome.is_false_yes or outcome.is_false_no]
    return {
        "programs": f"{name}.py",
        "goldens": len({outcome.golden for outcome in outcomes}),
        "readers": list(READERS),
        "consumers": {consumer: figures(own) for consumer, own in by_consumer.items()},
        "false": [f"{'yes' if each.is_false_yes else 'no'}: {line_of(each)}" for each in false],
    }


def line_of(outcome: Outcome) -> str:
    """Return a line about a cell, such as ``CASE/WRITER in READER: crash in stage run (REASONS)``."""
    short = outcome.golden.removeprefix("studies.corpus.programs.forecast_").replace("_programs.", ".", 1)
    reasons = "; ".join(map(str, outcome.known.numbers.reasons))
    return f"{short} in {outcome.reader}: {outcome.what}{f' ({reasons})' if reasons else ''}"


def is_good(outcomes: Sequence[Outcome]) -> bool:
    """Return whether everything that was forecast to work did work, and few enough forecasts are unknown."""
    for consumer in {consumer_of(outcome.reader) for outcome in outcomes}:
        counts = figures([outcome for outcome in outcomes if consumer_of(outcome.reader) == consumer])
        most = MOST_UNKNOWN if consumer == JAXLIB else MOST_UNKNOWN_ELSEWHERE
        if counts["false yes"] or counts[UNKNOWN] > most * counts["cells"]:
            return False
    return bool(outcomes)


def run(name: str, goldens: Path | None, results: Path | None, record: str) -> int:
    """Write the goldens, make the forecasts, run the cells, and print the result; return the exit code.

    Args:
        name: the set of programs.
        goldens: the folder of the goldens; a temporary folder if None.
        results: the folder of the results; a temporary folder if None.
        record: the name under which the result is recorded; "" to record nothing.
    """
    with tempfile.TemporaryDirectory() as scratch:
        goldens, results = goldens or Path(scratch, "golden"), results or Path(scratch, "results")
        write_goldens(name, goldens)
        known = forecasts_of(GoldenStore(goldens).goldens())
        outcomes = [
            outcome
            for part, (writers, readers) in PARTS.items()
            for outcome in compared(known, _run_cells(goldens, results / part, writers, readers))
        ]
    found = as_recorded(name, outcomes)
    if record:
        before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
        RECORD.write_text(json.dumps({**before, record: found}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return 0 if is_good(outcomes) else 1


def _run_cells(goldens: Path, results: Path, writers: Sequence[str], readers: Sequence[str]) -> list[Result]:
    folders = ("--goldens", str(goldens), "--results", str(results), "--policy", str(POLICY))
    chosen = ("--writers", ",".join(writers), "--readers", ",".join(readers))
    _jaxexport("matrix", *folders, *chosen, "--timeout", TIMEOUT, "--quiet")
    return read_results(results)


def _jaxexport(*words: str) -> None:
    # Exit codes 1 and 3 are expected: which cells fail is the question.
    done = subprocess.run([sys.executable, "-m", "export_core", *words], cwd=ROOT, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"jaxexport {words[0]}: expected exit code 0, 1 or 3, found {done.returncode}")
