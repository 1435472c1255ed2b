"""`jaxexport can-i-deploy`: yes, no and unknown, from stored results and from forecasts."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import assert_bad_input, finished, process, stored
from hypothesis import given
from hypothesis import strategies as st
from making import ARTIFACTS, day, files, golden, manifest, of_runtime, result, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.features.convert.convert import REWRITTEN
from export_core.features.deploy.answer_lines import deploy_lines
from export_core.features.deploy.answers import Deployability, DeployAnswer, Question, deployability
from export_core.features.deploy.asked import Subject, answer_folder
from export_core.goldens import Comparison, Golden, GoldenStore, Options
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.conversion_record import CONVERTED, ConversionRecord, dump_record
from export_core.goldens.manifest import EXPORTED_AGAIN, ConvertedFrom
from export_core.goldens.store import ARTIFACT, OUTPUTS, sha256
from export_core.judge import Result, judge_again
from export_core.matrix import Verdict
from export_core.matrix.comparisons import under_policy
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget
from export_core.policy.load import load_policy
from export_core.policy.run_options import ProjectOptions, Shard
from export_core.policy.terms import Terms
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import shipped_entries
from export_core.run import session
from export_core.run.plan_record import hash_of

CASE = "tests.test_a.test_f"
POLICY = """\
deployed:
  - {name: serving, jaxlib: 0.9.2}
  - {name: edge, jaxlib: 0.10.2, cases: ["*.test_f"]}
"""
KEPT = GoldenStore(Path(__file__).parents[3] / "golden")
NEW = ARTIFACTS / "0.12.0.1" / "cholesky.jaxexport"
"""An artifact that needs StableHLO 1.18, which came with jaxlib 0.11.0."""


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with two deployment targets, and a golden of one case by jaxlib 0.9.2, which both load."""
    Path("export_compat.yaml").write_text(POLICY)
    write_golden(GoldenStore(tmp_path / "golden"), manifest(CASE, "0.9.2"))
    return tmp_path


GPU = "platforms: [cpu, cuda]\ndeployed: [{name: gpu, jaxlib: 0.10.2, platform: cuda}]\n"


@pytest.fixture
def ask(project, jaxexport):
    """The function that runs `jaxexport can-i-deploy WHAT --to TARGET` in `project`."""
    return lambda what, to, *words, **ends: jaxexport("can-i-deploy", what, "--to", to, *words, **ends)


def new_golden(case: str = CASE, artifact: Path = NEW) -> None:
    """Write a golden that neither deployment target loads."""
    content = {**files(), ARTIFACT: encode(read(artifact).envelope._replace(vjp=None))}
    write_golden(GoldenStore(Path("golden")), manifest(case, "0.12.0.1"), content)


def ran(verdict: Verdict, reader: str, writer: str = "0.9.2", **changes: Any) -> Result:
    return judge_again(result(verdict, writer=writer, reader=reader, **changes), Policy())


def answers(ended) -> list[tuple[str, str, str]]:
    """Return the deployment target, the artifact and the answer, for each answer."""
    found = msgspec.json.decode(ended.out, type=Deployability)
    assert ended.code == found.exit_code
    return [(each.target, each.artifact, str(each.answer)) for each in found.answers]


def test_without_a_case_each_golden_of_a_target_gets_an_answer(project, jaxexport):
    write_golden(GoldenStore(project / "golden"), manifest("tests.test_a.test_g", "0.9.2"))
    found = answers(jaxexport("can-i-deploy", "--to", "edge", "--json"))
    assert found == [("edge", f"{CASE}/0.9.2-cpu", "unknown")]
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    assert ended.out.count("unknown") == 3  # each golden, and the counts
    assert "jaxexport matrix --readers 0.9.2 --platforms cpu --writers 0.9.2 " in ended.out  # without each case's name
    Path("export_compat.yaml").write_text("deployed: [{name: edge, jaxlib: 0.10.2, cases: [nothing]}]\n")


ON_TPU = "tests.test_a.test_on_tpu"
ITS_GOLDEN, CPU_GOLDEN = f"{ON_TPU}/0.9.2-cpu", f"{CASE}/0.9.2-cpu"


def golden_for_tpu(case: str = ON_TPU) -> None:
    """Write a golden that was exported for tpu alone."""
    exported = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None, platforms=("tpu",))
    content = {**files(jaxlib="0.9.2"), ARTIFACT: encode(exported)}
    write_golden(GoldenStore(Path("golden")), manifest(case, "0.9.2", options=Options(platforms=("tpu",))), content)


@pytest.mark.parametrize("words", [(), ("*",), ("*tpu*", CASE)], ids=["all", "glob", "several names"])
def test_goldens_for_other_platforms_are_left_out(words, project, jaxexport):
    golden_for_tpu()
    stored(ran(Verdict.PASS, "0.9.2"))
    ended = jaxexport("can-i-deploy", *words, "--to", "serving", "--json", code=0)
    assert answers(ended) == [("serving", CPU_GOLDEN, "yes")]
    assert json.loads(ended.out)["left_out"] == {"serving": [ITS_GOLDEN]}
    out = " ".join(jaxexport("can-i-deploy", *words, "--to", "serving", code=0).out.split())
    assert f"left out serving: 1 golden was not exported for cpu, and need not run there: {ITS_GOLDEN}" in out
    assert "YES: 1 yes." in out


def test_a_case_exported_only_for_other_platforms_is_answered_no(project, ask, jaxexport):
    golden_for_tpu()
    stored(ran(Verdict.PASS, "0.9.2"))
    expected = (
        "*tpu*: expected goldens that were exported for cpu, found 1 for other platforms. Name a case or a golden "
    )
    assert_bad_input(ask("*tpu*", "serving"), expected)
    for name in (ON_TPU, ITS_GOLDEN):
        ended = ask(name, "serving", code=1)
        assert "no      " + ITS_GOLDEN in ended.out
        assert "it was exported for tpu, and not for cpu" in " ".join(ended.out.split())
    assert answers(jaxexport("can-i-deploy", CASE, ON_TPU, "--to", "serving", "--json", code=1)) == [
        ("serving", CPU_GOLDEN, "yes"),
        ("serving", ITS_GOLDEN, "no"),
    ]
    Path("export_compat.yaml").write_text(f"deployed: [{{name: serving, jaxlib: 0.9.2, cases: ['*f', {ON_TPU}]}}]\n")
    ended = jaxexport("can-i-deploy", "--to", "serving", "--json", code=1)
    assert answers(ended)[1:] == [("serving", ITS_GOLDEN, "no")]
    assert f"cases: no golden of '{ON_TPU}' was exported for cpu." in ended.err


@pytest.mark.parametrize(("cases", "codes"), [(["*"], (0, 0)), (["*.test_f", ON_TPU], (3, 1))])
def test_matrix_and_can_i_deploy_agree_on_other_platforms_goldens(project, jaxexport, monkeypatch, cases, codes):
    golden_for_tpu()
    target = json.dumps({"name": "serving", "jaxlib": "0.9.2", "cases": cases})
    Path("export_compat.yaml").write_text(f"readers: deployed\ndeployed: [{target}]\n")

    def passes(cells, *_, **__):
        yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)

    monkeypatch.setattr(session, "_replay_by", lambda *_: passes)
    out = " ".join(jaxexport("matrix", "--as-of", "2026-11-21", code=codes[0]).out.split())
    assert (f"no golden of '{ON_TPU}' in its `cases` was exported for cpu" in out) == (codes[0] == 3)
    jaxexport("can-i-deploy", "--to", "serving", "--as-of", "2026-11-21", code=codes[1])


