"""Deployment targets in a policy: what an entry may have, and the errors of a wrong one."""

from pathlib import Path

import pytest
from making import day, golden, manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.goldens.manifest import ConvertedFrom
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import DeploymentTarget
from export_core.policy.run_options import RunOptions, Selection
from export_core.releases import load_calendar
from export_core.run import session

SERVING = "deployed:\n  - name: serving\n    jaxlib: '0.9.2'\n"


@pytest.mark.parametrize(
    "text",
    [
        'deployed: [{name: "serving\\n", jaxlib: 0.9.2}]',
        'environment: ["PATH\\n"]',
        'goldens: "a\\0b"',
        'known_issues: "a\\0b"',
        'windows: {backward: "3 weeks\\n"}',
    ],
    ids=lambda text: text.partition(":")[0],
)
def test_a_final_newline_or_nul_in_a_policy_is_refused(load, text):
    with pytest.raises(PolicyError, match="expected"):
        load(f"{text}\n")


def test_a_target_needs_only_a_name_and_a_release(load):
    (target,) = load(SERVING).deployed
    assert (target.name, target.jaxlib, target.platform, target.cases) == ("serving", "0.9.2", "cpu", ("*",))
    assert (target.since, target.until) == (None, None)
    assert Path(target.location).name == "export_compat.yaml:2"


def test_targets_can_be_in_pyproject_toml(load):
    text = '[[tool.jaxexport.deployed]]\nname = "serving"\njaxlib = "0.9.2"\nuntil = 2027-03-31\n'
    (target,) = load(text, "pyproject.toml").deployed
    assert (target.name, target.until) == ("serving", day("2027-03-31"))


def test_a_target_may_name_a_release_of_the_project(load, tmp_path):
    (tmp_path / "export_releases.yaml").write_text("jaxlib:\n  0.13.0.dev20261120: {built: 2026-11-20}\n")
    (target,) = load(SERVING.replace("0.9.2", "0.13.0.dev20261120")).deployed
    assert target.jaxlib == "0.13.0.dev20261120"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("    since: soon", "4: deployed[0].since: expected a date such as 2026-10-25, found 'soon'."),
        ("    since: 2026-02-01", "4: deployed[0].since: expected 2026-03-18 or later, the day on which jaxlib 0.9.2"),
        ("    until: 2026-02-01", "4: deployed[0].until: expected 2026-03-18 or later, the day on which jaxlib 0.9.2"),
        ("    since: 2026-05-01\n    until: 2026-05-01",
         "5: deployed[0].until: expected a day after 2026-05-01 (since), found 2026-05-01."),
        ("    platform: cuda", "4: deployed[0].platform: expected one of the policy's platforms (cpu), found 'cuda'."),
        ("    platform: cpus",
         "4: deployed[0].platform: expected one of cpu, cuda, rocm, tpu, found 'cpus'. Did you mean 'cpu'?"),
        ("    platform: gpu",
         "4: deployed[0].platform: expected one of cpu, cuda, rocm, tpu, found 'gpu'. Did you mean 'cuda' or 'rocm'?"),
        ("    cases: []", "4: deployed[0].cases: expected at least one name or glob, found none."),
        ("    case: a", "4: deployed[0].case: unknown key. Did you mean `cases`?"),
        ("  - name: serving\n    jaxlib: '0.10.2'",
         "4: deployed[1].name: expected another name than that of deployed[0], found 'serving' again."),
        ("  - name: edge\n    jaxlib: 0.10",
         '5: deployed[1].jaxlib: expected text, found 0.1. Put it in quotes as you wrote it, such as "0.10": without'),
        ("  - name: edge\n    jaxlib: 0.9.3",
         "5: deployed[1].jaxlib: expected a jaxlib of the release calendar, found '0.9.3'. Did you mean"),
        ("  - name: edge\n    jaxlib: 0.99.0",
         "5: deployed[1].jaxlib: expected a jaxlib of the release calendar, found '0.99.0'. The newest known is "),
        ("  - name: all\n    jaxlib: 0.9.2", "4: deployed[1].name: expected another name than 'all', which stands for"),
        ("  - name: 0.9.2\n    jaxlib: 0.9.2",
         "4: deployed[1].name: expected text such as 'serving', found '0.9.2'. Letters, digits, ., _ and -,"),
        ("  - name: edge\n    reader: tensorflow",
         "5: deployed[1].reader: expected one release of a runtime, such as tensorflow==2.21.0, found 'tensorflow'."),
        ("  - name: edge\n    jaxlib: iree==3.13.0",
         "5: deployed[1].jaxlib: expected a release of jaxlib, such as 0.12.0.1, found 'iree==3.13.0'."),
        ("  - name: edge",
         "4: deployed[1].jaxlib: expected either jaxlib or reader (such as tensorflow==2.21.0), found neither."),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_one_error_with_its_line(load, tmp_path, more, message):
    with pytest.raises(PolicyError) as error:
        load(SERVING + more + "\n")
    (line,) = str(error.value).splitlines()
    assert line.removeprefix(f"{tmp_path}/export_compat.yaml:").startswith(message)


