"""`jaxexport can-i-deploy` for the goldens of a project: which of them are answered, and for which targets."""

import json
from pathlib import Path

import pytest
from asking import CASE, GPU, ON_TPU, OTHER, answers, new_golden, ran
from commands import assert_bad_input, stored
from making import ARTIFACTS, files, manifest, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.goldens import GoldenStore, Options
from export_core.goldens.store import ARTIFACT
from export_core.matrix import Verdict
from export_core.matrix.result import new_result
from export_core.policy.run_options import RESULTS
from export_core.readers.worker.protocol import Stage
from export_core.run import session


def test_without_a_case_each_golden_of_a_target_gets_an_answer(project, jaxexport):
    write_golden(GoldenStore(project / "golden"), manifest("tests.test_a.test_g", "0.9.2"))
    found = answers(jaxexport("can-i-deploy", "--to", "edge", "--json"))
    assert found == [("edge", f"{CASE}/0.9.2-cpu", "unknown")]
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    assert ended.out.count("unknown") == 3  # each golden, and the counts
    assert "jaxexport matrix --readers 0.9.2 --platforms cpu --writers 0.9.2 " in ended.out  # without each case's name
    Path("export_compat.yaml").write_text("deployed: [{name: edge, jaxlib: 0.10.2, cases: [nothing]}]\n")


def test_a_case_with_a_jaxlib_version_names_a_golden(project, jaxexport):
    write_golden(GoldenStore(project / "golden"), manifest(CASE, "0.12.0.1"))
    asked = jaxexport("can-i-deploy", f"{CASE}/0.9.2", "--to", "edge", "--json")
    assert answers(asked) == [("edge", f"{CASE}/0.9.2-cpu", "unknown")]


ITS_GOLDEN, CPU_GOLDEN = f"{ON_TPU}/0.9.2-cpu", f"{CASE}/0.9.2-cpu"


def golden_for_tpu(case: str = ON_TPU, refused_on: tuple[str, ...] = ()) -> None:
    """Write a golden that was exported for tpu alone, and must be refused on other platforms."""
    exported = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None, platforms=("tpu",))
    content = {**files(jaxlib="0.9.2"), ARTIFACT: encode(exported)}
    options = Options(platforms=("tpu",), refused_on=refused_on)
    write_golden(GoldenStore(Path("golden")), manifest(case, "0.9.2", options=options), content)


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
    assert "deployed trainer: it has no cell, since no golden of its cases was exported for tpu." in out
    jaxexport("can-i-deploy", "--to", "trainer", "--as-of", "2026-11-21", code=1)


@pytest.mark.parametrize("words", [(), ("*",), (ON_TPU,)], ids=["all", "glob", "name"])
def test_the_newest_golden_gets_a_no_if_not_exported_for_the_platform(words, project, jaxexport):
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
    golden_for_tpu(refused_on=("cpu",))
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.9.2", case=ON_TPU))
    assert answers(ask("*", "serving", "--json", code=0)) == [("serving", CPU_GOLDEN, "yes")]
    assert answers(ask(ON_TPU, "serving", "--json", code=1)) == [("serving", ITS_GOLDEN, "no")]


def test_a_run_and_can_i_deploy_count_the_same_cells(project, jaxexport, monkeypatch):
    golden_for_tpu(refused_on=("cpu",))

    def passes(cells, *_, **__):
        yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)

    monkeypatch.setattr(session, "_replay_by", lambda *_: passes)
    jaxexport("matrix", "--readers", "0.9.2", "--as-of", "2026-11-21", code=0)
    summary = json.loads((RESULTS / "summary.json").read_bytes())
    assert (summary["results"], summary["deployed"][0]["cells"]) == (2, 1)
    answered = jaxexport("can-i-deploy", "--to", "serving", "--json", "--as-of", "2026-11-21", code=0)
    assert answers(answered) == [("serving", CPU_GOLDEN, "yes")]


def test_a_targets_case_pattern_without_a_golden_is_answered_unknown(project, ask, jaxexport):
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


def test_asking_for_all_targets_answers_as_asking_for_each_does(project, jaxexport):
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


def test_each_name_that_matches_no_case_is_reported(ask):
    first, second = ask("f", "all", "nobody", code=2).err.splitlines()
    assert "f: expected a case" in first
    assert "Did you mean 'tests.test_a.test_f'?" in first
    assert "nobody: expected a case" in second
