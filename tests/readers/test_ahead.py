"""Spare processes, which a worker forks before their cell is known, and modules that it imports ahead.

The modules imported ahead are those that earlier cells of its environment have imported.
"""

import dataclasses
import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import making
import msgspec
import pytest
from commands import wait_for

from export_core.matrix import Cell
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import request_of
from export_core.readers.environment import JAXLIB_WORKER, Environment, this_interpreter
from export_core.readers.sharing import share
from export_core.readers.worker import client
from export_core.readers.worker.client import PROGRAM, ForkingWorker, WorkerDied, prepare_notes
from export_core.readers.worker.program import read_notes, without_collections
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

pytestmark = pytest.mark.usefixtures("forked_workers")


class Started:
    """A worker that has run two cells: the first noted what to import, and after the second a spare process waits."""

    def __init__(self, environment, golden, folder: Path) -> None:
        self.worker = ForkingWorker(environment)
        self.pid = self.worker._process.pid
        self.request = plain_request(golden, folder)
        assert [self.run().end for _ in range(2)] == ["ok", "ok"]
        self.ahead = only_child(self.pid)
        wait_for(lambda: threads(self.ahead) > 1, "a client in the process that waits")

    def run(self, **changes):
        return self.worker.submit(msgspec.structs.replace(self.request, **changes)).result(timeout=120)


def plain_request(golden, folder: Path):
    return request_of(Cell(golden, making.release(making.NEWEST), "cpu"), folder, CellLimits(timeout=60, memory=0))


@pytest.fixture
def started(here, goldens, tmp_path):
    made = Started(this_interpreter(here), goldens["waves"], tmp_path)
    yield made
    made.worker.close()


def children(pid: int) -> list[int]:
    """Return the child processes that have not ended."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if alive(int(child))]


def only_child(pid: int) -> int:
    """Wait until one child process is left, and return it."""
    return wait_for(lambda: children(pid)[1:] == [] and children(pid), "one process that waits")[0]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_a_spare_process_runs_one_cell_and_waiting_is_not_timed(started):
    assert threads(started.pid) == 1, "the worker itself stays cold"
    time.sleep(0.3)
    given = time.monotonic()
    assert started.run().seconds <= time.monotonic() - given
    assert only_child(started.pid) != started.ahead


def test_a_cell_that_sets_up_its_own_client_uses_no_spare_process(started, tmp_path):
    (tmp_path / "own.py").write_text("import jax._src.xla_bridge\nassert not jax._src.xla_bridge._backends\n")
    assert started.run(devices=2).end == "ok"
    assert started.run(register=(("own", str(tmp_path / "own.py")),)).end == "ok"
    assert only_child(started.pid) == started.ahead


def test_at_most_one_spare_process_is_forked_for_two_waiting_cells(started):
    futures = [started.worker.submit(started.request) for _ in range(6)]
    assert {future.result(timeout=120).end for future in futures} == {"ok"}
    wait_for(lambda: 1 <= len(children(started.pid)) <= 3, "processes that wait")


def test_a_spare_process_copies_pages_that_earlier_cells_wrote(here, goldens, tmp_path, cache):
    started = Started(this_interpreter(here), goldens["waves"], tmp_path)
    unaware = own_bytes(started.ahead)
    assert started.run().end == "ok"
    aware = only_child(started.pid)
    wait_for(lambda: threads(aware) > 1, "a client in the process that waits")
    assert own_bytes(aware) > unaware + (4 << 20)
    assert started.run().end == "ok"
    started.worker.close()


def own_bytes(pid: int) -> int:
    """Return how many bytes of its memory a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


PAGES = """
import ctypes, importlib.util, mmap, os, sys
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
size, shared = mmap.PAGESIZE, mmap.mmap(-1, 64 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
start = ctypes.addressof(ctypes.c_char.from_buffer(shared))
content = bytes(range(64)) * size
shared[:] = content
assert any(begin <= start and start + 64 * size <= end for begin, end in worker.writable_memory())


def in_a_fork(do):
    pid = os.fork()
    if pid == 0:
        do()
        ranges = worker.written_pages([(start, start + 64 * size)])
        pages = [((address - start) // size, length // size) for address, length in zip(ranges[::2], ranges[1::2])]
        print(pages, shared[:] == content, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)


def write():
    for page in (3, 5, 40):
        shared[page * size] = 255


in_a_fork(lambda: None)
in_a_fork(write)
in_a_fork(lambda: worker.copy_pages([start + 3 * size, 3 * size, start + 40 * size, size]))
in_a_fork(lambda: worker.copy_pages([size, size, start + 7 * size, size]))  # nothing is mapped at the first
print(worker.written_pages([("no", "address")]))
"""


