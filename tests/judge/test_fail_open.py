"""Broken runs never end with 0: each fault has its exit code and one line that says what is wrong."""

import dataclasses
import hashlib
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import Ended, assert_bad_input
from commands import finished as finished_run
from making import day, manifest, result, write_golden
from rows import write_rows

from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.manifest_file import dump_manifest
from export_core.judge import Judgement, Result
from export_core.judge.gate import RunIdentity
from export_core.matrix import Verdict
from export_core.matrix import cached_replay as local
from export_core.policy import Policy
from export_core.policy.entries import ExtraReleases, Required
from export_core.readers.environment import this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import JaxlibRelease, Release
from export_core.run.plan_record import PlanRecord, policy_hash

pytestmark = pytest.mark.usefixtures("forked_workers")

REDATED = Release(jax="0.10.2", jaxlib="0.10.2", built=day("2026-12-17"))
OF_TENSORFLOW = Release(jax="", jaxlib="", built=day("2026-03-06"), runtime="tensorflow==2.21.0")
CRASH = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
WRONG = [
    result(Verdict.NUMERICS, Judgement.BROKEN, case=case, reader="0.8.1", message="max abs 2", promised=False)
    for case in ("t.a", "t.b")
]
EXCUSED = """known_failures:
  - {cases: ["*"], writers: ["*"], readers: ["*"], verdict: numerics, stage: compare, message: max abs, reason: r, owner: o, issue: i,
     added: 2026-10-01, expires: 2026-12-01, at_most: 1}
"""
KNOWN = """known_failures:
  - {{cases: {cases}, writers: ["*"], readers: ["*"], verdict: crash, stage: run, message: signal 11, reason: r, owner: o, issue: i,
     added: {added}, expires: {expires}}}
"""
JUDGE = ("judge", "out")
MATRIX = ("matrix", "--readers", "0.12.0.1", "--as-of", "2026-11-21", "--no-cache", "--quiet")


def finished(folder: Path, *results: Result, **fields: Any) -> None:
    """Write the folder of a finished run of goldens that are on another machine."""
    finished_run(folder, *results, identity=RunIdentity(goldens="elsewhere"), **fields)


@pytest.fixture
def project(cwd) -> Path:
    """Two goldens, and a finished run of two cells that is kept."""
    for jaxlib in ("0.9.2", "0.12.0.1"):
        write_golden(GoldenStore(cwd / "golden"), manifest("t.f", jaxlib))
    finished(cwd / "out", result(), result(case="t.other"))
    return cwd


def test_an_unchanged_run_of_passing_cells_is_judged_kept(project, jaxexport):
    assert jaxexport("judge", "out").code == 0


