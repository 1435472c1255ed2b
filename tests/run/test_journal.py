"""The results folder of a run, which belongs to one run at a time and can be resumed from its last whole line."""

import contextlib
import datetime
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, golden, manifest, result, write_golden

from export_core.base.json_text import safe_json
from export_core.goldens import Comparison, GoldenError, GoldenStore
from export_core.judge import Judgement, gate
from export_core.matrix import CellLimits, Selection, Verdict, cache_keys, make_plan
from export_core.matrix.result import WriterOf, new_result
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.entries import WindowDays
from export_core.readers.cell import CellKey
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, Windows, load_calendar
from export_core.releases.runtimes import RuntimeRefusal, known_runtimes
from export_core.run import plan_record, session
from export_core.run.errors import IncompleteResults, RunError
from export_core.run.plan_record import PLAN, PlanRecord, cells_by_place, policy_hash, record_of, recorded_plan
from export_core.run.results import FINISHED, LOCK, RESULTS, SUMMARY, Journal, results_so_far
from tools.stored_results import read_results

LINES = [b'{"n":1}', b'{"n":2}', b'{"n":3}']
MOVED = (
    "warning: this is less than a whole run ({}): the results of the last whole run in .jaxexport go to "
    ".jaxexport/whole when it begins."
)


def record(
    goldens=(golden("t.a"), golden("t.b")),  # noqa: B008 - they are frozen
    as_of: datetime.date = day("2026-11-21"),  # noqa: B008 - a date never changes
    policy: Policy = Policy(),  # noqa: B008 - it is frozen
    timeout: float = 60,
    jobs: int = 1,
    **selection,
) -> PlanRecord:
    plan = make_plan(goldens, load_calendar(), Windows(), Selection(**{"readers": "0.12.0.1", **selection}), as_of)
    return record_of(plan, policy, CellLimits(timeout=timeout, jobs=jobs))


def begun(folder: Path, *lines: bytes, made: PlanRecord | None = None) -> None:
    """Write an unfinished run with these lines."""
    with Journal(folder, made or record()) as journal:
        for line in lines:
            journal.append(line)


def resumed(folder: Path, made: PlanRecord | None = None) -> list[bytes]:
    """Continue the run of a folder, and return the lines that are there already."""
    with Journal(folder, made or record(), resume=True) as journal:
        return journal.retain(lambda line: True) if journal.resumed else []


def finish(folder: Path, *lines: bytes) -> None:
    """Write a finished run with these lines."""
    with Journal(folder, record()) as journal:
        digest = journal.finish(lines)
        (folder / SUMMARY).write_text(f'{{"results_sha256": "{digest}"}}')


@pytest.fixture
def project(cwd, monkeypatch) -> Path:
    """A project of three cases, in which every cell passes and no process is started."""
    for case in ("t.a", "t.b", "t.c"):
        write_golden(GoldenStore(cwd / "golden"), manifest(case, "0.12.0.1"))
    monkeypatch.setattr(session, "_replay_by", lambda *_: ran)
    return cwd


def ran(cells, *_, **__):
    """Yield each cell with a pass, in place of a replay."""
    yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)