def test_copying_memory_pages_leaves_their_content_unchanged():
    printed = subprocess.run(
        [sys.executable, "-c", PAGES, str(PROGRAM)], capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines() == [
        "[] True",
        "[(3, 3), (40, 1)] False",
        "[(3, 3), (40, 1)] True",
        "[(7, 1)] True",
        "[]",
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stuck"])
def test_a_cell_passes_though_its_spare_process_was_killed(started, how):
    os.kill(started.ahead, how)
    reply = started.run(timeout=4.0)
    assert (reply.end, reply.stage, reply.signal) == ("ok", Stage.RUN, None)
    assert started.ahead not in children(started.pid)


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_a_spare_process_does_not_outlive_its_worker(started, how):
    if how == "killed":
        os.kill(started.pid, signal.SIGKILL)
    else:  # as happens when the coordinator is killed
        started.worker._process.stdin.close()
    wait_for(lambda: not alive(started.ahead), "the end of the process that waited")


@pytest.mark.parametrize(("platform", "left"), [("cpu", 1), ("cuda", 0)])
def test_a_cells_process_on_an_accelerator_ends_before_the_reply(here, goldens, tmp_path, platform, left):
    slow = "import os, time\nleave = os._exit\nos._exit = lambda status: (time.sleep(1), leave(status))\n"
    (tmp_path / "slow.py").write_text(slow)
    worker = ForkingWorker(this_interpreter(here))
    request = plain_request(goldens["waves"], tmp_path)
    changes = {"platform": platform, "register": (("slow", str(tmp_path / "slow.py")),)}
    reply = worker.submit(msgspec.structs.replace(request, **changes)).result(timeout=60)
    found = len(children(worker._process.pid))
    worker.close()
    assert (reply.end, found) == ("ok" if platform == "cpu" else "error", left), reply


@pytest.mark.parametrize(
    ("variables", "end"),
    [({"JAX_PLATFORMS": "no_such"}, "error"), ({"XLA_FLAGS": "--xla_no_such"}, "crash")],
    ids=["refuses", "dies"],
)
def test_each_cell_reports_a_client_that_cannot_start(here, goldens, tmp_path, variables, end):
    plain = this_interpreter(here)
    worker = ForkingWorker(dataclasses.replace(plain, variables={**plain.variables, **variables}))
    request = plain_request(goldens["waves"], tmp_path)
    replies = [worker.submit(request).result(timeout=60) for _ in range(3)]
    worker.close()
    assert [(reply.end, reply.stage) for reply in replies] == [(end, Stage.LOWER)] * 3
    assert "no_such" in (replies[-1].message or "") + replies[-1].stderr


FAILS_AHEAD = """
from pathlib import Path
exec(Path({half!r}).read_text(), globals())
def start_ahead(client):
    if client:
        {fails}
"""


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            "raise RuntimeError('moved')",
            r"one ended with exit status 0: Traceback .* start_ahead\n.*RuntimeError: moved",
        ),
        ("os.abort()", r"one ended with exit status -6: it printed nothing"),
    ],
    ids=["raises", "dies"],
)
def test_the_reason_why_spare_processes_stop_is_reported_once(here, goldens, tmp_path, fails, message):
    half = tmp_path / "half.py"
    half.write_text(FAILS_AHEAD.format(half=str(JAXLIB_WORKER), fails=fails))
    environment = dataclasses.replace(this_interpreter(here), half=half)
    cells = [Cell(goldens[name], here, "cpu") for name in ("waves", "both", "keys", "x64")]
    notes: list[str] = []
    options = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1))
    assert {outcome.verdict for _, outcome in replay(cells, lambda _: environment, options, notify=notes.append)} == {
        "pass"
    }
    (note,) = [note for note in notes if "ahead" in note]
    assert note.startswith(f"jaxlib {here.jaxlib}: no more processes are started ahead of their cells, which makes")
    assert re.search(message, note, re.DOTALL)


