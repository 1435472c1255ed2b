"""Runtimes beside jaxlib: a worker that runs the runtime's half of the program."""

import contextlib
import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import pytest
from commands import wait_for

from export_core.goldens.arrays import Leaf, from_npz, key_leaf, leaf_of, to_npz
from export_core.readers.environment import Environment, this_interpreter
from export_core.readers.errors import WorkerDied
from export_core.readers.worker.client import ForkingWorker, FreshInterpreters, start_worker
from export_core.readers.worker.program import MOST_WALL, limited_seconds
from export_core.readers.worker.protocol import CheckRequest, ModuleCall, Reply, Request, Stage
from export_core.releases.runtimes import LACKS_DTYPE

HALF = """
import os, sys, time


def warm():
    import numpy
    assert not {os.path.dirname(__file__), os.path.dirname(sys.argv[0])} & {*sys.path}
    return {"adder": "1.0"}


def run(call, leaves, stage):
    command = call["module"]
    if command == "cannot pass":
        raise TypeError("this binding has no bfloat16")
    kept = [leaves[index] for index in call["kept"]]
    stage("deserialize")
    if command == "refuse":
        raise NotImplementedError("no such dialect")
    stage("compile")
    if command == "abort":
        os.write(2, b"LLVM ERROR: Unsupported op\\n")
        os.abort()
    stage("run")
    if command == "hang":
        time.sleep(60)
    if command == "too many":
        return [*kept, *kept]
    if command == "no such stage":
        stage("link")
    return [value if value.dtype == bool else value + value.dtype.type(1) for value in kept]
"""
THREADS = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"


@pytest.fixture
def half(tmp_path) -> Path:
    """The worker half of a runtime that adds one to all arguments, or misbehaves as the call's module says."""
    path = tmp_path / "vendor" / "adder_worker.py"
    path.parent.mkdir()
    path.write_text(HALF)
    return path


@pytest.fixture
def environment(here, half) -> Environment:
    plain = this_interpreter(here)
    variables = {name: value for name, value in plain.variables.items() if name != "PYTHONDONTWRITEBYTECODE"}
    release = msgspec.structs.replace(here, jaxlib="", jax="", runtime="adder==1.0")
    return dataclasses.replace(plain, release=release, half=half, variables=variables)


@dataclasses.dataclass
class Adder:
    """A maker of requests to the runtime `adder`, with inputs and outputs in a folder."""

    folder: Path
    arguments: tuple[Leaf, ...] = (leaf_of(np.float32([1, 2])),)

    def check(self, command: str = "add", name: str = "", *, refused: bool = False) -> CheckRequest:
        inputs = self.folder / "inputs.npz"
        inputs.write_bytes(to_npz(self.arguments))
        types = tuple((*wire(leaf), leaf.dtype) for leaf in self.arguments)
        kept_indices = tuple(range(len(types)))
        call = ModuleCall(command, 10, ("cpu",), kept_indices, False, 0, (), types, types, 1, False, True)
        outputs = None if refused else str(self.folder / f"outputs{name}.npz")
        return CheckRequest(name, 0, str(inputs), outputs, (), "own", call=call)

    def request(self, *checks: CheckRequest, timeout: float = 60.0) -> Request:
        return Request("no artifact", checks, (), 1, False, timeout, 0)

    def outputs(self, name: str = "") -> tuple[Leaf, ...]:
        return from_npz(self.folder / f"outputs{name}.npz")


def wire(leaf: Leaf) -> tuple[str, tuple[int, ...]]:
    data = np.asarray(leaf.data)
    return {"float0": "bool"}.get(leaf.dtype, data.dtype.name), data.shape


@pytest.fixture
def adder(tmp_path) -> Adder:
    return Adder(tmp_path)


def replies(environment: Environment, *requests: Request, fork: bool = True) -> list[Reply]:
    worker = (start_worker if fork else FreshInterpreters)(environment, 2)
    try:
        return [future.result(timeout=60) for future in map(worker.submit, requests)]
    finally:
        worker.close()


