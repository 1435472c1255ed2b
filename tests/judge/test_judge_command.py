"""The command `jaxexport judge`: a run judged again, by the same evidence; --fail-on, beside broken promises."""

import json
import os
import shlex

import msgspec
import pytest
from commands import assert_bad_input, finished
from making import result

from export_core.cli.judge import judge
from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.run.plan_record import cells_by_place, hash_of

pytestmark = pytest.mark.usefixtures("cwd")

CRASH = result(
    Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)", signal=11
)
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.b", stage=Stage.ENVIRONMENT, message="no wheel")


@pytest.mark.parametrize(
    ("results", "planned", "code"), [([result()], None, 0), ([result(), CRASH], None, 1), ([result()], 2, 3)]
)
def test_judging_again_gives_the_same_exit_code(results, planned, code, jaxexport, tmp_path):
    finished(tmp_path / "out", *results, planned=planned)
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    ended = jaxexport("judge", "out")
    assert (ended.code, ended.err) == (code, "")
    assert f"exit code {code}." in ended.out
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before, "evidence is only read"


def test_judging_with_shorter_windows_makes_a_crash_outside(jaxexport, tmp_path):
    finished(tmp_path / "out", CRASH)
    (tmp_path / "short.yaml").write_text("windows: {backward: 30, forward: 0}")
    ended = jaxexport("judge", "out", "--policy", "short.yaml")
    assert (ended.code, "1 of 1 planned cells: 1 outside." in ended.out) == (3, True)


def test_judging_excuses_a_known_failure_until_it_expires(jaxexport, tmp_path):
    finished(tmp_path / "out", CRASH)
    listed = (
        "known_failures: [{cases: [t.b], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: signal "
        "11, reason: r, owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}]"
    )
    (tmp_path / "known.yaml").write_text(listed)
    ended = jaxexport("judge", "out", "--policy", "known.yaml")
    assert (ended.code, "known failure" in ended.out) == (0, True)
    late = jaxexport("judge", "out", "--policy", "known.yaml", "--as-of", "2026-12-02")
    assert (late.code, "expired on 2026-12-01" in late.out) == (4, True)


def test_judge_says_that_there_is_nothing_to_propose(jaxexport, tmp_path):
    finished(tmp_path / "out", result())
    ended = jaxexport("judge", "out", "--propose", code=0)
    assert ended.out == ""
    assert ended.err.startswith("nothing to propose: no failure of this run needs an entry in known_failures")


def test_a_joined_run_names_the_shard_to_run_again(jaxexport, tmp_path):
    first, second = result(case="t.a"), NOT_RUN
    cells = cells_by_place([first.key, second.key], (goldens := {first.golden: "hash", second.golden: "hash"}))
    whole = {"goldens": goldens, "cells": hash_of(cells), "planned": 2, "options": ["--cases", "t.*"]}
    for number, one in enumerate((first, second), 1):
        finished(tmp_path / f"s{number}", one, shard=Shard(number, 2), plan=whole)
    alone = jaxexport("report", "s2").out
    assert "then run `jaxexport matrix --cases 't.*' --shard 2/2 --resume --results s2`." in " ".join(alone.split())
    again = "names, then run shard 2/2 again with --resume (in CI, its job), and join all shards again."
    for words in (("judge", "s1", "s2", "--results", "all"), ("judge", "all"), ("report", "all"), ("judge", "s2")):
        assert again in " ".join(jaxexport(*words, code=None).out.split()), words


def test_a_run_names_the_command_that_runs_missing_cells(jaxexport, tmp_path):
    finished(tmp_path / "out", NOT_RUN, plan={"options": ["--cases", "t.b"]})
    finished(tmp_path / "by-pytest", NOT_RUN)
    known = "Fix what the message names, then run `jaxexport matrix --cases t.b --resume --results out`."
    unknown = "Fix what the message names, then run the same `jaxexport matrix` command with --resume."
    for command in ("judge", "report"):
        assert known in " ".join(jaxexport(command, "out", code=None).out.split())
        assert unknown in " ".join(jaxexport(command, "by-pytest", code=None).out.split())


def test_a_single_folder_is_judged_in_place(jaxexport, tmp_path):
    finished(tmp_path / "out", result(), shard=Shard(1, 2), plan={"planned": 2})
    ended = jaxexport("judge", "out")
    assert (ended.code, [path.name for path in tmp_path.iterdir()]) == (3, ["out"])
    (option,) = (one for one in judge.params if one.name == "results")
    assert "Without it, one DIR is judged, and stays as it is." in option.help


def test_joining_shards_without_a_results_folder_writes_nothing(jaxexport, tmp_path):
    for name, shard in ((".jaxexport", None), ("s1", Shard(1, 2)), ("s2", Shard(2, 2))):
        finished(tmp_path / name, result(), shard=shard)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert_bad_input(jaxexport("judge", "s1", "s2"), "expected --results DIR, the folder for the joined run, found")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["plan.json", "results.jsonl", "summary.json"])
