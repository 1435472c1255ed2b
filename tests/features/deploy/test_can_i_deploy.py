"""`jaxexport can-i-deploy`: targets in force, bad input, and its output as text."""

import json
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
from asking import CASE, KEPT, NEW, POLICY, answers, new_golden, ran
from commands import assert_bad_input, stored
from hypothesis import given
from hypothesis import strategies as st
from making import ARTIFACTS, day, golden, manifest, write_golden

from export_core.artifact import read
from export_core.features.deploy.answers import Deployability, DeployAnswer, Question, deployability
from export_core.features.deploy.asked import Subject
from export_core.goldens import GoldenStore, Options
from export_core.matrix import Verdict
from export_core.policy.entries import DeploymentTarget
from export_core.policy.run_options import ProjectOptions
from export_core.policy.terms import Terms
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import shipped_entries


def test_can_i_deploy_to_all_checks_the_active_targets_of_a_case(project, ask):
    write_golden(GoldenStore(project / "golden"), manifest("other", "0.9.2"))
    assert [target for target, *_ in answers(ask("other", "all", "--json"))] == ["serving"]
    assert [target for target, *_ in answers(ask("other", "edge", "--json"))] == ["edge"]
    Path("export_compat.yaml").write_text(POLICY.replace("0.9.2}", "0.9.2, until: 2026-10-31}"))
    ended = ask(CASE, "all", "--json", "--as-of", "2026-11-01")
    assert [target for target, *_ in answers(ended)] == ["edge"]
    assert_bad_input(
        ask("other", "all", "--as-of", "2026-11-01"),
        "--to all: expected a deployment target in force whose `cases` include other, found none.",
    )


@pytest.mark.parametrize(
    ("entry", "day", "why"),
    [
        (", until: 2026-10-31", "2026-11-01", "its obligation ended on 2026-10-31"),
        (", since: 2026-11-02", "2026-11-01", "its obligation begins on 2026-11-02"),
        (", until: 2026-10-31", "2026-10-31", ""),
    ],
)
def test_a_target_not_in_force_is_mentioned_with_the_reason(entry, day, why, ask):
    Path("export_compat.yaml").write_text(POLICY.replace("0.9.2}", f"0.9.2{entry}}}"))
    for to, label in (("serving", "note      "), ("all", "left out  ")):
        printed = ask(CASE, to, "--as-of", day).out
        assert (f"{label}serving: {why}, so it has to run nothing on {day}\n" in printed) is bool(why)
        assert ("so it has to run nothing" in printed) is bool(why)
        found = json.loads(ask(CASE, to, "--json", "--as-of", day).out)["out_of_force"]
        assert found == ({"serving": why} if why else {})


def test_a_target_whose_obligation_has_ended_gets_no_upgrade(ask, jaxexport):
    new_golden("new")
    Path("export_compat.yaml").write_text(POLICY.replace("0.9.2}", "0.9.2, until: 2026-11-20}"))
    for when, upgraded in (("2026-11-20", ["serving"]), ("2026-11-21", [])):
        ended = json.loads(ask("new", "serving", "--json", "--as-of", when, code=1).out)
        assert [upgrade["target"] for upgrade in ended["upgrades"]] == upgraded
    assert_bad_input(
        jaxexport("can-i-deploy", "--to", "serving", "--as-of", "2026-11-21"),
        "--to serving: expected a deployment target that has to run something on 2026-11-21, found that its "
        "obligation ended on 2026-11-20. To ask all the same, name a case, a golden or a file.",
    )


def test_a_policy_in_a_folder_above_is_named(jaxexport, project, monkeypatch):
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    sentence = f"found none there. There is a policy in {project}: run this command in {project}."
    assert_bad_input(jaxexport("can-i-deploy", "--to", "serving"), sentence)


def test_targets_of_which_none_is_in_force_are_named_with_reasons(jaxexport, project):
    Path("export_compat.yaml").write_text("deployed: [{name: next, jaxlib: 0.9.2, since: 2026-11-22}]\n")
    assert_bad_input(
        jaxexport("can-i-deploy", "--to", "all", "--as-of", "2026-11-21"),
        "found none (next: its obligation begins on 2026-11-22). Name one: next.",
    )


