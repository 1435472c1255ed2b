"""`jaxexport inspect DIR`: the artifacts of an archive counted, and its other files left out."""

import json
import operator
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from artifacts import DATA, bare, unlisted
from commands import assert_bad_input, is_alive, wait_for

from export_core.artifact import folders
from export_core.artifact.folders import Found, UnreadFilesError, files_of, in_parallel
from tools.schemas import schema

DAY = ("--as-of", "2026-11-22")
OLD = DATA / "0.9.2" / "cholesky.jaxexport"  # promised until 2026-09-14
NEW = DATA / "0.12.0.1" / "mlp.jaxexport"


@pytest.fixture
def folder(tmp_path) -> Path:
    """An archive of two artifacts, one of them in a subfolder and without a file extension."""
    made = tmp_path / "archive"
    (made / "deep" / "deeper").mkdir(parents=True)
    shutil.copy(OLD, made / "old.jaxexport")
    shutil.copy(NEW, made / "deep" / "deeper" / "new")
    return made


def counts(out: str, title: str) -> dict[str, int]:
    """Return the counts under a title of the screen, by name."""
    lines = iter(out.splitlines())
    found = [next(line for line in lines if line.startswith(f"{title} "))]
    for line in lines:
        if not line.startswith(" "):
            break
        found.append(line)
    rows = (line[14:].split(maxsplit=1) for line in found)
    return {name: int(number.replace(",", "")) for number, name in rows}


def test_artifacts_of_all_folders_below_are_counted(folder, jaxexport):
    ended = jaxexport("inspect", folder, *DAY)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("2 artifacts, 11.1 kB, as of 2026-11-22\n")
    assert counts(ended.out, "written by") == {"jaxlib 0.11.2 to 0.12.0.1, one of 3": 1, "jaxlib 0.9.2": 1}
    assert counts(ended.out, "format") == {"12": 1, "5, 6, 7, 8 or 9": 1}
    assert counts(ended.out, "platforms") == {"cpu": 2}
    assert counts(ended.out, "custom calls") == {"lapack_spotrf_ffi": 1, "lapack_strsm_ffi": 1, "none": 1}
    assert counts(ended.out, "loads in") == {"0.12.0.1, the newest release": 2}
    assert "left out" not in ended.out


def test_inspect_prints_several_files_as_json_like_a_folder(folder, jaxexport):
    files = [folder / "old.jaxexport", folder / "deep" / "deeper" / "new"]
    objects = [json.loads(line) for line in jaxexport("inspect", *files, "--json", *DAY).out.splitlines()]
    of_folder = [json.loads(line) for line in jaxexport("inspect", folder, "--json", *DAY).out.splitlines()]
    assert len(objects) == 2
    assert sorted(objects, key=operator.itemgetter("file")) == sorted(of_folder, key=operator.itemgetter("file"))
    option = "Of a folder or of several files: an object a line for each file"
    assert option in " ".join(jaxexport("inspect", "--help").out.split())


