"""Faults around a cell, which is tried once more, and then not run. What the cell itself does is its verdict."""

import contextlib
import dataclasses
import datetime
import functools
import os
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import make_wheel
from replaying import AWAKE, StubEnvironments
from write_goldens import GARBAGE

from export_core.matrix import Cell, CellLimits, Verdict
from export_core.matrix.cached_replay import OutcomeCache, replay_unknown
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers import build as module
from export_core.readers import environment as environment_module
from export_core.readers.build import EnvironmentLocks, Recipe
from export_core.readers.environment import Environment, cell_variables, problem_of_imported
from export_core.readers.errors import WorkerDied
from export_core.readers.worker import client as pool
from export_core.readers.worker.client import ForkingWorker, start_worker
from export_core.readers.worker.program import LONGEST_LINE, LONGEST_STDERR, Transcript, reply_of
from export_core.readers.worker.protocol import Request, Stage
from export_core.releases import load_calendar

REQUEST = Request("artifact", (), (), 1, False, 60.0, 0)


# --- garbage in the pipe of a cell ------------------------------------------------------------------------------------


def assert_garbage(outcome) -> None:
    """Check that a cell was not run because of garbage, and that its message does not repeat all of that."""
    why = "there was garbage in the pipe of its replies: "
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT), outcome
    assert outcome.message.startswith(f"infrastructure: tried twice, and each time {why}")
    assert len(outcome.message) < 250


def test_a_cell_that_writes_invalid_messages_is_not_run(run):
    notes: list[str] = []
    outcomes = run(*GARBAGE, "waves", notify=notes.append)
    for case in GARBAGE:
        assert_garbage(outcomes[case])
    assert outcomes["waves"].verdict is Verdict.PASS
    assert any(f"trying {len(GARBAGE)} cells again" in text for text in notes)


# Blanks before a message are part of its JSON.
@given(st.binary(max_size=60).filter(lambda noise: not noise or noise.strip(b" \t\r")), st.data())
def test_bytes_between_a_cells_messages_make_it_a_fault(noise, data):
    stages = b'{"stage": "deserialize"}\n{"stage": "run", "check": "vjp1"}\n'
    whole = stages + noise + b'{"end": "ok"}\n'
    transcript = Transcript()
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        transcript.feed(whole[:size])
        whole = whole[size:]
    transcript.close()
    assert (transcript.fields["stage"], transcript.fields["check"]) == ("run", "vjp1")
    assert bool(transcript.garbage) == bool(noise)
    assert reply_of(transcript, 0, "", b"", 0.0)["end"] == ("fault" if noise else "ok")
    died = reply_of(transcript, -11, "", b"", 0.0)
    assert (died["end"], died["signal"]) == ("crash", 11), "its own signal is the verdict, whatever it wrote"


def test_an_endless_line_takes_limited_memory():
    transcript = Transcript()
    tracemalloc.start()
    for _ in range(4 * LONGEST_LINE >> 16):
        transcript.feed(b"7" * (1 << 16))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert transcript.garbage.startswith("a line of more than")
    assert peak < 2 * LONGEST_LINE


# --- garbage in the pipe of a worker ----------------------------------------------------------------------------------


@pytest.fixture
def speaking(tmp_path, here):
    """A function that writes a stand-in for an interpreter, which reports ready and answers two cells by a script."""

    def write_interpreter(script: str) -> Environment:
        file = tmp_path / "python"
        file.write_text(
            f"#!{sys.executable} -IS\nimport json, os, sys, time\nprint('a greeting', {{}}, flush=True)\n"
            "def say(data): os.write(1, data if isinstance(data, bytes) else json.dumps(data).encode() + b'\\n')\n"
            "say({'ready': True})\nnumbers = [json.loads(sys.stdin.readline())['id'] for _ in range(2)]\n"
            "def ok(number): return {'id': number, 'stage': 'run', 'end': 'ok'}\n" + script + "\ntime.sleep(60)\n"
        )
        file.chmod(0o755)
        return Environment(here, file, {})

    return write_interpreter


