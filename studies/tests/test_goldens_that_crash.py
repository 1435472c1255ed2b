"""Each golden here that crashes a reader has a public issue, and a release that fixed it.

Crashes are recorded in docs/evidence/surface.csv, docs/atlas/cells.csv.gz and studies/runtimes/record.json. A case
without issue and fix is removed from the repository, and no page explains how to make one.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.version import Version

from export_core.policy import load_policy
from export_core.policy.known_issues import known_issues
from export_core.releases import load_calendar

ROOT = Path(__file__).parents[2]
ENDS = {"crash", "timeout"}
LETTERS = {"c": "crash", "t": "timeout"}
PUBLIC = re.compile(r"https://github\.com/[\w-]+/[\w.-]+/(issues|pull)/\d+")
RUNTIMES = json.loads((ROOT / "studies" / "runtimes" / "record.json").read_bytes())


class Listed(NamedTuple):
    """Goldens that crash some releases of a runtime."""

    runtime: str
    cases: tuple[str, ...]  # Globs of cases, without tests.compat.
    issue: str  # The address of the issue; empty if none was found.
    fixed_in: str  # The first measured release that does not crash; empty if there is none.
    why: str = ""  # Why the goldens are not removed, if the issue or the release is missing.


LAPACK = (
    *(f"test_linear_algebra.test_{name}" for name in ("cholesky", "eig", "eigh", "lu", "qr", "schur", "svd")),
    *("test_platforms.test_targets_of_each_platform", "test_targets.test_lapack*"),
)
ABORTS = (
    "The interpreter ends its process at each operation that it lacks, in every release: that is its way to refuse."
)
LISTED = (
    Listed("jaxlib", LAPACK, "https://github.com/jax-ml/jax/issues/29610", "0.10.0"),
    Listed("jaxlib", ("test_large_programs.test_rank_8",), "https://github.com/jax-ml/jax/issues/39257", "0.11.1"),
    Listed("stablehlo", ("*",), "https://github.com/openxla/stablehlo/issues/2654", "", ABORTS),
    Listed(
        "iree", ("test_primitives.test_special_functions",), "https://github.com/iree-org/iree/issues/20748", "3.13.0"
    ),
    Listed(
        "iree", ("test_targets.test_small_factorizations",), "https://github.com/iree-org/iree/issues/21231", "3.10.0"
    ),
)
SLOW = "test_large_programs.test_rank_8"
"""A case with millions of elements, for which the interpreter takes more than two minutes. This is not a defect."""


class Crash(NamedTuple):
    """A recorded cell that crashed or timed out."""

    runtime: str
    release: str
    golden: str
    verdict: str
    cause: str = ""


def recorded() -> Iterator[Crash]:
    """Yield the recorded cells of this project's goldens that crashed or timed out.

    The record of runtimes may still have cases that this project has removed: they are left out.
    """
    here = own_cases()
    with (ROOT / "docs" / "evidence" / "surface.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for reader, what in row.items():
                verdict, _, cause = what.partition(": ")
                if reader != "golden" and (found := ENDS & {*re.findall(r"\w+", verdict)}):
                    yield Crash("jaxlib", reader.split()[0], row["golden"], found.pop(), cause)
    for reader, record in RUNTIMES["readers"].items():
        runtime, _, release = reader.partition("==")
        for golden, letter in zip(RUNTIMES["goldens"], record["verdicts"], strict=True):
            if letter in LETTERS and golden.partition("/")[0] in here:
                yield Crash(runtime, release, golden, LETTERS[letter])
    yield from (crash for crash in of_the_atlas() if crash.golden.startswith("tests.compat."))


def own_cases() -> set[str]:
    return {folder.name for folder in (ROOT / "golden").iterdir()}


def of_the_atlas() -> Iterator[Crash]:
    with gzip.open(ROOT / "docs" / "atlas" / "cells.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row["verdict"] in ENDS:
                yield Crash("jaxlib", row["reader"].partition("-")[0], row["golden"], row["verdict"], row["cause"])


def listed(crash: Crash) -> list[Listed]:
    case = crash.golden.partition("/")[0].removeprefix("tests.compat.")
    return [one for one in LISTED if one.runtime == crash.runtime and any(fnmatchcase(case, x) for x in one.cases)]


def order(runtime: str, release: str) -> object:
    return (
        load_calendar().built(release) if runtime == "jaxlib" else Version(release.partition("[")[0])
    )  # without settings


@pytest.fixture(scope="module")
def crashes() -> list[Crash]:
    return [crash for crash in recorded() if not (crash.runtime == "stablehlo" and f".{SLOW}/" in crash.golden)]


def test_each_golden_that_crashes_a_reader_has_an_issue_and_a_fix(crashes):
    assert {crash.runtime for crash in crashes} == {"jaxlib", "stablehlo", "iree"}
    for crash in crashes:
        entries = listed(crash)
        assert len(entries) == 1, crash
        fixed = entries[0].fixed_in
        assert not fixed or order(crash.runtime, crash.release) < order(crash.runtime, fixed), crash


def test_only_crashes_that_were_recorded_are_listed(crashes):
    found = {listed(crash)[0] for crash in crashes}
    assert found == set(LISTED)
    goldens = {case.removeprefix("tests.compat.") for case in own_cases()}
    assert [case for one in LISTED for case in one.cases if not any(fnmatchcase(name, case) for name in goldens)] == []


@pytest.mark.parametrize("one", LISTED, ids=lambda one: f"{one.runtime}-{one.cases[0]}")
def test_an_entry_without_issue_or_fix_has_a_reason(one):
    assert bool(one.why) == (not one.issue or not one.fixed_in)
    assert not one.issue or PUBLIC.fullmatch(one.issue)
    if one.runtime == "iree":  # the newest release passes
        verdicts = RUNTIMES["readers"]["iree==3.13.0"]["verdicts"]
        of_today = dict(zip(RUNTIMES["goldens"], verdicts, strict=True))
        assert {letter for golden, letter in of_today.items() if f".{one.cases[0]}/" in golden} == {"p"}


def test_the_policy_expects_only_crashes_with_an_issue_and_a_fix():
    entries = [entry for entry in load_policy(ROOT / "export_compat.yaml").known_failures if entry.verdict in ENDS]
    by_issue = {one.issue: one for one in LISTED if one.runtime == "jaxlib"}
    assert {entry.issue for entry in entries} == by_issue.keys()
    for entry in entries:
        fixed = by_issue[entry.issue].fixed_in
        assert fixed in entry.reason
        releases = [x for x in load_calendar().versions() if any(fnmatchcase(x, pattern) for pattern in entry.readers)]
        assert releases
        assert all(order("jaxlib", release) < order("jaxlib", fixed) for release in releases), entry.readers


def test_no_golden_shows_a_crash_without_issue_and_fix(crashes):
    issues = [
        issue for issue in known_issues() if issue.consumer != "stablehlo"
    ]  # whose way to refuse is to end: ABORTS
    ending = [issue for issue in issues if ENDS & {*issue.shown_by}]
    without = {issue.id for issue in ending if not (issue.issue and issue.mended_in)}
    assert without == {"collectives-on-cuda", "cpu-4-bit-arrays-compile"}, "take its case out: no golden may show it"
    assert {crash.cause for crash in crashes} & without == set()


def test_corpus_programs_crash_only_by_known_issues():
    """A program of the corpus crashes a release only by a known issue, or by the closed issue that it is about."""
    known = {issue.id: issue for issue in known_issues()}
    closed = {row["program"]: row for row in regressions()}
    for crash in of_the_atlas():
        program = crash.golden.partition("/")[0].removeprefix("studies.corpus.regressions.")
        if issue := known.get(crash.cause):
            assert PUBLIC.fullmatch(issue.issue), crash
            assert order("jaxlib", crash.release) < order("jaxlib", issue.mended_in), crash
        elif program in closed:
            assert closed[program]["state"] == "closed", crash
        else:  # one golden, which is no longer written: docs/atlas/index.md
            assert crash.golden == "studies.corpus.programs.statistic_programs.test_kalman_filter/0.4.31-cpu"


def regressions() -> list[dict[str, str]]:
    with (ROOT / "docs" / "evidence" / "regressions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_programs_of_issues_do_not_crash_the_newest_release():
    for row in regressions():
        if any(ENDS & set(re.findall(r"\w+", what)) for what in list(row.values())[4:]):
            assert PUBLIC.fullmatch(row["issue"])
            assert row["state"] == "closed" or row["program"].startswith("linear_algebra."), "jax#29610"
            assert row["0.12.0.1"] == "right"
