"""The command `jaxexport`: bad input is one line and exit code 2, and a run ends with its judgement."""

from __future__ import annotations

import datetime
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jsonschema
import msgspec
import pytest
from making import manifest, result, write_golden

from export_core.cli import main
from export_core.goldens import GoldenStore, Options
from export_core.goldens.manifest import dump_manifest
from export_core.judge import Judgement, Result, read_results, read_summary, result_line, summarize, write_summary
from export_core.matrix import Stage, Verdict
from export_core.matrix.journal import Journal, PlanRecord
from export_core.policy import Policy

WRITE_GOLDENS = Path(__file__).parent / "matrix" / "write_goldens.py"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project with one golden by each of two writers."""
    monkeypatch.chdir(tmp_path)
    store = GoldenStore(tmp_path / "golden")
    for jaxlib in ("0.9.2", "0.12.0.1"):
        write_golden(store, manifest("t.test_f[a]", jaxlib))
    return tmp_path


@pytest.fixture
def jaxexport(monkeypatch, capsys) -> Callable[..., Ended]:
    """Runs the command in this process, from its entry point."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["jaxexport", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run


def process(*words: str | Path, **options) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "export_core", *words], capture_output=True, text=True, check=False, **options
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def assert_bad_input(ended: Ended, *said: str) -> None:
    assert ended.code == 2, ended
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("jaxexport: error: ")
    for text in said:
        assert text in ended.err


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["matrix"], ["goldens", "verify"], ["matrix", "--goldens", "nowhere"]], ids=" ".join
)
def test_no_golden_folder_is_bad_input(command, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = command[-1] if "--goldens" in command else "golden"
    assert_bad_input(jaxexport(*command), f"{folder}: expected goldens, found none.", "pytest --update-goldens")
    assert list(tmp_path.iterdir()) == [], "and nothing is written"


@pytest.mark.parametrize("name", ["artifact.jaxexport", "inputs.npz", "outputs.npz"])
@pytest.mark.parametrize("command", [["matrix"], ["goldens", "verify"]], ids=" ".join)
def test_a_flipped_byte_is_bad_input(command, name, jaxexport, project):
    path = project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert_bad_input(jaxexport(*command), f"0.9.2-cpu/{name}: damaged: expected SHA-256")
    assert not (project / ".jaxexport").exists(), "nothing ran"


def test_a_missing_file_of_a_golden_is_bad_input(jaxexport, project):
    (project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "inputs.npz").unlink()
    assert_bad_input(jaxexport("matrix"), "inputs.npz: expected a file of this golden, found none")


def test_an_artifact_that_is_none_is_bad_input_though_its_hash_is_right(jaxexport, project):
    store = GoldenStore(project / "golden")
    old = store.goldens()[0]
    from making import files

    write_golden(store, old.manifest, {**files(), "artifact.jaxexport": b"no artifact"})
    assert_bad_input(jaxexport("goldens", "verify"), "artifact.jaxexport")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("case:", "{[", 1), "not a golden's manifest"),
        (
            lambda text: text.replace("format: 1", "format: 99"),
            "manifest format 99; this pytest-jaxexport reads up to 1. Upgrade",
        ),
        (lambda text: text.replace("platform: cpu", "plattform: cpu"), "plattform"),
        (lambda text: "", "not a golden's manifest"),
    ],
    ids=["not yaml", "future format", "unknown field", "empty"],
)
@pytest.mark.parametrize("command", [["matrix"], ["goldens", "list"], ["goldens", "verify"]], ids=" ".join)
def test_a_damaged_manifest_is_bad_input(command, change, said, jaxexport, project):
    path = project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "golden.yaml"
    path.write_text(change(path.read_text()))
    assert_bad_input(jaxexport(*command), str(path.relative_to(project)), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--readers", "0.9.3"], ["jaxlib 0.9.3 is not in the release calendar", "Did you mean", "0.9.2"]),
        (["--readers", ","], ["--readers: expected window, all or jaxlib versions"]),
        (
            ["--readers", "0.12.0.1", "--as-of", "2026-10-19"],
            ["jaxlib 0.12.0.1 is not in the release calendar as of 2026-10-19"],
        ),
        (["--platforms", "gpu"], ["--platforms: expected some of cpu, cuda, rocm, tpu, found 'gpu'"]),
        (["--platforms", "tpu"], ["The plan is empty", "exported for cpu, and none for tpu"]),
        (["--as-of", "yesterday"], ["--as-of: expected a date such as 2026-10-25, found 'yesterday'"]),
        (["--as-of", "2026-02-30"], ["--as-of: expected a date"]),
        (["--as-of", "2025-01-01"], ["The plan is empty", "on or before 2025-01-01"]),
        (["--cases", "nope"], ["no case is called or matches 'nope'"]),
        (["--writers", "0.9.1"], ["no golden was written by jaxlib 0.9.1. There are goldens by 0.12.0.1, 0.9.2"]),
        (["--policy", "none.yaml"], ["none.yaml: expected a policy file, found no such file"]),
        (["--results", "golden/t.test_f[a]/0.9.2-cpu/golden.yaml"], ["--results", "cannot write there"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("--") else "",
)
def test_what_cannot_be_planned_is_bad_input(words, said, jaxexport, project):
    before = sorted(project.rglob("*"))
    ended = jaxexport("matrix", *words)
    if "--results" in words:  # the plan was told by then
        ended = ended._replace(out="")
    assert_bad_input(ended, *said)
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("widnows: {}", ["unknown field `widnows`", "Did you mean `windows`?"]),
        ("known-failures: []", ["unknown field `known-failures`", "Did you mean `known_failures`?"]),
        ("zzz: 1", ["unknown field `zzz`", "Known keys: goldens, windows, readers"]),
        ("windows: {backwards: 1}", ["unknown field `backwards`", "`$.windows`", "Did you mean `backward`?"]),
        ("windows: {backward: -1}", ["windows: expected days of 0 or more"]),
        ("windows: {backward: half a year}", ["Expected `int`, got `str` - at `$.windows.backward`"]),
        ("platforms: cpu", ["got `str` - at `$.platforms`"]),
        ("releases: {jaxlib: {nightly: {built: 2026-11-01}}}", ["found 'nightly'"]),
        ("a: [", ["export_compat.yaml"]),
        ("- a", ["Expected `object | null`, got `array`"]),
    ],
)
@pytest.mark.parametrize("command", [["matrix"], ["releases", "list"]], ids=" ".join)
def test_a_policy_that_says_what_it_must_not_is_bad_input(command, text, said, jaxexport, project):
    (project / "export_compat.yaml").write_text(text)
    assert_bad_input(jaxexport(*command), *said)