# --- modules that cells import ----------------------------------------------------------------------------------------

MARKING = "import os, pathlib\npathlib.Path(os.environ['MARK']).write_text('imported')\n"


@pytest.fixture
def environment(here, tmp_path, cache) -> Environment:
    """The environment of this interpreter, with this test's modules to import, and an empty cache."""
    (tmp_path / "marking.py").write_text(MARKING)
    (tmp_path / "threading_at_import.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    plain = this_interpreter(here)
    more = {"PYTHONPATH": str(tmp_path), "MARK": str(tmp_path / "mark")}
    return dataclasses.replace(plain, variables={**plain.variables, **more})


def ends(worker: ForkingWorker, golden, folder: Path) -> str:
    try:
        return worker.submit(plain_request(golden, folder)).result().end
    finally:
        worker.close()


def test_a_later_worker_imports_first_what_earlier_cells_imported(here, environment, goldens, tmp_path):
    plain = this_interpreter(here)
    notes = Path(prepare_notes(plain))
    notes.write_text("{")  # no notes
    assert ends(ForkingWorker(plain), goldens["waves"], tmp_path) == "ok"
    noted = json.loads(notes.read_text())
    assert "jax._src.interpreters.mlir" in noted
    assert [path.name for path in notes.parent.iterdir()] == [notes.name]
    Path(prepare_notes(environment)).write_text(json.dumps(["marking", "no.such.module", *noted]))
    worker = ForkingWorker(environment)
    assert (tmp_path / "mark").read_text() == "imported"
    assert ends(worker, goldens["waves"], tmp_path) == "ok"


def test_a_new_environment_uses_the_list_of_imports_of_another(environment, goldens, tmp_path):
    new, other = tmp_path / "new", tmp_path / "other"
    new.mkdir()
    other.mkdir()
    notes = Path(prepare_notes(dataclasses.replace(environment, folder=new)))
    (other / notes.name).write_text('["marking", "no.such.module"]')
    share(new, [other, other])
    # The environment has no folder, since this interpreter must not be checked as a reader's environment.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "prepare_notes", lambda _: str(notes))
        worker = ForkingWorker(environment)
    assert (tmp_path / "mark").read_text() == "imported"
    assert ends(worker, goldens["waves"], tmp_path) == "ok"
    assert "jax._src.interpreters.mlir" in json.loads(notes.read_text())
    assert json.loads((other / notes.name).read_text()) == ["marking", "no.such.module"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '"marking"', "\0", "[" * 2_000])
def test_a_damaged_list_of_imports_is_ignored(tmp_path, text):
    (tmp_path / "notes").write_text(text)
    assert read_notes(str(tmp_path / "notes")) == []
    assert read_notes(str(tmp_path)) == read_notes("") == []


def test_cells_run_if_the_list_of_imports_cannot_be_stored(here, cache, goldens, tmp_path):
    cache.parent.write_text("a file")
    plain = this_interpreter(here)
    assert prepare_notes(plain) == ""
    assert ends(ForkingWorker(plain), goldens["waves"], tmp_path) == "ok"


@pytest.mark.parametrize(
    ("module", "problem"),
    [("threading_at_import", "the worker has 2 threads, so its forks could hang"), ("dying", "exit status 7")],
)
def test_a_list_of_imports_that_ends_the_worker_is_deleted(environment, tmp_path, module, problem):
    (tmp_path / "dying.py").write_text("import os\nos._exit(7)\n")
    half = tmp_path / "half.py"
    half.write_text("LEARNS_MODULES = True\ndef warm(): pass\ndef run(*_): pass\n")
    environment = dataclasses.replace(environment, half=half)
    notes = Path(prepare_notes(environment))
    notes.write_text(json.dumps([module]))
    with pytest.raises(WorkerDied, match=problem):
        ForkingWorker(environment)
    assert not notes.exists()


def test_garbage_collection_skips_the_objects_of_imports():
    frozen = gc.get_freeze_count()
    with without_collections():
        assert not gc.isenabled()
        imported: list[object] = [[]]
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen
    assert all(one is not imported for one in gc.get_objects()), "cells do not look at what was imported"