def test_no_target_has_to_run_a_golden_that_must_be_refused(project, jaxexport, monkeypatch):
    refused = manifest(CASE, "0.9.2", options=Options(platforms=("cpu",), refused_on=("tpu",)))
    write_golden(GoldenStore(project / "golden"), refused)
    target = "{name: trainer, jaxlib: 0.9.2, platform: tpu}"
    Path("export_compat.yaml").write_text(f"platforms: {{cpu: run, tpu: run}}\ndeployed: [{target}]\n")

    def passes(cells, *_, **__):
        yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)

    monkeypatch.setattr(session, "_replay_by", lambda *_: passes)
    out = " ".join(jaxexport("matrix", "--as-of", "2026-11-21", code=3).out.split())
    assert "deployed trainer: no golden of '*' in its `cases` was exported for tpu." in out
    jaxexport("can-i-deploy", "--to", "trainer", "--as-of", "2026-11-21", code=1)


@pytest.mark.parametrize("words", [(), ("*",), (ON_TPU,)], ids=["all", "glob", "name"])
def test_a_newest_golden_not_exported_for_a_platform_gets_a_no(words, project, jaxexport):
    golden_for_tpu()
    write_golden(GoldenStore(project / "golden"), manifest(ON_TPU, "0.12.0.1"))
    target = "{name: trainer, jaxlib: 0.12.0.1, platform: tpu}"
    Path("export_compat.yaml").write_text(f"platforms: [cpu, tpu]\ndeployed: [{target}]\n")
    stored(ran(Verdict.PASS, "0.12.0.1", case=ON_TPU, platform="tpu"))
    ended = jaxexport("can-i-deploy", *words, "--to", "trainer", "--json", code=1)
    assert answers(ended) == [("trainer", ITS_GOLDEN, "yes"), ("trainer", f"{ON_TPU}/0.12.0.1-cpu", "no")]


def test_a_golden_is_answered_only_for_targets_of_its_platforms(project, ask):
    golden_for_tpu()
    targets = "{name: serving, jaxlib: 0.9.2}, {name: trainer, jaxlib: 0.9.2, platform: tpu}"
    Path("export_compat.yaml").write_text(f"platforms: [cpu, tpu]\ndeployed: [{targets}]\n")
    ended = ask(ON_TPU, "all", "--json", code=3)
    assert answers(ended) == [("trainer", ITS_GOLDEN, "unknown")]
    assert json.loads(ended.out)["left_out"] == {"serving": [ITS_GOLDEN]}


@pytest.mark.parametrize("words", [(), ("*",), (CASE,), (CASE, ON_TPU)], ids=["all", "glob", "name", "names"])
@pytest.mark.parametrize("to", ["all", "trainer"])
def test_a_case_listed_by_a_target_is_never_left_out(to, words, project, jaxexport):
    golden_for_tpu()
    own = f"{{name: trainer, jaxlib: 0.9.2, platform: tpu, cases: [{ON_TPU}, {CASE}]}}"
    Path("export_compat.yaml").write_text(
        f"platforms: [cpu, tpu]\ndeployed: [{{name: serving, jaxlib: 0.9.2}}, {own}]\n"
    )
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.9.2", case=ON_TPU, platform="tpu"))
    ended = jaxexport("can-i-deploy", *words, "--to", to, "--json", code=1)
    assert ("trainer", CPU_GOLDEN, "no") in answers(ended)
    assert "trainer" not in json.loads(ended.out)["left_out"]


def test_the_printed_command_names_no_case_if_all_are_asked(project, jaxexport):
    golden_for_tpu()
    assert "--cases" not in jaxexport("can-i-deploy", "--to", "serving", code=3).out


def test_a_golden_that_must_be_refused_is_not_answered_yes(project, ask):
    exported = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None, platforms=("tpu",))
    made = manifest(ON_TPU, "0.9.2", options=Options(platforms=("tpu",), refused_on=("cpu",)))
    write_golden(GoldenStore(Path("golden")), made, {**files(jaxlib="0.9.2"), ARTIFACT: encode(exported)})
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.9.2", case=ON_TPU))
    assert answers(ask("*", "serving", "--json", code=0)) == [("serving", CPU_GOLDEN, "yes")]
    assert answers(ask(ON_TPU, "serving", "--json", code=1)) == [("serving", ITS_GOLDEN, "no")]


def test_a_targets_case_pattern_without_a_golden_gets_an_unknown(project, ask, jaxexport):
    targets = (
        '{name: serving, jaxlib: 0.9.2, cases: ["*.test_f", "*.test_q"]}, {name: edge, jaxlib: 0.10.2, cases: [q]}'
    )
    Path("export_compat.yaml").write_text(f"deployed: [{targets}]\nretention: {{deployed: [0.13.0]}}\n")
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.10.2"))
    own, misspelled = ("serving", f"{CASE}/0.9.2-cpu", "yes"), ("serving", "*.test_q", "unknown")
    for words in ((), (CASE,)):
        ended = jaxexport("can-i-deploy", *words, "--to", "all", "--json", code=3)
        assert answers(ended) == [own, misspelled, ("edge", "q", "unknown")]
        assert "warning: export_compat.yaml:2: retention.deployed: '0.13.0' is no release" in ended.err
    assert answers(jaxexport("can-i-deploy", "--to", "edge", "--json", code=3)) == [("edge", "q", "unknown")]
    out = " ".join(jaxexport("can-i-deploy", "--to", "serving", code=3).out.split())
    assert "*.test_q: export_compat.yaml:1: deployed[0] (serving): cases: '*.test_q' matches no golden. (policy)" in out
    assert ask(CASE, "serving").code == 0, "the target's cases say nothing of what is asked by name"


def test_goldens_written_after_the_asked_day_are_left_out(ask, jaxexport):
    new_golden(OTHER)
    words = "--to", "edge", "--as-of", "2026-10-19"
    ended = jaxexport("can-i-deploy", *words, "--json", code=3)
    assert answers(ended) == [("edge", f"{CASE}/0.9.2-cpu", "unknown")]
    left_out = f"1 golden was written by releases after 2026-10-19, and left out: {OTHER}/0.12.0.1-cpu."
    assert left_out in ended.err.splitlines()
    ended = ask(OTHER, "edge", "--as-of", "2026-10-19", code=2)
    assert f"found {OTHER}/0.12.0.1-cpu, built on 2026-10-20. Choose that day or a later one with --as-of." in ended.err


def test_to_all_gives_the_same_answers_as_each_target_alone(project, jaxexport):
    Path("export_compat.yaml").write_text(GPU)
    one, every = (answers(jaxexport("can-i-deploy", CASE, "--to", to, "--json", code=1)) for to in ("gpu", "all"))
    assert one == every == [("gpu", f"{CASE}/0.9.2-cpu", "no")]