def test_a_policy_of_comments_is_the_default(jaxexport, project):
    (project / "export_compat.yaml").write_text("# nothing yet\n")
    assert jaxexport("goldens", "verify").code == 0


@pytest.mark.parametrize(
    "words",
    [["matrix", "--jobs", "0"], ["matrix", "--timeout", "soon"], ["matrix", "--nope"], ["nope"], ["goldens", "nope"]],
    ids=" ".join,
)
def test_words_that_the_command_does_not_have_are_usage_errors(words, jaxexport):
    ended = jaxexport(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err


def test_bad_input_of_a_real_process_is_one_line_too(project):
    assert_bad_input(process("matrix", "--readers", "0.9.3", cwd=project), "0.9.3")


# --- what it shows ----------------------------------------------------------------------------------------------------


def test_help_lists_every_command_and_imports_neither_jax_nor_numpy():
    script = (
        "import sys, runpy; sys.argv = ['jaxexport', '--help']\n"
        "try: runpy.run_module('export_core', run_name='__main__')\n"
        "except SystemExit: sys.exit(len({'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("backfill", "goldens", "judge", "matrix", "plan", "releases"):
        assert f"\n  {command} " in done.stdout


def test_every_command_has_its_help(jaxexport):
    for words in (
        [],
        ["matrix"],
        ["plan"],
        ["judge"],
        ["backfill"],
        ["goldens"],
        ["goldens", "list"],
        ["goldens", "show"],
        ["goldens", "verify"],
        ["releases", "list"],
    ):
        ended = jaxexport(*words, "--help")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("Usage: ")
        assert "[OPTIONS]" in ended.out


def test_releases_are_listed_by_the_day_they_were_built(jaxexport):
    ended = jaxexport("releases", "list", "--as-of", "2026-10-25")
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()[1:]]
    assert rows[-1] == ["0.12.0.1", "2026-10-20", "0.12.0.1", "2027-04-18", "promised"]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert ["0.9.2", "2026-03-18", "0.9.2", "2026-09-14", "outside"] in rows
    assert [row[0] for row in rows if row[0] in ("0.8.3", "0.9.0")][::-1] == ["0.8.3", "0.9.0"]
    earlier = jaxexport("releases", "list", "--as-of", "2026-03-20")
    assert earlier.out.splitlines()[-1].split()[0] == "0.9.2"


def test_a_folder_for_the_ir_that_cannot_be_made_is_bad_input(jaxexport, project):
    (project / "taken").write_text("")
    assert_bad_input(jaxexport("matrix", "--dump-ir", "taken"), "--dump-ir: cannot make the folder taken")


def test_goldens_are_listed_and_verified(jaxexport, project):
    listed = jaxexport("goldens", "list")
    assert listed.out.splitlines() == [
        "t.test_f[a]/0.9.2-cpu  built 2026-03-18  for cpu  no custom calls",
        "t.test_f[a]/0.12.0.1-cpu  built 2026-10-20  for cpu  no custom calls",
        "2 goldens",
    ]
    assert jaxexport("goldens", "verify") == Ended(0, "2 goldens, every file as it was written\n", "")


def test_the_policy_names_the_folder_of_goldens_and_the_command_line_comes_before_it(jaxexport, project):
    (project / "golden").rename(project / "kept")
    (project / "export_compat.yaml").write_text("goldens: kept\n")
    assert jaxexport("goldens", "verify").code == 0
    assert_bad_input(jaxexport("goldens", "verify", "--goldens", "golden"), "golden: expected goldens, found none")


# --- plan, and what is refused before anything runs -------------------------------------------------------------------


def test_a_plan_is_shown_without_running_a_cell(jaxexport, project):
    ended = jaxexport("plan", "--readers", "0.9.2,0.12.0.1", "--as-of", "2026-11-21")
    assert (ended.code, ended.err) == (0, "")
    assert "t.test_f[a]/0.9.2-cpu  in 0.12.0.1 with jax 0.12.0.1 on cpu  backward 216 days  outside" in ended.out
    assert "4 cells as of 2026-11-21: 2 goldens of 1 cases by jaxlib 0.9.2, 0.12.0.1, in 2 readers" in ended.out
    assert not (project / ".jaxexport").exists()


def test_a_plan_as_json_follows_its_schema(jaxexport, project):
    from export_core.schemas import schema

    told = json.loads(jaxexport("plan", "--readers", "0.9.2,0.12.0.1", "--json").out)
    jsonschema.validate(told, schema("plan"))
    assert (told["planned"], len(told["cells"])) == (4, 4)


def test_jobs_for_github_take_what_the_plan_was_asked_for(jaxexport, project):
    words = ["--readers", "0.9.2,0.12.0.1", "--touching", "0.12.0.1", "--cases", "t.test_f[a]", "--goldens", "golden"]
    (first, second) = json.loads(jaxexport("plan", *words, "--as-of", "2026-11-21", "--format", "github").out)[
        "include"
    ]
    assert (first["cells"], second["cells"]) == (2, 1)
    for job in (first, second):
        again = json.loads(jaxexport("plan", *shlex.split(job["options"]), "--json").out)
        assert (again["planned"], again["as_of"]) == (job["cells"], "2026-11-21")


def test_jobs_for_github_have_a_day_though_none_was_given(jaxexport, project):
    (job,) = json.loads(jaxexport("plan", "--readers", "0.12.0.1", "--format", "github").out)["include"]
    today = datetime.datetime.now(tz=datetime.UTC).date()
    assert f"--as-of {today}" in job["options"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--readers", "0.11.1-jax0.12.0.1"], ["jax 0.12.0.1 needs jaxlib 0.11.2 or newer"]),
        (["--readers", "nowhere/jaxlib-0.13.0-cp312-cp312-any.whl"], ["expected a wheel file, found no such file"]),
        (["--wheels", "nowhere"], ["--wheels nowhere: expected a folder with wheels"]),
        (["--touching", "0.6.2", "--readers", "0.12.0.1"], ["The plan is empty: --touching 0.6.2"]),
    ],
    ids=lambda value: value[0] if value[0].startswith("--") else "",
)
@pytest.mark.parametrize("command", ["plan", "matrix"])
def test_readers_that_cannot_be_had_are_bad_input(command, words, said, jaxexport, project):
    assert_bad_input(jaxexport(command, *words), *said)


