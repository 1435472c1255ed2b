"""Cells that have to run in a deployment target of the policy, inside a window or not."""

import re

import msgspec
import pytest
from commands import assert_bad_input
from making import day, golden, result, summarize

from export_core.features.deploy.answer_lines import target_findings
from export_core.features.forecast.forecast import forecast
from export_core.goldens import Options
from export_core.judge import Judgement, Result, judge_again
from export_core.judge.judgement import judge_verdict
from export_core.judge.known import stale_entries
from export_core.judge.retention import retention_status
from export_core.matrix import Verdict
from export_core.matrix.verdicts import VERDICTS
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import DeploymentTarget, KnownFailure, Required
from export_core.policy.run_options import Selection
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.run.run import Run

CASE = "tests.test_a.test_f"
SERVING = DeploymentTarget(name="serving", jaxlib="0.9.2", until=day("2026-12-31"))
POLICY = Policy(deployed=(SERVING,))
TODAY = day("2026-11-21")
WHOLE = {"whole": True, "platforms": ("cpu",)}


def cell(verdict=Verdict.CRASH, writer="0.12.0.1", reader="0.9.2", policy=POLICY, as_of=TODAY, **changes) -> Result:
    changes = {"stage": Stage.RUN, "message": "died by signal 11", **changes}
    return judge_again(result(verdict, writer=writer, reader=reader, **changes), policy, as_of)


def summary(*results, policy=POLICY, as_of=TODAY, selection=WHOLE):
    return summarize(results, policy=policy, as_of=as_of, selection=selection)


@pytest.mark.parametrize("verdict", Verdict)
def test_only_failures_outside_the_window_are_owed(verdict):
    inside = judge_verdict(verdict, promised=True, required=False, deployed=("serving",))
    outside = judge_verdict(verdict, promised=False, required=False, deployed=("serving",))
    assert inside is VERDICTS[verdict].inside, "a promise is a promise, with a deployment target or without"
    owed = {Verdict.REFUSED, Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT}
    missing = {Verdict.NOT_RUN: Judgement.INCOMPLETE}
    assert outside is (Judgement.OWED if verdict in owed else missing.get(verdict, VERDICTS[verdict].outside))


@pytest.mark.parametrize(
    ("changes", "judgement", "targets"),
    [
        ({}, "owed", ("serving",)),
        ({"writer": "0.6.2"}, "owed", ("serving",)),  # every generation of a case
        ({"writer": "0.9.1"}, "broken", ("serving",)),  # promised as well
        ({"reader": "0.10.2"}, "outside", ()),
        ({"platform": "cuda"}, "outside", ()),
        ({"must_be_refused": True}, "outside", ()),  # it was not exported for the target's platform
        ({"as_of": day("2027-01-01")}, "outside", ()),
        ({"as_of": day("2026-12-31")}, "owed", ("serving",)),
        ({"policy": Policy(deployed=(msgspec.structs.replace(SERVING, cases=("other",)),))}, "outside", ()),
        ({"verdict": Verdict.PASS}, "bonus", ("serving",)),
        ({"verdict": Verdict.NUMERICS}, "broken", ("serving",)),
    ],
)
def test_a_failing_cell_of_a_targets_release_cases_and_days_is_owed(changes, judgement, targets):
    judged = cell(**changes)
    assert (judged.judgement, judged.deployed) == (judgement, targets)


def test_a_cell_of_a_target_that_did_not_run_is_incomplete():
    policy = Policy(deployed=(SERVING,), required=Required(outside=False))
    assert cell(Verdict.NOT_RUN, policy=policy).judgement is Judgement.INCOMPLETE
    assert cell(Verdict.NOT_RUN, reader="0.10.2", policy=policy).judgement is Judgement.OUTSIDE


def test_an_owed_cell_fails_the_run():
    made = summary(cell(), cell(Verdict.PASS, "0.9.2"))
    assert (made.exit_code, made.judgements) == (1, {"kept": 1, "owed": 1})
    (target,) = made.deployed
    assert (target.name, target.cells, target.judgements) == ("serving", 2, {"kept": 1, "owed": 1})
    assert made.causes[0].judgement is Judgement.OWED


def test_a_run_of_only_deployed_cells_can_exit_with_0():
    works = summary(cell(Verdict.PASS))
    assert (works.exit_code, works.unpromised, works.judgements) == (0, "", {"bonus": 1})
    assert summary(cell(Verdict.PASS), policy=Policy()).exit_code == 0, "its result names the deployment target"
    assert summary(cell(Verdict.PASS, policy=Policy()), policy=Policy()).exit_code == 3


