"""`jaxexport can-i-deploy`: the forecast without results, the reasons of a no, and what to do about it."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from asking import CASE, GPU, KEPT, LATER_CRASH, ON_TPU, OTHER, POLICY, answers, new_golden, ran
from commands import stored
from making import ARTIFACTS, day, files, manifest, of_runtime, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.features.deploy.answer_lines import deploy_lines
from export_core.features.deploy.answers import Deployability, DeployAnswer, Question, deployability
from export_core.features.deploy.asked import Subject
from export_core.goldens import GoldenStore, Options
from export_core.goldens.conversion_record import CONVERTED, ConversionRecord, dump_record
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import ARTIFACT, sha256
from export_core.matrix import Verdict
from export_core.policy.entries import DeploymentTarget
from export_core.policy.load import load_policy
from export_core.policy.run_options import ProjectOptions
from export_core.policy.terms import Terms
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import shipped_entries

RANK_8 = "tests.compat.test_large_programs.test_rank_8/0.9.2-cpu"
TWO_DEVICES = "tests.compat.test_shardings.test_two_devices/0.9.2-cpu"
X64 = "tests.compat.test_dtypes.test_wide_dtype[float64]/0.9.2-cpu"


def test_answers_on_a_runtime_without_results_come_from_its_forecast(project, jaxexport):
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
    convert = "`jaxexport convert FILE --for pjrt==0.12.0.1 --replace-custom-calls -o OUT`"
    advice = (
        f"Calls what only jax registers: {CASE}/0.12.0.1-cpu. Compute with operations that need none, and export "
        f"again, or try {convert}."
    )
    assert advice in " ".join(alone.out.split())
    early = jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "serving", "--as-of", "2026-03-04", code=2)
    assert "tensorflow 2.21.0 is not in the calendar of tensorflow as of 2026-03-04: it was built on" in early.err


def test_advice_is_about_the_runtimes_refusal_not_the_writers_crash(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: board, reader: iree==3.13.0}]\n")
    new_golden()
    refused = {"stage": Stage.COMPILE, "message": "the custom call lapack_spotrf_ffi is not known"}
    own = ran(Verdict.CRASH, "0.12.0.1", "0.12.0.1", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    plain = ran(Verdict.REFUSED, "0.12.0.1", "0.12.0.1", **refused)
    stored(own, of_runtime(plain, "iree==3.13.0", "2026-10-19"))
    (upgrade,) = json.loads(jaxexport("can-i-deploy", f"{CASE}/0.12.0.1-cpu", "--to", "board", "--json", code=1).out)[
        "upgrades"
    ]
    advice = (
        f"Calls what only jax registers: {CASE}/0.12.0.1-cpu. Compute with operations that need none, and export again."
    )
    assert upgrade["instead"] == [advice]


def test_the_answer_no_mentions_a_known_failure_of_the_policy(project, ask):
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


def test_the_answer_unknown_says_what_may_fail_after_loading(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: phone, reader: litert==2.3.0}]\n")
    attention = KEPT.root / "tests.compat.test_models.test_attention" / "0.12.0.1-cpu" / ARTIFACT
    shutil.copy(attention, "attention.jaxexport")
    ended = jaxexport("can-i-deploy", "attention.jaxexport", "--to", "phone", code=3)
    assert (
        "it should load, but may not run: Branches that read or give different types are refused (litert-branches); "
        "beside that, A maximum or minimum can lose NaN (litert-nan-in-extremes);"
    ) in " ".join(ended.out.split())
    assert "no stored result shows that it runs: make it a golden (JAXLIB," in " ".join(ended.out.split())


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
def test_an_answer_no_for_lack_of_shardy_names_jaxs_partitioner_flag(reader, built, is_stored, project, jaxexport):
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
    assert "for every type: stablehlo.shift_left (litert-operations)" in out
    assert "jaxexport convert FILE" not in out
    helps = f"Conversion does not help: {CASE}/0.12.0.1-cpu. Compute with other operations what fails there, and export"
    assert helps in out


CONVERTIBLE = [
    ("iree==3.13.0", "tests.compat.test_programs.test_random/0.6.2-cpu", "this release has no custom call Sharding: "),
    ("stablehlo==0.12.0.1", "tests.compat.test_programs.test_random/0.9.2-cpu", "ends the interpreter: "),
]


@pytest.mark.parametrize(("reader", "golden", "reason"), CONVERTIBLE)
def test_a_conversion_that_removes_shardings_is_advised(reader, golden, reason, project, jaxexport):
    Path("export_compat.yaml").write_text(f"deployed: [{{name: robot, reader: {reader}}}]\n")
    out = " ".join(jaxexport("can-i-deploy", KEPT.root / golden / ARTIFACT, "--to", "robot", code=1).out.split())
    assert f"{reason}`jaxexport convert FILE --for {reader} -o OUT`" in out
    assert "Conversion does not help" not in out


@pytest.mark.parametrize("writer", ["0.6.2", "0.12.0.1"], ids=["loaded", "not loaded"])
def test_an_export_for_one_device_is_advised_for_another_runtime(writer, project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: robot, reader: iree==3.13.0}]\n")
    file = KEPT.root / "tests.compat.test_shardings.test_two_devices" / f"{writer}-cpu" / ARTIFACT
    (upgrade,) = json.loads(jaxexport("can-i-deploy", file, "--to", "robot", "--json", code=1).out)["upgrades"]
    assert upgrade["instead"] == [f"Made for several devices: {file}. Export the function for one device."]


def test_a_failure_by_a_known_issue_has_the_advice_of_that_issue(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: phone, reader: litert==2.3.0}]\n")
    failed = ran(Verdict.ERROR, "0.12.0.1", stage=Stage.RUN, message="not refused", upstream="litert-unchecked-sizes")
    stored(of_runtime(failed, "litert==2.3.0", "2026-10-06"))
    out = " ".join(jaxexport("can-i-deploy", CASE, "--to", "phone", code=1).out.split())
    assert (
        "(results in .jaxexport) upgrade phone: no later release is known to run all of them. Fails in a known way: "
        in out
    )
    assert f"{CASE}/0.9.2-cpu. Check sizes before the call. NO:" in out


def test_conversion_is_advised_for_a_refusal_by_a_known_issue(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: edge, jaxlib: 0.12.0.1}]\n")
    content = {**files(), ARTIFACT: encode(read(ARTIFACTS / "0.6.2" / "mlp.jaxexport").envelope._replace(vjp=None))}
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.6.2"), content)
    words = ("can-i-deploy", f"{OTHER}/0.6.2-cpu", "--to", "edge")
    convert = "`jaxexport convert FILE --for 0.12.0.1 -o OUT`"
    assert convert in " ".join(jaxexport(*words, code=1).out.split()), "before a run"
    refused = {"stage": Stage.DESERIALIZE, "message": "too old", "upstream": "calling-convention-too-old"}
    stored(ran(Verdict.REFUSED, "0.12.0.1", "0.6.2", case=OTHER, **refused))
    out = " ".join(jaxexport(*words, code=1).out.split())
    todo = "Export again with a newer jax, or use a reader of the artifact's time."
    assert f"Fails in a known way: {OTHER}/0.6.2-cpu. {todo} Or try {convert}." in out, "after it"


def test_no_conversion_is_advised_for_a_converted_golden(project, ask):
    origin = ConvertedFrom("0" * 64, "0.9.2", "rewritten", (), "pytest-jaxexport 0.2.0")
    content = encode(read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None))
    record = dump_record(ConversionRecord(CONVERTED, "", sha256(content), origin, ""))
    converted = {**files(), ARTIFACT: content, f"{ARTIFACT}.converted.json": record}
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.1", converted_from=origin), converted)
    stored(ran(Verdict.CRASH, "0.9.2", writer="0.9.1", case=OTHER, stage=Stage.RUN, message="died by signal 11"))
    out = " ".join(ask(OTHER, "serving", code=1).out.split())
    assert f"Conversion does not help: {OTHER}/0.9.1-cpu. Export again with jaxlib 0.9.2." in out
    assert "or try `jaxexport convert" not in out


def test_no_export_is_advised_for_a_converted_file_without_its_record(project, jaxexport):
    """A rewritten file is recognized by its StableHLO, which is older than what the jax named in it writes."""
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


def test_the_proposed_upgrade_runs_all_goldens_of_the_target(store_two, ask, jaxexport):
    broken = ran(Verdict.CRASH, "0.10.2", case=OTHER, **LATER_CRASH)
    store_two(ran(Verdict.PASS, "0.10.2"), broken, ran(Verdict.PASS, "0.11.0"), ran(Verdict.PASS, "0.11.0", case=OTHER))
    for ended in (jaxexport("can-i-deploy", "--to", "serving", code=1), ask(CASE, "serving", code=1)):
        assert (
            "upgrade   serving from jaxlib 0.9.2 to 0.11.0 (the first in which a stored run passed), before "
            in ended.out
        )


def test_an_upgrade_names_other_goldens_that_it_would_break(store_two, ask, jaxexport):
    store_two(ran(Verdict.PASS, "0.10.2"), ran(Verdict.CRASH, "0.10.2", case=OTHER, **LATER_CRASH))
    for ended in (jaxexport("can-i-deploy", "--to", "serving", code=1), ask(CASE, "serving", code=1)):
        assert (
            "upgrade   serving: no later release is known to run all that it has to run. jaxlib 0.10.2 runs the one "
            f"that fails today (stored results), but {OTHER}/0.9.2-cpu, which runs today, fails there: crash in stage "
            "run: died by signal 6 (SIGABRT) (results in .jaxexport)\n"
        ) in ended.out
    (upgrade,) = json.loads(ask(CASE, "serving", "--json", code=1).out)["upgrades"]
    assert (upgrade["to"], upgrade["partly"], len(upgrade["failing"])) == ("", "0.10.2", 1)


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.TIMEOUT, None])
@pytest.mark.parametrize(("kept", "to"), [(RANK_8, "0.11.1"), (TWO_DEVICES, "0.11.0"), (X64, "0.11.0")])
def test_an_upgrade_avoids_known_issues_whatever_was_run(kept, to, verdict, project, jaxexport):
    """Devices and x64, which some artifacts need, come with the process: no upgrade takes them away."""
    shutil.copytree(KEPT.root / kept, Path("golden", kept))
    new_golden()
    if verdict:
        stored(ran(verdict, "0.9.2", case=str(Path(kept).parent), stage=Stage.RUN))
    words = ("can-i-deploy", f"{CASE}/0.12.0.1-cpu", kept, "--to", "serving")
    out = " ".join(jaxexport(*words, code=1).out.split())
    assert f"serving from jaxlib 0.9.2 to {to} (foreseen, not run yet)" in out


def test_an_upgrade_avoids_known_issues_of_what_fails_today(project, jaxexport):
    """If a known issue concerns the artifact in each later release, the first of them is named with the issue."""
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.1}]\n")
    shutil.copytree(KEPT.root / RANK_8, Path("golden", RANK_8))
    case = str(Path(RANK_8).parent)
    stored(ran(Verdict.CRASH, "0.10.1", case=case, stage=Stage.MODULE, message="died by signal 11 (SIGSEGV)"))
    ask = "can-i-deploy", RANK_8, "--to", "serving"
    out = " ".join(jaxexport(*ask, code=1).out.split())
    assert "the first later release in which it may run: 0.11.1" in out
    assert "serving from jaxlib 0.10.1 to 0.11.1 (foreseen, not run yet)" in out
    before = json.loads(jaxexport(*ask, "--json", "--as-of", "2026-07-10", code=1).out)
    (answer,), (upgrade,) = before["answers"], before["upgrades"]
    assert (answer["upgrade_to"], upgrade["to"], upgrade["partly"]) == ("", "", "0.10.2")
    issue = "Reductions of arrays of rank 8 crash on a CPU (cpu-rank-8)"
    assert upgrade["failing"] == [f"{RANK_8} may not run there: {issue} (forecast)"]


def test_a_release_that_passed_is_preferred_to_a_forecast_pass(ask):
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


def test_an_artifact_too_new_to_load_is_answered_no_without_a_run(ask):
    new_golden()
    ended = ask(f"{CASE}/0.12.0.1-cpu", "all", "--json")
    found = msgspec.json.decode(ended.out, type=Deployability)
    assert {(each.answer, each.shown_by, each.upgrade_to, each.foreseen) for each in found.answers} == {
        (DeployAnswer.NO, "forecast", "0.11.0", True)
    }
    assert "cannot be loaded: jaxlib 0.9.2 has StableHLO" in found.answers[0].why
    assert [(each.target, each.to) for each in found.upgrades] == [("serving", "0.11.0"), ("edge", "0.11.0")]


def test_an_artifact_that_loads_but_cannot_be_called_is_answered_no(ask):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.8.1}]\n")
    out = ask(CASE, "serving", code=1).out
    assert "loads, and cannot be called: jax before 0.8.2 finds no number of devices" in " ".join(out.split())


def test_an_artifact_not_exported_for_the_platform_is_answered_no(ask):
    Path("export_compat.yaml").write_text(GPU)
    ended = ask(CASE, "gpu", code=1)
    assert "it was exported for cpu, and not for cuda" in ended.out
    out = " ".join(ended.out.split())
    advice = f"Not exported for cuda: {CASE}/0.9.2-cpu. Export them again for it too (`platforms` in the marker), or "
    assert advice in out
    assert "or older" not in out, "no release runs it on another platform"
    assert "convert" not in out


def test_a_cell_that_was_only_compiled_is_answered_unknown(ask):
    Path("export_compat.yaml").write_text(GPU)
    content = {**files(), ARTIFACT: (ARTIFACTS / "0.9.2" / "platforms.jaxexport").read_bytes()}
    made = manifest("multi", "0.9.2", options=Options(platforms=("cpu", "cuda", "tpu")))
    write_golden(GoldenStore(Path("golden")), made, content)
    stored(ran(Verdict.COMPILED, "0.10.2", case="multi", platform="cuda", mode=Mode.COMPILE))
    ended = ask("multi", "gpu", code=3)
    assert "it was compiled for cuda, and did not run" in ended.out
    assert "--platforms cuda:run" in ended.out


@pytest.mark.parametrize("change", ["golden", "folder", "rule"])
def test_results_of_a_changed_golden_or_rule_do_not_count(ask, change):
    stored(ran(Verdict.PASS, "0.9.2"))
    if change == "golden":
        store = GoldenStore(Path("golden"))
        store.remove(store.goldens()[0])
        write_golden(store, manifest(CASE, "0.9.2"), files(2.0, jaxlib="0.9.2"))
    elif change == "folder":
        write_golden(GoldenStore(Path("converted")), manifest(CASE, "0.9.2"), files(2.0, jaxlib="0.9.2"))
    else:
        Path("export_compat.yaml").write_text(f"{POLICY}numbers: [{{cases: ['*'], compare: exact, reason: r}}]\n")
    words = ("--goldens", "converted") if change == "folder" else ()
    assert answers(ask(CASE, "serving", *words, "--json"))[0][2] == "unknown"
    out = " ".join(ask(CASE, "serving", *words, code=3).out.split())
    of_other_content = "the stored result does not count: in that run, the golden of this name had other content"
    assert (f"should load, and {of_other_content}" in out) is (change != "rule")
    assert ("no stored result shows that it runs" in out) is (change == "rule")


def test_a_new_result_of_a_changed_golden_counts(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    store = GoldenStore(Path("golden"))
    store.remove(store.goldens()[0])
    write_golden(store, manifest(CASE, "0.9.2"), files(2.0, jaxlib="0.9.2"))
    stored(ran(Verdict.PASS, "0.9.2"), folder=".jaxexport/deploy")
    assert "it ran in jaxlib 0.9.2" in ask(CASE, "serving", code=0).out


def test_explain_is_advised_for_a_golden_that_fails_in_its_writer(ask):
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
    assert f"Conversion does not help: {CASE}/0.9.2-cpu. Export again with jaxlib 0.10.2." in out


@pytest.mark.parametrize(("writer", "how"), [("0.12.0.1", "0.10.2 or older"), ("0.9.2", "0.10.2")])
def test_export_with_an_older_jaxlib_is_advised_only_for_newer_writers(project, ask, writer, how):
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, writer))
    stored(ran(Verdict.ERROR, "0.10.2", writer, case=OTHER, stage=Stage.COMPILE, message="no such operation"))
    out = " ".join(ask(OTHER, "edge", code=1).out.split())
    assert f"Conversion does not help: {OTHER}/{writer}-cpu. Export again with jaxlib {how}." in out


def test_the_advice_for_an_answer_no_depends_on_the_reason(project, jaxexport):
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.2}]\n")
    store = GoldenStore(project / "golden")
    envelope = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope
    tpu = {**files(), ARTIFACT: encode(envelope._replace(platforms=("tpu",), vjp=None))}
    write_golden(store, manifest(ON_TPU, "0.9.2", options=Options(platforms=("tpu",))), tpu)
    write_golden(store, manifest(OTHER, "0.9.2"))
    crash = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
    own = [ran(Verdict.CRASH, reader, case=OTHER, **crash) for reader in ("0.9.2", "0.10.2")]
    stored(*own, ran(Verdict.PASS, "0.9.2"), ran(Verdict.CRASH, "0.10.2", **crash))
    new_golden()
    words = CASE, OTHER, ON_TPU, "--to", "serving"
    (upgrade,) = json.loads(jaxexport("can-i-deploy", *words, "--json", code=1).out)["upgrades"]
    assert [sentence.partition("/0.9.2-cpu")[0] for sentence in upgrade["instead"]] == [
        f"Not exported for cpu: {ON_TPU}",
        f"Fails in the release that wrote it: {OTHER}",
        f"Conversion does not help: {CASE}",
        "Export the others again with jaxlib 0.10.2, or try `jaxexport convert FILE --for 0.10.2 -o OUT`.",
    ]


def test_advised_commands_repeat_the_given_policy_and_results(project, jaxexport):
    Path("p.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.2}]\n")
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.2"))
    crash = {"stage": Stage.RUN, "message": "died by signal 11 (SIGSEGV)"}
    own = [ran(Verdict.CRASH, reader, case=OTHER, **crash) for reader in ("0.9.2", "0.10.2")]
    stored(*own, folder="out")
    new_golden()
    words = f"{CASE}/0.12.0.1-cpu", OTHER, "--to", "serving", "--policy", "p.yaml", "--results", "out"
    (upgrade,) = json.loads(jaxexport("can-i-deploy", *words, "--json", code=1).out)["upgrades"]
    explain, convert = upgrade["instead"]
    assert "jaxexport explain --case" in explain
    assert explain.endswith(" --results out`.")
    assert convert.endswith("`jaxexport convert FILE --for 0.10.2 -o OUT --policy p.yaml`.")