def lines(project: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines of results.jsonl in the run of a project."""
    path = project / "out" / "results.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("field", "value"), [("judgement", "broken"), ("judgement", "outside"), ("cause", "c1"), ("verdict", "numerics")]
)
def test_a_result_that_contradicts_itself_is_an_error(project, jaxexport, field, value):
    def contradict(whole: list[bytes]) -> list[bytes]:
        return [msgspec.json.encode(msgspec.json.decode(whole[0]) | {field: value}) + b"\n", *whole[1:]]

    lines(project, contradict)
    path = project / "out"
    digest = hashlib.sha256((path / "results.jsonl").read_bytes()).hexdigest()
    changed = msgspec.json.decode((path / "summary.json").read_bytes()) | {"results_sha256": digest}
    (path / "summary.json").write_bytes(msgspec.json.encode(changed))
    assert_bad_input(jaxexport(*JUDGE), "expected a judgement that")


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda project: (project / name).write_text(text) and None


def known(cases: str, expires: str = "2026-12-01", added: str = "2026-10-01") -> Callable[[Path], None]:
    return write("export_compat.yaml", KNOWN.format(cases=cases, expires=expires, added=added))


def ran(*results: Result, **facts: object) -> Callable[[Path], None]:
    return lambda project: finished(project / "out", *results, **facts)


def with_lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    """Return a function that makes this change of results.jsonl in a project."""
    return lambda project: lines(project, change)


def edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a change of a file of a run, as by hand or by another version of this tool."""

    def change(project: Path) -> None:
        path = project / "out" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


def summary(old: str, new: str) -> Callable[[Path], None]:
    return edited("summary.json", old, new)


def redated(project: Path) -> None:
    """Write a run whose policy gives a release of the calendar another date, which older versions accepted."""
    releases = ExtraReleases({"0.10.2": JaxlibRelease(day("2026-12-17"))})
    fields = msgspec.to_builtins(Policy(releases=releases))
    ran(CRASH)(project)
    path = project / "out" / "summary.json"
    made = msgspec.json.decode(path.read_bytes())
    plan = msgspec.json.decode((project / "out" / "plan.json").read_bytes(), type=PlanRecord)
    plan = msgspec.structs.replace(plan, policy=policy_hash(fields))
    (project / "out" / "plan.json").write_bytes(msgspec.json.encode(plan))
    path.write_bytes(msgspec.json.encode({**made, "policy": fields, "plan": plan.digest}))


def remove(name: str) -> Callable[[Path], None]:
    return lambda project: shutil.rmtree(project / name) if (project / name).is_dir() else (project / name).unlink()


def nothing(project: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("breaking", "words", "code", "message"),
    [
        # before anything runs; bad input of other commands too: tests/cli/test_cli.py
        (lambda p: (remove("golden")(p), (p / "golden" / "t.f").mkdir(parents=True)), MATRIX, 2, "golden: expected goldens, found none in "),
        (write("export_compat.yaml", "requird: {}"), MATRIX, 2, "export_compat.yaml:1: requird: unknown key. Did you mean `required`?"),
        (write("export_compat.yaml", ""), MATRIX, 2, "export_compat.yaml: expected a policy file, found an empty one."),
        (write("export_compat.yml", "goldens: golden"), MATRIX, 2, "export_compat.yml: expected the policy in export_compat.yaml."),
        (write("export_compat.yaml", "readers: ' , '"), ("matrix", "--dry-run"), 2, "export_compat.yaml:1: readers: expected window, all, newest, deployed or jaxlib"),
        (write("export_compat.yaml", "readers: []"), ("matrix", "--dry-run"), 2, "readers: expected window, all, newest, deployed or jaxlib versions, found none."),
        (write("export_compat.yaml", "platforms: {}"), MATRIX, 2, "export_compat.yaml:1: platforms: expected some of cpu"),
        (lambda p: (p / "wheels").mkdir(), (*MATRIX, "--wheels", "wheels"), 2, "expected a folder with wheels of jax"),
        (known("[a]", "2027-12-01"), MATRIX, 2, "found 2027-12-01, 426 days after"),
        (nothing, (*MATRIX, "--shard", "3/2"), 2, "--shard"),
        # what a run left
        (remove("out"), JUDGE, 2, "summary.json: expected the summary of a finished matrix run, found none in "),
        (remove("out/summary.json"), JUDGE, 2, "summary.json: expected the summary of a finished matrix run, found a run that has not finished"),
        (remove("out/plan.json"), JUDGE, 2, "plan.json: expected the plan of a matrix run, found none. Run the matrix again."),
        (remove("out/plan.json"), ("report", "out"), 2, "plan.json: expected the plan of a matrix run, found none."),
        (edited("plan.json", '"wheels":"",', ""), JUDGE, 2, "plan.json: not a plan that this version reads: expected the key `wheels`, found none."),
        (summary('"backward"', '"backwards"'), JUDGE, 2, "summary.json: not a summary that this version reads: policy: `windows.backwards`: unknown key"),
        (summary('"whole": true', '"hole": true'), JUDGE, 2, "`selection.whole`: expected true or false, found None. Another version"),
        (summary('"policy": {', '"policy": {"later": 1,'), JUDGE, 2, "not a summary that this version reads: policy: `later`: unknown key."),
        (remove("out/results.jsonl"), JUDGE, 2, "results.jsonl: expected the results of a matrix run, found none."),
        (with_lines(lambda stored: [stored[0], stored[1][:80]]), JUDGE, 2, "results.jsonl:2: not a result"),
        (with_lines(lambda stored: stored[:1]), JUDGE, 3, "expected one result for each of 2 planned cells, found none for 1: t.other/0.9.2-cpu in 0.10.2-jax0.10.2 on cpu."),
        (with_lines(lambda stored: stored[:1]), ("report", "out"), 3, "expected one result for each of 2 planned cells, found none for 1"),
        (with_lines(lambda stored: [stored[0], stored[1].replace(b"t.other", b"t.fresh")]), JUDGE, 2,
          "expected results of cells in plan.json, found also t.fresh/0.9.2-cpu in 0.10.2-jax0.10.2 on cpu."),
        (lambda p: (ran(CRASH)(p), edited("results.jsonl", '"crash"', '"pass"')(p)), JUDGE, 2, "expected the file whose SHA-256 is in summary.json, found a changed one."),
        (lambda p: (ran(CRASH)(p), edited("results.jsonl", '"broken"', '"kept"')(p)), ("report", "out"), 2, "expected the file whose SHA-256 is in summary.json, found a changed one."),
        (lambda p: (ran(CRASH)(p), summary('"backward": 180', '"backward": 1')(p)), JUDGE, 2, "summary.json: policy: expected the values in plan.json beside it"),
        (summary('"as_of": "2026-11-21"', '"as_of": "2026-01-21"'), JUDGE, 2, "summary.json: as_of: expected the values in plan.json"),
        (summary('"newest_jaxlib": "0.12.0.1"', '"newest_jaxlib": "0.9.2"'), JUDGE, 2, "summary.json: calendar: expected the values in plan.json"),
        (summary('"plan": "', '"plan": "0'), JUDGE, 2, "summary.json: plan: expected the values in plan.json"),
        (summary('"whole": true', '"whole": false'), JUDGE, 2, "summary.json: selection: expected the values in plan.json"),
        (lambda p: (ran(CRASH)(p), summary('"exit_code": 1', '"exit_code": 0')(p)), ("report", "out"), 2, "summary.json: exit_code: expected values that follow from results.jsonl"),
        (lambda p: (ran(CRASH)(p), summary('"broken": 1', '"kept": 1')(p)), ("report", "out"), 2, "summary.json: judgements, promised, exit_code: expected values that follow from results.jsonl"),
        (redated, JUDGE, 2, "summary.json: policy: releases.jaxlib.0.10.2: expected built: 2026-06-17, as in the calendar of this package, found 2026-12-17"),
        (ran(msgspec.structs.replace(CRASH, reader=REDATED)), JUDGE, 2,
          "results.jsonl: jaxlib 0.10.2: expected built: 2026-06-17, as in the calendar, found 2026-12-17."),
        (ran(msgspec.structs.replace(CRASH, reader=OF_TENSORFLOW)), JUDGE, 2,
          "results.jsonl: tensorflow 2.21.0: expected built: 2026-03-05, as in the calendar, found 2026-03-06."),
        (with_lines(lambda stored: []), JUDGE, 3, "expected one result for each of 2 planned cells, found none for 2"),
        (with_lines(lambda stored: [*stored, stored[0]]), JUDGE, 3, "expected one result for each of 2 planned cells, found more for 1"),
        (with_lines(lambda stored: [stored[0], stored[0]]), JUDGE, 3, "expected one result for each of 2 planned cells, found none for 1"),
        (ran(), JUDGE, 3, "Nothing was planned: expected at least one cell."),
        (ran(result(), selection={"whole": True, "platforms": ["cpu", "cuda"]}), JUDGE, 3,
          "Platform cuda was asked for and has no cell, since no golden of this run was exported for it."),
        (ran(result(), policy=Policy(required=Required(readers=("0.12.*",)))), JUDGE, 3,
          "INCOMPLETE  required.readers: expected a cell that ran for 0.12.*"),
        (ran(CRASH), JUDGE, 1, "BROKEN PROMISE  t.b"),
        (known("[t.gone]"), JUDGE, 4,
          "export_compat.yaml:2: known_failures[0] (r; owner o, i): matches no cell of this run"),
        (known("['*']"), JUDGE, 4,
          "2 of its cells pass now: t.other/0.9.2-cpu on cpu in jaxlib 0.10.2; tests"),
        (lambda p: (ran(CRASH)(p), known("[t.b]", "2026-11-20")(p)), JUDGE, 4, "expired on 2026-11-20; this is as of 2026-11-21."),
        (lambda p: (ran(CRASH)(p), known("[t.b]", "2199-03-01", "2199-01-01")(p)), JUDGE, 4, "added in the future, on 2199-01-01."),
        (lambda p: (ran(*WRONG)(p), write("export_compat.yaml", EXCUSED)(p)), JUDGE, 4,
          "expected at most 1 cell that it can excuse, found 2: wrong numbers and owed cells outside the window count too."),
        (nothing, ("judge", "out", "--as-of", "2010-01-01"), 2, "--as-of 2010-01-01: expected a cell whose writer and reader were built on or before this day in out"),
        (nothing, ("judge", "out", "--policy", "none.yaml"), 2, "none.yaml: expected a policy file, found no such file."),
        (nothing, ("judge", "out", "--results", "all"), 2, "out: expected one shard of a plan, found a whole run, which needs no joining. Judge it without --results, which leaves its files as they are: `jaxexport judge out`."),
        (nothing, ("judge", "nowhere", "--results", "all"), 3, "nowhere: expected finished shards of a plan, each with its summary.json"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)  # fmt: skip
def test_each_fault_has_one_message_and_its_exit_code(breaking, words, code, message, project, jaxexport):
    breaking(project)
    ended = jaxexport(*words, code=code)
    matching = [line for line in f"{ended.out}\n{ended.err}".splitlines() if message in line]
    assert len(matching) == 1, f"{ended.out}\n{ended.err}"
    if code == 2:
        assert len(ended.err.splitlines()) == 1
        assert ended.err.startswith("jaxexport: error: ")


# --- code of users ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["sys.exit(0)", "os._exit(0)", "raise KeyboardInterrupt"])
def test_a_comparator_module_that_exits_is_bad_input(code, project, jaxexport):
    (project / "our_checks.py").write_text(f"import os, sys\n{code}\n")
    write_golden(GoldenStore(project / "golden"), manifest("t.own", comparison=Comparison("our_checks:f")))
    ended = jaxexport(*MATRIX)
    assert_bad_input(ended._replace(out=""), "compare='our_checks:f': ")
    assert "promised" not in ended.out


def test_a_matrix_ended_by_an_unexpected_sys_exit_exits_with_3(project, jaxexport, monkeypatch):
    monkeypatch.setattr("export_core.run.session.verify_goldens", lambda *_, **__: sys.exit(0))
    ended = jaxexport("matrix", "--dry-run", code=3)
    assert "SystemExit(0) ended `jaxexport matrix` before it was done. Nothing was judged." in ended.err


# --- runs that go wrong while they run --------------------------------------------------------------------------------


@pytest.fixture
def running(cwd, monkeypatch, jaxexport) -> Callable[..., Ended]:
    """A function that runs one case, in the environment of this interpreter with changes."""
    write_rows(cwd / "golden")

    def run(case: str, *words: str, **changed: object) -> Ended:
        def build(_, placement):
            return dataclasses.replace(this_interpreter(placement.reader), **changed)

        monkeypatch.setattr(local.ReaderEnvironments, "build", build)
        return jaxexport(*MATRIX, "--cases", case, *words)

    return run


def test_a_run_whose_worker_does_not_start_is_incomplete(running):
    ended = running("pass", python=Path("/bin/false"))
    assert ended.code == 3
    assert "INCOMPLETE: 1 of 1 planned cells has no result that counts" in ended.out
    assert "was not run" in ended.out


@pytest.mark.parametrize("code", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 11)"])
def test_a_run_whose_comparator_exits_is_incomplete(running, tmp_path, code):
    (tmp_path / "our_checks.py").write_text(f"import os, sys\ndef f(expected, actual): {code}\n")
    store = GoldenStore(tmp_path / "golden")
    (plain,) = store.generations("pass")
    own = msgspec.structs.replace(plain.manifest, comparison=Comparison("our_checks:f"))
    (plain.folder / "golden.yaml").write_bytes(dump_manifest(own))
    ended = running("pass")
    assert ended.code == 3, ended
    assert "INCOMPLETE: 1 of 1 planned cells has no result that counts" in ended.out
    assert "stage compare" in " ".join(ended.out.split())


def test_a_run_whose_environment_needs_network_is_incomplete(cwd, monkeypatch, jaxexport):
    write_rows(cwd / "golden")
    command = (*MATRIX, "--cases", "pass", "--results", "elsewhere")
    with monkeypatch.context() as offline:
        for name in ("JAXEXPORT_CACHE", "UV_CACHE_DIR"):
            offline.setenv(name, str(cwd / name))
        offline.setenv("UV_OFFLINE", "1")
        ended = jaxexport(*command, code=3)
    assert "was not run" in ended.out
    # What it says is done, with nothing but the option that it names.
    named = re.search(
        r"names, then run `jaxexport (matrix [^`]+ --resume --results elsewhere)`\.", " ".join(ended.out.split())
    )
    assert named, ended.out
    again = jaxexport(*shlex.split(named[1]), code=None)
    assert "was not run" not in again.out
    assert "1 of 1 planned cells" in again.out


def test_a_cell_that_times_out_is_broken(running, tmp_path):
    (tmp_path / "export_compat.yaml").write_text("windows: {backward: 300 days}")
    ended = running("timeout", "--timeout", "0.5")
    assert ended.code == 1
    assert "still in stage" in ended.out


def test_a_run_outside_all_windows_needs_a_reason_to_exit_0(running):
    ended = running("crash")
    assert (ended.code, "NOTHING PROMISED: every cell is outside its window" in ended.out) == (3, True), ended
    accepted = running("crash", "--unpromised", "an archive")
    assert (accepted.code, "NOTHING PROMISED: every cell is outside its window" in accepted.out) == (0, True), accepted
    assert "This is accepted: an archive" in accepted.out
    assert running("crash", "--unpromised", " ").code == 2


def test_a_run_without_a_cell_on_a_platform_is_incomplete(running):
    ended = running("crash", "--platforms", "cpu,tpu")
    assert ended.code == 3
    assert "INCOMPLETE  Platform tpu was asked for and has no cell" in ended.out