@pytest.mark.parametrize("fork", [True, False], ids=["fork", "no fork"])
def test_a_runtime_runs_several_checks_in_order(environment, adder, fork):
    checks = (adder.check(), adder.check(name="again"), adder.check("refuse", "bad", refused=True))
    (reply,) = replies(environment, adder.request(*checks), fork=fork)
    assert (reply.end, reply.stage, reply.check) == ("ok", Stage.RUN, "bad")
    assert reply.refusals == {"bad": "NotImplementedError: no such dialect"}
    (added,), (again,) = adder.outputs(), adder.outputs("again")
    assert added.data.tolist() == again.data.tolist() == [2, 3]
    times = reply.timings
    assert None not in (times.deserialize, times.compile, times.run, times.peak_bytes)
    assert times.lower is None


def test_arrays_of_every_dtype_reach_a_runtime_unchanged(environment, adder):
    key = key_leaf("key<fry>", np.uint32([[1, 2], [3, 4]]))
    arrays = np.array([1, 2], ml_dtypes.bfloat16), np.array([1, -2], ml_dtypes.int4), np.array(3, np.int8)
    nothing = np.zeros(3, [("float0", "V")])
    adder.arguments = (key, *map(leaf_of, arrays), leaf_of(nothing))
    (reply,) = replies(environment, adder.request(adder.check()))
    assert (reply.end, reply.message) == ("ok", None)
    found = adder.outputs()
    assert [leaf.dtype for leaf in found] == ["key<fry>", "bfloat16", "int4", "int8", "float0"]
    more = np.array([2, 3], ml_dtypes.bfloat16), np.array([2, -1], ml_dtypes.int4), np.array(4, np.int8)
    expected = (key_leaf("key<fry>", np.uint32([[2, 3], [4, 5]])), *map(leaf_of, more), leaf_of(nothing))
    assert [leaf.data.tolist() for leaf in found] == [leaf.data.tolist() for leaf in expected]


def test_errors_of_a_runtime_are_reported_with_their_stage(environment, adder):
    stages = {
        ("refuse", False): (Stage.DESERIALIZE, "no such dialect"),
        ("add", True): (Stage.RUN, "expected this call to be refused, and it was not"),
        ("cannot pass", False): (Stage.READ, "this binding has no bfloat16"),
        ("cannot pass", True): (Stage.READ, "this binding has no bfloat16"),
        ("too many", False): (Stage.RUN, "expected 1 outputs, found 2"),
        ("no such stage", False): (Stage.RUN, "as a stage, found 'link'"),
    }
    requests = [adder.request(adder.check(command, refused=refused)) for command, refused in stages]
    for reply, (stage, reason) in zip(replies(environment, *requests), stages.values(), strict=True):
        assert (reply.end, reply.stage) == ("error", stage)
        assert reason in (reply.message or "")


@pytest.mark.parametrize("refused", [False, True])
def test_a_dtype_that_ml_dtypes_lacks_fails_after_reading(environment, adder, refused):
    request = adder.request(adder.check(refused=refused))
    arrays = {"0000.float5_e2m2": np.uint8([1, 2])}
    np.savez(adder.folder / "inputs.npz", **arrays)
    (reply,) = replies(environment, request)
    assert (reply.end, reply.stage, reply.type) == ("error", Stage.DESERIALIZE, "NoDtypeError")
    assert re.search(LACKS_DTYPE.message, reply.message or "")


@pytest.mark.parametrize("fork", [True, False], ids=["fork", "no fork"])
def test_a_runtime_that_aborts_or_hangs_loses_only_its_cell(environment, adder, fork):
    hangs = adder.request(adder.check("hang", "slow"), timeout=3.0)
    found = replies(environment, adder.request(adder.check("abort")), hangs, adder.request(adder.check()), fork=fork)
    assert [(reply.end, reply.stage) for reply in found] == [
        ("crash", Stage.COMPILE),
        ("timeout", Stage.RUN),
        ("ok", Stage.RUN),
    ]
    assert (found[0].signal, found[0].stderr) == (6, "LLVM ERROR: Unsupported op\n")
    assert found[1].check == "slow"


def test_a_limit_in_processor_seconds_does_not_count_waiting(environment, adder):
    """A process that only waits spends no processor time, and ends by a longer limit in wall-clock time."""
    waits = msgspec.structs.replace(adder.request(adder.check("hang")), timeout=0.15, by_processor=True)
    started = time.monotonic()
    (found,) = replies(environment, waits)
    assert found.end == "timeout"
    assert MOST_WALL * 0.15 <= time.monotonic() - started < 30


