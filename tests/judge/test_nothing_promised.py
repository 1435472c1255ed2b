"""Runs without a promised cell, which show nothing about the promise, and partial runs, which name their part."""

from pathlib import Path

import pytest
from commands import finished
from making import day, document, result, summarize

from export_core.base.exit_code import ExitCode
from export_core.judge import Judgement
from export_core.matrix import Selection, Verdict
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, KnownFailure
from export_core.policy.run_options import Shard
from export_core.report.page import html_page
from export_core.report.wording import headline
from pytest_jaxexport.summary import summary_lines

BONUS = result(judgement=Judgement.BONUS, promised=False, reader="0.8.1")
REFUSED = result(Verdict.REFUSED, Judgement.OUTSIDE, case="t.b", promised=False, reader="0.8.1")
WRONG = result(Verdict.NUMERICS, Judgement.BROKEN, case="t.c", promised=False, reader="0.8.1")
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.d", promised=False, reader="0.8.1")
SAME = result(case="t.e", writer="0.9.2", reader="0.9.2")
ACCEPTED = Policy(unpromised="goldens of 2023, for bonus cells only")
LEFTOVER = KnownFailure(
    *(("t.gone",), ("*",), ("*",), "crash", "run", "m", "r", "o", "i", day("2026-10-01")), permanent=True, approver="a"
)
STALE = Policy(known_failures=(LEFTOVER,))
SERVING = DeploymentTarget(name="serving", jaxlib="0.9.2")
ROOT = Path(__file__).parents[2]
NOTHING = "NOTHING PROMISED: every cell is outside its window"
IN_A_SHARD = "NOTHING PROMISED: every cell of this shard is outside its window"


@pytest.mark.parametrize(
    ("results", "facts", "code", "start"),
    [
        ([BONUS, REFUSED], {}, 3, NOTHING),
        ([BONUS, REFUSED], {"policy": ACCEPTED}, 0, NOTHING),
        ([BONUS, REFUSED], {"shard": Shard(2, 7)}, 0, f"{IN_A_SHARD}; partial: shard 2/7."),
        ([BONUS, SAME], {}, 0, "KEPT: the 1 promised cell."),
        ([BONUS, WRONG], {}, 1, "BROKEN: 1 cell with other numbers outside the window, 1 cause"),
        ([BONUS, NOT_RUN], {}, 3, "INCOMPLETE: 1 of 2 planned cells"),
        ([BONUS, NOT_RUN], {"policy": ACCEPTED}, 3, "INCOMPLETE: 1 of 2 planned cells"),
        ([BONUS], {"policy": STALE}, 4, "STALE LIST: "),
    ],
)
def test_without_promised_cells_exit_code_0_becomes_3(results, facts, code, start):
    made = summarize(results, **facts)
    assert made.exit_code == code
    assert headline(made)[0].startswith(start)


def test_broken_and_stale_outrank_nothing_promised():
    codes = (ROOT / "docs" / "reference" / "verdicts.md").read_text()
    ends = "no shard has finished; no cell is promised or of a deployment target, and nothing is broken or stale; or "
    assert f"which outranks broken; {ends}" in codes
    policy = " ".join((ROOT / "docs" / "reference" / "policy.md").read_text().split())
    assert "the headline is `NOTHING PROMISED`, unless a cell fails the run" in policy
    for results, kwargs in (([BONUS, WRONG], {}), ([BONUS], {"policy": STALE})):
        assert summarize(results, **kwargs).unpromised, "a finding says so, below another headline"
        assert summarize(results, **kwargs).exit_code != ExitCode.INCOMPLETE
    assert summarize([WRONG, NOT_RUN]).exit_code == ExitCode.INCOMPLETE


@pytest.mark.parametrize("policy", [None, ACCEPTED], ids=["incomplete", "accepted"])
def test_a_report_says_that_nothing_was_promised(policy):
    results = [BONUS, REFUSED]
    made = summarize(results, policy=policy)
    reported = document(results, made)
    (finding,) = reported.findings
    assert (finding.title, reported.look) == ("NOTHING PROMISED", ExitCode.INCOMPLETE), "it does not look kept"
    assert ("goldens of 2023, for bonus cells only" in finding.sentence) == (policy is not None)
    assert ("or --unpromised REASON" in finding.sentence) == (policy is None)
    page = html_page(reported)
    assert '<span class="exit3">NOTHING PROMISED:</span>' in page, "in another colour than what is kept"
    assert "KEPT" not in page


@pytest.mark.parametrize(
    ("facts", "which"),
    [
        ({"shard": Shard(1, 2)}, "this shard"),
        ({"missing_shards": [Shard(2, 2)], "planned": 3}, "the shards that finished"),
    ],
    ids=["shard", "joined without another"],
)
def test_a_shard_without_promised_cells_advises_to_judge_all(facts, which):
    found = document([BONUS, REFUSED], summarize([BONUS, REFUSED], **facts)).findings
    (sentence,) = (finding.sentence for finding in found if finding.title == "NOTHING PROMISED")
    assert sentence == (
        f"No cell of {which} is inside its window (180 days backward, 21 forward). `jaxexport judge` of all shards "
        "decides whether the run tests the promise."
    )


