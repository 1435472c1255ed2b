"""`jaxexport can-i-deploy` from stored results: yes, no and unknown, and the results that do not count."""

import json
import re
import shlex
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from asking import CASE, KEPT, OTHER, POLICY, answers, ran
from commands import assert_bad_input, finished, stored
from making import files, manifest, of_runtime, write_golden

from export_core.features.deploy.answers import Deployability
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, OUTPUTS
from export_core.matrix import Verdict
from export_core.matrix.comparisons import under_policy
from export_core.policy.load import load_policy
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.run.plan_record import hash_of


def test_a_stored_pass_is_answered_yes(ask):
    stored(ran(Verdict.PASS, "0.9.2"), ran(Verdict.PASS, "0.10.2"))
    ended = ask(CASE, "all", code=0)
    assert ended.out.splitlines()[:2] == [
        "serving (jaxlib 0.9.2)",
        f"  yes     {CASE}/0.9.2-cpu: it ran in jaxlib 0.9.2 and agrees with its writer's outputs (results in "
        ".jaxexport)",
    ]
    assert "YES: 2 yes." in ended.out


def test_an_answer_counts_a_run_that_lacks_required_cells(ask, jaxexport):
    Path("export_compat.yaml").write_text(f"{POLICY}\nrequired: {{cells: 90}}\n")
    finished(Path(".jaxexport"), ran(Verdict.PASS, "0.9.2"), selection={"whole": False, "cases": [CASE]})
    judged = jaxexport("judge", code=3)
    assert "`can-i-deploy` counts its cells all the same" in " ".join(judged.out.split())
    ask(CASE, "serving", code=0)


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
def test_the_answer_yes_names_the_comparison_and_accepted_weaknesses(ask, changes, outputs, why, accepted):
    write_golden(GoldenStore(Path("golden")), manifest(CASE, "0.9.2", **changes), {**files(jaxlib="0.9.2"), **outputs})
    stored(ran(Verdict.PASS, "0.9.2"))
    out = " ".join(ask(CASE, "serving", code=0).out.split())
    assert ("agrees with its writer's outputs" in out, "and nothing was compared" in out) == (not why, bool(why))
    assert why in out
    assert f"accepted {accepted}" in out
    found = json.loads(ask(CASE, "serving", "--json", code=0).out)
    assert accepted in found["accepted"][0]["what"]


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
    assert "it ran in jaxlib 0.9.2, but not each time: it was crash on 2026-11-20 (results in .jaxexport)" in ended.out


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


def test_the_command_repeats_passed_cells_only_in_the_same_folder(ask):
    for folder, readers in ((".jaxexport", "0.10.2"), (".jaxexport/deploy", "0.9.2,0.10.2")):
        stored(ran(Verdict.PASS, "0.9.2"), folder=folder)
        (command,) = [line for line in ask(CASE, "all", code=3).out.splitlines() if line.startswith("run ")]
        assert f"--readers {readers} " in command


@pytest.mark.parametrize(("unknown", "named"), [(1, True), (5, True), (6, False)])
def test_the_command_runs_only_what_is_unknown(unknown, named, project, jaxexport):
    """With more names than can be read, it runs all cases, but still only the writers of what is unknown."""
    store, cases = GoldenStore(project / "golden"), [f"tests.test_b.test_{number}" for number in range(unknown)]
    for case in cases:
        write_golden(store, manifest(case, "0.11.0"))
    stored(ran(Verdict.PASS, "0.9.2"))
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    (command,) = [line for line in ended.out.splitlines() if line.startswith("run ")]
    assert "--writers 0.11.0 --results" in command
    assert re.findall("--cases ([^ ]+)", command) == (cases if named else [])