@pytest.mark.parametrize("words", [["--to", "serving"], ["--to", "all"], ["tests.test_a.test_f", "--to", "serving"]])
def test_without_a_golden_the_error_says_how_to_write_one(words, cwd, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    ended = jaxexport("can-i-deploy", *words)
    assert_bad_input(ended, "expected goldens", f"in {cwd / 'golden'}. Mark a test", "run `pytest --update-goldens`")


def test_the_error_for_only_later_goldens_names_the_asked_day(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.8.0}]\n")
    ended = jaxexport("can-i-deploy", "--to", "serving", "--as-of", "2025-11-21", code=2)
    assert "expected goldens by releases built on or before 2025-11-21, found only later ones" in ended.err


@pytest.mark.parametrize(("to", "ended"), [("all", ", until: 2026-11-20"), ("serving", "")])
def test_unmatched_patterns_warn_even_for_targets_not_asked_about(to, ended, project, jaxexport):
    """A target that was not asked about has no answer, so nobody would see that its patterns are misspelled."""
    edge = f"{{name: edge, jaxlib: 0.10.2, cases: [slover]{ended}}}"
    Path("export_compat.yaml").write_text(f"deployed: [{{name: serving, jaxlib: 0.9.2}}, {edge}]\n")
    stored(ran(Verdict.PASS, "0.9.2"))
    asked = jaxexport("can-i-deploy", "--to", to, "--as-of", "2026-11-21", "--json", code=0)
    assert answers(asked) == [("serving", f"{CASE}/0.9.2-cpu", "yes")]
    assert "deployed[1] (edge): cases: 'slover' matches no golden." in asked.err


def test_a_stored_pass_is_a_yes(ask):
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.10.2"))
    ended = ask(CASE, "all", code=0)
    assert ended.out.splitlines()[:2] == [
        "serving (jaxlib 0.9.2)",
        f"  yes     {CASE}/0.9.2-cpu: it ran in jaxlib 0.9.2 and agrees with its writer's outputs (results)",
    ]
    assert "YES: 2 yes." in ended.out


def test_a_warning_says_if_results_are_of_one_shard_only(ask):
    finished(Path(".jaxexport"), ran(Verdict.PASS, "0.9.2"), planned=2, shard=Shard(1, 2))
    ended = ask(CASE, "all", code=3)
    assert "the results in .jaxexport are those of shard 1/2 alone, and no others count" in ended.err
    assert f"yes     {CASE}/0.9.2-cpu" in ended.out
    assert f"unknown {CASE}/0.9.2-cpu" in ended.out


NAN = to_npz([leaf_of(np.full(2, np.nan, np.float32))])


@pytest.mark.parametrize(
    ("changes", "outputs", "why", "accepted"),
    [
        ({"comparison": Comparison("shape")}, {}, "looks at shapes and dtypes alone", "comparison: shape"),
        ({}, {OUTPUTS: NAN}, "all values of its outputs are NaN", "nothing to compare: all values of its outputs"),
        ({"comparison": Comparison(rtol=1e30)}, {}, "accepts zeros in place of every output", "comparison: rtol 1e+30"),
        ({"comparison": Comparison(rtol=0.45)}, {}, "", "comparison: rtol 0.45"),
    ],
)
def test_a_yes_names_the_comparison_and_accepted_weaknesses(ask, changes, outputs, why, accepted):
    write_golden(GoldenStore(Path("golden")), manifest(CASE, "0.9.2", **changes), {**files(jaxlib="0.9.2"), **outputs})
    stored(ran(Verdict.PASS, "0.9.2"))
    out = " ".join(ask(CASE, "serving", code=0).out.split())
    assert ("agrees with its writer's outputs" in out, "and nothing was compared" in out) == (not why, bool(why))
    assert why in out
    assert f"accepted {accepted}" in out
    found = json.loads(ask(CASE, "serving", "--json", code=0).out)
    assert accepted in found["accepted"][0]["what"]


def test_another_runtime_is_answered_from_its_forecast(project, jaxexport):
    Path("export_compat.yaml").write_text(
        "deployed:\n- {name: serving, reader: tensorflow==2.21.0}\n- {name: engine, reader: pjrt==0.12.0.1}\n"
    )
    new_golden()
    ended = jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "all", code=1)
    assert "serving (tensorflow 2.21.0)\n" in ended.out
    out = " ".join(ended.out.split())
    assert "cannot be loaded: tensorflow 2.21.0 has StableHLO 1.13.7, and custom_call_v2 came with 1.18" in out
    assert "cannot be compiled: only jax registers lapack_spotrf_ffi; compute" in out
    alone = jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "engine", code=1)
    assert "NO: 1 no." in alone.out
    assert "convert FILE" not in ended.out + alone.out, "a conversion for these runtimes is refused"
    advice = f"Calls what only jax registers: {CASE}/0.12.0.1-cpu. Compute that with jax.lax, and export again."
    assert advice in " ".join(alone.out.split())
    early = jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "serving", "--as-of", "2026-03-04", code=2)
    assert "tensorflow 2.21.0 is not in the calendar of tensorflow as of 2026-03-04: it was built on" in early.err


def test_advice_is_on_a_runtimes_refusal_not_the_writers_crash(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: board, reader: iree==3.13.0}]\n")
    new_golden()
    refused = {"stage": Stage.COMPILE, "message": "the custom call lapack_spotrf_ffi is not known"}
    own = ran(Verdict.CRASH, "0.12.0.1", "0.12.0.1", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    plain = ran(Verdict.REFUSED, "0.12.0.1", "0.12.0.1", **refused)
    stored(own, of_runtime(plain, "iree==3.13.0", "2026-10-19"))
    (upgrade,) = json.loads(jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "board", "--json", code=1).out)[
        "upgrades"
    ]
    advice = f"Calls what only jax registers: {CASE}/0.12.0.1-cpu. Compute that with jax.lax, and export again."
    assert upgrade["instead"] == [advice]


def test_a_no_names_the_known_failure_that_accepts_it(project, ask):
    entry = "cases: ['*'], writers: ['*'], readers: ['0.10.2'], verdict: crash, stage: run, message: signal 11"
    who = "reason: starts late, owner: me, issue: '#7', added: 2026-11-01, expires: 2026-12-01"
    with Path("export_compat.yaml").open("a") as policy:
        policy.write(f"known_failures: [{{{entry}, {who}}}]\n")
    crash = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
    crashed = [ran(Verdict.CRASH, reader, **crash) for reader in ("0.9.2", "0.10.2")]
    stored(*crashed, policy=load_policy(Path("export_compat.yaml")))
    accepted = (
        "; the policy lists it as a known failure, which `matrix` and `judge` accept, but it does not run: starts"
    )
    for target, is_listed in (("edge", True), ("serving", False)):
        out = " ".join(ask(CASE, target, "--as-of", "2026-11-21", code=1).out.split())
        assert (f"{accepted} late (owner me, #7)" in out) is is_listed


def test_an_unknown_names_what_may_fail_after_loading(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: phone, reader: litert==2.3.0}]\n")
    attention = KEPT.root / "tests.compat.test_models.test_attention" / "0.12.0.1-cpu" / ARTIFACT
    shutil.copy(attention, "attention.jaxexport")
    ended = jaxexport("can-i-deploy", "attention.jaxexport", "--to", "phone", code=3)
    assert (
        "it should load, but may not run: Branches that read or give different types are refused (litert-branches); "
        "beside that, A maximum or minimum can lose NaN (litert-nan-in-extremes);"
    ) in " ".join(ended.out.split())
    assert "no stored result shows that it runs (forecast)" in " ".join(ended.out.split())


