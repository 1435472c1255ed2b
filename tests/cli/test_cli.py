"""The command `jaxexport`: bad input gives one line and exit code 2, and commands that only print start no run."""

import datetime
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from commands import Ended, assert_bad_input, process
from making import ARTIFACTS, NEWEST, files, manifest, write_golden
from rich.console import Console

from export_core.base.errors import PREFIX, with_prefix
from export_core.base.exit_code import ExitCode
from export_core.cli import click_options
from export_core.cli.app import jaxexport as root
from export_core.cli.matrix import Follower
from export_core.goldens import GoldenStore, Options
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.policy.run_options import RunOptions
from export_core.readers.errors import EnvironmentFailed
from export_core.run.plan_record import PlanRecord
from export_core.run.results import Journal
from pytest_jaxexport.options import usage_error
from tools.schemas import schema


@pytest.fixture
def project(cwd) -> Path:
    """A project with one golden by each of two writers."""
    store = GoldenStore(cwd / "golden")
    for jaxlib in ("0.9.2", "0.12.0.1"):
        write_golden(store, manifest("t.test_f[a]", jaxlib))
    return cwd


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["matrix"], ["goldens", "verify"], ["matrix", "--goldens", "nowhere"]], ids=" ".join
)
def test_a_missing_golden_folder_is_bad_input(command, jaxexport, cwd):
    folder = command[-1] if "--goldens" in command else "golden"
    assert_bad_input(
        jaxexport(*command), f"{folder}: expected goldens, found none in {cwd}/{folder}.", "pytest --update-goldens"
    )
    assert list(cwd.iterdir()) == [], "and nothing is written"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\nexport_goldens = 'tests/golden'  # ours\n"),
        ("pytest.ini", "[pytest]\nexport_goldens=tests/golden/\n"),
    ],
)
@pytest.mark.parametrize("command", [["matrix", "--dry-run"], ["goldens", "verify"]], ids=" ".join)
def test_the_error_names_the_folder_where_pytest_writes_goldens(command, file, text, jaxexport, cwd):
    (cwd / file).write_text(text)
    where = f"pytest writes to tests/golden (export_goldens in {file})"
    assert_bad_input(jaxexport(*command), where, "set `goldens: tests/golden` in the policy.")
    (cwd / "export_compat.yaml").write_text("goldens: tests/golden\n")
    assert_bad_input(
        jaxexport(*command), f"tests/golden: expected goldens, found none in {cwd}/tests/golden. Mark a test with"
    )


def test_each_of_several_errors_starts_on_a_new_line(jaxexport, project):
    (project / "export_compat.yaml").write_text("windows:\n  backwards: 1\n  forwards: 2\n")
    for command in (["policy", "check"], ["matrix"]):
        unknown = [line.partition(": unknown key")[0] for line in jaxexport(*command, code=2).err.splitlines()]
        assert unknown == [
            f"{PREFIX}export_compat.yaml:{line}: windows.{way}wards" for line, way in ((2, "back"), (3, "for"))
        ]
    assert str(usage_error("a: wrong\n  why\nb: wrong")) == f"{PREFIX}a: wrong\n  why\n{PREFIX}b: wrong"
    fault = "build failed: no wheel\nthen build failed"
    assert with_prefix(EnvironmentFailed(fault)) == f"{PREFIX}build failed: no wheel\n  then build failed"


def test_an_environment_that_cannot_be_built_exits_as_incomplete():
    assert EnvironmentFailed.exit_code == ExitCode.INCOMPLETE


def test_the_error_names_a_parent_folder_that_has_goldens(jaxexport, project, monkeypatch):
    (project / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "src" / "deep")
    here = f"There are goldens in {project}/golden: run this command in {project}."
    expected = f"golden: expected goldens, found none in {project}/src/deep/golden. {here}"
    assert_bad_input(jaxexport("matrix"), expected)
    listed = jaxexport("goldens", "list")
    assert (listed.code, listed.out, listed.err) == (0, "0 goldens\n", f"warning: {expected}\n")


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
    listed = jaxexport("goldens", "list", code=0)
    assert "no custom calls  lacks inputs.npz\n" in listed.out
    assert listed.err == "warning: 1 golden lacks files: `jaxexport goldens verify` says what to do\n"