def test_a_whole_run_without_cells_of_a_target_is_incomplete():
    other = cell(Verdict.PASS, "0.9.2", "0.10.2")
    made = summary(other)
    assert made.exit_code == 3
    assert made.uncovered == [
        "deployed serving: it has no cell, since no golden of its cases was exported for cpu. Correct the entry, or "
        "write such goldens."
    ]
    assert summary(other, as_of=day("2027-01-01")).exit_code == 0
    assert summary(other, selection={**WHOLE, "whole": False}).exit_code == 0, "a part of a project"


def test_misspelled_cases_of_a_target_make_runs_incomplete():
    misspelled = msgspec.structs.replace(POLICY, deployed=(msgspec.structs.replace(SERVING, cases=("no.such.*",)),))
    other, some_readers = cell(Verdict.PASS, "0.9.2", "0.10.2"), {**WHOLE, "whole": False}
    made = summary(other, policy=misspelled, selection=some_readers)
    assert made.exit_code == 3
    assert "deployed serving: it has no cell, since its `cases` match no case of this run." in made.uncovered[0]
    for part in ({"cases": [CASE]}, {"writers": ["0.9.2"]}, {"only": "promised"}, {"touching": "0.9.2"}):
        assert summary(other, policy=misspelled, selection={**some_readers, **part}).exit_code == 0


def test_one_misspelled_pattern_of_several_makes_a_run_incomplete():
    targets = (msgspec.structs.replace(SERVING, cases=(CASE, "*.test_scores")),)
    policy = msgspec.structs.replace(POLICY, deployed=targets)
    made = summary(cell(Verdict.PASS, policy=policy), policy=policy)
    assert made.exit_code == 3
    assert made.uncovered == [
        "deployed serving: '*.test_scores' in its `cases` matches no case of this run. Correct the entry, or write "
        "such goldens."
    ]
    assert (
        summary(cell(Verdict.PASS, policy=policy), policy=policy, selection={**WHOLE, "cases": [CASE]}).exit_code == 0
    )


def test_a_run_of_converted_goldens_reports_no_missing_target():
    other = DeploymentTarget(name="phone", reader="litert==2.3.0", cases=("t.on_phone",))
    policy = msgspec.structs.replace(POLICY, deployed=(SERVING, other))
    converted = msgspec.structs.replace(cell(Verdict.CONVERTED, policy=policy), converted=True)
    made = summary(converted, policy=policy)
    assert made.uncovered == []
    (finding,) = target_findings(Run([converted], made))
    assert finding.sentence == "serving (jaxlib 0.9.2, cpu, until 2026-12-31): 1 of 1 cell works."


@pytest.mark.parametrize(
    ("cases", "selection", "lacks"),
    [
        (("*",), {}, ""),  # it must run what was exported for its platform
        (("*", "t.on_*"), {}, "t.on_*"),
        ((CASE, "t.on_tpu"), {}, "t.on_tpu"),
        ((CASE, "t.on_tpu"), {"cases": ["*"]}, ""),  # a part may leave out the goldens that were exported for cpu
        ((CASE, "t.on_tpu"), {"platforms": ("tpu",)}, ""),
    ],
)
def test_cases_without_a_golden_for_the_platform_are_incomplete(cases, selection, lacks):
    policy = msgspec.structs.replace(POLICY, deployed=(msgspec.structs.replace(SERVING, cases=cases),))
    chosen, elsewhere = {**WHOLE, **selection}, {"cpu": ["t.on_tpu"]}
    platform = chosen["platforms"][0]
    cells = [cell(Verdict.PASS, policy=policy, platform=platform)]
    made = summarize(cells, policy=policy, as_of=TODAY, selection=chosen, unexported_cases=elsewhere)
    text = f"deployed serving: no golden of '{lacks}' in its `cases` was exported for cpu. Correct the entry, or write "
    assert [*made.uncovered] == ([f"{text}such goldens."] if lacks else [])
    assert platform == "tpu" or made.exit_code == (3 if lacks else 0)


def test_a_target_whose_goldens_are_for_other_platforms_is_reported():
    policy = msgspec.structs.replace(POLICY, deployed=(msgspec.structs.replace(SERVING, cases=("t.on_tpu",)),))
    other = cell(Verdict.PASS, "0.9.2", "0.10.2", policy=policy)
    made = summarize([other], policy=policy, as_of=TODAY, selection=WHOLE, unexported_cases={"cpu": ["t.on_tpu"]})
    assert "it has no cell, since no golden of its cases was exported for cpu." in made.uncovered[0]


