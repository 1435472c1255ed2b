"""`jaxexport can-i-deploy` about goldens that timed out: nothing is shown, and the printed command gives more time."""

import json
from pathlib import Path

import msgspec
import pytest
from asking import CASE, OTHER, POLICY, answers, ran
from commands import stored
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage

GOLDEN = f"{CASE}/0.9.2-cpu"


def timed_out(reader: str, **changes: object) -> Result:
    message = "still in stage compile after 120 s, killed"
    return ran(Verdict.TIMEOUT, reader, **{"stage": Stage.COMPILE, "message": message, **changes})


def run_line(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("run ")]
    return line.split(maxsplit=1)[1]


def test_a_timeout_is_answered_unknown_and_run_again_with_more_time(ask):
    stored(timed_out("0.10.2"), ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.11.0"))
    ended = ask(CASE, "all", code=3)
    assert (
        f"unknown {GOLDEN}: timeout in stage compile: still in stage compile after 120 s, killed; it may run with more "
        "time, or on a machine that is not busy (results in .jaxexport)"
    ) in " ".join(ended.out.split())
    assert "upgrade" not in ended.out
    assert "convert" not in ended.out
    assert run_line(ended.out).startswith(
        f"jaxexport matrix --readers 0.10.2 --platforms cpu --cases {CASE} --writers 0.9.2 --timeout 480 --results "
        ".jaxexport/deploy/all-"
    )


@pytest.mark.parametrize(("limit", "longer"), [("5", ""), ("30", ""), ("480", " --timeout 1920 ")])
def test_the_command_after_a_timeout_has_a_longer_time_limit(ask, limit, longer):
    stored(timed_out("0.10.2", reproduce=f"jaxexport matrix --cases {CASE} --timeout {limit} --no-cache"))
    command = run_line(ask(CASE, "edge", code=3).out)
    assert longer in command
    assert ("--timeout" in command) is bool(longer), "the usual limit is longer, and other cells need it"


def test_only_a_timeout_makes_the_limit_longer(ask):
    stored(ran(Verdict.PASS, "0.10.2", flaky="was timeout on 2026-11-20"), timed_out("0.9.2"))
    assert "--timeout" not in run_line(ask(CASE, "edge", code=3).out), "the target that is asked about did not time out"


def test_a_timeout_of_another_golden_does_not_stop_an_upgrade(project, ask):
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.2"))
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    later = ran(Verdict.PASS, "0.10.2"), timed_out("0.10.2", case=OTHER)
    stored(crash, ran(Verdict.PASS, "0.9.2", case=OTHER), *later)
    (upgrade,) = json.loads(ask(CASE, "serving", "--json", code=1).out)["upgrades"]
    assert (upgrade["to"], upgrade["failing"]) == ("0.10.2", [])


def test_a_timeout_in_the_goldens_writer_is_answered_unknown(ask):
    stored(timed_out("0.9.2"))
    assert answers(ask(CASE, "serving", "--json", code=3)) == [("serving", GOLDEN, "unknown")]


@pytest.mark.parametrize(
    ("earlier", "code", "answer"),
    [
        (ran(Verdict.PASS, "0.9.2"), 0, "yes"),
        (ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN), 1, "no"),
        (ran(Verdict.TIMEOUT, "0.9.2", stage=Stage.RUN), 3, "unknown"),
    ],
)
def test_a_later_timeout_takes_no_earlier_result_away(ask, earlier, code, answer):
    """A time limit shows nothing: an earlier result of the same golden, reader and settings still does."""
    stored(earlier, folder=".jaxexport/whole")
    stored(timed_out("0.9.2"))
    ended = ask(CASE, "serving", "--json", code=code)
    assert answers(ended) == [("serving", GOLDEN, answer)]
    folder = ".jaxexport" if earlier.verdict is Verdict.TIMEOUT else ".jaxexport/whole"
    assert json.loads(ended.out)["answers"][0]["folder"] == folder


def test_a_timeout_with_another_jax_of_the_same_run_counts(ask):
    cell = timed_out("0.9.2")
    stored(
        msgspec.structs.replace(cell, reader=msgspec.structs.replace(cell.reader, jax="0.9.1")),
        ran(Verdict.PASS, "0.9.2"),
    )
    assert answers(ask(CASE, "serving", "--json", code=3)) == [("serving", GOLDEN, "unknown")]


def test_a_later_timeout_of_a_known_issue_counts(ask):
    stored(ran(Verdict.PASS, "0.9.2"), folder=".jaxexport/whole")
    stored(timed_out("0.9.2", upstream="lapack-cold-process"))
    assert answers(ask(CASE, "serving", "--json", code=1)) == [("serving", GOLDEN, "no")]


@pytest.mark.parametrize("known", ["issue", "listed"])
def test_a_timeout_that_is_a_known_failure_is_answered_no(ask, known):
    changes = {"upstream": "lapack-cold-process"} if known == "issue" else {}
    if known == "listed":
        entry = "{cases: ['*'], writers: ['*'], readers: [0.9.2], verdict: timeout, stage: compile, message: still, "
        entry += "reason: it hangs, owner: ann, issue: '#7', added: 2026-11-01, expires: 2027-01-01}"
        Path("export_compat.yaml").write_text(f"{POLICY}known_failures: [{entry}]\n")
    stored(timed_out("0.9.2", **changes))
    out = ask(CASE, "serving", code=1).out
    assert f"no      {GOLDEN}: timeout in stage compile" in out
    assert "\nrun " not in out


def test_a_cell_run_again_by_its_printed_command_counts(ask):
    stored(timed_out("0.9.2"))
    stored(ran(Verdict.PASS, "0.9.2"), folder=".jaxexport/reproduced")
    ask(CASE, "serving", code=0)