@pytest.mark.parametrize("damage", ["lacks", "has a damaged"])
def test_list_marks_a_golden_without_a_readable_manifest(damage, jaxexport, project):
    path = project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "golden.yaml"
    path.write_text("{[") if "damaged" in damage else path.unlink()
    listed = jaxexport("goldens", "list", code=0)
    assert listed.out.splitlines() == [
        "t.test_f[a]/0.12.0.1-cpu  built 2026-10-20  for cpu  no custom calls",
        f"t.test_f[a]/0.9.2-cpu  {damage} golden.yaml",
        "2 goldens",
    ]
    them = "lacks files" if damage == "lacks" else "has a damaged golden.yaml"
    assert listed.err == f"warning: 1 golden {them}: `jaxexport goldens verify` says what to do\n"


def test_list_refuses_a_golden_of_a_newer_version(jaxexport, project):
    path = project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "golden.yaml"
    path.write_text(path.read_text().replace("format: 1", "format: 99"))
    assert_bad_input(jaxexport("goldens", "list"), "reads up to 1. Upgrade")


def test_an_invalid_artifact_with_a_matching_hash_is_bad_input(jaxexport, project):
    store = GoldenStore(project / "golden")
    old = store.goldens()[0]
    write_golden(store, old.manifest, {**files(), "artifact.jaxexport": b"no artifact"})
    assert_bad_input(jaxexport("goldens", "verify"), "artifact.jaxexport")


@pytest.mark.parametrize(
    ("change", "message"),
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
@pytest.mark.parametrize("command", [["matrix"], ["goldens", "verify"]], ids=" ".join)
def test_a_damaged_manifest_is_bad_input(command, change, message, jaxexport, project):
    path = project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "golden.yaml"
    path.write_text(change(path.read_text()))
    assert_bad_input(jaxexport(*command), str(path.relative_to(project)), message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--readers", "0.9.3"], ["jaxlib 0.9.3 is not in the release calendar", "Did you mean", "0.9.2"]),
        (["--readers", ","], ["--readers: expected window, all, newest, deployed, jaxlib versions"]),
        (
            ["--readers", "0.12.0.1", "--as-of", "2026-10-19"],
            ["jaxlib 0.12.0.1 is not in the release calendar as of 2026-10-19"],
        ),
        (["--platforms", "gpu"], ["--platforms: expected some of cpu, cuda, rocm, tpu, found 'gpu'"]),
        (["--platforms", "tpu"], ["The plan is empty", "exported for cpu, and none for tpu"]),
        (["--as-of", "yesterday"], ["--as-of: expected a date such as 2026-10-25, found 'yesterday'"]),
        (["--as-of", "2026-02-30"], ["--as-of: expected a date"]),
        (["--as-of", "2025-01-01"], ["The plan is empty", "on or before 2025-01-01"]),
        (["--cases", "nope"], ["no case matches 'nope'"]),
        (["--writers", "0.9.1"], ["no golden was written by jaxlib 0.9.1. There are goldens by 0.9.2, 0.12.0.1"]),
        (["--policy", "none.yaml"], ["none.yaml: expected a policy file, found no such file"]),
        (["--timeout", "nan"], ["'--timeout': expected a finite number, found nan"]),
        (["--timeout", "inf"], ["'--timeout': expected a finite number, found inf"]),
        (["--memory", "nan"], ["'--memory': expected a finite number, found nan"]),
        (["--memory", "inf"], ["'--memory': expected a finite number, found inf"]),
        (["--memory", "1e300"], ["'--memory': 1e+300 is not in the range"]),  # more bytes than a system can count
        (["--memory", "0.05"], ["'--memory': expected 0 for no limit, or 0.0625 or more, found 0.05"]),
        (["--dump-ir", "/dev/null"], ["--dump-ir: cannot make the folder /dev/null"]),
        (["--dump-ir", "golden"], ["--dump-ir golden: expected a folder without goldens"]),
        (["--results", "/dev/null"], ["--results", "cannot write there"]),
        (["--results", "golden/t.test_f[a]/0.9.2-cpu"], ["expected a folder without goldens, found"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("--") else "",
)
def test_options_that_are_invalid_or_select_no_cell_are_bad_input(words, message, jaxexport, project):
    before = sorted(project.rglob("*"))
    ended = jaxexport("matrix", *words)
    if "--results" in words:  # the plan was printed by then
        ended = ended._replace(out="")
    assert_bad_input(ended, *message)
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [["matrix", "--jobs", "0"], ["matrix", "--timeout", "soon"], ["matrix", "--nope"], ["nope"], ["goldens", "nope"]],
    ids=" ".join,
)
def test_unknown_commands_options_and_values_are_usage_errors(words, jaxexport):
    ended = jaxexport(*words)
    assert_bad_input(ended, f"`jaxexport{' matrix' * ('matrix' in words)}", "--help` shows the ")


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (["matrix", "--shard=1/2", "--unpromised", "--only=promised"], "--unpromised", "--only=promised"),
        (["matrix", "--dump-ir", "--reader=0.12.0.1"], "--dump-ir", "--reader=0.12.0.1"),
        (["matrix", "--case", "-q"], "--case", "-q"),
        (["matrix", "--html", "--", "t.a"], "--html", "--"),
        (["judge", "--policy", "--json"], "--policy", "--json"),
        (["goldens", "list", "--goldens", "--help"], "--goldens", "--help"),
        (["inspect", "a", "--as-of", "--json"], "--as-of", "--json"),
        (["convert", "a", "-o", "--dry-run"], "-o", "--dry-run"),
    ],
    ids=str,
)
def test_an_option_is_not_taken_for_the_value_of_another(words, option, value, jaxexport, project):
    before = sorted(project.rglob("*"))
    assert_bad_input(jaxexport(*words), f"{option}: expected a value, found the option {value}. Give the value; ")
    assert sorted(project.rglob("*")) == before