def test_inspecting_a_folder_does_not_import_numpy(folder):
    script = (
        "import sys, runpy; sys.argv = ['jaxexport', 'inspect', sys.argv[1]]\n"
        "try: runpy.run_module('export_core', run_name='__main__')\n"
        "except SystemExit: sys.exit('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout[:11]) == (0, "", "2 artifacts")


@pytest.mark.parametrize(
    ("day", "name"),
    [
        ("2026-06-10", "longer"),
        ("2026-06-17", "for 31 to 90 days"),
        ("2026-08-15", "for 30 days at most"),
        ("2026-09-14", "for 30 days at most"),
        ("2026-09-15", "no longer"),
    ],
)
def test_artifacts_are_counted_by_days_still_promised(day, name, folder, jaxexport):
    shutil.rmtree(folder / "deep")
    out = jaxexport("inspect", folder, "--as-of", day).out
    promised = counts(out, "promised")
    assert {key for key, number in promised.items() if number} == {name}
    assert {"for 30 days at most", "for 31 to 90 days"} <= {*promised}
    assert ("ends first    2026-09-14  " in out) == ("days" in name)


def test_artifacts_that_no_release_loads_are_named(folder, jaxexport):
    out = jaxexport("inspect", folder, "--as-of", "2025-01-01").out
    assert counts(out, "loads in") == {"no release": 2}
    assert f"in none       {folder}/deep/deeper/new\n              {folder}/old.jaxexport\n" in out


def test_artifacts_that_only_old_releases_load_are_counted(folder, jaxexport):
    shutil.copy(DATA / "0.8.1" / "mlp.jaxexport", folder)
    loading = counts(jaxexport("inspect", folder, *DAY).out, "loads in")
    assert loading["older releases, 0.11.0 the newest of them"] == 1


def test_unpromised_custom_calls_are_counted(folder, jaxexport, tmp_path):
    shutil.copy(unlisted(folder), folder / "kernel")
    assert counts(jaxexport("inspect", folder, *DAY).out, "not promised") == {"my_kernel_of_ours": 2}
    (tmp_path / "export_compat.yaml").write_text("allow: {my_kernel_of_ours: we build it}\n")
    assert "not promised" not in jaxexport("inspect", folder, *DAY).out


def test_bare_modules_have_no_writer_and_no_promise(tmp_path, jaxexport):
    (tmp_path / "archive").mkdir()
    bare(tmp_path / "archive")
    out = jaxexport("inspect", tmp_path / "archive", *DAY).out
    assert counts(out, "written by") == {"not known, since it is bare StableHLO": 1}
    assert counts(out, "promised")["not known"] == 1


def test_files_that_are_no_artifacts_are_counted_by_kind(folder, jaxexport):
    (folder / "readme").write_text("words, and more words")
    (folder / "inputs.npz").write_bytes(b"PK\x03\x04 and more")
    (folder / "nothing").touch()
    (folder / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "short").write_bytes(b"\x00\x01")
    (folder / "to-folder").symlink_to(folder / "deep")
    (folder / "to-file").symlink_to(folder / "old.jaxexport")
    (folder / "broken").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe")
    ended = jaxexport("inspect", folder, *DAY, code=0)
    assert ended.out.startswith("3 artifacts, "), "and a link to a file is followed"
    assert counts(ended.out, "left out") == {
        "text": 1,
        "a zip file (an .npz, or a saved model)": 1,
        "empty": 1,
        "of another format": 2,
        "a link to a folder": 1,
        "a broken link": 1,
        "no plain file": 1,
    }


def test_hidden_folders_and_environments_are_left_out(folder, jaxexport):
    for name in (".hidden", "env"):
        shutil.copytree(folder / "deep", folder / name)
    (folder / "env" / "pyvenv.cfg").touch()
    ended = jaxexport("inspect", folder, *DAY, code=0)
    assert ended.out.startswith("2 artifacts, ")
    assert counts(ended.out, "left out") == {"a hidden folder or a virtual environment": 2}
    assert jaxexport("inspect", folder, folder / ".hidden", *DAY).out.startswith("3 artifacts, ")
    assert jaxexport("inspect", folder / "env", *DAY).out.startswith("1 artifact, ")
    assert jaxexport("audit", folder).out.startswith("4 artifacts: "), "an audit skips nothing"


def test_damaged_artifacts_are_named_and_not_counted(folder, jaxexport):
    (folder / "cut").write_bytes(OLD.read_bytes()[:900])
    (folder / "text.jaxexport").write_text("not what its name says")
    ended = jaxexport("inspect", folder, *DAY, code=2)
    assert ended.out.startswith("2 artifacts, ")
    assert counts(ended.out, "not read") == {"damaged, or no artifacts": 2}
    first, second = sorted(ended.err.splitlines())
    assert first.startswith(f"jaxexport: error: {folder}/cut: expected ")
    assert second.startswith(f"jaxexport: error: {folder}/text.jaxexport: expected a serialized jax.export artifact")


def test_a_folder_that_cannot_be_listed_is_named(folder, jaxexport, monkeypatch):
    scan = os.scandir

    def scandir(path):
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(folders.os, "scandir", scandir)
    ended = jaxexport("inspect", folder, *DAY)
    assert (ended.code, ended.out.split(",")[0]) == (2, "1 artifact")
    assert ended.err == (
        f"jaxexport: error: {folder}/deep: expected a folder or file to read, found Permission denied. "
        "Check its permissions.\n"
    )


def test_json_has_a_valid_line_for_each_file(folder, jaxexport):
    (folder / "cut").write_bytes(OLD.read_bytes()[:900])
    (folder / "readme").write_text("words, and more words")
    ended = jaxexport("inspect", folder, "--json", *DAY)
    rows = {Path(row["file"]).name: row for row in map(json.loads, ended.out.splitlines())}
    for row in rows.values():
        jsonschema.Draft202012Validator(schema("inventory")).validate(row)
    assert {*rows} == {"old.jaxexport", "new", "cut"}
    assert rows["cut"]["error"].startswith("expected ")
    old = rows["old.jaxexport"]
    assert (old["error"], old["writers"], old["promised_until"]) == (None, ["0.9.2"], "2026-09-14")
    assert (old["custom_calls"], old["unpromised"]) == (["lapack_spotrf_ffi", "lapack_strsm_ffi"], [])
    assert (old["newest_reader"], old["readers"], old["unknown_readers"]) == ("0.12.0.1", 14, 0)
    assert ended.err == f"jaxexport: error: {folder}/cut: {rows['cut']['error']}\n", "no table for people"


def test_a_named_file_is_never_left_out(jaxexport, tmp_path):
    (tmp_path / "readme").write_text("words, and more words")
    ended = jaxexport("inspect", OLD, NEW, "readme", "nowhere", *DAY)
    assert (ended.code, ended.out.partition(",")[0]) == (2, "2 artifacts")
    assert ended.err.splitlines() == [
        "jaxexport: error: readme: expected a serialized jax.export artifact, found text, at byte 0. Give the bytes "
        "that Exported.serialize() returned.",
        "jaxexport: error: nowhere: expected a file to read, found No such file or directory. Check the path.",
    ]


def test_a_folder_without_artifacts_is_bad_input(jaxexport, tmp_path):
    (tmp_path / "readme").write_text("words, and more words")
    ended = jaxexport("inspect", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"jaxexport: error: {tmp_path}: expected artifacts, found none in 1 file.")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_many_files_are_read_in_parallel_in_order(jobs, folder, jaxexport, monkeypatch):
    for number in range(8):
        shutil.copy(OLD, folder / f"{number}.jaxexport")
    alone = jaxexport("inspect", folder, "--json", *DAY)
    monkeypatch.setattr(folders, "CHUNK", 2)
    assert jaxexport("inspect", folder, "--json", "--jobs", jobs, *DAY) == alone


def test_reading_the_first_files_does_not_wait_for_the_whole_list(monkeypatch):
    monkeypatch.setattr(folders, "CHUNK", 2)
    listed: list[str] = []

    def found():
        for number in range(1000):
            listed.append(str(number))
            yield Found(str(number))

    results = in_parallel(operator.attrgetter("path"), found(), 2)
    assert [next(results) for _ in range(5)] == ["0", "1", "2", "3", "4"]
    assert len(listed) < 40
    results.close()


def test_a_killed_reading_process_is_one_error(monkeypatch):
    monkeypatch.setattr(folders, "CHUNK", 1)
    monkeypatch.setattr(folders, "FEW", 2)
    with pytest.raises(UnreadFilesError, match="a process that read files was killed"):
        list(in_parallel(os._exit, [1, 1, 1], 2))


def test_folders_and_files_can_be_named_together(folder):
    paths = [found.path for found in files_of([str(folder), str(NEW)])]
    assert sorted(paths) == sorted([f"{folder}/old.jaxexport", f"{folder}/deep/deeper/new", str(NEW)])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--mlir",), "--mlir and --readers each need exactly one artifact"),
        (("--readers", "0.9.2"), "--mlir and --readers each need exactly one artifact"),
        (("--as-of", "soon"), "--as-of: expected a date such as"),
    ],
)
def test_options_for_one_artifact_are_refused_for_a_folder(folder, jaxexport, words, expected):
    assert_bad_input(jaxexport("inspect", folder, *words), expected)