def test_forecasts_without_results_propose_an_upgrade():
    own = next(
        one
        for one in KEPT.generations("tests.compat.test_dtypes.test_dtype[float32]")
        if one.id.endswith("/0.12.0.1-cpu")
    )
    target = DeploymentTarget(name="serving", reader="tensorflow==2.18.1")
    question = Question(load_calendar(), Terms(shipped_entries()), {}, {}, ProjectOptions(), Path("results"))
    found = deployability([(Subject(own.read_artifact(), own), target)], question, day("2026-11-21"))
    (answer,), (upgrade,) = found.answers, found.upgrades
    assert (answer.answer, answer.upgrade_to, answer.foreseen) == (DeployAnswer.NO, "tensorflow==2.20.0", True)
    assert (upgrade.jaxlib, upgrade.to) == ("tensorflow==2.18.1", "tensorflow==2.20.0")
    out = "\n".join(deploy_lines(found, 200))
    assert "the first later release in which it may run: tensorflow 2.20.0 (forecast)" in out
    assert "serving from tensorflow 2.18.1 to tensorflow 2.20.0 (foreseen, not run yet)" in out


@pytest.mark.parametrize("is_stored", [False, True], ids=["forecast", "results"])
@pytest.mark.parametrize(("reader", "built"), [("iree==3.13.0", "2026-10-19"), ("litert==2.3.0", "2026-10-06")])
def test_a_no_for_lack_of_shardy_names_jaxs_partitioner_flag(reader, built, is_stored, project, jaxexport):
    Path("export_compat.yaml").write_text(f"deployed: [{{name: edge, reader: {reader}}}]\n")
    own = KEPT.root / "tests.compat.test_devices.test_result_on_the_host" / "0.12.0.1-cpu" / ARTIFACT
    new_golden(artifact=own)
    if is_stored:
        failed = ran(Verdict.REFUSED, "0.12.0.1", writer="0.12.0.1", stage=Stage.MODULE, message="no such dialect: sdy")
        stored(of_runtime(failed, reader, built))
    out = " ".join(jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "edge", code=1).out.split())
    title, convert = reader.replace("==", " "), f"`jaxexport convert FILE --for {reader} -o OUT`"
    assert ("refused in stage module: no such dialect: sdy" in out) is is_stored
    assert f"{title} does not parse the sdy dialect: export with jax_use_shardy_partitioner=False, or {convert}" in out
    assert f"Export them again where a reason above says how, or try {convert}." in out


def test_a_conversion_that_cannot_help_is_not_advised(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: edge, reader: litert==2.3.0}]\n")
    new_golden(artifact=KEPT.root / "tests.compat.test_programs.test_random" / "0.12.0.1-cpu" / ARTIFACT)
    out = " ".join(jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "edge", code=1).out.split())
    assert "does not compile what `jaxexport convert` makes of it: An operation is refused" in out
    assert "jaxexport convert FILE" not in out
    helps = f"Conversion does not help: {CASE}/0.12.0.1-cpu. Compute with other operations what fails there, and export"
    assert helps in out


def test_a_failure_in_a_known_way_has_the_advice_of_its_entry(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: phone, reader: litert==2.3.0}]\n")
    failed = ran(Verdict.ERROR, "0.12.0.1", stage=Stage.RUN, message="not refused", upstream="litert-unchecked-sizes")
    stored(of_runtime(failed, "litert==2.3.0", "2026-10-06"))
    out = " ".join(jaxexport("can-i-deploy", CASE, "--to", "phone", code=1).out.split())
    assert "(results) upgrade phone: no later release is known to run all of them. Fails in a known way: " in out
    assert f"{CASE}/0.9.2-cpu. Check sizes before the call. NO:" in out


def test_a_converted_golden_is_not_advised_to_be_converted(project, ask):
    origin = ConvertedFrom("0" * 64, "0.9.2", "rewritten", (), "pytest-jaxexport 0.2.0")
    content = encode(read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None))
    record = dump_record(ConversionRecord(CONVERTED, "", sha256(content), origin, ""))
    converted = {**files(), ARTIFACT: content, f"{ARTIFACT}.converted.json": record}
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.1", converted_from=origin), converted)
    stored(ran(Verdict.CRASH, "0.9.2", writer="0.9.1", case=OTHER, stage=Stage.RUN, message="died by signal 11"))
    out = " ".join(ask(OTHER, "serving", code=1).out.split())
    assert f"Conversion does not help: {OTHER}/0.9.1-cpu. Export again with jaxlib 0.9.2." in out
    assert "or try `jaxexport convert" not in out


def test_a_rewritten_file_without_its_record_is_not_advised_to_be_exported(project, jaxexport):
    """As `jaxexport convert` writes it: the jax that it names writes for a newer StableHLO."""
    Path("export_compat.yaml").write_text("deployed: [{name: edge, reader: iree==3.0.0}]\n")
    model = KEPT.root / "tests.compat.test_models.test_mlp_with_gradients"
    older, newer = (read(model / f"{writer}-cpu" / ARTIFACT).envelope for writer in ("0.6.2", "0.12.0.1"))
    Path("model").write_bytes(encode(newer._replace(vjp=None, module_source=older.module_source)))
    asked = " ".join(jaxexport("can-i-deploy", "model", "--to", "edge", code=1).out.split())
    assert "does not parse locations with a range" in asked
    shown = " ".join(jaxexport("inspect", "model", "--readers", "0.4.35", code=1).out.split())
    assert "no jaxlib of the calendar fits: it was changed after its export, as by `jaxexport convert`" in shown
    assert "convert the original again: `jaxexport convert ORIGINAL --for 0.4.35 -o OUT`" in shown
    for text in (asked, shown):
        assert "export with jax" not in text.lower()
        assert "export it again" not in text.lower()
        assert "convert FILE" not in text
    # No release of this runtime takes it, so there is no upgrade.
    own = read(KEPT.root / "tests.compat.test_devices.test_result_on_the_host" / "0.12.0.1-cpu" / ARTIFACT).envelope
    Path("model").write_bytes(encode(own._replace(vjp=None, jax_version="0.10.2")))
    asked = " ".join(jaxexport("can-i-deploy", "model", "--to", "edge", code=1).out.split())
    convert = "`jaxexport convert ORIGINAL --for iree==3.0.0 -o OUT`"
    assert f"Changed after its export: model. Convert the original: {convert}." in asked
    assert "export with" not in asked


@pytest.mark.parametrize(
    "changed",
    [
        "tolerances: {cpu: {float32: {rtol: 1.0e-9}}}\n",
        "numbers: [{cases: ['x'], writers: ['*'], rtol: 0.1, reason: r}]\n",
        "allow: {my_target: ours}\n",
        "quirks: [{case: x, writer: '*', rtol: 0.1, reason: r, owner: o, issue: i, added: 2026-11-01, "
        "expires: 2027-01-01}]\n",
    ],
    ids=lambda text: text.partition(":")[0],
)
def test_a_pass_under_another_policy_does_not_count(ask, changed):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("export_compat.yaml").write_text(POLICY + changed)
    ended = ask(CASE, "serving", "--json")
    assert (ended.code, answers(ended)) == (3, [("serving", f"{CASE}/0.9.2-cpu", "unknown")])
    name = changed.partition(":")[0]
    assert f"do not count: they were made by another value of `{name}` in the policy" in ended.err


