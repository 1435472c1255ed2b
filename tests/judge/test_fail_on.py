"""--fail-on: what fails a run beside a broken promise, and only where it is asked for."""

import shlex

import pytest
from commands import assert_bad_input, finished
from making import result

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage

KEPT = result(case="t.kept")
PAIR = {"writer": "0.9.2", "reader": "0.12.0.1", "case": "t.f", "promised": False}
DIED = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
CRASH = result(Verdict.CRASH, Judgement.OUTSIDE, **PAIR, **DIED)
REFUSED = result(Verdict.REFUSED, Judgement.OUTSIDE, **PAIR, stage=Stage.DESERIALIZE, message="too old")
BONUS = result(judgement=Judgement.BONUS, **PAIR)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("cell", "code"), [(CRASH, 1), (REFUSED, 0), (BONUS, 0)])
def test_outside_fails_on_what_is_neither_refused_nor_works(cell, code, jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT, cell)
    assert jaxexport("judge", "out").code == 0
    ended = jaxexport("judge", "out", "--fail-on", "outside", code=code)
    told = "FAILED: outside: 1 cell outside the window failed other than by a refusal." in ended.out
    assert told is (code == 1)


def test_the_policy_may_ask_for_it_too(jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT, CRASH)
    (tmp_path / "export_compat.yaml").write_text("fail_on: [outside]\n")
    assert jaxexport("judge", "out").code == 1
    (tmp_path / "export_compat.yaml").write_text("fail_on: [everything]\n")
    assert_bad_input(jaxexport("judge", "out"), "export_compat.yaml:1: fail_on[0]: ")


@pytest.mark.parametrize(
    ("then", "now", "code"), [(BONUS, CRASH, 1), (BONUS, REFUSED, 1), (BONUS, BONUS, 0), (CRASH, REFUSED, 0)]
)
def test_a_bonus_that_is_lost_fails_where_it_is_asked_for(then, now, code, jaxexport, tmp_path):
    finished(tmp_path / "old", KEPT, then)
    finished(tmp_path / "new", KEPT, now)
    assert jaxexport("judge", "new", "--baseline", "old").code == 0
    ended = jaxexport("judge", "new", "--baseline", "old", "--fail-on", "bonus-lost", code=code)
    line = "Exit code 1: bonus-lost: 1 cell that worked outside the window in the baseline failed."
    assert (line in ended.out) is (code == 1)


def test_a_lost_bonus_needs_a_baseline(jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT)
    assert_bad_input(jaxexport("judge", "out", "--fail-on", "bonus-lost"), "it needs --baseline OLD")


@pytest.mark.parametrize(
    ("options", "then"), [(("--fail-on", "outside"), None), (("--fail-on", "bonus-lost", "--baseline", "old"), BONUS)]
)
def test_the_report_that_judge_names_says_the_same(options, then, jaxexport, tmp_path):
    finished(tmp_path / "new", KEPT, CRASH)
    if then:
        finished(tmp_path / "old", KEPT, then)
    judged = jaxexport("judge", "new", *options)
    named = next(line for line in judged.out.splitlines() if "jaxexport report new" in line)
    words = shlex.split(named.partition("jaxexport ")[2].partition(" #")[0])
    assert jaxexport(*words).code == 0
    headline = next(line for line in judged.out.splitlines() if line.startswith("FAILED: "))
    assert f"<title>{headline}</title>" in (tmp_path / "report.html").read_text()