@pytest.mark.parametrize(
    ("script", "answered"),
    [
        ("say(b'no JSON at all\\n')", 0),
        ("say(b'{\"id\": 7'); sys.exit()", 0),
        ("say({'id': numbers[0], 'stage': 'run', 'end': 'passed'})", 0),
        ("say({'id': numbers[0], 'stage': ['run'], 'end': 'ok'})", 0),
        ("say([numbers[0]])", 0),
        ("say(ok(7))", 0),
        ("say(ok(numbers[0])); say(ok(numbers[0]))", 1),
        ("say(ok(numbers[0])); say({'ready': True})", 1),
        ("say(bytes(range(256)) * 100)", 0),
        ("say(b'[' * 2000 + b'\\n')", 0),
        ("for _ in range(1 << 10): say(b'7' * (1 << 16))", 0),
    ],
    ids=[
        *("no json", "half a line", "no such end", "wrong shape", "a list", "another cell's", "two for one"),
        *("ready again", "binary", "nested", "without end"),
    ],
)
def test_a_worker_that_replies_with_invalid_messages_is_ended(speaking, script, answered):
    tracemalloc.start()
    worker = ForkingWorker(speaking(script))
    futures = [worker.submit(REQUEST) for _ in range(2)]
    errors = [future.exception(timeout=20) for future in futures]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert worker._process.wait(timeout=10) in (-signal.SIGKILL, 0)
    worker.close()
    assert [error is None for error in errors] == [number < answered for number in range(2)]
    assert isinstance(errors[1], WorkerDied)
    assert "garbage in the pipe of its replies" in str(errors[1]) or "exit" in script
    assert peak < 4 * LONGEST_LINE


# --- a cell that says no more, and does not end -----------------------------------------------------------------------


def test_a_cell_that_closes_its_pipes_and_runs_on_times_out(run, flaky):
    run("waves")
    flaky.touch()
    outcomes = run("closes_its_pipes", "is_flaky", "waves", timeout=2.0)
    killed = [case for case, outcome in outcomes.items() if outcome.verdict is Verdict.TIMEOUT]
    assert (sorted(killed), outcomes["waves"].verdict) == (["closes_its_pipes", "is_flaky"], Verdict.PASS)
    assert not AWAKE.exists(), "that process was killed, before it ended by itself"


# --- floods, and a machine without room -------------------------------------------------------------------------------


@pytest.mark.parametrize("fork", [True, False], ids=["fork", "no fork"])
def test_only_the_end_of_long_output_is_stored(run, fork):
    outcomes = run("floods", "garbage_text", fork=fork)
    assert outcomes["floods"].verdict is Verdict.PASS
    assert len(outcomes["floods"].stderr) <= LONGEST_STDERR
    assert outcomes["floods"].stderr.rstrip().endswith("and this is the end of it")
    assert_garbage(outcomes["garbage_text"])


def test_a_cell_that_runs_out_of_disk_is_not_run(run):
    outcomes = run("finds_a_full_disk", "keeps_nothing", "waves")
    for case, why in {
        "finds_a_full_disk": "OSError: [Errno 28] No space left on device",
        "keeps_nothing": "NotWrittenError: the outputs could not be written: ",
    }.items():
        outcome = outcomes[case]
        assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
        assert outcome.message.startswith(f"infrastructure: tried twice, and each time {why}"), outcome.message
    assert outcomes["waves"].verdict is Verdict.PASS


# --- killed from outside ----------------------------------------------------------------------------------------------


class Sniper(threading.Thread):
    """A thread that kills the next cells of a worker, one with each of these signals, as soon as they sleep."""

    def __init__(self, worker: int, *signals: signal.Signals) -> None:
        super().__init__(daemon=True)
        self.worker = worker
        self.signals = signals
        self.seen = self.sleeping_cells()  # what an earlier test ran may be about to end, and must not take a signal
        self.start()

    def run(self):
        for number in self.signals:
            while not (sleeping := self.sleeping_cells() - self.seen):
                time.sleep(0.02)
            for pid in sleeping:
                os.kill(int(pid), number)
            self.seen |= sleeping

    def sleeping_cells(self) -> set[str]:
        """Return the processes of the cells that sleep, not those that wait."""
        sleeping_cells = set()
        for pid in Path(f"/proc/{self.worker}/task/{self.worker}/children").read_text().split():
            with contextlib.suppress(OSError):  # it has just ended
                if Path(f"/proc/{pid}/comm").read_text().strip() == "asleep":
                    sleeping_cells.add(pid)
        return sleeping_cells


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_cell_killed_from_outside_is_run_once_more(run, warm_workers, number):
    run("waves")
    Sniper(warm_workers._worker._process.pid, number).join(timeout=0)
    notes: list[str] = []
    assert run("sleeps_a_second", notify=notes.append)["sleeps_a_second"].verdict is Verdict.PASS
    assert [text for text in notes if f"killed from outside, by signal {number.value} ({number.name})" in text]


def test_a_cell_killed_from_outside_twice_names_both_signals(run, warm_workers):
    run("waves")
    Sniper(warm_workers._worker._process.pid, signal.SIGTERM, signal.SIGKILL)
    outcome = run("sleeps_a_second")["sleeps_a_second"]
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    first, then = outcome.message.splitlines()
    assert first.startswith("infrastructure: tried twice, first killed from outside, by signal 15 (SIGTERM)")
    assert then.startswith("then killed from outside, by signal 9 (SIGKILL)")


