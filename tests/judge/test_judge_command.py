"""The command `jaxexport judge`: a run judged again, by the same evidence."""

import json
import os

import msgspec
import pytest
from commands import assert_bad_input, finished
from making import result

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage

CRASH = result(
    Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)", signal=11
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("results", "planned", "code"), [([result()], None, 0), ([result(), CRASH], None, 1), ([result()], 2, 3)]
)
def test_judging_again_says_the_same(results, planned, code, jaxexport, tmp_path):
    finished(tmp_path / "out", *results, planned=planned)
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    ended = jaxexport("judge", "out")
    assert (ended.code, ended.err) == (code, "")
    assert f"exit code {code}." in ended.out
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before, "evidence is only read"


def test_judging_again_with_another_policy_judges_by_it(jaxexport, tmp_path):
    finished(tmp_path / "out", CRASH)
    (tmp_path / "short.yaml").write_text("windows: {backward: 30, forward: 0}")
    ended = jaxexport("judge", "out", "--policy", "short.yaml")
    assert (ended.code, "1 of 1 planned cells: 1 outside." in ended.out) == (3, True), "a crash is only shown"
    listed = (
        "known_failures: [{cases: [t.b], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: signal "
        "11, reason: r, owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}]"
    )
    (tmp_path / "known.yaml").write_text(listed)
    ended = jaxexport("judge", "out", "--policy", "known.yaml")
    assert (ended.code, "known failure" in ended.out) == (0, True)
    late = jaxexport("judge", "out", "--policy", "known.yaml", "--as-of", "2026-12-02")
    assert (late.code, "expired on 2026-12-01" in late.out) == (4, True)


@pytest.mark.parametrize("name", ["plan.json", "results.jsonl", "summary.json"])
def test_a_fifo_among_the_files_of_a_run_is_not_waited_for(name, jaxexport, tmp_path):
    finished(tmp_path, result())
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert_bad_input(jaxexport("judge", "."), name)


def test_json_of_a_summary_is_for_people_too(tmp_path):
    finished(tmp_path, result())
    assert json.loads((tmp_path / "summary.json").read_bytes())["exit_code"] == 0
    assert (tmp_path / "summary.json").read_text().count("\n") > 10
    assert msgspec.json.decode((tmp_path / "results.jsonl").read_bytes(), type=Result) == result()


@pytest.mark.parametrize("text", ["allow: {t: because}", "tolerances: {cpu: {float32: {rtol: 1}}}"])
def test_a_policy_that_runs_cells_otherwise_cannot_judge_them(text, jaxexport, tmp_path):
    finished(tmp_path / "out", result())
    (tmp_path / "export_compat.yaml").write_text(text)
    key = text.partition(":")[0]
    said = f"export_compat.yaml: {key}: expected the value that this run was made with, found another one."
    assert_bad_input(jaxexport("judge", "out"), said, "run `jaxexport matrix` again")


def test_an_incomplete_headline_names_broken_promises_too(jaxexport, tmp_path):
    finished(tmp_path / "out", CRASH, result(), planned=3)
    ended = jaxexport("judge", "out", code=3)
    headline = next(line for line in ended.out.splitlines() if line.startswith("INCOMPLETE:"))
    broken = "broken: 1 of 2 promised cells, 1 cause; only reader affected 0.10.2."
    assert headline == f"INCOMPLETE: 1 of 3 planned cells have no result that counts; {broken}"
    assert "BROKEN PROMISE  t.b" in ended.out
    assert "INCOMPLETE  Expected one result for each of 3 planned cells, found 2." in ended.out