def test_only_a_new_results_folder_is_ignored_by_git(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    begun(tmp_path / ".jaxexport" / "reproduced", LINES[0])
    words = ["git", "-C", tmp_path, "status", "--porcelain"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""
    (tmp_path / "old").mkdir()
    begun(tmp_path / "old", LINES[0])
    assert not (tmp_path / "old" / ".gitignore").exists()


def test_one_gitignore_above_all_shards_is_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("1", "2"):
        begun(Path("shards") / name, LINES[0])
    begun(Path("shards"), LINES[0])
    assert [*Path().rglob(".gitignore")] == [Path("shards/.gitignore")]
    (tmp_path / "shards" / ".gitignore").write_text("*.log\n")
    begun(Path("shards/3"), LINES[0])
    assert Path("shards/3/.gitignore").exists(), "the user's own file above ignores something else"


def test_plan_precedes_results_and_every_line_is_flushed(tmp_path):
    folder = tmp_path / "deep" / "folder"
    with Journal(folder, record()) as journal:
        assert recorded_plan(folder) == record()
        for number, line in enumerate(LINES):
            journal.append(line)
            assert (folder / RESULTS).read_bytes().splitlines() == LINES[: number + 1]


def test_a_resumed_run_continues_after_its_last_whole_line(tmp_path):
    begun(tmp_path, *LINES)
    with (tmp_path / RESULTS).open("ab") as file:
        file.write(b'{"n":4,"torn')
    with Journal(tmp_path, record(), resume=True) as journal:
        assert journal.retain(lambda line: True) == LINES
        journal.append(b'{"n":5}')
    assert (tmp_path / RESULTS).read_bytes() == b'{"n":1}\n{"n":2}\n{"n":3}\n{"n":5}\n'


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whole_lines_of_a_truncated_file_are_read(tmp_path, data):
    begun(tmp_path, *LINES)
    whole = (tmp_path / RESULTS).read_bytes()
    end = data.draw(st.integers(0, len(whole)))
    (tmp_path / RESULTS).write_bytes(whole[:end])
    assert resumed(tmp_path) == LINES[: whole[:end].count(b"\n")]
    assert (tmp_path / RESULTS).read_bytes() == b"".join(line + b"\n" for line in LINES[: whole[:end].count(b"\n")])


def test_results_that_a_resume_drops_are_removed_from_the_file(tmp_path):
    begun(tmp_path, *LINES, LINES[0])
    with Journal(tmp_path, record(), resume=True) as journal:
        assert journal.retain(lambda line: line != LINES[1]) == [LINES[0], LINES[2]]
    assert (tmp_path / RESULTS).read_bytes().splitlines() == [LINES[0], LINES[2]]


def test_a_new_run_removes_an_unfinished_run(tmp_path):
    begun(tmp_path, *LINES)
    (tmp_path / SUMMARY).write_text("{}")
    begun(tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == b""
    assert not (tmp_path / SUMMARY).exists()


FINISHED_FILES = {PLAN, RESULTS, SUMMARY}


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_begins_moves_the_finished_run_into_a_folder(tmp_path, resume):
    finish(tmp_path, *LINES)
    before = {name: (tmp_path / name).read_bytes() for name in FINISHED_FILES}
    for _ in range(2):  # a second unfinished run replaces nothing either
        with Journal(tmp_path, record(), resume=resume) as journal:
            journal.retain(lambda line: False)
    assert {path.name: path.read_bytes() for path in (tmp_path / FINISHED).iterdir()} == before
    assert not (tmp_path / SUMMARY).exists()


def test_a_finished_run_replaces_the_earlier_finished_run(jaxexport, project):
    words = "matrix", "--readers", "0.12.0.1", "--as-of", "2026-11-21"
    for _ in range(2):
        jaxexport(*words, code=None)
        assert {path.name for path in (project / ".jaxexport").iterdir()} == {*FINISHED_FILES, LOCK, ".gitignore"}


def test_an_interrupted_run_says_where_the_earlier_finished_run_is(jaxexport, project, monkeypatch):
    words = "matrix", "--as-of", "2026-11-21"
    jaxexport(*words, code=None)
    finished = (project / ".jaxexport" / SUMMARY).read_bytes()
    monkeypatch.setattr(Journal, "append", lambda journal, line: signal.raise_signal(signal.SIGINT))
    ended = jaxexport(*words, "--timeout", "7", code=130)
    note = "The finished run that was there before is in .jaxexport/finished."
    assert note in " ".join(ended.out.split())
    assert (project / ".jaxexport" / "finished" / SUMMARY).read_bytes() == finished
    assert "9 of 9 planned cells" in jaxexport("report", ".jaxexport/finished").out
    assert note in " ".join(jaxexport("report", code=2).err.split())


def test_an_unfinished_run_leaves_a_whole_run_set_aside_unchanged(jaxexport, project, monkeypatch):
    words = "matrix", "--as-of", "2026-11-21"
    jaxexport(*words, code=None)
    finished = (project / ".jaxexport" / SUMMARY).read_bytes()
    jaxexport(*words, "t.a", code=None)  # moves it into `whole`
    append = Journal.append
    monkeypatch.setattr(Journal, "append", lambda journal, line: signal.raise_signal(signal.SIGINT))
    jaxexport(*words, code=130)
    monkeypatch.setattr(Journal, "append", append)
    assert MOVED not in " ".join(jaxexport(*words, "t.b", code=None).out.split())
    assert (project / ".jaxexport" / "whole" / SUMMARY).read_bytes() == finished


@pytest.mark.parametrize("name", [LOCK, RESULTS, FINISHED, ".gitignore"])
def test_a_run_writes_nothing_through_a_symbolic_link(tmp_path, name):
    folder, outside = tmp_path / "run", tmp_path / "outside"
    finish(folder, *LINES)
    (outside / "of mine").mkdir(parents=True)
    (outside / "file").write_text("mine")
    target = outside / "of mine" if name == FINISHED else outside / "file"
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    with contextlib.suppress(RunError, OSError):
        begun(folder, *LINES)
    assert (outside / "file").read_text() == "mine"
    assert list((outside / "of mine").iterdir()) == []


@pytest.mark.parametrize("folder", [".jaxexport", ".jaxexport/reproduced", ".jaxexport/deploy/deeper", "named"])
@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_results_folder_that_is_a_link_is_refused(tmp_path, monkeypatch, folder, target):
    monkeypatch.chdir(tmp_path)
    linked = Path(folder).parts[0]
    Path("outside").mkdir()
    Path(linked).symlink_to(target)
    with pytest.raises(RunError, match=f"--results {folder}: expected a folder, found the symbolic link {linked}"):
        begun(Path(folder), *LINES)
    assert list(Path("outside").iterdir()) == []
    assert not Path("nowhere").exists()


def test_a_link_above_a_named_results_folder_is_allowed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    finish(tmp_path / "link" / "run", *LINES)
    assert (tmp_path / "disk" / "run" / SUMMARY).exists()


def test_a_run_removes_temporary_files_of_a_killed_run(tmp_path):
    names = ".new-results.jsonl-999999999-ab", f".new-plan.json-{os.getppid()}-ab"
    for name in names:
        (tmp_path / name).write_text("half")
    begun(tmp_path, *LINES)
    assert [path.name for path in tmp_path.glob(".new-*")] == [names[1]], "that of a living process stays"


def test_a_results_folder_inside_goldens_is_refused(tmp_path):
    written = write_golden(GoldenStore(tmp_path / "golden"), manifest("t.a"))
    for folder in (tmp_path / "golden", written.folder.parent, written.folder, written.folder / "new"):
        with pytest.raises(GoldenError, match=r"--results .*: expected a folder without goldens"):
            begun(folder)
    written.verify()


@pytest.mark.parametrize("left", ["nothing", "no plan"])
def test_resuming_without_a_plan_starts_a_new_run(tmp_path, left):
    if left != "nothing":
        begun(tmp_path, *LINES)
        (tmp_path / PLAN).unlink()
    assert resumed(tmp_path) == []
    assert recorded_plan(tmp_path) == record()
    assert (tmp_path / RESULTS).read_bytes() == b"", "results without their plan do not count"


def test_resume_refuses_a_plan_of_another_version(tmp_path):
    begun(tmp_path, *LINES)
    (tmp_path / PLAN).write_text('{"tool": "0.1"}')
    message = r"plan.json: not a plan that this version reads: expected the key `as_of`, found none"
    with pytest.raises(RunError, match=message):
        resumed(tmp_path)
    assert (tmp_path / RESULTS).read_bytes().splitlines() == LINES


def test_a_finished_run_with_changed_files_is_not_resumed(tmp_path):
    finish(tmp_path, *LINES)
    assert resumed(tmp_path) == LINES
    assert not (tmp_path / SUMMARY).exists(), "it is not the summary of what comes now"
    finish(tmp_path, *LINES)
    (tmp_path / RESULTS).write_bytes((tmp_path / RESULTS).read_bytes().replace(b"2", b"5"))
    with pytest.raises(RunError, match=r"--resume: .*results.jsonl: expected the file whose SHA-256 is in summary"):
        resumed(tmp_path)
    (tmp_path / SUMMARY).write_text("{}")
    with pytest.raises(RunError, match=r"summary.json: expected the key `results_sha256`, found none. Start again"):
        resumed(tmp_path)


def test_a_plan_records_cells_as_ranges_of_golden_numbers():
    made = record([golden(f"t.{name}") for name in "abcde"], readers="0.12.0.1,0.9.2")
    assert made.own_cells == {"0.12.0.1-jax0.12.0.1 on cpu": "0-4", "0.9.2-jax0.9.2 on cpu": "0-4"}
    keys = [CellKey(name, v, v, "cpu") for name in made.goldens for v in ("0.12.0.1", "0.9.2")]
    made.check_keys(reversed(keys), "here")
    assert cells_by_place(reversed(keys), made.goldens) == made.own_cells
    assert cells_by_place([keys[0], *keys[4:]], made.goldens)["0.12.0.1-jax0.12.0.1 on cpu"] == "0,2-4"
    with pytest.raises(IncompleteResults, match=r"found none for 9: t.a/0.12.0.1-cpu in .*, .* and 6 more\."):
        made.check_keys(keys[-1:], "here")
    with pytest.raises(RunError, match=r"here: expected results of cells in plan.json, found also t.z/9 in 9-jax9 on"):
        made.check_keys([*keys[:-1], CellKey("t.z/9", "9", "9", "cpu")], "here")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"as_of": day("2026-11-22")}, "another --as-of: 2026-11-21, now 2026-11-22"),
        ({"readers": "0.12.0"}, "another selection: "),
        ({"goldens": [golden("t.a"), golden("t.b", comparison=Comparison(rtol=0.5))]}, "other goldens."),
        ({"goldens": [golden("t.a")]}, "other goldens."),
        ({"policy": Policy(windows=WindowDays(30, 30))}, "another policy."),
        ({"timeout": 5}, "another --timeout, --memory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_plan_is_not_resumed_but_says_what_differs(tmp_path, change, message):
    begun(tmp_path, *LINES)
    with pytest.raises(RunError) as raised:
        Journal(tmp_path, record(**change), resume=True)
    assert f"--resume: the last run in {tmp_path} had another plan: {message}" in str(raised.value)
    assert "start again without --resume" in str(raised.value)
    assert resumed(tmp_path) == LINES, "and the folder is as it was, and free"


def test_a_run_by_changed_tool_code_is_not_resumed(tmp_path, monkeypatch):
    begun(tmp_path, *LINES)
    monkeypatch.setattr(cache_keys, "hash_of_code", lambda: "0123456789abcdef")
    with pytest.raises(RunError, match=r"another version of pytest-jaxexport: .*, now .* \(0123456789ab\)"):
        resumed(tmp_path)
    begun(tmp_path, made=msgspec.structs.replace(record(), tool="0.0"))
    with pytest.raises(RunError, match=r"another version of pytest-jaxexport: 0\.0, now"):
        resumed(tmp_path)


@pytest.mark.parametrize("change", ["half", "refusals", "releases"])
def test_a_changed_runtime_makes_a_different_plan(tmp_path, monkeypatch, change, two_runtimes):
    runtimes = known_runtimes()
    shown = {name: msgspec.structs.replace(one, folder=tmp_path) for name, one in runtimes.items()}
    monkeypatch.setattr(plan_record, "runtime_of", lambda reader: shown[reader.partition("==")[0]])
    (tmp_path / "worker.py").write_text("first")
    before, plain = record(readers="0.12.0.1,tensorflow==2.21.0"), record()
    if change == "half":
        (tmp_path / "worker.py").write_text("second")
    else:
        changed = {"refusals": (RuntimeRefusal("no", "It refuses."),), "releases": {}}[change]
        shown["tensorflow"] = msgspec.structs.replace(shown["tensorflow"], **{change: changed})
    difference = before.differs_in(record(readers="0.12.0.1,tensorflow==2.21.0"))
    expected = "another version of the worker half of tensorflow, or of the file beside it"
    assert difference == ("" if change == "releases" else expected)
    assert plain.differs_in(record()) == ""


def test_the_number_of_jobs_is_not_part_of_the_plan(tmp_path):
    begun(tmp_path, *LINES)
    assert resumed(tmp_path, record(jobs=7)) == LINES


def test_a_run_into_the_folder_of_a_running_run_is_refused(tmp_path):
    with Journal(tmp_path, record()):
        assert_locked(tmp_path)
    begun(tmp_path, *LINES)


def test_a_killed_run_leaves_no_lock(tmp_path):
    script = (
        "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire()\n"
        "print('begun', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", script, tmp_path / LOCK]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == b"begun\n"
        assert_locked(tmp_path)
        first.kill()
    begun(tmp_path, *LINES)


def assert_locked(folder: Path) -> None:
    """Check that no other run can begin in a folder."""
    for resume in (False, True):
        with pytest.raises(RunError, match=r"another run is writing its results there\. Wait for it, or choose"):
            Journal(folder, record(), resume=resume)


def test_finishing_a_run_writes_its_results_in_order(tmp_path):
    with Journal(tmp_path, record()) as journal:
        for line in reversed(LINES):
            journal.append(line)
        journal.finish(LINES)
    assert (tmp_path / RESULTS).read_bytes().splitlines() == LINES


def test_an_unwritable_results_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / PLAN).mkdir(parents=True)
    for name in ("file", "folder"):
        with pytest.raises(RunError, match=r"--results .*: cannot write there"):
            Journal(tmp_path / name, record())


@pytest.mark.parametrize(
    ("changes", "is_continued"),
    [
        ({}, True),
        ({"judgement": Judgement.OUTSIDE, "promised": False, "days": 999}, True),
        ({"case": "t.z"}, False),
        ({"custom_calls": ("ours",)}, False),
        ({"writer": WriterOf(jax="0.9.2", jaxlib="0.9.2", built=day("2020-01-01"), platform="cpu")}, False),
        ({"reader": Release(jax="0.12.0.1", jaxlib="0.12.0.1", built=day("2020-01-01"))}, False),
        ({"golden": "t.z/0.9.2-cpu"}, False),
        ({"converted": True}, False),
        ({"devices": 2}, False),
    ],
)
def test_dates_and_judgements_are_recomputed_on_resume(tmp_path, changes, is_continued):
    goldens = [golden("t.a", "0.9.2")]
    plan = make_plan(goldens, load_calendar(), Windows(300, 21), Selection("0.12.0.1"), day("2026-11-21"))
    made = record_of(plan, Policy(windows=WindowDays(300, 21)), CellLimits())
    test = goldens[0].manifest.test
    line = result(Verdict.CRASH, Judgement.BROKEN, case="t.a", reader="0.12.0.1", test=test)
    begun(tmp_path, safe_json(msgspec.structs.replace(line, **changes)), made=made)
    with Journal(tmp_path, made, resume=True) as journal:
        results = results_so_far(journal, plan, Policy(windows=WindowDays(300, 21)))
    assert len(results) == is_continued
    assert all((one.judgement, one.days) == (Judgement.BROKEN, 216) for one in results)


def test_a_password_in_a_policy_is_not_stored():
    secret = "--index-url=https://user:secret@example.org/simple"
    made = record(policy=Policy(backfill_install=(secret,)))
    stored = gate.recorded_policy(Policy(backfill_install=(secret,)))
    assert "secret" not in str(stored)
    assert policy_hash(stored) == made.policy != record().policy


def test_equal_values_of_results_read_from_a_file_are_one_object(tmp_path):
    written = [result(reader=reader, message="as before") for reader in ("0.10.2", "0.11.0")]
    (tmp_path / RESULTS).write_bytes(b"".join(safe_json(one) + b"\n" for one in written))
    first, second = read = read_results(tmp_path)
    assert read == written
    assert all(getattr(first, name) is getattr(second, name) for name in ("writer", "golden", "message"))


def test_a_result_written_before_ctrl_c_counts(jaxexport, project, monkeypatch):
    append = Journal.append

    def interrupted(journal, line):
        append(journal, line)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Journal, "append", interrupted)
    ended = jaxexport("matrix", "--readers", "0.12.0.1", "--as-of", "2026-11-21", code=130)
    assert "Interrupted: 1 of 3 cells has a result, in .jaxexport, and 2 are left" in " ".join(ended.out.split())
    assert len((project / ".jaxexport" / RESULTS).read_bytes().splitlines()) == 1