def test_a_target_whose_release_was_not_built_yet_is_left_out(ask):
    printed = ask(CASE, "all", "--as-of", "2026-04-01").out
    why = "edge: jaxlib 0.10.2 is not built yet, so it has to run nothing on 2026-04-01"
    assert f"left out  {why}\n" in printed


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (["nobody", "all"], ["nobody: expected a case, a golden or an artifact file, found none of this name."]),
        (["tests.test_a.test_g", "all"], ["Did you mean 'tests.test_a.test_f'?"]),
        ([CASE, "servin"], ["--to: expected all or a deployment target of the policy (serving, edge)", "'serving'?"]),
        ([CASE, "0.10.2"], ["(serving, edge), found '0.10.2'. That release runs in edge."]),
        ([CASE, "serving", "--as-of", "2026-01-01"], ["jaxlib 0.9.2"]),
        ([CASE, "serving", "--results", "elsewhere"], ["elsewhere/summary.json: expected the summary of"]),
        (["golden", "serving"], ["golden: expected a case, a golden or an artifact file"]),
        (["export_compat.yaml", "serving"], ["export_compat.yaml"]),
    ],
)
def test_bad_input_to_can_i_deploy_is_one_error(ask, words, texts):
    assert_bad_input(ask(*words), *texts)


@pytest.mark.parametrize(
    ("name", "example", "own"),
    [
        ("all", '[{name: NAME, jaxlib: "RELEASE"}]', "a name for NAME and the release that runs there for RELEASE"),
        ("edge", '[{name: edge, jaxlib: "RELEASE"}]', "the release that runs there for RELEASE"),
        ("0.10.2", '[{name: NAME, jaxlib: "0.10.2"}]', "a name for NAME"),
        ("litert==2.3.0", '[{name: NAME, reader: "litert==2.3.0"}]', "a name for NAME"),
    ],
)
def test_a_policy_without_targets_shows_how_to_write_one(ask, name, example, own):
    Path("export_compat.yaml").write_text("readers: window\n")
    ended = ask(CASE, name)
    assert_bad_input(ended, f"--to {name}: expected a deployment target of the policy, found none there.")
    assert f"Add one to export_compat.yaml: deployed: {example}, with {own}.\n" in ended.err
    Path("export_compat.yaml").write_text(f"deployed: {example}\n")
    assert ("RELEASE" in ask(CASE, "all", code=None).err) == ("RELEASE" in example)  # refused where it is pasted unread
    Path("export_compat.yaml").write_text(f"deployed: {example.replace('RELEASE', '0.9.2')}\n")
    assert not ask(CASE, "all", code=None).err


def test_a_project_without_a_policy_shows_how_to_write_one(ask):
    Path("export_compat.yaml").unlink()
    ended = ask(CASE, "edge", code=2)
    assert "Add one to export_compat.yaml, which `jaxexport policy init` writes: deployed: [{name: edge," in ended.err


@pytest.mark.parametrize("named", [False, True])
def test_a_policy_in_toml_shows_a_target_in_toml(named, ask):
    file = Path("other.toml" if named else "pyproject.toml")
    file.write_text('[tool.jaxexport]\nreaders = "window"\n')
    if not named:
        Path("export_compat.yaml").unlink()
    ended = ask(CASE, "litert==2.3.0", *(("--policy", file) if named else ()), code=2)
    example = 'deployed = [{name = "NAME", reader = "litert==2.3.0"}]'
    assert f"Add one to {file}: {example}, with a name for NAME.\n" in ended.err
    with file.open("a") as text:
        text.write(example)
    assert "found none there" not in ask(CASE, "all", *(("--policy", file) if named else ()), code=None).err