def test_a_partial_run_is_not_advised_to_set_unpromised_in_the_policy():
    for selection, is_advised in (
        ({"whole": True}, True),
        (Selection(writers=("0.9.2",)).as_recorded(whole=False), False),
    ):
        advice = summarize([BONUS, REFUSED], selection=selection).unpromised
        assert "--unpromised REASON" in advice
        assert ("unpromised: REASON in the policy" in advice) is is_advised, "it would accept every later run too"


@pytest.mark.parametrize("file", ["docs/reference/verdicts.md", "docs/how-to/many-machines.md", "action.yml", "--help"])
def test_help_and_docs_say_a_shard_that_promises_nothing_exits_0(file, jaxexport):
    text = jaxexport("matrix", "--help").out if file == "--help" else (ROOT / file).read_text()
    ends = ("a shard of which nothing is promised ends with 0", "or for a deployment target (0 for such a shard)")
    assert any(words in " ".join(text.split()).lower() for words in ends)


def test_windows_of_0_days_promise_the_same_day_only(cwd, jaxexport):
    (cwd / "export_compat.yaml").write_text("windows: {backward: 0, forward: 0}")
    finished(cwd / "out", result())
    ended = jaxexport("judge", "out", code=3)
    assert f"{NOTHING}." in ended.out
    assert "inside its window (0 days backward, 0 forward)" in ended.out
    finished(cwd / "out", result(), SAME)
    assert jaxexport("judge", "out").code == 0


def test_the_policy_may_accept_a_run_without_promises(cwd, jaxexport):
    finished(cwd / "out", BONUS)
    (cwd / "export_compat.yaml").write_text("unpromised: an archive\n")
    ended = jaxexport("judge", "out")
    assert (ended.code, NOTHING in ended.out, "is accepted: an archive" in ended.out) == (0, True, True)


def test_pytest_ends_with_a_note_that_nothing_was_promised():
    event = {"case": "t.f", "shown": [], "own": True, "writer": "0.9.2-cpu", "changed": "", "runtimes": []}
    event |= {
        "other_inputs": [],
        "other_generations": [],
        "elsewhere": 0,
        "unmeasured": 0,
        "inputs_only": 0,
        "compared_by_outputs": False,
        "undecided": [],
        "corrected": None,
    }
    (line,) = summary_lines([{**event, "judgements": {"bonus": 2, "outside": 1}}])
    assert line == (
        "1 case checked against 3 goldens: 2 bonus, 1 outside; nothing was promised: the installed jaxlib is outside "
        "the window of each"
    )
    (line,) = summary_lines([{**event, "judgements": {"bonus": 2, "kept": 1}}])
    assert "nothing was promised" not in line


@pytest.mark.parametrize(
    ("selection", "policy", "partial"),
    [
        ({}, Policy(), ""),
        ({"readers": "all"}, Policy(), ""),
        ({"readers": "window,0.9.2"}, Policy(), ""),
        ({"readers": "0.9.2,0.12.0.1"}, Policy(readers="0.12.0.1,0.9.2"), ""),
        ({"readers": "all"}, Policy(readers="0.9.2"), ""),
        ({"readers": "0.9.2,0.12.0.1"}, Policy(readers="0.9.2,0.12.0.1", deployed=(SERVING,)), ""),
        ({"readers": "0.12.0.1"}, Policy(readers="0.12.0.1", deployed=(SERVING,)), "only readers 0.12.0.1"),
        ({"readers": "all,iree==3.13.0"}, Policy(readers="window,newest,iree==3.13.0"), ""),
        ({"readers": "all"}, Policy(readers="window,iree==3.13.0"), "only readers all"),
        ({"touching": "iree==3.13.0"}, Policy(), "only cells that iree 3.13.0 wrote or reads"),
        ({"platforms": ("cpu", "tpu:compile")}, Policy(), ""),
        ({"readers": "0.9.2"}, Policy(), "only readers 0.9.2"),
        ({"readers": "window"}, Policy(readers="all"), "only readers window"),
        ({"readers": "0.9.2"}, Policy(readers="0.9.2,0.10.2"), "only readers 0.9.2"),
        ({"platforms": ("cpu",)}, Policy(platforms={"cpu": "auto", "tpu": "compile"}), "only platforms cpu"),
        ({"cases": ("t.*", "a")}, Policy(), "only cases t.*, a"),
        ({"writers": ("0.9.2",)}, Policy(), "only writers 0.9.2"),
        ({"touching": "0.13.0rc1"}, Policy(), "only cells that jaxlib 0.13.0rc1 wrote or reads"),
        ({"only": "promised"}, Policy(), "only cells that are promised"),
        ({"only": "backward"}, Policy(), "only cells that are promised or read by a release newer than their writer"),
    ],
)
def test_a_selection_narrower_than_the_policys_is_partial(selection, policy, partial):
    assert (
        summarize([SAME], policy=policy, selection=Selection(**selection).as_recorded(whole=False)).partial == partial
    )


def test_the_headline_of_a_partial_run_says_which_part_it_is():
    made = summarize([SAME], selection=Selection(cases=("t.*",)).as_recorded(whole=False), shard=Shard(1, 7))
    assert made.partial == "shard 1/7, only cases t.*"
    assert headline(made)[0] == "KEPT: the 1 promised cell; partial: shard 1/7, only cases t.*."