@pytest.mark.parametrize(
    ("when", "names"),
    [
        ("2026-03-17", []),  # jaxlib 0.9.2 was built a day later
        ("2026-03-18", ["now"]),
        ("2026-05-01", ["now", "later"]),
        ("2026-06-30", ["now", "later"]),
        ("2026-07-01", ["later"]),
    ],
)
def test_a_target_counts_from_its_first_day_to_its_last(when, names):
    targets = (
        DeploymentTarget(name="now", jaxlib="0.9.2", until=day("2026-06-30")),
        DeploymentTarget(name="later", jaxlib="0.9.2", since=day("2026-05-01")),
    )
    assert [target.name for target in Policy(deployed=targets).targets_on(day(when))] == names


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("2026-04-30", "its obligation begins on 2026-05-01"),
        ("2026-05-01", ""),
        ("2026-09-30", ""),
        ("2026-10-01", "its obligation ended on 2026-09-30"),
    ],
)
def test_a_target_says_why_it_is_not_in_force(on, why):
    dated = DeploymentTarget("serving", "0.9.2", since=day("2026-05-01"), until=day("2026-09-30"))
    always = DeploymentTarget("serving", "0.9.2")
    assert (dated.out_of_force(day(on)), always.out_of_force(day(on))) == (why, "")
    assert (dated.in_force(day(on)), always.in_force(day(on))) == (not why, True)


def test_a_target_whose_cases_match_nothing_is_a_warning(jaxexport, tmp_path):
    write_golden(GoldenStore(tmp_path / "golden"), manifest())
    Path("export_compat.yaml").write_text(SERVING + "    cases: [nobody]\n")
    ended = jaxexport("policy", "check", code=0)
    assert "warning: export_compat.yaml:2: deployed[0] (serving): cases: 'nobody' matches no golden." in ended.out
    assert ", 1 deployment target; 0 expired" in ended.out


@pytest.mark.parametrize("is_converted", [True, False])
def test_unmatched_cases_give_no_warning_for_converted_goldens(is_converted, monkeypatch):
    made = ConvertedFrom("0" * 64, "0.9.2", "rewritten", (), "jaxexport") if is_converted else None
    monkeypatch.setattr(session, "verify_goldens", lambda *_, **__: [golden("t.f", converted_from=made)])
    policy = Policy(deployed=(DeploymentTarget("serving", "0.9.2", cases=("nobody", "*")),))
    plan = session.plan_matrix(policy, Selection(readers="0.9.2"), RunOptions())
    assert ["'nobody' matches no golden" in warning for warning in plan.warnings] == [True] * (not is_converted)


@pytest.mark.parametrize("key", ["since", "until"])
def test_a_target_may_begin_or_end_on_its_build_date(load, key):
    built = load_calendar().built("0.9.2")
    (target,) = load(f"{SERVING}    {key}: {built}\n").deployed
    assert getattr(target, key) == built


def test_a_target_has_the_cases_that_its_globs_match():
    target = DeploymentTarget("serving", "0.9.2", cases=("a", "b*"))
    assert [target.has_case(case) for case in ("a", "b.c", "c")] == [True, True, False]


@pytest.mark.parametrize("length", [60, 61])
def test_a_targets_name_has_at_most_sixty_characters(load, length):
    text = SERVING.replace("serving", "s" * length)
    if length == 60:
        assert load(text).deployed[0].name == "s" * 60
    else:
        with pytest.raises(PolicyError, match="name"):
            load(text)