def test_processor_seconds_of_a_process_are_measured():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = time.monotonic()
    try:
        wait_for(lambda: limited_seconds(busy.pid, started, 1000.0, True) > 0.3, "processor time")
        assert limited_seconds(idle.pid, started, 1000.0, True) < 0.3
        assert limited_seconds(idle.pid, started, 1000.0, False) >= 0.3
        assert limited_seconds(idle.pid, started, 0.3 / MOST_WALL, True) >= 0.3
    finally:
        for process in (busy, idle):
            process.kill()
            process.wait()


def test_spare_processes_are_forked_for_any_runtime(environment, adder):
    worker = ForkingWorker(environment)
    spares = []
    for _ in range(3):
        assert worker.submit(adder.request(adder.check())).result(timeout=60).end == "ok"
        count = 1 if spares else 0  # many a worker of a run of pytest has only one cell
        spares += wait_for(
            lambda count=count: len(now := children(worker._process.pid)) == count and [now],
            f"{count} spare processes",
        )
    worker.close()
    first, second, third = spares
    assert (first, second != third) == ([], True)


def test_the_time_of_a_cell_excludes_forking_the_next(environment, adder, half):
    slow_fork = "    os.register_at_fork(before=lambda: time.sleep(0.5))\n"
    half.write_text(HALF.replace("    import numpy\n", "    import numpy\n" + slow_fork))
    worker = ForkingWorker(environment)
    found = [worker.submit(adder.request(adder.check())).result(timeout=60) for _ in range(3)]
    worker.close()
    assert [reply.end for reply in found] == ["ok"] * 3
    assert max(reply.seconds for reply in found) < 0.4


def children(pid: int) -> list[str]:
    """Return the child processes that have not ended."""
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in pids if ") Z " not in Path(f"/proc/{child}/stat").read_text()]


def test_a_runtimes_worker_file_is_run_by_path_and_writes_no_file(environment, adder, half):
    (reply,) = replies(environment, adder.request(adder.check()))
    assert reply.end == "ok"
    assert [path.name for path in half.parent.iterdir()] == [half.name]


@pytest.mark.parametrize("where", ["import", "warm"])
def test_a_runtime_with_threads_is_never_forked(environment, adder, half, where):
    half.write_text(THREADS + HALF if where == "import" else HALF.replace("    import numpy\n", indented(THREADS)))
    worker = start_worker(environment, 2)
    assert isinstance(worker, FreshInterpreters)
    assert worker.submit(adder.request(adder.check())).result(timeout=60).end == "ok"
    worker.close()
    assert adder.outputs()[0].data.tolist() == [2, 3]


def test_without_fork_each_cell_gets_a_new_interpreter(environment, monkeypatch):
    monkeypatch.delattr("os.fork")
    with contextlib.closing(start_worker(environment, 2)) as worker:
        assert isinstance(worker, FreshInterpreters)


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("fork", "text", "reason"),
    [
        (False, "import no_such_runtime\n", "ModuleNotFoundError: No module named 'no_such_runtime'"),
        (True, "import no_such_runtime\n", "ModuleNotFoundError: No module named 'no_such_runtime'"),
        (True, "def warm():\n    raise RuntimeError('no license')\n", "RuntimeError: no license"),
        (True, "def warm():\n    pass\n", "AttributeError: module 'jaxexport_worker.half' has no attribute 'run'"),
        (True, "def warm(:\n", "SyntaxError: "),
    ],
    ids=["no fork", "import", "warm", "no run", "syntax"],
)
def test_a_runtime_that_does_not_start_is_named_with_the_reason(environment, adder, half, fork, text, reason):
    half.write_text(text)
    with pytest.raises(WorkerDied) as raised:
        replies(environment, adder.request(adder.check()), fork=fork)
    first = str(raised.value).splitlines()[0]  # a report shows this one
    assert re.match("the (worker|interpreter) of adder 1.0 did not start: exit status 1: ", first)
    assert f": {half} does not start: {reason}" in first