def test_another_plan_is_not_resumed(jaxexport, project):
    journal = Journal(project / ".jaxexport", PlanRecord("0", "2026-11-20", {}, "", "", 1, "", {}))
    journal.append(b"{}")
    journal.close()
    before = {path: path.read_bytes() for path in (project / ".jaxexport").iterdir()}
    ended = jaxexport("matrix", "--resume", "--readers", "0.12.0.1")
    assert "as of 2026-11-20" in ended.out, "the day on which it began"
    assert_bad_input(ended._replace(out=""), "--resume: the last run in .jaxexport had another plan")
    assert {path: path.read_bytes() for path in (project / ".jaxexport").iterdir()} == before


# --- judge ------------------------------------------------------------------------------------------------------------


def finished(folder: Path, *results: Result, planned: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_bytes(b"".join(result_line(each) + b"\n" for each in results))
    made = summarize(
        results, planned=len(results) if planned is None else planned, policy=Policy(),
        as_of=datetime.date(2026, 11, 21), selection={"whole": True}, seconds=1,
    )  # fmt: skip
    write_summary(folder, made)


CRASH = result(
    Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)", signal=11
)


@pytest.mark.parametrize(
    ("results", "planned", "code"),
    [([result()], None, 0), ([result(), CRASH], None, 1), ([result()], 2, 3), ([], 0, 3), ([result(), result()], 2, 3)],
)
def test_judging_again_says_the_same(results, planned, code, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "out", *results, planned=planned)
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    ended = jaxexport("judge", "out")
    assert (ended.code, ended.err) == (code, "")
    assert f"exit code {code}." in ended.out
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before, "evidence is only read"


