"""The command `jaxexport matrix` in real releases: the judgement and the exit code of a run."""

import shutil
from pathlib import Path

import pytest
from commands import process

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.run.results import read_summary
from tools.stored_results import read_results

CASES = ("waves", "keys", "every_dtype", "x64", "cholesky", "eigh", "other_numbers")


@pytest.mark.matrix
def test_a_matrix_in_two_real_releases_is_judged(small):
    cases = CASES[:-1]
    chosen = [word for case in cases for word in ("--cases", case)]
    words = ("--readers", "0.12.0.1,0.9.2", "--as-of", "2026-11-21", "--results", "out", "--jobs", "2")
    ended = process("matrix", *chosen, *words, cwd=small)
    assert ended.err == ""
    assert ended.code == 0, ended.out
    results = {(each.case, each.reader.jaxlib): each for each in read_results(small / "out")}
    assert set(results) == {(case, reader) for case in cases for reader in ("0.12.0.1", "0.9.2")}
    summary = read_summary(small / "out")
    assert (summary.planned, summary.results, summary.exit_code) == (12, 12, 0)
    for case in cases:
        here = results[case, "0.12.0.1"]
        assert (here.verdict, here.judgement, here.direction) == (Verdict.PASS, Judgement.KEPT, "same")
        there = results[case, "0.9.2"]
        assert (there.direction, there.days, there.promised) == ("forward", 216, False)
        if case in ("cholesky", "eigh"):  # written in a StableHLO that 0.9.2 does not know
            assert (there.verdict, there.stage, there.judgement) == (Verdict.ERROR, Stage.MODULE, Judgement.OUTSIDE)
            assert "Failed to deserialize StableHLO" in there.message
        else:
            assert (there.verdict, there.judgement) == (Verdict.PASS, Judgement.BONUS)
    last = ended.out.strip().splitlines()[-1]
    assert last.startswith("12 of 12 planned cells: 4 bonus, 6 kept, 2 outside. As of 2026-11-21, ")
    assert last.endswith("exit code 0.")


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_run_continues_after_a_crash_by_signal_11(jaxexport, cwd):
    for name in ("linear_algebra.test_cholesky", "programs.test_sort"):
        golden = Path("golden") / f"tests.compat.test_{name}" / "0.9.2-cpu"
        shutil.copytree(Path(__file__).parents[2] / golden, golden)
    ended = jaxexport(
        "matrix",
        *("--readers", "0.9.2,0.12.0.1", "--as-of", "2026-11-21", "--results", "out", "--jobs", "2"),
    )
    assert ended.code == 1, ended
    found = {(each.case.rpartition("_")[2], each.reader.jaxlib): each for each in read_results(cwd / "out")}
    assert {key: (each.verdict, each.judgement) for key, each in found.items()} == {
        ("cholesky", "0.9.2"): (Verdict.CRASH, Judgement.BROKEN),
        ("cholesky", "0.12.0.1"): (Verdict.PASS, Judgement.BONUS),
        ("sort", "0.9.2"): (Verdict.PASS, Judgement.KEPT),
        ("sort", "0.12.0.1"): (Verdict.PASS, Judgement.BONUS),
    }
    crash = found["cholesky", "0.9.2"]
    assert (crash.stage, crash.signal, crash.message) == (Stage.RUN, 11, "died by signal 11 (SIGSEGV)")
    assert "LAPACK calls crash in a fresh process" in ended.out
    assert "crash!" in jaxexport("report", "out", "--full").out


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_a_broken_cell_exits_1_and_can_be_reproduced(jaxexport, small, monkeypatch):
    monkeypatch.chdir(small)
    words = ["--as-of", "2026-11-21", "--jobs", "2", "--quiet"]
    ended = jaxexport("matrix", "--cases", "other_numbers", "--cases", "waves", "--readers", "0.12.0.1", *words)
    assert ended.code == 1, ended.out
    assert "NOT REPLAYABLE  other_numbers ran with different numbers" in ended.out
    command = next(line.split("next  ")[1] for line in ended.out.splitlines() if "next  " in line)
    program, *rest = command.split()
    assert program == "jaxexport"
    again = jaxexport(*rest)
    assert again.code == 1
    assert "1 of 1 planned cells: 1 broken." in again.out


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_only_cells_of_a_missing_release_are_incomplete(jaxexport, small, monkeypatch):
    monkeypatch.chdir(small)
    (small / "missing.yaml").write_text(
        "releases: {jaxlib: {9.9.9: {built: 2026-11-01}}, jax: {9.9.9: {built: 2026-11-01, minimum_jaxlib: 9.9.9}}}"
    )
    words = ("--cases", "waves", "--readers", "0.12.0.1,9.9.9", "--policy", "missing.yaml", "--as-of", "2026-11-21")
    ended = jaxexport("matrix", *words, "--results", "missing")
    assert ended.code == 3, ended.out
    found = {each.reader.jaxlib: each for each in read_results(small / "missing")}
    assert found["0.12.0.1"].verdict is Verdict.PASS
    assert (found["9.9.9"].verdict, found["9.9.9"].stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert "jaxlib==9.9.9" in found["9.9.9"].message


def test_releases_list_refuses_json_with_runtime_as_help_says(jaxexport):
    ended = jaxexport("releases", "list", "--runtime", "tensorflow", "--json", code=2)
    assert "--json cannot be combined with --runtime." in ended.err
    assert "what it promises; not with --json." in " ".join(jaxexport("releases", "list", "--help").out.split())