@pytest.mark.parametrize(("as_of", "code"), [("2026-11-20", 0), ("2026-11-21", 3)])
def test_a_pass_by_an_expired_quirk_does_not_count(ask, as_of, code):
    quirk = f"{{case: {CASE}, writer: 0.9.2, rtol: 0.1, reason: r, owner: o, issue: i, added: 2026-11-01, "
    Path("export_compat.yaml").write_text(f"{POLICY}quirks: [{quirk}expires: 2026-11-20}}]\n")
    policy = load_policy(Path("export_compat.yaml"))
    (relaxed,) = under_policy(GoldenStore(Path("golden")).goldens(), policy)
    passed = ran(Verdict.PASS, "0.9.2")
    finished(Path(".jaxexport"), passed, policy=policy, plan={"goldens": {relaxed.id: hash_of(relaxed.manifest)}})
    ended = ask(CASE, "serving", "--as-of", as_of)
    assert (ended.code, "a quirk of it has expired" in ended.err) == (code, code == 3), ended


def test_a_pass_counts_if_only_the_window_has_changed(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("export_compat.yaml").write_text(f"windows: {{backward: 30}}\n{POLICY}")
    assert ask(CASE, "serving").code == 0


def test_a_flaky_pass_is_unknown(ask):
    stored(ran(Verdict.PASS, "0.9.2", flaky="was crash on 2026-11-20"))
    ended = ask(CASE, "serving", code=3)
    assert "it ran in jaxlib 0.9.2, but not each time: it was crash on 2026-11-20" in ended.out


@pytest.mark.parametrize("first", [Verdict.PASS, Verdict.CRASH])
def test_the_worse_result_of_two_jax_versions_decides_an_answer(project, jaxexport, first):
    second = Verdict.CRASH if first is Verdict.PASS else Verdict.PASS
    plain = ran(second, "0.9.2", stage=Stage.RUN)
    other = msgspec.structs.replace(plain, reader=msgspec.structs.replace(plain.reader, jax="0.9.1"))
    stored(ran(first, "0.9.2", stage=Stage.RUN), other)
    ended = jaxexport("can-i-deploy", CASE, f"{CASE}/0.9.2-cpu", "--to", "serving", "--json")
    assert answers(ended) == [("serving", f"{CASE}/0.9.2-cpu", "no")], "once, though it is named twice"


def test_an_unrun_cell_is_unknown_with_its_command(ask, jaxexport):
    stored(ran(Verdict.PASS, "0.9.2"))
    ended = ask(CASE, "all", "--as-of", "2026-11-22", "--json")
    assert answers(ended) == [("serving", f"{CASE}/0.9.2-cpu", "yes"), ("edge", f"{CASE}/0.9.2-cpu", "unknown")]
    unknown = json.loads(ended.out)["answers"][1]
    assert (ended.code, unknown["shown_by"]) == (3, "forecast")
    assert unknown["run"] == (
        "jaxexport matrix --readers 0.10.2 --platforms cpu --cases tests.test_a.test_f --writers 0.9.2 --as-of "
        "2026-11-22 --results .jaxexport/deploy"
    )
    planned = jaxexport("matrix", "--dry-run", *shlex.split(unknown["run"])[2:-2])
    assert "1 cell as of 2026-11-22" in planned.out, "the command plans this cell"


def test_the_command_repeats_cells_only_if_it_replaces_their_results(ask):
    for folder, readers in ((".jaxexport", "0.10.2"), (".jaxexport/deploy", "0.9.2,0.10.2")):
        stored(ran(Verdict.PASS, "0.9.2"), folder=folder)
        (command,) = [line for line in ask(CASE, "all", code=3).out.splitlines() if line.startswith("run ")]
        assert f"--readers {readers} " in command


def test_results_in_the_folder_of_the_printed_command_are_found(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    stored(ran(Verdict.PASS, "0.10.2"), folder=".jaxexport/deploy")
    assert ask(CASE, "all").code == 0


def folder_of_run(ended) -> str:
    (run,) = {each["run"] for each in json.loads(ended.out)["answers"] if each["run"]}
    return run.partition(" --results ")[2]


def test_runs_for_different_targets_have_folders_of_their_own(project, jaxexport):
    Path("export_compat.yaml").write_text(POLICY + '  - {name: "Edge.2", jaxlib: 0.10.1}\n')
    readers = {"serving": "0.9.2", "edge": "0.10.2", "Edge.2": "0.10.1"}
    folders = {to: folder_of_run(jaxexport("can-i-deploy", "--to", to, "--json")) for to in (*readers, "all")}
    assert folders == {
        "serving": ".jaxexport/deploy/serving",
        "edge": ".jaxexport/deploy/edge",
        "Edge.2": ".jaxexport/deploy/edge_2-27905b99",
        "all": ".jaxexport/deploy",
    }
    for to, reader in readers.items():
        stored(ran(Verdict.PASS, reader), folder=folders[to])
    for words in ((), ("--results", ".jaxexport/deploy")):  # which has no run of its own
        assert "YES: 3 yes." in jaxexport("can-i-deploy", "--to", "all", *words, code=0).out


def test_a_results_folder_called_deploy_gets_no_deploy_inside(ask):
    stored(ran(Verdict.PASS, "0.10.1"), folder="run/deploy")
    for to, folder in (("all", "run/deploy"), ("serving", "run/deploy/serving")):
        for results in ("run/deploy", "run/deploy/"):
            assert folder_of_run(ask(CASE, to, "--results", results, "--json")) == folder


def test_runs_moved_aside_do_not_count_for_an_answer(ask):
    for earlier in ("finished", "whole"):
        stored(ran(Verdict.PASS, "0.9.2"), folder=f".jaxexport/deploy/{earlier}")
    assert ask(CASE, "serving").code == 3
    assert_bad_input(ask(CASE, "serving", "--results", ".jaxexport/deploy"), "expected the summary of a finished")


def test_a_stored_failure_gives_no_and_names_a_working_release(ask):
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    crash_later = ran(Verdict.CRASH, "0.10.0", stage=Stage.RUN)
    stored(ran(Verdict.PASS, "0.9.1"), crash, crash_later, ran(Verdict.PASS, "0.10.2"))
    ended = ask(CASE, "serving", "--as-of", "2026-11-22", code=1)
    assert ended.out.splitlines()[1:] == [
        f"  no      {CASE}/0.9.2-cpu: crash in stage run: died by signal 11 (SIGSEGV); it has been so since jaxlib "
        "0.9.2; the first later release in which a stored run passed: 0.10.2 (results)",
        "",
        "upgrade   serving from jaxlib 0.9.2 to 0.10.2 (the first in which a stored run passed), before 1 artifact is "
        "deployed there",
        "NO: 1 no. As of 2026-11-22, exit code 1.",
    ]


OTHER = "tests.test_a.test_g"
LATER_CRASH = {"stage": Stage.RUN, "message": "died by signal 6 (SIGABRT)"}


@pytest.fixture
def store_two(project):
    """A function that stores these results, and results of two cases: one fails in the target, the other one passes."""
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.2"))

    def store(*later: Result) -> None:
        crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
        stored(crash, ran(Verdict.PASS, "0.9.2", case=OTHER), *later)

    return store


def test_the_proposed_upgrade_runs_all_goldens_of_the_target(store_two, ask, jaxexport):
    broken = ran(Verdict.CRASH, "0.10.2", case=OTHER, **LATER_CRASH)
    store_two(ran(Verdict.PASS, "0.10.2"), broken, ran(Verdict.PASS, "0.11.0"), ran(Verdict.PASS, "0.11.0", case=OTHER))
    for ended in (jaxexport("can-i-deploy", "--to", "serving", code=1), ask(CASE, "serving", code=1)):
        assert (
            "upgrade   serving from jaxlib 0.9.2 to 0.11.0 (the first in which a stored run passed), before "
            in ended.out
        )


def test_an_upgrade_that_breaks_other_goldens_names_them(store_two, ask, jaxexport):
    store_two(ran(Verdict.PASS, "0.10.2"), ran(Verdict.CRASH, "0.10.2", case=OTHER, **LATER_CRASH))
    for ended in (jaxexport("can-i-deploy", "--to", "serving", code=1), ask(CASE, "serving", code=1)):
        assert (
            "upgrade   serving: no later release is known to run all that it has to run. jaxlib 0.10.2 runs the one "
            f"that fails today (results), but {OTHER}/0.9.2-cpu, which runs today, fails there: crash in stage run: "
            "died by signal 6 (SIGABRT) (results)\n"
        ) in ended.out
    (upgrade,) = json.loads(ask(CASE, "serving", "--json", code=1).out)["upgrades"]
    assert (upgrade["to"], upgrade["partly"], len(upgrade["failing"])) == ("", "0.10.2", 1)


def test_a_release_that_passed_is_proposed_before_a_forecast_one(ask):
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="signal 11", upstream="lapack-cold-process")
    stored(crash, ran(Verdict.PASS, "0.10.2"))
    ended = ask(CASE, "serving", code=1)
    assert "the first later release in which it may run: 0.10.0" in ended.out
    assert (
        "upgrade   serving from jaxlib 0.9.2 to 0.10.2 (the first in which a stored run passed), before 1 artifact is "
        "deployed there. 0.10.0 is foreseen to run it too, and no stored run shows it\n"
    ) in ended.out
    (upgrade,) = json.loads(ask(CASE, "serving", "--json", code=1).out)["upgrades"]
    assert (upgrade["to"], upgrade["foreseen"], upgrade["foreseen_earlier"]) == ("0.10.2", False, "0.10.0")


def test_no_upgrade_is_proposed_where_numbers_were_wrong(ask):
    stored(ran(Verdict.NUMERICS, "0.9.2", message="off by 3"))
    (answer,) = json.loads(ask(CASE, "serving", "--json").out)["answers"]
    assert (answer["since"], answer["upgrade_to"]) == ("", ""), "nobody knows which release computes it"


def test_a_known_issue_names_the_release_that_fixed_it(ask):
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="signal 11", upstream="lapack-cold-process")
    stored(crash)
    (answer,) = json.loads(ask(CASE, "serving", "--json").out)["answers"]
    assert (answer["upgrade_to"], answer["foreseen"]) == ("0.10.0", True)
    assert "known as: LAPACK calls crash in a fresh process, fixed in 0.10.0" in answer["why"]


