"""A matrix on a real Dask cluster, also when workers or the scheduler are lost."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import timeless, wait_for

CASES = ("waves", "both", "keys")
READERS = "0.9.2,0.10.2,0.11.1,0.12.0.1"
"""One job each: a run that is interrupted after the first job starts no more than the second one."""
LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
"""Options that keep Dask on loopback: with --no-dashboard alone, it serves other pages to every interface."""
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""Settings without which a process of Dask looks at itself up to a hundred times a second while it waits."""

pytestmark = pytest.mark.matrix


class Cluster:
    """A Dask scheduler and its workers on loopback, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", *LOOPBACK)
        line = self._wait_for_line("scheduler-0", r"Scheduler at:\s*(tcp://127\.0\.0\.1:\d+)")
        self.address = line[1]
        self.workers: list[subprocess.Popen[bytes]] = []

    def add(self, *options: str, **variables: str) -> subprocess.Popen[bytes]:
        """Add a worker, without a nanny that would restart it, and return its process."""
        number = len(self._processes)
        one = ("--nworkers", "1", "--nthreads", "1", "--no-nanny", *LOOPBACK)
        words = ("worker", self.address, *one, "--local-directory", self._folder, *options)
        self.workers.append(self._start(*words, **variables))
        self._wait_for_line(f"worker-{number}", r"Registered to:")
        return self.workers[-1]

    def living(self) -> list[subprocess.Popen[bytes]]:
        """Return the processes of this cluster that have not been killed."""
        return [process for process in self._processes if process.poll() is None]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def _start(self, what: str, *words: str | Path, **variables: str) -> subprocess.Popen[bytes]:
        log = self._folder / f"{what}-{len(self._processes)}"
        command = [sys.executable, "-m", "dask", what, *words]
        with log.open("wb") as file:
            given = {**os.environ, **QUIET, **variables}
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=self._folder, env=given)
        self._processes.append(process)
        return process

    def _wait_for_line(self, log: str, pattern: str) -> re.Match[str]:
        return wait_for(lambda: re.search(pattern, (self._folder / log).read_text()), pattern)


@pytest.fixture(scope="module")
def clusters() -> Iterator[list[Cluster]]:
    """The clusters that tests of this module have started."""
    started: list[Cluster] = []
    yield started
    for each in started:
        each.close()


@pytest.fixture
def cluster(clusters, tmp_path_factory) -> Cluster:
    """A cluster with one worker, which tests share until one of them kills its scheduler."""
    if not clusters or clusters[-1].scheduler.poll() is not None:
        clusters.append(Cluster(tmp_path_factory.mktemp("cluster")))
        clusters[-1].add()
    return clusters[-1]


def start(small: Path, results: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "export_core", "matrix", "--no-cache", "--results", results, *words],
        cwd=small,
        env={**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, _ = process.communicate(timeout=400)
    return process.returncode, out


def lines_of(folder: Path) -> list[dict[str, object]]:
    file = folder / "results.jsonl"
    whole = file.read_bytes().rpartition(b"\n")[0] if file.exists() else b""
    return [json.loads(line) for line in whole.splitlines()]


def replaying(worker: subprocess.Popen[bytes]) -> bool:
    """Return whether a reader runs in a child process of this worker."""
    pids = {
        int(pid)
        for task in Path(f"/proc/{worker.pid}/task").iterdir()
        for pid in (task / "children").read_text().split()
    }
    return any(b"program.py\0serve" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


def listening(pid: int) -> list[str]:
    """Return the addresses that a process listens to, as /proc writes them."""
    inodes = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def test_a_killed_worker_does_not_change_the_results(small, cluster):
    options = ("--readers", "0.9.2,0.12.0.1")  # a job for each of the two workers
    code, out = ended(start(small, "local", *options))
    assert code == 0, out
    cluster.add()
    process = start(small, "dask", *options, "--executor", f"dask:{cluster.address}")
    victim = wait_for(lambda: next(filter(replaying, cluster.living()), None), "a worker that replays")
    victim.send_signal(signal.SIGSTOP)  # it cannot end its job before the other worker does
    wait_for(lambda: lines_of(small / "dask"), "the results of the other worker")
    assert listening(process.pid) == []
    victim.kill()
    victim.wait()
    seen = len(lines_of(small / "dask"))
    code, out = ended(process)
    assert code == 0, out
    assert 0 < seen < len(lines_of(small / "dask")) == len(CASES) * 2, "killed in the middle"
    assert timeless(small / "dask") == timeless(small / "local")
    for each in cluster.living():
        assert all(address.startswith("0100007F:") for address in listening(each.pid)), "loopback and nothing else"


def test_without_a_tpu_worker_tpu_cells_are_not_run(small, cluster):
    words = ("--readers", "0.12.0.1", "--cases", "both", "--platforms", "cpu,tpu:run")
    code, out = ended(start(small, "lacks", *words, "--executor", f"dask:{cluster.address}"))
    assert code == 3, out
    found = {line["platform"]: line for line in lines_of(small / "lacks")}
    assert (found["cpu"]["verdict"], found["tpu"]["verdict"]) == ("pass", "not_run")
    assert f"dask worker {cluster.address} --resources tpu=1" in found["tpu"]["message"]


def test_jobs_go_to_the_worker_that_has_their_platform(small, cluster):
    able = cluster.add("--resources", "tpu=1")
    words = ("--readers", "0.12.0.1", "--cases", "both", "--platforms", "tpu")
    code, out = ended(start(small, "has", *words, "--executor", f"dask:{cluster.address}"))
    able.kill()
    assert code == 3, out
    (line,) = lines_of(small / "has")
    assert "infrastructure" not in line["message"], "it was there, and says itself what it cannot do"


def test_a_matrix_without_its_scheduler_exits_2_and_stores_nothing(small):
    code, out = ended(start(small, "nowhere", "--readers", "0.12.0.1", "--executor", "dask:tcp://127.0.0.1:9"))
    assert code == 2, out
    assert "expected a Dask scheduler at this address, none answers" in out
    assert not (small / "nowhere").exists()


def test_ctrl_c_ends_a_run_and_reports_the_cells_left(small, cluster):
    process = start(small, "interrupted", "--readers", READERS, "--executor", f"dask:{cluster.address}")
    wait_for(lambda: lines_of(small / "interrupted"), "a first result")
    process.send_signal(signal.SIGINT)
    code, out = ended(process)
    assert code == 130, out
    assert "Traceback" not in out
    finished = len(lines_of(small / "interrupted"))
    planned = len(CASES) * len(READERS.split(","))
    last = out.replace("\n", " ")
    assert f"Interrupted: {finished} of {planned} cells ha" in last
    assert f"{planned - finished} are left" in last
    assert not (small / "interrupted" / "summary.json").exists()


def test_cells_left_are_not_run_if_the_scheduler_dies(small, cluster):
    process = start(small, "lost", "--readers", READERS, "--executor", f"dask:{cluster.address}")
    wait_for(lambda: lines_of(small / "lost"), "a first result")
    cluster.scheduler.kill()
    code, out = ended(process)
    assert code == 3, out
    found = lines_of(small / "lost")
    assert len(found) == len(CASES) * len(READERS.split(","))
    verdicts = [line["verdict"] for line in found]
    assert 0 < verdicts.count("not_run") < len(found)
    assert {line["message"] for line in found if line["verdict"] == "not_run"} == {
        f"infrastructure: the Dask scheduler at {cluster.address} is lost"
    }