def test_the_comparators_process_ends_with_the_run(jaxexport, project, monkeypatch):
    closed = []
    monkeypatch.setattr(UserCode, "close", lambda user_code: closed.append(user_code))
    jaxexport("matrix", "--readers", "0.12.0.1", "--as-of", "2026-11-21", code=0)
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (("t.a",), "only cases t.a"),
        (("--readers", "0.12.0.1"), "only readers 0.12.0.1"),
        (("--shard", "1/3"), "shard 1/3"),
        (("--only", "promised"), "only cells that are promised"),
    ],
    ids=["cases", "readers", "shard", "only"],
)
def test_a_partial_run_sets_a_whole_run_aside_and_warns_once(jaxexport, project, part, why):
    words = "matrix", "--as-of", "2026-11-21"
    assert "less than a whole run" not in jaxexport(*words, code=None).out
    whole = (project / ".jaxexport" / SUMMARY).read_bytes()
    for warns in (True, False):  # the second one replaces results of a part, and leaves those of the whole run
        out = " ".join(jaxexport(*words, *part, code=None).out.split())
        assert (project / ".jaxexport" / "whole" / SUMMARY).read_bytes() == whole
        assert (MOVED.format(why) in out) == warns
    assert (project / ".jaxexport" / SUMMARY).read_bytes() != whole
    assert "9 of 9 planned cells" in jaxexport("report", ".jaxexport/whole").out
    jaxexport(*words, "--timeout", "7", code=None)
    later = (project / ".jaxexport" / SUMMARY).read_bytes()
    jaxexport(*words, *part, code=None)
    assert (project / ".jaxexport" / "whole" / SUMMARY).read_bytes() == later != whole