def test_an_artifact_too_new_to_load_is_a_no_without_a_run(ask):
    new_golden()
    ended = ask(f"{CASE}/0.12.0.1-cpu", "all", "--json")
    found = msgspec.json.decode(ended.out, type=Deployability)
    assert {(each.answer, each.shown_by, each.upgrade_to, each.foreseen) for each in found.answers} == {
        (DeployAnswer.NO, "forecast", "0.11.0", True)
    }
    assert "cannot be loaded: jaxlib 0.9.2 has StableHLO" in found.answers[0].why
    assert [(each.target, each.to) for each in found.upgrades] == [("serving", "0.11.0"), ("edge", "0.11.0")]


def test_an_artifact_refused_only_when_called_is_answered_no(ask):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.8.1}]\n")
    out = ask(CASE, "serving", code=1).out
    assert "loads, and cannot be called: jax before 0.8.2 finds no number of devices" in " ".join(out.split())


def test_a_platform_that_the_artifact_lacks_is_answered_no(ask):
    Path("export_compat.yaml").write_text(GPU)
    ended = ask(CASE, "gpu", code=1)
    assert "it was exported for cpu, and not for cuda" in ended.out
    out = " ".join(ended.out.split())
    advice = f"Not exported for cuda: {CASE}/0.9.2-cpu. Export them again for it too (`platforms` in the marker), or "
    assert advice in out
    assert "or older" not in out, "no release runs it on another platform"
    assert "convert" not in out


def test_a_cell_that_was_only_compiled_is_unknown(ask):
    Path("export_compat.yaml").write_text(GPU)
    content = {**files(), ARTIFACT: (ARTIFACTS / "0.9.2" / "platforms.jaxexport").read_bytes()}
    made = manifest("multi", "0.9.2", options=Options(platforms=("cpu", "cuda", "tpu")))
    write_golden(GoldenStore(Path("golden")), made, content)
    stored(ran(Verdict.COMPILED, "0.10.2", case="multi", platform="cuda", mode=Mode.COMPILE))
    ended = ask("multi", "gpu", code=3)
    assert "it was compiled for cuda, and did not run" in ended.out
    assert "--platforms cuda:run" in ended.out


@pytest.mark.parametrize("change", ["golden", "rule"])
def test_results_of_a_changed_golden_or_rule_do_not_count(ask, change):
    stored(ran(Verdict.PASS, "0.9.2"))
    if change == "golden":
        store = GoldenStore(Path("golden"))
        store.remove(store.goldens()[0])
        write_golden(store, manifest(CASE, "0.9.2"), files(2.0, jaxlib="0.9.2"))
    else:
        Path("export_compat.yaml").write_text(f"{POLICY}numbers: [{{cases: ['*'], compare: exact, reason: r}}]\n")
    assert answers(ask(CASE, "serving", "--json"))[0][2] == "unknown"
    out = " ".join(ask(CASE, "serving", code=3).out.split())
    of_other_content = "should load, and the stored result does not count: the golden was changed since that run"
    assert (of_other_content in out) is (change == "golden")
    assert ("no stored result shows that it runs" in out) is (change == "rule")


def test_a_new_result_of_a_changed_golden_counts(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    store = GoldenStore(Path("golden"))
    store.remove(store.goldens()[0])
    write_golden(store, manifest(CASE, "0.9.2"), files(2.0, jaxlib="0.9.2"))
    stored(ran(Verdict.PASS, "0.9.2"), folder=".jaxexport/deploy")
    assert "it ran in jaxlib 0.9.2" in ask(CASE, "serving", code=0).out


def test_the_advice_for_a_golden_failing_in_its_writer_is_explain(ask):
    stored(ran(Verdict.NUMERICS, "0.9.2", message="off by 3", max_abs_error=3.0), ran(Verdict.ERROR, "0.10.2"))
    for target, jaxlib in (("serving", "0.9.2"), ("edge", "0.10.2")):
        ended = ask(CASE, target, code=1)
        out = " ".join(ended.out.split())
        assert (
            f"upgrade {target}: no later release is known to run all of them. Fails in the release that wrote it: "
            f"{CASE}/0.9.2-cpu. To see why: `jaxexport explain --case {CASE} --writer 0.9.2 --reader 0.9.2`."
        ) in out
        assert f"with jaxlib {jaxlib} or older" not in out
        assert "convert" not in out
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.ERROR, "0.10.2"))
    out = " ".join(ask(CASE, "edge", code=1).out.split())
    assert "Export them again with jaxlib 0.10.2, or try `jaxexport convert FILE --for 0.10.2 -o OUT`." in out