def test_a_damaged_golden_is_an_error(project, ask):
    (golden,) = GoldenStore(project / "golden").goldens()
    golden.artifact.chmod(0o644)
    golden.artifact.write_bytes(NEW.read_bytes())
    assert_bad_input(ask(CASE, "all"), "artifact.jaxexport")


OLD = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport")

READERS = ("0.9.1", "0.9.2", "0.10.0", "0.10.2", "0.11.0")


@given(st.dictionaries(st.sampled_from(READERS), st.sampled_from(Verdict)))
def test_stored_verdicts_decide_answers_and_exit_code(verdicts):
    made = golden(CASE, "0.9.2", options=Options(("cpu",), without_outputs="it is on no disk"))
    evidence = {(made.id, reader, "cpu"): ran(verdict, reader, stage=Stage.RUN) for reader, verdict in verdicts.items()}
    calendar = load_calendar().as_of(day("2026-11-22"))
    question = Question(calendar, Terms(shipped_entries()), evidence, {}, ProjectOptions(), Path("deploy"))
    targets = [DeploymentTarget(name=f"p{number}", jaxlib=reader) for number, reader in enumerate(READERS)]
    found = deployability([(Subject(OLD, made), target) for target in targets], question, day("2026-11-22"))
    works = {Verdict.PASS: DeployAnswer.YES, Verdict.CONVERTED: DeployAnswer.YES}
    works |= dict.fromkeys((None, Verdict.COMPILED, Verdict.TIMEOUT, Verdict.NOT_RUN), DeployAnswer.UNKNOWN)
    expected = [works.get(verdicts.get(reader), DeployAnswer.NO) for reader in READERS]
    assert [answer.answer for answer in found.answers] == expected
    assert found.exit_code == (1 if DeployAnswer.NO in expected else 3 if DeployAnswer.UNKNOWN in expected else 0)
    for answer in found.answers:
        if answer.upgrade_to:
            assert calendar.built(answer.upgrade_to) > calendar.built(answer.jaxlib)
            assert verdicts[answer.upgrade_to] is Verdict.PASS, "its stage was past loading"
        assert bool(answer.run) is (answer.answer is DeployAnswer.UNKNOWN)


def test_a_results_message_cannot_add_lines_to_the_output(ask):
    stored(ran(Verdict.ERROR, "0.9.2", stage=Stage.RUN, message="\x1b[2J\u2028YES: 1 yes."))
    ended = ask(CASE, "serving")
    assert "\x1b" not in ended.out
    assert [line for line in ended.out.splitlines() if line.startswith("YES")] == []


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_running_the_printed_command_resolves_an_unknown_answer(tmp_path, jaxexport):
    """Cholesky crashes in each process of 0.9.2 that has not lowered linear algebra; the convolution runs."""
    for case in ("tests.compat.test_linear_algebra.test_cholesky", "tests.compat.test_models.test_convolution"):
        for by in ("0.11.0-cpu", "0.12.0.1-cpu"):
            shutil.copytree(KEPT.root / case / by, tmp_path / "golden" / case / by)
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    words = ("can-i-deploy", "*", "--to", "all", "--as-of", "2026-11-22", "--json")
    before = msgspec.json.decode(jaxexport(*words).out, type=Deployability)
    assert [str(answer.answer) for answer in before.answers] == ["no", "no", "unknown", "unknown"]
    (command,) = {answer.run for answer in before.answers if answer.run}
    ran = jaxexport(*shlex.split(command)[1:])
    assert (ran.code, "2 of 2 cells that deployment target serving must run" in ran.out) == (0, True), ran.out
    after = msgspec.json.decode(jaxexport(*words).out, type=Deployability)
    assert [str(answer.answer) for answer in after.answers] == ["no", "no", "yes", "yes"]
    assert [answer.upgrade_to for answer in after.answers] == ["0.10.0", "0.11.0", "", ""]
    planned = jaxexport("matrix", "--readers", "deployed", "--as-of", "2026-11-22", "--cases", "*convolution")
    assert (planned.code, "2 of 2 cells that deployment target serving must run" in planned.out) == (0, True), (
        planned.out
    )