# --- a verdict that is not always the same ----------------------------------------------------------------------------


def test_a_cell_is_flaky_until_two_runs_agree(run, goldens, here, warm_workers, tmp_path, flaky):
    run("waves")  # from now on the warm worker is one whose cells misbehave
    assert warm_workers._environment
    requests: list[str] = []
    cell = Cell(goldens["is_flaky"], here, "cpu")
    locked = dataclasses.replace(warm_workers._environment, content_hash="lock")

    def start(environment, slots):
        requests.append("started")
        return warm_workers.start(environment, slots)

    def again(*, anew: bool) -> tuple[Verdict, str, int]:
        """Run the cell again; return its verdict, its `flaky` text, and how many requests were sent to workers."""
        requests.clear()
        cache = OutcomeCache(tmp_path)
        options = ReplayOptions(load_calendar(), limits=CellLimits(timeout=1.5), cache=not anew)
        environments = StubEnvironments(lambda placement: locked, lambda placement: locked)
        once = functools.partial(replay, options=options, start=start)
        ((_, outcome),) = replay_unknown([cell], cache, environments, options, once)
        cache.close()
        return outcome.verdict, outcome.flaky, len(requests)

    today = datetime.datetime.now(datetime.UTC).date()
    assert again(anew=False) == (Verdict.PASS, "", 1)
    flaky.touch()
    assert again(anew=True) == (Verdict.TIMEOUT, f"was pass on {today}", 1)
    flaky.unlink()
    assert again(anew=False) == (Verdict.PASS, f"was timeout on {today}", 1), "the old pass is not taken any more"
    assert again(anew=False) == (Verdict.PASS, "", 1), "nor is the flaky one"
    assert again(anew=False) == (Verdict.PASS, "", 0), "two runs agree"


# --- and nothing is left of it ----------------------------------------------------------------------------------------


def open_resources() -> dict[str, set[str]]:
    """Return the child processes, threads and open descriptors of this process."""
    children, files = set(), set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            children |= set((task / "children").read_text().split())
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them
            files.add(f"{file.name} {file.readlink()}")
    return {"processes": children, "threads": {thread.name for thread in threading.enumerate()}, "files": files}