def test_results_in_the_folder_of_the_printed_command_are_found(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    stored(ran(Verdict.PASS, "0.10.2"), folder=".jaxexport/deploy")
    ended = ask(CASE, "all", code=0)
    folders = re.findall(r"\(results in (\S+)\)", ended.out)
    assert folders == [".jaxexport", ".jaxexport/deploy"], "each answer names the run that shows it"


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


def test_no_second_deploy_folder_is_made_inside_a_deploy_folder(ask):
    stored(ran(Verdict.PASS, "0.10.1"), folder="run/deploy")
    for to, folder in (("all", "run/deploy"), ("serving", "run/deploy/serving")):
        for results in ("run/deploy", "run/deploy/"):
            assert folder_of_run(ask(CASE, to, "--results", results, "--json")) == folder


def test_runs_moved_aside_do_not_count_for_an_answer(ask):
    for earlier in ("finished", "whole"):
        stored(ran(Verdict.PASS, "0.9.2"), folder=f".jaxexport/deploy/{earlier}")
    assert ask(CASE, "serving").code == 3
    assert_bad_input(ask(CASE, "serving", "--results", ".jaxexport/deploy"), "expected the summary of a finished")


def test_a_whole_run_counts_after_a_part_of_it_was_run_again(ask):
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    stored(crash, ran(Verdict.PASS, "0.10.2"), ran(Verdict.PASS, "0.12.0.1"), folder=".jaxexport/whole")
    stored(ran(Verdict.CRASH, "0.12.0.1", stage=Stage.RUN))
    (answer,) = msgspec.json.decode(ask(CASE, "serving", "--json", code=1).out, type=Deployability).answers
    assert (answer.shown_by, answer.upgrade_to) == ("results", "0.10.2")
    stored(ran(Verdict.PASS, "0.9.2"))
    assert "YES: 1 yes." in ask(CASE, "serving", code=0).out  # the later run decides
    changed = manifest(CASE, "0.9.2", comparison=Comparison(rtol=0.45))
    shutil.rmtree("golden")
    write_golden(GoldenStore(Path("golden")), changed, files(jaxlib="0.9.2"))
    assert ask(CASE, "serving", code=3).err == ""


@pytest.mark.parametrize("before", [None, Verdict.PASS, Verdict.REFUSED])
def test_the_first_failing_release_is_named_only_after_a_run(before, project, jaxexport):
    """A forecast of `may run` for an older release does not show that it ran there."""
    Path("export_compat.yaml").write_text("deployed: [{name: robot, reader: iree==3.13.0}]\n")
    sharded = KEPT.root / "tests.compat.test_programs.test_random" / "0.6.2-cpu" / ARTIFACT
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.6.2"), {**files(), ARTIFACT: sharded.read_bytes()})
    if before:
        older = ran(before, "0.12.0.1", "0.6.2", case=OTHER, stage=Stage.COMPILE)
        stored(of_runtime(older, "iree==3.12.0", "2026-10-05"))
    asked = jaxexport("can-i-deploy", f"{OTHER}/0.6.2-cpu", "--to", "robot", "--json", code=1)
    (answer,) = json.loads(asked.out)["answers"]
    assert answer["why"].startswith("iree 3.13.0 does not compile it")
    assert answer["since"] == ("iree==3.13.0" if before is Verdict.PASS else "")


def test_a_stored_failure_is_answered_no_with_a_working_release(ask):
    crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    crash_later = ran(Verdict.CRASH, "0.10.0", stage=Stage.RUN)
    stored(ran(Verdict.PASS, "0.9.1"), crash, crash_later, ran(Verdict.PASS, "0.10.2"))
    ended = ask(CASE, "serving", "--as-of", "2026-11-22", code=1)
    assert ended.out.splitlines()[1:] == [
        f"  no      {CASE}/0.9.2-cpu: crash in stage run: died by signal 11 (SIGSEGV); it has been so since jaxlib "
        "0.9.2; the first later release in which a stored run passed: 0.10.2 (results in .jaxexport)",
        "",
        "upgrade   serving from jaxlib 0.9.2 to 0.10.2 (the first in which a stored run passed), before 1 artifact is "
        "deployed there",
        "NO: 1 no. As of 2026-11-22, exit code 1.",
    ]
