"""Example runs, made without jax: one with three causes of failures, one without failures, and large ones.

A run is its results, in the order of a results.jsonl, and their summary. Dates, windows and known issues are real.
"""

import datetime
import functools
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
from making import day, document, release, result, summarize, with_causes

from export_core.base.error_grid import ErrorGrid
from export_core.judge import Judgement, Result, Summary
from export_core.judge.gate import RunIdentity, in_order
from export_core.judge.judgement import judge_again
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.report.document import Document

READERS = (
    *("0.6.1", "0.6.2", "0.7.0", "0.7.1", "0.7.2", "0.8.0", "0.8.1", "0.9.1", "0.9.2", "0.10.0", "0.10.1"),
    *("0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1"),
)
CASES = {"0.6.2": 36, "0.9.2": 60, "0.10.1": 60, "0.11.0": 18, "0.12.0.1": 102}
"""Writers, and how many cases have a golden by each: 276 goldens, with 4,692 cells, of which 1,350 are promised."""

AS_OF = day("2026-11-22")

_COMMIT = "7d0c1e5f2a9b4c86d3e0f1a2b3c4d5e6f7a8b9c0"
IDENTITY = RunIdentity(
    project="models",
    commit=_COMMIT,
    source_url=f"https://git.example.org/models/-/blob/{_COMMIT}",
    ci_url="https://git.example.org/models/-/jobs/17",
    tool="0.1.0",
    machine="Linux x86_64, 2 cores",
    goldens="golden",
    policy_sha256="5b1f" * 16,
    started=datetime.datetime(2026, 11, 22, 9, 0, tzinfo=datetime.UTC),
    ended=datetime.datetime(2026, 11, 22, 9, 7, 8, tzinfo=datetime.UTC),
)

_LAPACK = ("cholesky", "eig", "eigh", "lu", "qr", "schur", "svd", "triangular_solve")
_LAPACK_CRASH = {"signal": 11, "upstream": "lapack-cold-process"}
_REFUSAL = "Cannot deserialize the artifact: its StableHLO is version 1.{} and this release reads up to 1.9.0."
_NUMBERS = """\
output 0 float32[128]: 3 of 128 elements differ (max abs error 0.0231, max rel error 0.0117, max ulp 196212, max 412 \
times the noise; allowed 8 x noise)
  looks like: matmul in bfloat16
  largest error in units of the noise at [17]: expected 1.9712, got 1.9943
  first at [3]: expected 0.5512, got 0.5561
errors in units of what is allowed: ≤1: 125 · 1–10: 1 · 10–100: 2"""


_FAR = {3: 4.9e-3, 17: 0.0231, 90: 1.2e-3}
_ERRORS = ErrorGrid(
    *(1, 64, 1, 128),
    errors=tuple(next((error for at, error in _FAR.items() if at // 2 == part), 2e-5) for part in range(64)),
    allowed=tuple(4e-4 + 1e-6 * part for part in range(64)),
)


@functools.cache
def broken_run() -> tuple[list[Result], Summary]:
    """Build a run of 4,692 cells, in which 67 of 1,350 promises are broken, by three causes."""
    return _summarized(_judged(_cells(CASES)))


@functools.cache
def kept_run() -> tuple[list[Result], Summary]:
    """Build a run of the same goldens in readers since 0.10.0, without the broken cells."""
    return _summarized(
        each for each in _judged(_cells(CASES)) if each.judgement is not Judgement.BROKEN and each.reader.jaxlib > "0.1"
    )


@functools.cache
def broken_document(folder: Path | None = None) -> Document:
    """Build the report of `broken_run`, with results in this folder."""
    return document(*broken_run(), folder=folder)


def large_run(cells: int) -> tuple[list[Result], Summary]:
    """Build a run like `broken_run` of at least this many cells. Formats are tested with 25,000 and 100,000."""
    times = -(-cells // (sum(CASES.values()) * len(READERS)))
    return _summarized(_judged(_cells({writer: count * times for writer, count in CASES.items()})))


def _summarized(results: Iterator[Result]) -> tuple[list[Result], Summary]:
    ordered = with_causes(in_order(results))
    summary = summarize(
        ordered,
        planned=len(ordered),
        policy=Policy(),
        as_of=AS_OF,
        selection={"whole": True},
        seconds=428,
        identity=IDENTITY,
    )
    return ordered, summary


def _judged(results: Iterator[Result]) -> Iterator[Result]:
    return (judge_again(each, Policy()) for each in results)


def _cells(cases: dict[str, int]) -> Iterator[Result]:
    for writer, count in cases.items():
        for reader in READERS:
            plain = result(writer=writer, reader=reader)
            for number in range(count):
                # A large run repeats the small one with other cases.
                copy, kind = divmod(number, CASES[writer])
                name = _LAPACK[kind] if kind < len(_LAPACK) else f"model_{kind}"
                case = f"tests.models.test_{name}" if not copy else f"tests.part_{copy}.test_{name}"
                cell = msgspec.structs.replace(
                    plain,
                    case=case,
                    golden=f"{case}/{writer}-cpu",
                    reproduce=f"jaxexport matrix --cases {case} --writers {writer} --readers {reader} --platforms cpu",
                    custom_calls=(f"lapack_s{name}_ffi",) if kind < len(_LAPACK) else (),
                )
                yield msgspec.structs.replace(cell, **_outcome(cell, kind))


def _outcome(cell: Result, kind: int) -> dict[str, object]:
    """Return how a cell ends: readers much older or younger than its writer refuse it, and old ones crash in LAPACK."""
    writer, reader = cell.writer.jaxlib, cell.reader.jaxlib
    built = {version: release(version).built for version in (writer, reader)}
    if built[reader] < release("0.9.1").built and writer != "0.6.2":
        return _failed(Verdict.REFUSED, Stage.DESERIALIZE, _REFUSAL.format(kind % 3 + 12))
    if writer == "0.6.2" and built[reader] >= release("0.11.1").built:
        return _failed(Verdict.ERROR, Stage.LOWER, f"KeyError: 'convention {kind}' is not supported any more")
    if cell.custom_calls and built[reader] <= release("0.9.2").built:
        return {**_failed(Verdict.CRASH, Stage.RUN, "died by signal 11 (SIGSEGV)"), **_LAPACK_CRASH}
    if (writer, kind) == ("0.10.1", 9) and reader.startswith("0.12"):
        kinds = {"max_abs_error": 0.0231, "max_rel_error": 0.0117, "max_noise_error": 412.0, "outputs": "other"}
        return {**_failed(Verdict.NUMERICS, Stage.COMPARE, _NUMBERS), **kinds, "error_grid": _ERRORS}
    if (writer, kind, reader) == ("0.11.0", 10, "0.12.0.1"):
        return {**_failed(Verdict.TIMEOUT, Stage.COMPILE, "timed out after 120 s"), "seconds": 120.0}
    same = {"outputs": "as written", "as_written": True, "max_abs_error": 0.0, "max_noise_error": 0.0}
    return {**same, "cost": Cost(1024 * kind, 64, 64, 0, 0, 5e3, 84.0, 8e3, 131, 16), "timings": _timings(cell)}


def _timings(cell: Result) -> Timings:
    """Return times that differ in each cell, since a page has all of them."""
    chance = random.Random(f"{cell.golden} {cell.reader.jaxlib}").random()
    return Timings(0.003 * chance, 0.03 * chance, 0.1 * chance, 0.002 * chance, peak_bytes=180_000_000)


def _failed(verdict: Verdict, stage: Stage, message: str) -> dict[str, object]:
    return {"verdict": verdict, "stage": stage, "message": message}