def test_a_fifo_among_the_files_of_a_run_is_bad_input(name, jaxexport, tmp_path):
    finished(tmp_path, result())
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert_bad_input(jaxexport("judge", "."), name)


def test_a_summary_is_indented_and_a_result_is_one_line(tmp_path):
    finished(tmp_path, result())
    assert json.loads((tmp_path / "summary.json").read_bytes())["exit_code"] == 0
    assert (tmp_path / "summary.json").read_text().count("\n") > 10
    assert msgspec.json.decode((tmp_path / "results.jsonl").read_bytes(), type=Result) == result()


@pytest.mark.parametrize("text", ["allow: {t: because}", "tolerances: {cpu: {float32: {rtol: 1}}}"])
def test_judging_refuses_changed_policy_keys_that_decide_verdicts(text, jaxexport, tmp_path):
    finished(tmp_path / "out", result())
    (tmp_path / "export_compat.yaml").write_text(text)
    key = text.partition(":")[0]
    message = f"export_compat.yaml: {key}: expected the value that this run was made with, found another one."
    assert_bad_input(jaxexport("judge", "out"), message, "run it again (`jaxexport matrix`)")


@pytest.mark.parametrize("options", [["--quiet"], ["--policy", "own.yaml", "--quiet"]])
def test_the_command_in_a_refusal_names_the_policy(options, jaxexport, tmp_path):
    finished(tmp_path / ".jaxexport", result(), plan={"options": options})
    (tmp_path / "other.yaml").write_text("allow: {t: because}")
    refusal = jaxexport("judge", "--policy", "other.yaml", code=2)
    assert_bad_input(refusal, "run it again (`jaxexport matrix --quiet --policy other.yaml`)")


def test_headlines_of_incomplete_runs_count_broken_cells(jaxexport, tmp_path):
    finished(tmp_path / "out", CRASH, result(), planned=3)
    ended = jaxexport("judge", "out", code=3)
    headline = next(line for line in ended.out.splitlines() if line.startswith("BROKEN:"))
    missing = "incomplete: 1 of 3 planned cells has no result that counts; only reader affected 0.10.2."
    assert headline == f"BROKEN: 1 of 2 promised cells, 1 cause; {missing}"
    assert "BROKEN PROMISE  t.b" in ended.out
    assert "INCOMPLETE  Expected one result for each of 3 planned cells, found 2." in ended.out


# --- --fail-on --------------------------------------------------------------------------------------------------------


KEPT = result(case="t.kept")
PAIR = {"writer": "0.9.2", "reader": "0.12.0.1", "case": "t.f", "promised": False}
DIED = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
DIED_OUTSIDE = result(Verdict.CRASH, Judgement.OUTSIDE, **PAIR, **DIED)
REFUSED = result(Verdict.REFUSED, Judgement.OUTSIDE, **PAIR, stage=Stage.DESERIALIZE, message="too old")
BONUS = result(judgement=Judgement.BONUS, **PAIR)


@pytest.mark.parametrize(("cell", "code"), [(DIED_OUTSIDE, 1), (REFUSED, 0), (BONUS, 0)])
def test_fail_on_outside_spares_refused_and_passing_cells(cell, code, jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT, cell)
    assert jaxexport("judge", "out").code == 0
    ended = jaxexport("judge", "out", "--fail-on", "outside", code=code)
    is_printed = "FAILED: outside: 1 cell outside the window failed other than by a refusal." in ended.out
    assert is_printed is (code == 1)


def test_the_policy_may_fail_a_run_for_cells_outside_the_window(jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT, DIED_OUTSIDE)
    (tmp_path / "export_compat.yaml").write_text("fail_on: [outside]\n")
    assert jaxexport("judge", "out").code == 1
    (tmp_path / "export_compat.yaml").write_text("fail_on: [everything]\n")
    assert_bad_input(jaxexport("judge", "out"), "export_compat.yaml:1: fail_on[0]: ")


@pytest.mark.parametrize(
    ("then", "now", "code"),
    [(BONUS, DIED_OUTSIDE, 1), (BONUS, REFUSED, 1), (BONUS, BONUS, 0), (DIED_OUTSIDE, REFUSED, 0)],
)
def test_a_lost_bonus_fails_with_fail_on_bonus_lost(then, now, code, jaxexport, tmp_path):
    finished(tmp_path / "old", KEPT, then)
    finished(tmp_path / "new", KEPT, now)
    assert jaxexport("judge", "new", "--baseline", "old").code == 0
    ended = jaxexport("judge", "new", "--baseline", "old", "--fail-on", "bonus-lost", code=code)
    line = "Exit code 1: bonus-lost: 1 cell that worked outside the window in the baseline failed."
    assert (line in ended.out) is (code == 1)