def test_a_run_of_all_readers_of_the_policy_counts_as_whole(jaxexport, project):
    (project / "export_compat.yaml").write_text("readers: [0.12.0.1]\n")
    words = "matrix", "--as-of", "2026-11-21"
    for _ in range(2):
        assert "less than a whole run" not in jaxexport(*words, code=0).out
    assert json.loads((project / ".jaxexport" / SUMMARY).read_text())["selection"]["whole"] is True
    assert MOVED.format("only cases t.a") in " ".join(jaxexport(*words, "t.a", code=0).out.split())


def test_a_run_that_names_every_writer_and_case_counts_as_whole(jaxexport, project):
    goldens = GoldenStore(project / "golden").goldens()
    writers = sorted({golden.manifest.writer.jaxlib for golden in goldens})
    cases = [f"--cases={name}" for name in {golden.manifest.case for golden in goldens}]
    for part in ((), ("--writers", ",".join(writers)), cases):
        out = jaxexport("matrix", "--as-of", "2026-11-21", *part, code=None).out
        assert "partial" not in out
        assert "less than a whole run" not in out
    assert json.loads((project / ".jaxexport" / SUMMARY).read_text())["selection"]["whole"] is True
    assert not (project / ".jaxexport" / "whole").exists()


def test_a_printed_command_of_a_cell_outside_the_window_ends_with_0(jaxexport, project):
    jaxexport("matrix", "t.a", "--readers", "0.9.2", "--as-of", "2026-11-21", code=3)
    (outside,) = read_results(project / ".jaxexport")
    jaxexport(*shlex.split(outside.reproduce)[1:], code=0)