@pytest.mark.parametrize(("writer", "how"), [("0.12.0.1", "0.10.2 or older"), ("0.9.2", "0.10.2")])
def test_an_older_release_is_advised_only_for_younger_artifacts(project, ask, writer, how):
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, writer))
    stored(ran(Verdict.ERROR, "0.10.2", writer, case=OTHER, stage=Stage.COMPILE, message="no such operation"))
    out = " ".join(ask(OTHER, "edge", code=1).out.split())
    assert f"Export them again with jaxlib {how}, or try" in out


def test_each_reason_of_a_no_has_its_own_advice(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.2}]\n")
    store = GoldenStore(project / "golden")
    envelope = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope
    tpu = {**files(), ARTIFACT: encode(envelope._replace(platforms=("tpu",), vjp=None))}
    write_golden(store, manifest(ON_TPU, "0.9.2", options=Options(platforms=("tpu",))), tpu)
    write_golden(store, manifest(OTHER, "0.9.2"))
    crash = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
    own = [ran(Verdict.CRASH, reader, case=OTHER, **crash) for reader in ("0.9.2", "0.10.2")]
    stored(*own, ran(Verdict.PASS, "0.9.2"), ran(Verdict.CRASH, "0.10.2", **crash))
    words = CASE, OTHER, ON_TPU, "--to", "serving"
    (upgrade,) = json.loads(jaxexport("can-i-deploy", *words, "--json", code=1).out)["upgrades"]
    assert [sentence.partition("/0.9.2-cpu")[0] for sentence in upgrade["instead"]] == [
        f"Not exported for cpu: {ON_TPU}",
        f"Fails in the release that wrote it: {OTHER}",
        "Export the others again with jaxlib 0.10.2, or try `jaxexport convert FILE --for 0.10.2 -o OUT`.",
    ]


def test_advised_commands_name_the_policy_and_the_results_asked_about(project, jaxexport):
    Path("p.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.2}]\n")
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.2"))
    crash = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
    own = [ran(Verdict.CRASH, reader, case=OTHER, **crash) for reader in ("0.9.2", "0.10.2")]
    stored(*own, ran(Verdict.PASS, "0.9.2"), ran(Verdict.CRASH, "0.10.2", **crash), folder="out")
    words = CASE, OTHER, "--to", "serving", "--policy", "p.yaml", "--results", "out"
    (upgrade,) = json.loads(jaxexport("can-i-deploy", *words, "--json", code=1).out)["upgrades"]
    explain, convert = upgrade["instead"]
    assert "jaxexport explain --case" in explain
    assert explain.endswith(" --results out`.")
    assert convert.endswith("`jaxexport convert FILE --for 0.10.2 -o OUT --policy p.yaml`.")