def test_fail_on_bonus_lost_needs_a_baseline(jaxexport, tmp_path):
    finished(tmp_path / "out", KEPT)
    assert_bad_input(jaxexport("judge", "out", "--fail-on", "bonus-lost"), "bonus-lost needs --baseline OLD")


@pytest.mark.parametrize(
    ("options", "then"), [(("--fail-on", "outside"), None), (("--fail-on", "bonus-lost", "--baseline", "old"), BONUS)]
)
def test_the_report_command_that_judge_prints_has_the_same_headline(options, then, jaxexport, tmp_path):
    finished(tmp_path / "new", KEPT, DIED_OUTSIDE)
    if then:
        finished(tmp_path / "old", KEPT, then)
    judged = jaxexport("judge", "new", *options)
    named = next(line for line in judged.out.splitlines() if "jaxexport report new" in line)
    words = shlex.split(named.partition("jaxexport ")[2].partition(" #")[0])
    assert jaxexport(*words).code == 0
    headline = next(line for line in judged.out.splitlines() if line.startswith("FAILED: "))
    assert f"<title>{headline}</title>" in (tmp_path / "report.html").read_text()


def next_commands(judged: str) -> list[str]:
    """Return the commands that a report prints last, without their comments."""
    _, _, below = judged.partition("\n  next ")
    lines = [line.strip().partition("  #")[0] for line in below.splitlines()]
    return [line for line in lines if line.partition(" ")[0] in ("jaxexport", "XLA_FLAGS=--some")]


OLD = "jaxexport matrix --cases t.b --writers 0.9.2 --readers 0.10.2 --platforms cpu"
TAIL = "--no-cache --results .jaxexport/reproduced"
NEXT = {
    "neither": ("", "", ""),
    "a policy": ("", "--policy 'our policy.yaml'", "--policy 'our policy.yaml'"),
    "a day": ("", "--as-of 2026-11-22", "--as-of 2026-11-22"),
    "both in place of others": (
        "--policy old.yaml --as-of 2026-11-21",
        "--policy 'our policy.yaml' --as-of 2026-11-22",
        "--policy 'our policy.yaml' --as-of 2026-11-22",
    ),
}


@pytest.mark.parametrize("given", NEXT)
def test_commands_that_judge_suggests_repeat_its_policy_and_day(given, jaxexport, tmp_path):
    had, named, repeated = NEXT[given]
    before, after = (" ".join(filter(None, (OLD, options, TAIL))) for options in (had, repeated))
    cell = msgspec.structs.replace(CRASH, reproduce=f"XLA_FLAGS=--some {before}")
    finished(tmp_path / "out", cell)
    (tmp_path / "our policy.yaml").write_text("windows: {backward: 300}")
    judged = jaxexport("judge", "out", *shlex.split(named), code=1).out
    again, why, page = next_commands(judged)
    assert again == f"XLA_FLAGS=--some {after}"
    about = "--case t.b --writer 0.9.2 --reader 0.10.2"
    assert why == " ".join(filter(None, ("XLA_FLAGS=--some jaxexport explain", about, repeated, "--results out")))
    assert page == " ".join(filter(None, ("jaxexport report out", named, "--html report.html")))
    propose = " ".join(filter(None, ("`jaxexport judge out", named, "--propose`")))
    assert propose in jaxexport("report", "out", *shlex.split(named), "--markdown", "-").out.replace("\\", "")


def test_commands_of_a_later_judgement_name_the_jax_of_the_run(jaxexport, tmp_path):
    # On the day of the run, the newest jax of jaxlib 0.11.2 was 0.11.2, and later 0.12.0.1.
    reader = load_calendar().pair("0.11.2", "0.11.2")
    command = f"{OLD.replace('0.10.2', '0.11.2')} --as-of 2026-09-20 {TAIL}"
    cell = result(Verdict.ERROR, Judgement.BROKEN, writer="0.11.0", message="died", reproduce=command)
    finished(tmp_path / "out", msgspec.structs.replace(cell, reader=reader))
    again, *_ = next_commands(jaxexport("judge", "out", "--as-of", "2026-11-22").out)
    assert "--readers 0.11.2-jax0.11.2 --platforms cpu --as-of 2026-11-22 " in again


def test_a_suggested_command_omits_as_of_if_its_jax_is_newer(jaxexport, tmp_path):
    # jaxlib 0.11.2 existed on that day, and no option names it with a jax that did not.
    reader = load_calendar().pair("0.11.2", "0.12.0.1")
    command = f"{OLD.replace('0.10.2', '0.11.2')} {TAIL}"
    cell = result(Verdict.ERROR, Judgement.BROKEN, writer="0.11.0", message="died", reproduce=command)
    finished(tmp_path / "out", msgspec.structs.replace(cell, reader=reader))
    again, *_ = next_commands(jaxexport("judge", "out", "--as-of", "2026-09-20").out)
    assert again == command