def test_a_listed_failure_in_a_target_is_known():
    entry = KnownFailure(
        *((CASE,), ("0.12.*",), ("0.9.2",), "crash", "run", "signal 11", "r", "o", "i", TODAY), expires=TODAY
    )
    policy = msgspec.structs.replace(POLICY, known_failures=(entry,))
    known = cell(policy=policy)
    assert known.judgement is Judgement.KNOWN
    assert stale_entries([known], policy, TODAY, whole=True) == []
    (stale,) = stale_entries([cell(Verdict.PASS, policy=policy)], policy, TODAY, whole=True)
    assert "1 of its cells passes now" in stale


@pytest.mark.parametrize("readers", ["deployed", "0.10.2,deployed"])
def test_a_listed_failure_of_an_ended_target_is_not_stale(readers):
    # A run of that day does not have the target's release, and says nothing of such an entry.
    lasting = day("2027-03-01")
    entry = KnownFailure(
        *((CASE,), ("0.12.*",), ("0.9.2",), "crash", "run", "signal 11", "r", "o", "i", TODAY), expires=lasting
    )
    policy, ended = msgspec.structs.replace(POLICY, known_failures=(entry,)), day("2027-01-01")
    cells = [cell(policy=policy, as_of=ended)]
    assert stale_entries(cells, policy, ended, whole=True, selection=Selection(readers)) == []
    for named in (f"{readers},0.9.2", f"{readers},window", f"{readers},>=0.9"):
        (stale,) = stale_entries(cells, policy, ended, whole=True, selection=Selection(named))
        assert "matches no cell of this run that it can excuse" in stale


def test_goldens_of_a_target_stay_until_its_last_day():
    goldens = [golden(jaxlib=version) for version in ("0.6.2", "0.12.0.1")]

    def reasons(when):
        return next(retention_status(goldens, POLICY, load_calendar(), day(when)))[1]

    assert reasons("2026-12-31") == ["must run in deployment target serving (jaxlib 0.9.2)"]
    assert reasons("2027-01-01") == []
    goldens[0] = golden(jaxlib="0.6.2", options=Options(platforms=("tpu",)))
    assert reasons("2026-12-31") == [], "it was exported for another platform"


def test_the_forecast_lists_targets_until_their_last_days():
    goldens = [golden(jaxlib=version) for version in ("0.6.2", "0.12.0.1")]
    foreseen = forecast(goldens, POLICY, load_calendar(), TODAY, 60)
    assert [(reader.jaxlib, reader.targets) for reader in foreseen.deployed] == [("0.9.2", ("serving",))]
    (ended,) = (at for at in foreseen.days if str(at.day) == "2027-01-01")
    assert [event.text for event in ended.events] == [
        "from this day on, deployment target serving (jaxlib 0.9.2) has to run nothing any more",
        f"1 golden may be pruned from this day on: {goldens[0].id}",
    ]


def test_an_ended_target_is_in_the_forecast_only_if_it_is_named():
    goldens = [golden(jaxlib=version) for version in ("0.6.2", "0.12.0.1")]
    later = day("2027-06-01")
    assert forecast(goldens, POLICY, load_calendar(), later, 0).deployed == ()
    (reader,) = forecast(goldens, POLICY, load_calendar(), later, 0, ["serving"]).deployed
    assert (reader.jaxlib, reader.targets) == ("0.9.2", ("serving",))


def test_forecasting_a_target_that_the_policy_lacks_is_an_error(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    message = "target of the policy (serving) or a release such as 0.11.0 or tensorflow==2.21.0, found 'servin'. "
    assert_bad_input(jaxexport("forecast", "--deployed", "servin"), f"--deployed: expected a deployment {message}")


ONE_RELEASE = "reader: expected one release of a runtime, such as tensorflow==2.21.0, found"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reader: tensorflow", ONE_RELEASE),
        ("reader: tensorflow==2.21.*", ONE_RELEASE),
        ("reader: tensorflow == 2.21.0", ONE_RELEASE),
        ("reader: iree==3.13.0, jaxlib: 0.9.2", "jaxlib: expected either jaxlib or reader"),
        (
            "reader: iree==3.13.0, platform: cuda",
            "platform: expected cpu, the only platform on which iree 3.13.0 is run, found 'cuda'.",
        ),
    ],
)
def test_a_wrong_reader_of_a_target_is_an_error(text, message, load):
    with pytest.raises(PolicyError, match=re.escape(f":2: deployed[0].{message}")):
        load(f"platforms: [cpu, cuda]\ndeployed: [{{name: a, {text}}}]\n")