def test_judging_again_with_another_policy_judges_by_it(jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "out", CRASH)
    (tmp_path / "short.yaml").write_text("windows: {backward: 30, forward: 0}")
    assert jaxexport("judge", "out", "--policy", "short.yaml").code == 0, "outside the window a crash is only shown"
    listed = (
        "known_failures: [{cases: [t.b], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: signal 11, "
        "reason: r, owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}]"
    )
    (tmp_path / "known.yaml").write_text(listed)
    ended = jaxexport("judge", "out", "--policy", "known.yaml")
    assert (ended.code, "known failure" in ended.out) == (0, True)
    late = jaxexport("judge", "out", "--policy", "known.yaml", "--as-of", "2026-12-02")
    assert (late.code, "expired on 2026-12-01" in late.out) == (4, True)


@pytest.mark.parametrize("broken", ["no folder", "no summary", "a bad line"])
def test_results_that_cannot_be_read_are_bad_input(broken, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "summary.json: expected the summary of a finished matrix run, found none"
    if broken != "no folder":
        finished(tmp_path / "out", result())
    if broken == "no summary":
        (tmp_path / "out" / "summary.json").unlink()
    if broken == "a bad line":
        with (tmp_path / "out" / "results.jsonl").open("a") as file:
            file.write("{}\n")
        said = "results.jsonl:2: not a result"
    assert_bad_input(jaxexport("judge", "out"), said)


# --- the whole thing, in real releases --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def real(tmp_path_factory) -> Path:
    """Goldens by the jax of this interpreter."""
    folder = tmp_path_factory.mktemp("project")
    subprocess.run([sys.executable, WRITE_GOLDENS, folder / "golden"], check=True)
    shutil.rmtree(folder / "golden" / "no_artifact")  # it would be refused, as another test shows
    return folder


@pytest.mark.matrix
def test_a_matrix_in_two_real_releases_ends_with_its_judgement(real):
    cases = ("waves", "keys", "every_dtype", "x64", "cholesky", "eigh")
    chosen = [word for case in cases for word in ("--cases", case)]
    ended = process(
        "matrix",
        *chosen,
        "--readers",
        "0.12.0.1,0.9.2",
        "--as-of",
        "2026-11-21",
        "--results",
        "out",
        "--jobs",
        "2",
        cwd=real,
    )
    assert ended.err == ""
    assert ended.code == 0, ended.out
    results = {(each.case, each.reader.jaxlib): each for each in read_results(real / "out")}
    assert set(results) == {(case, reader) for case in cases for reader in ("0.12.0.1", "0.9.2")}
    summary = read_summary(real / "out")
    assert (summary.planned, summary.results, summary.exit_code) == (12, 12, 0)
    for case in cases:
        here = results[case, "0.12.0.1"]
        assert (here.verdict, here.judgement, here.direction) == (Verdict.PASS, Judgement.KEPT, "same")
        there = results[case, "0.9.2"]
        assert (there.direction, there.days, there.promised) == ("forward", 216, False)
        if case in ("cholesky", "eigh"):  # written in a StableHLO that 0.9.2 does not know
            assert (there.verdict, there.stage, there.judgement) == (Verdict.ERROR, Stage.MODULE, Judgement.OUTSIDE)
            assert "Failed to deserialize StableHLO" in there.message
        else:
            assert (there.verdict, there.judgement) == (Verdict.PASS, Judgement.BONUS)
    last = ended.out.strip().splitlines()[-1]
    assert last.startswith("12 of 12 planned cells: 4 bonus, 6 kept, 2 outside. As of 2026-11-21, ")
    assert last.endswith("exit code 0.")


@pytest.mark.matrix
def test_linear_algebra_dies_by_signal_11_in_0_9_2_and_the_run_goes_on(tmp_path):
    goldens = Path(__file__).parents[1] / "golden"
    ended = process(
        *("matrix", "--goldens", goldens, "--cases", "*.test_cholesky", "--cases", "*.test_sort", "--writers", "0.9.2"),
        *("--readers", "0.9.2,0.12.0.1", "--as-of", "2026-11-21", "--results", "out", "--jobs", "2"),
        cwd=tmp_path,
    )
    assert ended.code == 1, ended
    found = {(each.case.rpartition("_")[2], each.reader.jaxlib): each for each in read_results(tmp_path / "out")}
    assert {key: (each.verdict, each.judgement) for key, each in found.items()} == {
        ("cholesky", "0.9.2"): (Verdict.CRASH, Judgement.BROKEN),
        ("cholesky", "0.12.0.1"): (Verdict.PASS, Judgement.BONUS),
        ("sort", "0.9.2"): (Verdict.PASS, Judgement.KEPT),
        ("sort", "0.12.0.1"): (Verdict.PASS, Judgement.BONUS),
    }
    crash = found["cholesky", "0.9.2"]
    assert (crash.stage, crash.signal, crash.message) == (Stage.RUN, 11, "died by signal 11 (SIGSEGV)")
    assert "sig11!" in ended.out


@pytest.mark.matrix
def test_a_broken_promise_ends_with_1_and_its_command_reproduces_just_that_cell(real):
    words = ["--as-of", "2026-11-21", "--jobs", "2", "--quiet"]
    ended = process("matrix", "--cases", "other_numbers", "--cases", "waves", "--readers", "0.12.0.1", *words, cwd=real)
    assert ended.code == 1, ended.out
    assert "BROKEN PROMISE  other_numbers, written by jax 0.12.0.1 with jaxlib 0.12.0.1 (built 2026-10-20)" in ended.out
    command = next(line.split("reproduce  ")[1] for line in ended.out.splitlines() if "reproduce  " in line)
    program, *rest = command.split()
    assert program == "jaxexport"
    again = process(*rest, cwd=real)
    assert again.code == 1
    assert "1 of 1 planned cells: 1 broken." in again.out


@pytest.mark.matrix
def test_a_release_that_cannot_be_installed_is_incomplete_and_the_others_are_run(real):
    (real / "missing.yaml").write_text(
        "releases: {jaxlib: {9.9.9: {built: 2026-11-01}}, jax: {9.9.9: {built: 2026-11-01, minimum_jaxlib: 9.9.9}}}"
    )
    ended = process(
        "matrix", "--cases", "waves", "--readers", "0.12.0.1,9.9.9", "--policy", "missing.yaml", "--as-of", "2026-11-21",
        "--results", "missing", cwd=real,
    )  # fmt: skip
    assert ended.code == 3, ended.out
    found = {each.reader.jaxlib: each for each in read_results(real / "missing")}
    assert found["0.12.0.1"].verdict is Verdict.PASS
    assert (found["9.9.9"].verdict, found["9.9.9"].stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert "jaxlib==9.9.9" in found["9.9.9"].message


def test_json_of_a_summary_is_for_people_too(tmp_path):
    finished(tmp_path, result())
    assert json.loads((tmp_path / "summary.json").read_bytes())["exit_code"] == 0
    assert (tmp_path / "summary.json").read_text().count("\n") > 10
    assert msgspec.json.decode((tmp_path / "results.jsonl").read_bytes(), type=Result) == result()


def test_a_golden_for_other_platforms_is_listed_with_them(jaxexport, project):
    store = GoldenStore(project / "golden")
    write_golden(store, manifest("t.tpu", options=Options(("cuda", "tpu")), custom_calls=("Sharding", "lapack_x")))
    assert "t.tpu/0.12.0.1-cpu  built 2026-10-20  for cuda,tpu  Sharding, lapack_x" in jaxexport("goldens", "list").out
    assert dump_manifest(store.generations("t.tpu")[0].manifest).startswith(b"format: 1")