def test_the_answer_for_a_file_comes_from_the_results_of_its_golden(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("model.bin").write_bytes(files(jaxlib="0.9.2")[ARTIFACT])
    ended = ask("model.bin", "serving", "--json")
    assert answers(ended) == [("serving", f"model.bin ({CASE}/0.9.2-cpu)", "yes")]


def test_a_file_without_a_golden_has_only_a_forecast(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("new.bin").write_bytes(NEW.read_bytes())
    assert ask("new.bin", "serving").code == 1
    Path("old.bin").write_bytes((ARTIFACTS / "0.8.1" / "mlp.jaxexport").read_bytes())
    ended = ask("old.bin", "serving", code=3)
    assert "run       jaxexport goldens add --artifact old.bin --inputs INPUTS.npz" in ended.out


@pytest.mark.matrix
def test_a_converted_file_is_a_yes_after_the_printed_command(tmp_path, jaxexport):
    golden = Path("golden", "tests.compat.test_linear_algebra.test_cholesky", "0.12.0.1-cpu")
    shutil.copytree(KEPT.root.parent / golden, tmp_path / golden)
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    made = ("convert", str(golden / ARTIFACT), "--for", "serving", "--replace-custom-calls", "-o", "a.jaxexport")
    assert jaxexport(*made).code == 0
    asked = ("can-i-deploy", "a.jaxexport", "--to", "serving", "--as-of", "2026-11-22")
    (unknown,) = msgspec.json.decode(jaxexport(*asked, "--json", code=3).out, type=Deployability).answers
    assert unknown.why.endswith("convert that golden too, run it, and ask again")
    *_, ended = [jaxexport(*shlex.split(part)[1:]) for part in unknown.run.split("; ")]
    assert (ended.code, ended.out.split()[3]) == (0, "yes")


def converted_file(original: Golden, way: str, artifact: str = "0.9.2/mlp") -> None:
    """Write a file and the record by which it was converted from a golden for jaxlib 0.9.2."""
    content = encode(read(ARTIFACTS / f"{artifact}.jaxexport").envelope)
    Path("a.jaxexport").write_bytes(content)
    origin = ConvertedFrom(original.manifest.files[ARTIFACT], "0.9.2", way, (), "pytest-jaxexport 0.2.0")
    Path("a.jaxexport.converted.json").write_bytes(
        dump_record(ConversionRecord(CONVERTED, "", sha256(content), origin, ""))
    )


OF_CONVERTED = answer_folder(Path(".jaxexport"), "serving of converted/0.9.2")


def test_runs_of_a_golden_and_of_its_converted_file_have_two_folders(ask):
    converted_file(GoldenStore(Path("golden")).goldens()[0], REWRITTEN)
    asked = msgspec.json.decode(ask(CASE, "serving", "a.jaxexport", "--json", code=3).out, type=Deployability)
    folders = [part.split()[-1] for answer in asked.answers for part in answer.run.split("; ") if " matrix " in part]
    assert folders == [".jaxexport/deploy/serving", str(OF_CONVERTED)]


def test_a_converted_file_gets_commands_that_convert_its_golden(ask):
    converted_file(GoldenStore(Path("golden")).goldens()[0], REWRITTEN)
    ended = ask("a.jaxexport", "serving", code=3)
    convert, run, again = ended.out.partition("run       ")[2].splitlines()[0].split("; ")
    assert convert == f"jaxexport convert golden/{CASE}/0.9.2-cpu --for 0.9.2 --output converted/0.9.2"
    assert run.startswith("jaxexport matrix ")
    assert run.endswith(f" --goldens converted/0.9.2 --results {OF_CONVERTED}")
    assert again == "jaxexport can-i-deploy a.jaxexport --to serving --goldens converted/0.9.2"
    assert "jaxexport goldens add" in ask("a.jaxexport", "edge").out  # it was made for another release
    Path("a.jaxexport.converted.json").write_text("{}")
    assert "jaxexport goldens add" in ask("a.jaxexport", "serving", code=3).out


@pytest.mark.parametrize(
    ("way", "calls", "options"),
    [
        (REWRITTEN, ("lapack_spotrf_ffi",), " --replace-custom-calls"),
        (REWRITTEN, (), ""),
        (EXPORTED_AGAIN, ("lapack_spotrf_ffi",), " --via export"),
    ],
)
def test_a_converted_file_is_converted_again_in_the_same_way(way, calls, options, ask):
    made = manifest("tests.test_a.test_g", "0.9.2", custom_calls=calls)
    converted_file(write_golden(GoldenStore(Path("kept")), made), way)
    shutil.copy("export_compat.yaml", "other.yaml")
    stored(ran(Verdict.PASS, "0.9.2"), folder="run")
    words = ("--goldens", "kept", "--policy", "other.yaml", "--results", "run")
    (unknown,) = msgspec.json.decode(ask("a.jaxexport", "serving", *words, "--json").out, type=Deployability).answers
    convert, run, again = unknown.run.split("; ")
    assert convert.endswith(f" --output converted/0.9.2{options} --policy other.yaml")
    folder = f"run/deploy/{OF_CONVERTED.name}"
    assert run.endswith(f" --goldens converted/0.9.2 --policy other.yaml --results {folder}")
    assert again.endswith(" --to serving --goldens converted/0.9.2 --policy other.yaml --results run")


@pytest.mark.parametrize("folder", [f"golden/{CASE}/0.9.2-cpu", f"golden/{CASE}"], ids=["golden", "case"])
def test_the_folder_of_a_golden_stands_for_it(ask, folder):
    stored(ran(Verdict.PASS, "0.9.2"))
    assert f"{CASE}/0.9.2-cpu: it ran in jaxlib 0.9.2" in ask(folder, "serving", code=0).out


def test_a_golden_folder_elsewhere_stands_for_its_artifact(ask):
    write_golden(GoldenStore(Path("converted", "0.9.2")), manifest(OTHER, "0.9.1"), files(jaxlib="0.8.1"))
    ended = ask(f"converted/0.9.2/{OTHER}/0.9.1-cpu", "serving", code=3)
    assert f"it is the artifact of {OTHER}/0.9.1-cpu in converted/0.9.2: run that golden" in " ".join(ended.out.split())


def test_a_file_in_another_goldens_folder_gets_its_goldens_command(ask):
    there = GoldenStore(Path("converted", "0.9.2"))
    artifact = write_golden(there, manifest(OTHER, "0.9.1"), files(jaxlib="0.8.1")).artifact
    ended = ask(artifact, "serving", code=3)
    assert f"it is the artifact of {OTHER}/0.9.1-cpu in converted/0.9.2: run that golden, and ask again" in ended.out
    words = f"--cases {OTHER} --writers 0.9.1 --goldens converted/0.9.2 --results {OF_CONVERTED}; "
    assert f"{words}jaxexport can-i-deploy {artifact} --to serving --goldens converted/0.9.2\n" in ended.out
    assert "jaxexport convert" not in ended.out


def test_a_folder_with_a_savedmodel_can_be_asked_about(tmp_path):
    """For targets that load the model, the answer is unknown, since no result is stored; for others it is no."""
    targets = (
        "{name: new, reader: tensorflow==2.21.0}, {name: old, reader: tensorflow==2.19.1}, {name: x, jaxlib: 0.10.2}"
    )
    Path("export_compat.yaml").write_text(f"deployed: [{targets}]\n")
    ended = process("can-i-deploy", ARTIFACTS / "savedmodels" / "orbax", "--to", "all", "--json")
    given = json.loads(ended.out)["answers"]
    assert [(answer["target"], answer["answer"]) for answer in given] == [
        ("new", "unknown"),
        ("old", "no"),
        ("x", "no"),
    ]
    assert "jaxlib 0.10.2 loads no SavedModel: only TensorFlow does" in given[2]["why"]
    assert ended.code == 1


def test_to_all_checks_the_active_targets_of_a_case(project, ask):
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
def test_a_target_that_is_not_in_force_has_a_line(entry, day, why, ask):
    Path("export_compat.yaml").write_text(POLICY.replace("0.9.2}", f"0.9.2{entry}}}"))
    for to, label in (("serving", "note      "), ("all", "left out  ")):
        printed = ask(CASE, to, "--as-of", day).out
        assert (f"{label}serving: {why}, so it has to run nothing on {day}\n" in printed) is bool(why)
        assert ("so it has to run nothing" in printed) is bool(why)
        found = json.loads(ask(CASE, to, "--json", "--as-of", day).out)["out_of_force"]
        assert found == ({"serving": why} if why else {})


def test_a_target_whose_release_was_not_built_yet_is_left_out(ask):
    printed = ask(CASE, "all", "--as-of", "2026-04-01").out
    why = "edge: jaxlib 0.10.2 was not built by then, so it has to run nothing on 2026-04-01"
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
    ("name", "example"),
    [
        ("all", '[{name: serving, jaxlib: "0.9.2"}]'),
        ("edge", '[{name: edge, jaxlib: "0.9.2"}]'),
        ("0.10.2", '[{name: serving, jaxlib: "0.10.2"}]'),
        ("litert==2.3.0", '[{name: serving, reader: "litert==2.3.0"}]'),
    ],
)
def test_a_policy_without_targets_shows_how_to_write_one(ask, name, example):
    Path("export_compat.yaml").write_text("readers: window\n")
    ended = ask(CASE, name)
    assert_bad_input(ended, f"--to {name}: expected a deployment target of the policy, found none there.")
    assert f"Add one to export_compat.yaml: deployed: {example}\n" in ended.err
    Path("export_compat.yaml").write_text(f"deployed: {example}\n")
    assert "found none there" not in ask(CASE, "all", code=None).err


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
    example = 'deployed = [{name = "serving", reader = "litert==2.3.0"}]'
    assert f"Add one to {file}: {example}\n" in ended.err
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
    works |= {None: DeployAnswer.UNKNOWN, Verdict.COMPILED: DeployAnswer.UNKNOWN}
    expected = [
        works.get(
            verdict := verdicts.get(reader), DeployAnswer.UNKNOWN if verdict is Verdict.NOT_RUN else DeployAnswer.NO
        )
        for reader in READERS
    ]
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
def test_running_the_printed_command_resolves_unknown(tmp_path, jaxexport):
    """Cholesky crashes in each process of 0.9.2 that has not traced linear algebra; the convolution runs."""
    for case in ("tests.compat.test_linear_algebra.test_cholesky", "tests.compat.test_models.test_convolution"):
        for by in ("0.11.0-cpu", "0.12.0.1-cpu"):
            shutil.copytree(KEPT.root / case / by, tmp_path / "golden" / case / by)
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    words = ("can-i-deploy", "*", "--to", "all", "--as-of", "2026-11-22", "--json")
    before = msgspec.json.decode(jaxexport(*words).out, type=Deployability)
    assert [str(answer.answer) for answer in before.answers] == ["no", "no", "unknown", "unknown"]
    (command,) = {answer.run for answer in before.answers if answer.run}
    ran = jaxexport(*shlex.split(command)[1:])
    assert (ran.code, "2 owed" in ran.out) == (1, True), ran.out
    after = msgspec.json.decode(jaxexport(*words).out, type=Deployability)
    assert [str(answer.answer) for answer in after.answers] == ["no", "no", "yes", "yes"]
    assert [answer.upgrade_to for answer in after.answers] == ["0.10.0", "0.11.0", "", ""]
    planned = jaxexport("matrix", "--readers", "deployed", "--as-of", "2026-11-22", "--cases", "*convolution")
    assert (planned.code, "2 of 2 cells that deployment target serving must run" in planned.out) == (0, True), (
        planned.out
    )