def test_a_policy_with_fewer_readers_sets_a_whole_run_aside(jaxexport, project):
    words = "matrix", "--as-of", "2026-11-21"
    jaxexport(*words, code=None)
    window = (project / ".jaxexport" / SUMMARY).read_bytes()
    (project / "quick.yaml").write_text("readers: [0.12.0.1]\n")
    out = jaxexport(*words, "--policy", "quick.yaml", code=0).out
    assert MOVED.format("only readers 0.12.0.1") in " ".join(out.split())
    assert (project / ".jaxexport" / "whole" / SUMMARY).read_bytes() == window
    assert "less than a whole run" not in jaxexport(*words, "--policy", "quick.yaml", code=0).out
    assert (project / ".jaxexport" / "whole" / SUMMARY).read_bytes() == window


def test_a_resume_refused_for_a_wider_policy_says_so(jaxexport, project):
    words = "matrix", "--as-of", "2026-11-21", "--readers", "0.12.0.1"
    (project / "export_compat.yaml").write_text("readers: [0.12.0.1]\n")
    jaxexport(*words, code=0)
    (project / "export_compat.yaml").write_text("readers: [window]\n")
    assert "another policy" in jaxexport(*words, "--resume", code=2).err


def test_a_killed_whole_run_set_aside_can_be_resumed_there(jaxexport, project):
    words = "matrix", "--as-of", "2026-11-21"
    jaxexport(*words, code=None)
    (project / ".jaxexport" / SUMMARY).unlink()
    jaxexport(*words, "t.a", code=None)
    out = jaxexport(*words, "--resume", "--results", ".jaxexport/whole", code=None).out
    assert "9 of 9 cells already have a result" in " ".join(out.split())