def test_reading_processes_get_no_secrets_or_local_modules(tmp_path, monkeypatch):
    (tmp_path / "multiprocessing.py").write_text("open('imported', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setattr(folders, "CHUNK", 1)
    names = ["GITHUB_TOKEN", "PYTHONSAFEPATH"] * folders.FEW
    assert list(in_parallel(os.getenv, names, 2)) == [None, "1"] * folders.FEW
    assert not Path("imported").exists()
    assert os.environ["GITHUB_TOKEN"] == "secret"
    assert "PYTHONSAFEPATH" not in os.environ


def test_reading_processes_end_when_their_command_is_killed():
    program = "import time; from export_core.artifact.folders import in_parallel; "
    program += "list(in_parallel(time.sleep, [1.0] * 1000, 2))"
    command = subprocess.Popen([sys.executable, "-c", f"if __name__ == '__main__': {program}"])
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")

    def started() -> list[int]:
        """Return those of its processes that have a second thread, which waits for the command's end."""
        return [int(pid) for pid in children.read_text().split() if len([*Path("/proc", pid, "task").glob("*")]) > 1]

    both = wait_for(lambda: pids if len(pids := started()) == 2 else None, "two processes that read")
    command.kill()
    command.wait()
    wait_for(lambda: not any(map(is_alive, both)), "their end", 20)