def test_faults_leave_no_process_thread_file_or_folder(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cases = ("kills_its_worker", "garbage_half", "dies_by_segv", "waves")
    before = open_resources()
    outcomes = run(*cases, start=pool.start_worker)
    assert [outcomes[case].verdict for case in cases] == [Verdict.NOT_RUN, Verdict.NOT_RUN, Verdict.CRASH, Verdict.PASS]
    assert outcomes["kills_its_worker"].message.startswith("infrastructure: tried twice")
    after = open_resources()
    assert not any(after[what] - before[what] for what in before), after
    assert list(tmp_path.iterdir()) == []


# --- verdicts are never tried again -----------------------------------------------------------------------------------


def test_a_cell_with_a_verdict_is_not_run_again(run, warm_workers):
    requests: list[str] = []

    class Counting:
        def __init__(self, worker) -> None:
            self.worker = worker
            self.close = worker.close

        def submit(self, request):
            requests.append(Path(request.artifact).parts[-3])
            return self.worker.submit(request)

    cases = ("waves", "other_numbers", "dies_by_segv", "says_on_stderr", "exits_silently")

    def start(environment, slots):
        return Counting(warm_workers.start(environment, slots))

    outcomes = run(*cases, start=start)
    assert sorted(requests) == sorted(cases)
    verdicts = [outcomes[case].verdict for case in cases]
    assert verdicts == [Verdict.PASS, Verdict.NUMERICS, Verdict.CRASH, Verdict.ERROR, Verdict.CRASH]


def test_a_worker_failing_to_start_twice_reports_both_errors(run, tmp_path):
    calls = []

    def breaks_further(release):
        calls.append(release)
        folder = tmp_path / str(len(calls))
        (folder / "jax").mkdir(parents=True)
        (folder / "jax" / "__init__.py").write_text(f"raise ImportError('broken {len(calls)}')")
        return Environment(release, Path(sys.executable), {**os.environ, "PYTHONPATH": str(folder)})

    outcome = run("waves", environment_of=breaks_further, start=pool.start_worker)["waves"]
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert outcome.message.index("tried twice, first") < outcome.message.index("broken 1")
    assert outcome.message.index("broken 1") < outcome.message.index("\nthen") < outcome.message.index("broken 2")
    assert outcome.signal is None


# --- environments that broke ------------------------------------------------------------------------------------------


CHECK = "import tiny; print(tiny.__version__)"
MODULES = {"sitecustomize.py": "import os".ljust(60)}
SPOILED = "import os; os.environ['XLA_FLAGS'] = '--no'".ljust(60)
"""A cell whose XLA has this flag is aborted; the worker itself starts."""
NEVER_STARTS = "raise SystemExit(1)".ljust(60)


@pytest.fixture
def environment_of(tmp_path, monkeypatch) -> Callable[..., Environment]:
    """A function that builds a release's environment, with a small package installed and this interpreter's jax."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))  # the tests damage it
    wheel = make_wheel(tmp_path, "tiny", "1.0", modules=MODULES)
    recipe = Recipe("jaxlib-tiny", sys.executable, (str(wheel),), CHECK)
    variables = {**cell_variables(), "PYTHONPATH": sysconfig.get_paths()["purelib"]}

    def build(release: object) -> Environment:
        with EnvironmentLocks() as locks:
            built = module.build(recipe, locks)
        return Environment(release, built.python, variables, built.content_hash, folder=built.folder)

    return build


def site(environment: Environment) -> Path:
    """Return the folder of installed packages."""
    (folder,) = environment.python.parents[1].glob("lib/python*/site-packages")
    return folder


def damage_in_cache_too(file: Path, text: str) -> None:
    """Rewrite a file in place, which changes the cache of the installer too."""
    assert file.stat().st_nlink > 1
    file.write_text(text)


def plant(file: Path, text: str) -> None:
    """Write a module that each interpreter imports, and that no package lists."""
    file.with_name("usercustomize.py").write_text(text)
    file.with_name("planted.pth").write_text("import usercustomize\n")


@pytest.mark.parametrize(
    ("damage", "text"),
    [(damage_in_cache_too, SPOILED), (plant, NEVER_STARTS)],
    ids=["in the cache too", "a file of no package, and no worker starts"],
)
def test_environment_files_damaged_at_equal_size_are_repaired(run, here, environment_of, damage, text):
    before = environment_of(here)
    file = site(before) / "sitecustomize.py"
    assert len(text) == len(MODULES[file.name]) == file.stat().st_size
    damage(file, text)
    assert environment_of(here).python == before.python, "sizes show nothing"
    notes: list[str] = []
    outcomes = run("waves", "other_numbers", environment_of=environment_of, start=start_worker, notify=notes.append)
    assert outcomes["waves"].verdict is Verdict.PASS
    assert file.read_text() == MODULES[file.name]
    assert not file.with_name("planted.pth").exists()
    culprit = "planted.pth" if damage is plant else "sitecustomize.py"
    assert any("is built again: " in note and culprit in note for note in notes), notes


@pytest.mark.parametrize("fork", [True, False])
def test_a_worker_of_another_release_runs_no_cell(run, here, environment_of, fork):
    """Its files may be those of another release although the names of its metadata and all sizes fit."""
    other = msgspec.structs.replace(here, jaxlib="0.0.1")

    def of_another_release(release: object) -> Environment:
        return dataclasses.replace(environment_of(release), release=other)

    (outcome,) = run("waves", environment_of=of_another_release, start=start_worker, fork=fork).values()
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert f"expected jax {here.jax} and jaxlib 0.0.1, found jax {here.jax} and jaxlib {here.jaxlib}" in outcome.message


@pytest.mark.parametrize("imported", [7, ["jax"], {"jax": 1}, {"jax": "\x1b[31m0.9.2", "jaxlib": "0.9.2"}])
def test_the_version_that_a_worker_imported_is_shown(imported, here, tmp_path):
    built = Environment(here, Path(sys.executable), {}, folder=tmp_path)
    problem = problem_of_imported(built, imported)
    assert problem.startswith(f"{tmp_path}: expected jax {here.jax} and jaxlib {here.jaxlib}, found ")
    assert problem.isprintable()
    assert problem_of_imported(dataclasses.replace(built, folder=None), imported) == ""


def test_an_undamaged_environment_is_checked_once(run, here, environment_of, monkeypatch):
    checked_folders: list[Path] = []
    changed_in = environment_module.changed_in
    monkeypatch.setattr(
        environment_module, "changed_in", lambda folder: checked_folders.append(folder) or changed_in(folder)
    )
    before = environment_of(here)
    built_at = (before.python.parents[1] / "ready.json").stat().st_mtime_ns
    outcomes = run("other_numbers", "waves", environment_of=environment_of, start=start_worker)
    assert outcomes["other_numbers"].verdict is Verdict.NUMERICS
    assert checked_folders == [before.python.parents[1]]
    assert (checked_folders[0] / "ready.json").stat().st_mtime_ns == built_at