def test_a_value_that_is_no_option_may_begin_with_dashes(jaxexport, project):
    assert_bad_input(jaxexport("matrix", "--policy", "--none"), "--none: ")
    assert_bad_input(jaxexport("matrix", "--policy=--json"), "--json: ")


@pytest.mark.parametrize(
    "words",
    [
        ["inspect"],
        ["audit", "no-file"],
        ["report", "no-folder"],
        ["judge", "--json"],
        ["matrix", "--dry-run", "--platforms", "gpu"],
    ],
    ids=" ".join,
)
def test_all_bad_input_messages_share_one_prefix(words, jaxexport, project):
    assert_bad_input(jaxexport(*words))


@pytest.mark.parametrize(
    "words", [["inspect", "no-file"], ["nope"]], ids=" ".join
)  # inspect has an entry point of its own
def test_a_real_process_reports_bad_input_in_one_line(words, project):
    assert_bad_input(process(*words, cwd=project), words[-1])


def test_with_a_wrong_policy_nox_warns_and_still_lists_sessions(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("golden: typo")
    (tmp_path / "noxfile.py").write_text("from pytest_jaxexport.nox_sessions import register\nregister()\n")
    command = [sys.executable, "-m", "nox", "--list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith(f"{PREFIX}export_compat.yaml:1: golden: unknown key.")
    assert "Traceback" not in done.stderr
    assert "* compat_matrix ->" in done.stdout


def test_usage_errors_of_the_plugin_and_jaxexport_share_a_prefix():
    assert str(usage_error("wrong")) == f"{PREFIX}wrong"


# --- commands that show -----------------------------------------------------------------------------------------------


def test_help_lists_every_command_without_jax_and_numpy():
    script = (
        "import sys, runpy; sys.argv = ['jaxexport', '--help']\n"
        "try: runpy.run_module('export_core', run_name='__main__')\n"
        "except SystemExit: sys.exit(len({'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for command in root.commands:
        assert f"\n  {command} " in done.stdout


def test_releases_are_listed_by_date_with_their_windows(jaxexport):
    ended = jaxexport("releases", "list", "--as-of", "2026-10-25", code=0)
    head, *lines = ended.out.splitlines()
    assert head.endswith(" promised to jaxlibs built until 0.12.0.1 runs them")
    *rows, withdrawn = map(str.split, lines)
    assert " ".join(rows[-1]) == "0.12.0.1 2026-10-20 5 0.12.0.1 0.10.1 … 0.12.0.1 (7) 2027-04-18 promised"
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert "0.9.2 2026-03-18 221 0.9.2 0.8.0 … 0.9.2 (8) 2026-09-14 outside" in [" ".join(row) for row in rows]
    assert [row[0] for row in rows if row[0] in ("0.8.3", "0.9.0")][::-1] == ["0.8.3", "0.9.0"]
    assert withdrawn == ["0.4.32", "withdrawn:", "no", "reason", "given"]
    earlier = json.loads(jaxexport("releases", "list", "--as-of", "2026-03-20", "--json").out)
    jsonschema.validate(earlier, schema("releases"), format_checker=jsonschema.FormatChecker())
    last = earlier["releases"][-1]
    assert (last["jaxlib"], last["promised_from"], last["promised_until"]) == ("0.9.2", "2026-02-25", "2026-09-14")
    assert last["runs"] == ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.8.3", "0.9.0.1", "0.9.1", "0.9.2"]
    assert {each["jaxlib"] for each in earlier["releases"] if each["promised_by_newest"]} == set(last["runs"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["releases", "list"], "No jaxlib release is known on 2020-01-01"),
        (["forecast"], "No jaxlib release is known on 2020-01-01"),
        (["goldens", "prune"], "No jaxlib release is known on 2020-01-01"),
        (["matrix", "--dry-run"], "none was written by a jaxlib built on or before 2020-01-01"),
        (["matrix"], "none was written by a jaxlib built on or before 2020-01-01"),
    ],
)
def test_a_day_before_the_first_release_is_bad_input(jaxexport, project, words, message):
    assert_bad_input(jaxexport(*words, "--as-of", "2020-01-01"), message, "Choose a later --as-of")


def test_goldens_are_listed_and_verified(jaxexport, project):
    listed = jaxexport("goldens", "list")
    assert listed.out.splitlines() == [
        "t.test_f[a]/0.9.2-cpu  built 2026-03-18  for cpu  no custom calls",
        "t.test_f[a]/0.12.0.1-cpu  built 2026-10-20  for cpu  no custom calls",
        "2 goldens",
    ]
    assert jaxexport("goldens", "verify") == Ended(0, "2 goldens, every file as its golden.yaml lists it\n", "")


def test_verify_checks_only_the_goldens_that_are_named(jaxexport, project):
    write_golden(GoldenStore(project / "golden"), manifest("t.test_g", "0.9.2"))
    damaged = project / "golden" / "t.test_g" / "0.9.2-cpu"
    (damaged / INPUTS).write_bytes(b"")
    (damaged / "notes.txt").write_text("")
    assert jaxexport("goldens", "verify", "*.test_g").code == 2
    one = jaxexport("goldens", "verify", "t.test_f[a]/0.9.2-cpu")
    assert one == Ended(0, "1 golden, every file as its golden.yaml lists it\n", "")
    (project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "notes.txt").write_text("")
    refused = jaxexport("goldens", "verify", "t.test_f[a]", code=2).err
    assert "t.test_f[a]/0.9.2-cpu/notes.txt" in refused
    assert "t.test_g" not in refused
    assert_bad_input(jaxexport("goldens", "verify", "t.test_h"), "t.test_h")


def test_verify_finds_a_manifest_that_was_edited(jaxexport, project):
    listed = next((project / "golden").rglob("golden.yaml"))
    listed.write_text(f"{listed.read_text()}# reviewed\n")
    ended = jaxexport("goldens", "verify")
    assert_bad_input(
        ended, "edited by hand: expected no more lines, as pytest-jaxexport writes it, found '# reviewed'."
    )


def test_verify_does_not_claim_that_listed_hashes_are_original(jaxexport, project):
    """If a file and its hash in golden.yaml are changed together, nothing shows that the file is not as written."""
    golden = next((project / "golden").rglob("golden.yaml")).parent
    listed, changed = golden / "golden.yaml", files(fill=1.5)[OUTPUTS]
    hashes = [hashlib.sha256(data).hexdigest() for data in ((golden / OUTPUTS).read_bytes(), changed)]
    (golden / OUTPUTS).write_bytes(changed)
    assert_bad_input(jaxexport("goldens", "verify"), "outputs.npz: damaged: expected SHA-256")
    (golden / INPUTS).write_bytes(changed)  # here they are the same bytes
    listed.write_text(listed.read_text().replace(*hashes))
    for words in (("goldens", "verify"), ("inspect", f"t.test_f[a]/{golden.name}")):
        ended = jaxexport(*words, code=0)
        assert "as its golden.yaml lists it" in ended.out
        assert "was written" not in ended.out


def test_a_golden_with_an_unknown_operation_is_bad_input(jaxexport, project):
    everywhere = Options(platforms=("cpu", "cuda", "tpu"))
    tanh = (ARTIFACTS / NEWEST / "platforms.jaxexport").read_bytes().replace(b"tanh_v2\0", b"tanh_v9\0")
    write_golden(
        GoldenStore(project / "golden"), manifest("t.test_tanh", options=everywhere), {**files(), ARTIFACT: tanh}
    )
    assert_bad_input(jaxexport("goldens", "verify"), "vhlo.tanh_v9 (operation) is unknown to this version")
    (project / "export_compat.yaml").write_text("allow: {vhlo.tanh_v9: it is a tanh}\n")
    assert jaxexport("goldens", "verify").code == 0


@pytest.mark.parametrize(
    ("stray", "message"),
    [
        ("t.test_f[a]/0.9.2-cpu/notes.txt", "not one of the files of t.test_f[a]/0.9.2-cpu"),
        ("t.test_f[a]/0.9.2-cpu/__pycache__/m.pyc", "t.test_f[a]/0.9.2-cpu: bytecode, which can be deleted"),
        ("t.test_f[a]/notes.txt", "a file outside any golden's folder"),
        ("stray.bin", "a file outside any golden's folder"),
        ("t.test_f[a]/.new-0.9.2-cpu-999999999-ab/golden.yaml", "left by a process that was killed"),
        ("t.test_f[a]/.gone-0.9.2-cpu-999999999-ab/inputs.npz", "left by a process that was killed"),
        ("t.test_f[a]/.old-0.9.2-cpu/golden.yaml", "the golden that a killed update was replacing"),
    ],
)
def test_files_that_belong_to_no_golden_are_reported(jaxexport, project, stray, message):
    path = project / "golden" / stray
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    ended = jaxexport("goldens", "verify")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    advice = (
        "belong to no golden: delete them, or move them elsewhere. 2 goldens, every file as its golden.yaml lists it."
    )
    assert advice in ended.err


def test_verify_reports_all_damages_at_once(jaxexport, project):
    older, newer = (project / "golden" / "t.test_f[a]" / f"{writer}-cpu" for writer in ("0.9.2", "0.12.0.1"))
    (older / INPUTS).write_bytes(b"")
    (older / OUTPUTS).unlink()
    (newer / "golden.yaml").write_text("format: [")
    (newer.with_name("0.10.0-cpu")).mkdir()
    (project / "golden" / "notes.txt").write_text("")
    (older / "notes.txt").write_text("")
    ended = jaxexport("goldens", "verify")
    assert (ended.code, ended.out) == (2, "")
    damaged = (
        f"{older.name}/inputs.npz",
        f"{older.name}/outputs.npz",
        f"{newer.name}/golden.yaml",
        "0.10.0-cpu/golden",
    )
    for text in (*damaged, "golden/notes.txt", f"{older.name}/notes.txt", "belong to no golden: delete them"):
        assert text in ended.err
    assert "2 goldens" not in ended.err


def test_verify_reports_an_empty_case_folder_and_ignores_a_readme(jaxexport, project):
    for name in ("README.md", "readme", ".gitattributes", ".DS_Store"):
        (project / "golden" / name).write_text("")
    assert jaxexport("goldens", "verify").code == 0
    (project / "golden" / "t.test_g").mkdir()
    assert "t.test_g: a case without a golden" in jaxexport("goldens", "verify").err


@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",)], ids=["dry", "delete"])
def test_prune_refuses_a_pinned_pattern_that_matches_no_golden(jaxexport, project, words):
    (project / "export_compat.yaml").write_text(
        "retention: {pinned: [{goldens: [t.mispelled/*], reason: in production}]}"
    )
    ended = jaxexport("goldens", "prune", "--as-of", "2027-04-01", *words)
    pin = "export_compat.yaml:1: retention.pinned[0] (in production): 't.mispelled/*' matches no golden."
    assert_bad_input(ended, f"{pin} Nothing was deleted. Correct each such pattern, or remove it from its pin.")
    assert not ended.out, "a dry run lists nothing: nothing would be deleted"
    assert (project / "golden" / "t.test_f[a]" / "0.9.2-cpu").exists()


def test_prune_deletes_only_goldens_and_only_if_confirmed(jaxexport, project):
    (project / "golden" / "t.test_f[a]" / "notes.txt").write_text("mine")
    write_golden(GoldenStore(project / "golden"), manifest("t.test_g", "0.6.2"))
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    dry = jaxexport("goldens", "prune", "--as-of", "2027-04-01", "--dry-run")
    assert dry.out.splitlines() == [
        "retains  t.test_f[a]/0.12.0.1-cpu  a jaxlib built on 2027-04-01 must run it; promised to run in the live "
        "readers 0.12.0, 0.12.0.1; the last of its case by a writer on cpu",
        "retains  t.test_g/0.6.2-cpu  the last of its case by a writer on cpu",
        "prunes   t.test_f[a]/0.9.2-cpu  built 2026-03-18",
        "would delete 1 of 3 goldens, as of 2027-04-01",
    ]
    asked = jaxexport("goldens", "prune", "--as-of", "2027-04-01")
    assert (asked.code, asked.out) == (2, dry.out.rpartition("would")[0]), "no terminal to ask on"
    assert "--yes removes without asking, --dry-run only shows." in asked.err
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    done = jaxexport("goldens", "prune", "--as-of", "2027-04-01", "--yes", "-q")
    assert done.out.splitlines() == [
        "prunes   t.test_f[a]/0.9.2-cpu  built 2026-03-18",
        "deleted 1 of 3 goldens, as of 2027-04-01",
    ]
    after = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert after == {path: data for path, data in before.items() if "0.9.2-cpu" not in path.parts}
    assert not list(project.glob("golden/*/.*")) + list(project.glob("golden/*/0.9.2-cpu"))


@pytest.mark.parametrize("answer", [True, False])
def test_prune_on_a_terminal_asks_first(jaxexport, project, monkeypatch, answer):
    write_golden(GoldenStore(project / "golden"), manifest("t.test_g", "0.6.2"))
    terminal = StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(click_options, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", lambda question, **_: asked.append(question) or answer)
    ended = jaxexport("goldens", "prune", "--as-of", "2027-04-01", code=0)
    assert asked == ["Delete 1 of 3 goldens?"]
    assert f"{'deleted' if answer else 'would delete'} 1 of 3 goldens, as of 2027-04-01\n" in ended.out
    assert (project / "golden" / "t.test_f[a]" / "0.9.2-cpu").exists() is not answer


@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",)], ids=["dry", "delete"])
def test_prune_deletes_nothing_if_a_golden_is_damaged(jaxexport, project, words):
    (project / "golden" / "t.test_f[a]" / "0.12.0.1-cpu" / "inputs.npz").write_bytes(b"damaged")
    ended = jaxexport("goldens", "prune", "--as-of", "2027-04-01", *words)
    assert_bad_input(ended, "inputs.npz: damaged")
    assert (project / "golden" / "t.test_f[a]" / "0.9.2-cpu" / "golden.yaml").exists()


def test_the_option_goldens_overrides_the_policys_golden_folder(jaxexport, project):
    (project / "golden").rename(project / "kept")
    (project / "export_compat.yaml").write_text("goldens: kept\n")
    assert jaxexport("goldens", "verify").code == 0
    assert_bad_input(jaxexport("goldens", "verify", "--goldens", "golden"), "golden: expected goldens, found none")


# --- plan, and what is refused before anything runs -------------------------------------------------------------------


def test_matrix_accepts_cases_as_arguments(jaxexport, project):
    every = jaxexport("matrix", "--dry-run", "--as-of", "2026-11-21").out
    assert jaxexport("matrix", "t.test_f*", "--dry-run", "--as-of", "2026-11-21").out == every
    assert_bad_input(jaxexport("matrix", "t.test_g", "--dry-run"), "--cases: no case matches 't.test_g'.")


def test_a_plan_is_shown_where_no_comparator_is_installed(jaxexport, project):
    rule = "numbers:\n- cases: ['*']\n  compare: not_installed.checks:close\n  reason: ours\n"
    (project / "export_compat.yaml").write_text(rule)
    assert jaxexport("matrix", "--dry-run", "--format", "github", "--as-of", "2026-11-21").code == 0
    assert_bad_input(jaxexport("matrix", "--as-of", "2026-11-21"), "cannot import not_installed")


def test_a_plan_is_shown_without_running_a_cell(jaxexport, project):
    ended = jaxexport("matrix", "--dry-run", "--readers", "0.9.2,0.12.0.1", "--as-of", "2026-11-21")
    assert (ended.code, ended.err) == (0, "")
    assert "t.test_f[a]/0.9.2-cpu  in 0.12.0.1 with jax 0.12.0.1 on cpu  backward 216 days  outside" in ended.out
    assert "4 cells as of 2026-11-21: 2 goldens of 1 case by jaxlib 0.9.2, 0.12.0.1, in 2 readers" in ended.out
    assert not (project / ".jaxexport").exists()


def test_a_plan_as_json_follows_its_schema(jaxexport, project):
    plan = json.loads(jaxexport("matrix", "--dry-run", "--readers", "0.9.2,0.12.0.1", "--json").out)
    jsonschema.validate(plan, schema("plan"))
    assert (plan["planned"], len(plan["cells"])) == (4, 4)


def test_each_github_job_repeats_the_options_of_the_plan(jaxexport, project):
    words = ["--readers", "0.9.2,0.12.0.1", "--touching", "0.12.0.1", "--cases", "t.test_f[a]", "--goldens", "golden"]
    jobs = json.loads(jaxexport("matrix", "--dry-run", *words, "--as-of", "2026-11-21", "--format", "github").out)
    (first, second) = jobs["include"]
    assert (first["cells"], second["cells"]) == (2, 1)
    for job in (first, second):
        again = json.loads(jaxexport("matrix", "--dry-run", *shlex.split(job["options"]), "--json").out)
        assert (again["planned"], again["as_of"]) == (job["cells"], "2026-11-21")


def test_github_jobs_run_only_promised_cells_if_asked(jaxexport, project):
    words = ["--readers", "0.9.2,0.12.0.1", "--only", "promised", "--format", "github"]
    jobs = json.loads(jaxexport("matrix", "--dry-run", *words).out)["include"]
    assert [job["cells"] for job in jobs] == [1, 1]
    assert all("--only promised" in job["options"] for job in jobs)


def test_github_jobs_use_todays_date_by_default(jaxexport, project):
    before = datetime.datetime.now(tz=datetime.UTC).date()
    (job,) = json.loads(jaxexport("matrix", "--dry-run", "--readers", "0.12.0.1", "--format", "github").out)["include"]
    days = before, datetime.datetime.now(tz=datetime.UTC).date()
    assert any(f"--as-of {day}" in job["options"] for day in days)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--readers", "0.11.1-jax0.12.0.1"], ["jax 0.12.0.1 needs jaxlib 0.11.2 or newer"]),
        (["--readers", "nowhere/jaxlib-0.13.0-cp312-cp312-any.whl"], ["expected a wheel file, found no such file"]),
        (["--wheels", "nowhere"], ["--wheels nowhere: expected a folder with wheels"]),
        (["--touching", "0.6.2", "--readers", "0.12.0.1"], ["The plan is empty: --touching 0.6.2"]),
    ],
    ids=lambda value: value[0] if value[0].startswith("--") else "",
)
@pytest.mark.parametrize("command", [("matrix", "--dry-run"), ("matrix",)], ids=" ".join)
def test_readers_and_wheels_that_do_not_exist_are_bad_input(command, words, message, jaxexport, project):
    assert_bad_input(jaxexport(*command, *words), *message)


def test_a_run_with_another_plan_is_not_resumed(jaxexport, project):
    record = PlanRecord("0", "2026-11-20", {}, {}, "", 1, "", {}, "", {}, {})
    with Journal(project / ".jaxexport", record) as journal:
        journal.append(b"{}")
    before = {path: path.read_bytes() for path in (project / ".jaxexport").iterdir()}
    ended = jaxexport("matrix", "--resume", "--readers", "0.12.0.1")
    assert "as of 2026-11-20" in ended.out, "the day on which it began"
    assert_bad_input(ended._replace(out=""), "--resume: the last run in .jaxexport had another plan")
    assert {path: path.read_bytes() for path in (project / ".jaxexport").iterdir()} == before


def test_goldens_list_shows_platforms_and_custom_calls(jaxexport, project):
    store = GoldenStore(project / "golden")
    write_golden(store, manifest("t.tpu", options=Options(("cuda", "tpu")), custom_calls=("Sharding", "lapack_x")))
    assert "t.tpu/0.12.0.1-cpu  built 2026-10-20  for cuda,tpu  Sharding, lapack_x" in jaxexport("goldens", "list").out
    assert dump_manifest(store.generations("t.tpu")[0].manifest).startswith(b"format: 1")


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_omits_the_note_printed_before_a_run_starts(capsys, quiet):
    observer = Follower(click_options.console(), RunOptions(), quiet=quiet).observer()
    observer.note("waiting for the Dask scheduler at tcp://[::1]:9999")
    assert capsys.readouterr().out == ("" if quiet else "waiting for the Dask scheduler at tcp://[::1]:9999\n")


@pytest.mark.parametrize(("is_terminal", "seconds"), [(True, 10.0), (False, 60.0)])
def test_a_terminal_reports_a_slow_cell_sooner_than_a_log_does(is_terminal, seconds):
    screen = Console(force_terminal=is_terminal, force_interactive=is_terminal, _environ={"TERM": "xterm"})
    assert Follower(screen, RunOptions(), quiet=False).observer().silence == seconds


def test_an_interrupted_command_ends_with_code_130(jaxexport, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("export_core.cli.click_options.policy_of", interrupt)
    assert jaxexport("releases", "list").code == 130


@pytest.mark.parametrize("module", ["export_core.cli.app", "export_core.features.inspect.screen"])
def test_ctrl_c_while_a_command_starts_prints_one_line(module):
    """Interrupt the import of a module, where Python alone would print a traceback and end by the signal."""
    finder = f"""
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from export_core.cli.entry import main
sys.argv[1:] = ["inspect", "nofile"]
main()
"""
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "jaxexport: error: interrupted.\n")


@pytest.mark.parametrize("times", [1, 2], ids=["once", "as timeout sends it"])
def test_a_terminated_command_cleans_up_and_ends_with_code_143(times, jaxexport, monkeypatch):
    """Without a handler, SIGTERM would end the command at once, and leave a child process and a folder behind."""
    cleaned = []

    def terminate(*_: object) -> None:
        kill = f"sleep 0.1; kill -TERM {os.getpid()}; "
        try:
            with subprocess.Popen(["/bin/sh", "-c", kill * times]):
                time.sleep(30)
        finally:
            cleaned.append("up")

    monkeypatch.setattr("export_core.cli.click_options.policy_of", terminate)
    ended = jaxexport("releases", "list", code=143)
    assert ended.err.strip() == "jaxexport: error: interrupted."
    assert cleaned == ["up"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("words", [["policy", "show"], ["inspect", "nofile"], ["nonsense"]])
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(words):
    """Without care, Python would end with 1, the exit code of a broken promise."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "export_core", *words], stdout=full, stderr=full, check=False)
    assert done.returncode == 2
