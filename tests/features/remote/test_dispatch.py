"""Cells on any executor: goldens are sent as bytes, and each cell ends in one outcome, whatever is lost."""

import contextlib
import dataclasses
import os
import pickle
import queue
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import msgspec
import pytest
from anywhere import Anywhere
from making import day
from msgspec import structs
from replaying import replayed
from warm_worker import use_warm_workers

from export_core.features.remote import dask_cluster
from export_core.features.remote import dispatch as executors_module
from export_core.features.remote.dask_cluster import RemoteError
from export_core.features.remote.dispatch import batches, replay_at, replay_on
from export_core.features.remote.job import Job, JobResult, make_job, run_job
from export_core.goldens import Comparison, Golden
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.readers.environment import this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, load_calendar

pytestmark = pytest.mark.usefixtures("forked_workers")

CASES = ("waves", "every_dtype", "other_numbers", "no_artifact", "x64")
LIMITS = CellLimits(jobs=1, timeout=60)


OPTIONS = ReplayOptions(load_calendar(), limits=LIMITS)


def replay_in_this_interpreter(cells, options, **more):
    return replay(cells, lambda placement: this_interpreter(placement.reader), options, **more)


def run_here(job: Job) -> JobResult:
    """Run a job in this interpreter, so that no environment is built."""
    return run_job(job, replay_in_this_interpreter)


def on(cluster, cells, **options):
    outcomes = list(replay_on(cluster, cells, OPTIONS, **{"run": run_here, **options}))
    assert sorted(outcome.key for _, outcome in outcomes) == sorted(cell.key for cell in cells)
    return {(outcome.case, outcome.platform): outcome for _, outcome in outcomes}


@pytest.fixture
def cells(goldens, here) -> list[Cell]:
    return [Cell(goldens[case], here, "cpu") for case in CASES]


def passes(job: Job) -> JobResult:
    """Return a pass for each cell of a job, without running it."""
    return JobResult(tuple(new_result(cell, Stage.COMPARE, Verdict.PASS, seconds=0.1) for cell in job.cells))


def test_a_process_pool_gives_the_outcomes_of_a_local_run(cells, usual_workers):
    local = {outcome.key: outcome for _, outcome in replayed(cells, this_interpreter, load_calendar(), limits=LIMITS)}
    with ProcessPoolExecutor(1, get_context("spawn"), use_warm_workers, [str(usual_workers)]) as pool:
        found = on(Anywhere(pool), cells)
    assert {outcome.verdict for outcome in found.values()} == {Verdict.PASS, Verdict.NUMERICS, Verdict.ERROR}
    for outcome in found.values():
        times = {"seconds": outcome.seconds, "timings": outcome.timings}
        assert outcome == msgspec.structs.replace(local[outcome.key], **times)


def test_a_job_carries_its_goldens_to_another_machine(goldens, here, tmp_path):
    folder = tmp_path / "away"
    shutil.copytree(goldens["waves"].folder, folder)
    travelled = pickle.dumps(make_job([Cell(Golden(goldens["waves"].manifest, folder), here, "cpu")], OPTIONS))
    shutil.rmtree(folder)
    (ended,) = run_here(pickle.loads(travelled)).outcomes
    assert (ended.verdict, ended.message) == (Verdict.PASS, "")


def test_a_remote_job_runs_a_users_comparator_in_a_separate_process(goldens, here, tmp_path):
    (tmp_path / "our_checks.py").write_text(
        "import sys\ndef f(expected, actual): return 'wrong'\ndef ends(*_): sys.exit(0)\n"
    )
    cells = []
    for name in ("f", "ends"):
        folder = shutil.copytree(goldens["waves"].folder, tmp_path / name)
        compared = structs.replace(goldens["waves"].manifest, comparison=Comparison(f"our_checks:{name}"))
        cells.append(Cell(Golden(compared, folder), here, "cpu"))
    with contextlib.closing(UserCode()) as user_code:  # the coordinator's own process is not sent
        jobs = [make_job([cell], dataclasses.replace(OPTIONS, user_code=user_code)) for cell in cells]
        outcomes = [run_here(pickle.loads(pickle.dumps(job))).outcomes[0] for job in jobs]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.NUMERICS, Verdict.NOT_RUN]
    assert outcomes[1].message == "compare='our_checks:ends' raised SystemExit: 0. Nothing was compared."


def test_comparators_of_one_replay_share_one_process(goldens, here, tmp_path, monkeypatch):
    monkeypatch.setenv("OURS", "ours")
    source = "import os\ndef f(*_): return f'{os.environ.get(\"OURS\")} {os.getpid()}'\n"
    (tmp_path / "our_process.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    cells = []
    for case in ("waves", "x64"):
        compared = structs.replace(goldens[case].manifest, comparison=Comparison("our_process:f"))
        cells.append(Cell(dataclasses.replace(goldens[case], manifest=compared), here, "cpu"))
    options = dataclasses.replace(OPTIONS, policy=Policy(environment=("OURS",)))
    one, other = (outcome.message for _, outcome in replay_in_this_interpreter(cells, options))
    assert one == other
    assert one.startswith("our_process:f: ours ")
    with pytest.raises(ProcessLookupError):  # it has ended with the replay
        os.kill(int(one.split()[-1]), 0)


def test_a_job_holds_no_path_objects(cells):
    """A path of this system could not be unpickled on another one."""
    assert b"pathlib" not in pickle.dumps(make_job(cells, OPTIONS))


def test_a_worker_with_another_version_runs_nothing(cells):
    job = dataclasses.replace(make_job(cells[:1], OPTIONS), tool="0.0.1 of yesterday")
    (ended,) = run_here(job).outcomes
    assert ended.verdict is Verdict.NOT_RUN
    assert "and the job was sent by 0.0.1 of yesterday: install the same version on all machines" in ended.message


def test_a_worker_with_different_sources_runs_nothing(goldens, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OURS", "ours")
    (tmp_path / "our_source.py").write_text("def f(*_): ...\n")
    compared = structs.replace(goldens["waves"].manifest, comparison=Comparison("our_source:f"))
    cells = [Cell(dataclasses.replace(goldens["waves"], manifest=compared), here, "cpu")]
    job = make_job(cells, dataclasses.replace(OPTIONS, policy=Policy(environment=("OURS",))))
    assert run_here(job).outcomes[0].verdict is Verdict.PASS
    (tmp_path / "our_source.py").write_text("def f(*_): return 'wrong'\n")
    monkeypatch.delenv("OURS")
    (ended,) = run_here(job).outcomes
    assert ended.verdict is Verdict.NOT_RUN
    assert (
        "this machine has another source of the comparator our_source:f; another value of the variable OURS, which "
        in (ended.message)
    )


def test_a_worker_without_the_jobs_runtime_runs_nothing(cells):
    reader = Release(jax="", jaxlib="", built=day("2026-10-01"), runtime="acme==1.0")
    (ended,) = run_job(make_job([dataclasses.replace(cells[0], reader=reader)], OPTIONS)).outcomes
    assert (ended.verdict, ended.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert ended.message.startswith("this machine does not know acme 1.0: Expected one of the runtimes jaxlib, iree,")


class LosesJobs(ThreadPoolExecutor):
    """An executor that loses the first `times` jobs, as if their machine had disappeared."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self.times = times
        self.sent = 0

    def submit(self, fn, /, *args):
        self.sent += 1
        if self.sent <= self.times:
            lost: Future[JobResult] = Future()
            lost.set_exception(ConnectionError("the machine went away"))
            return lost
        return super().submit(fn, *args)


def test_a_lost_job_is_sent_once_more(cells):
    notes: list[str] = []
    found = on(Anywhere(LosesJobs(1)), cells[:2], run=passes, notify=notes.append)
    assert {outcome.verdict for outcome in found.values()} == {Verdict.PASS}
    (line,) = notes
    assert line.startswith("2 cells of jaxlib ")
    assert line.endswith(" on cpu: lost (ConnectionError: the machine went away); sent once more")


def test_a_job_lost_twice_ends_as_not_run(cells):
    pool = LosesJobs(9)
    found = on(Anywhere(pool), cells[:2], run=passes)
    assert {(outcome.verdict, outcome.message) for outcome in found.values()} == {
        (Verdict.NOT_RUN, "infrastructure: lost 2 times, the last time by ConnectionError: the machine went away")
    }
    assert pool.sent == 2, "once more, and not for ever"


def test_cells_on_a_platform_without_workers_are_not_run(goldens, here):
    both = [Cell(goldens["both"], here, platform) for platform in ("tpu", "cpu")]
    with ThreadPoolExecutor(1) as pool:
        cluster = Anywhere(pool, trouble=lambda platform: "no worker has tpu" if platform == "tpu" else "")
        found = on(cluster, both, run=passes)
    assert found["both", "cpu"].verdict is Verdict.PASS
    outcome = found["both", "tpu"]
    assert (outcome.verdict, outcome.message) == (Verdict.NOT_RUN, "infrastructure: no worker has tpu")


class OneThenSilence:
    """An executor that ends its first job, and no other one."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def submit(self, run, job):
        future: Future[JobResult] = Future()
        if not self.ended.is_set():
            future.set_result(run(job))
            self.ended.set()
        return future


class LostWhileSending(OneThenSilence):
    """An executor that refuses its first job, and is lost from then on."""

    def submit(self, run, job):
        self.ended.set()
        raise ConnectionError("the client is closed")


def vanishing(pool: OneThenSilence) -> Anywhere:
    return Anywhere(pool, trouble=lambda _: "the scheduler is lost" if pool.ended.is_set() else "")


def test_all_jobs_left_are_not_run_if_the_scheduler_is_lost(cells, monkeypatch):
    monkeypatch.setattr(executors_module, "MOST_CELLS", 1)
    runnable = [cell for cell in cells if cell.golden.manifest.case != "no_artifact"]
    found = on(vanishing(OneThenSilence()), runnable, run=passes)
    verdicts = [outcome.verdict for outcome in found.values()]
    assert (verdicts.count(Verdict.PASS), verdicts.count(Verdict.NOT_RUN)) == (1, len(runnable) - 1)
    assert any(outcome.message == "infrastructure: the scheduler is lost" for outcome in found.values())


def test_cells_not_sent_say_that_the_scheduler_is_lost(cells):
    found = on(vanishing(LostWhileSending()), cells[:2], run=passes)
    assert {(outcome.verdict, outcome.message) for outcome in found.values()} == {
        (Verdict.NOT_RUN, "infrastructure: the scheduler is lost")
    }


class Disconnected(OneThenSilence):
    """A client that lost its scheduler: it cancels each job, and closes after a while."""

    sent = 0

    def submit(self, run, job):
        self.sent += 1
        cancelled: Future[JobResult] = Future()
        cancelled.cancel()
        cancelled.set_running_or_notify_cancel()
        if self.sent > executors_module.TRIES:
            self.ended.set()
        return cancelled


def test_cells_of_cancelled_jobs_say_that_the_scheduler_was_lost(cells, monkeypatch):
    monkeypatch.setattr(executors_module, "LOOK_SECONDS", 0.01)
    cluster = vanishing(Disconnected())
    cluster.is_connected = False
    found = on(cluster, cells[:2], run=passes)
    assert {outcome.message for outcome in found.values()} == {"infrastructure: the scheduler is lost"}


def test_a_job_has_cells_of_one_platform(goldens, here):
    sent = []

    def record(job):
        sent.append([cell.platform for cell in job.cells])
        return passes(job)

    with ThreadPoolExecutor(1) as pool:
        on(Anywhere(pool), [Cell(goldens["both"], here, platform) for platform in ("tpu", "cpu")], run=record)
    assert sorted(sent) == [["cpu"], ["tpu"]]


def test_a_job_is_limited_in_cells_and_bytes(goldens, here, monkeypatch):
    many = [Cell(goldens["waves"], here, "cpu")] * 250
    assert [len(batch) for batch in batches(many)] == [100, 100, 50]
    nbytes = sum((many[0].golden.folder / name).stat().st_size for name in many[0].golden.manifest.files)
    for most, lengths in ((1, [1, 1, 1, 1, 1]), (2 * nbytes, [2, 2, 1])):
        monkeypatch.setattr(executors_module, "MOST_BYTES", most)
        assert [len(batch) for batch in batches(many[:5])] == lengths


def test_promised_cells_of_all_readers_are_sent_first(goldens, here):
    other = structs.replace(here, jax="another")
    cells = [Cell(goldens[case], reader, "cpu", promised=case == "waves") for reader in (here, other) for case in CASES]
    sent = []

    def record(job):
        sent.append([cell.golden.manifest.case for cell in job.cells])
        return passes(job)

    with ThreadPoolExecutor(1) as pool:
        on(Anywhere(pool), cells, run=record)
    assert sent[:2] == [["waves"], ["waves"]]


def test_goldens_are_read_only_when_a_worker_is_free(cells, monkeypatch):
    monkeypatch.setattr(executors_module, "MOST_CELLS", 1)
    out, most = set(), []

    def reads(batch, options):
        out.add(batch[0].key)
        most.append(len(out))
        return make_job(batch, options)

    monkeypatch.setattr(executors_module, "make_job", reads)

    class CountsJobs(ThreadPoolExecutor):
        def submit(self, fn, /, *args):
            name = sorted(out)[0]
            future = super().submit(fn, *args)
            future.add_done_callback(lambda _: out.discard(name))
            return future

    with CountsJobs(1) as pool:
        on(Anywhere(pool, slots=2), cells, run=passes)
    assert len(most) == len(cells) - 1, "what is no artifact does not travel"
    assert max(most) <= 2


def test_stopping_a_run_cancels_jobs_that_have_not_begun(goldens, here, monkeypatch):
    monkeypatch.setattr(executors_module, "MOST_CELLS", 1)
    begun = threading.Semaphore(0)
    may_continue = threading.Event()

    def wait(job):
        begun.release()
        may_continue.wait(20)
        return passes(job)

    four = [Cell(goldens[case], here, "cpu") for case in ("waves", "both", "keys", "x64")]
    with ThreadPoolExecutor(1) as pool:
        may_continue.set()
        outcomes = replay_on(Anywhere(pool, slots=3), four, OPTIONS, run=wait)
        next(outcomes)
        may_continue.clear()
        outcomes.close()
        may_continue.set()
    assert begun._value < 4


def test_an_executor_is_local_or_a_dask_address():
    for text in ("ray:tcp://127.0.0.1:1", "dask", "dask:127.0.0.1", ""):
        with pytest.raises(RemoteError, match="--executor: expected local or dask:ADDRESS, such as dask:tcp://"):
            replay_at(text).__enter__()


def stand_in_for_dask(monkeypatch: pytest.MonkeyPatch, client: Callable[..., object]) -> None:
    """Install a stand-in for Dask whose client is what `client` returns."""
    config = SimpleNamespace(set=lambda _: None)
    monkeypatch.setitem(sys.modules, "dask", SimpleNamespace(config=config))
    monkeypatch.setitem(sys.modules, "dask.config", config)
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=client))


@pytest.mark.parametrize("error", [MemoryError("3 EiB"), AssertionError(), OSError("refused"), UnicodeError("text")])
def test_an_address_without_a_dask_scheduler_is_one_error(monkeypatch, error):
    def client(*_: object, **__: object) -> None:
        raise error

    stand_in_for_dask(monkeypatch, client)
    with pytest.raises(RemoteError, match="expected a Dask scheduler at this address"):
        replay_at("dask:tcp://127.0.0.1:1").__enter__()


def test_without_dask_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RemoteError, match=r"pip install 'pytest-jaxexport\[dask\]'"):
        replay_at("dask:tcp://127.0.0.1:1").__enter__()


class Client:
    """A stand-in for Dask's client, of a scheduler that has these workers."""

    def __init__(self) -> None:
        self.status = "running"
        self.workers: dict[str, dict[str, int]] = {}
        self.scheduler = SimpleNamespace(identity=None)

    def sync(self, _: None, **__: float) -> dict[str, dict[str, dict[str, int]]]:
        return {"workers": dict(self.workers)}


def test_waiting_for_a_slow_dask_scheduler_is_reported(monkeypatch):
    shown: queue.Queue[str] = queue.Queue()

    def client(*_: object, **__: object) -> Client:
        line = shown.get(timeout=60)  # answers once the line is shown
        shown.put(line)
        return Client()

    monkeypatch.setattr(dask_cluster, "NOTE_SECONDS", 0)
    stand_in_for_dask(monkeypatch, client)
    dask_cluster.DaskCluster("tcp://127.0.0.1:9999", shown.put)
    assert shown.get_nowait() == "waiting for the Dask scheduler at tcp://127.0.0.1:9999"


def test_missing_and_lost_workers_are_each_reported_once(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(dask_cluster.time, "monotonic", lambda: clock.now)
    client = Client()
    stand_in_for_dask(monkeypatch, lambda *_, **__: client)
    cluster = dask_cluster.DaskCluster("tcp://127.0.0.1:8786")

    def news(seconds: float) -> list[str]:
        clock.now += seconds
        cluster.room("cpu")
        return list(cluster.news())

    assert (news(0), news(2.9)) == ([], [])
    (line,) = news(0.2)
    assert "tcp://127.0.0.1:8786 has no worker: waiting for one, for 60 s. `dask worker" in line
    assert news(5) == []
    client.workers = {"tcp://a:1": {"nthreads": 1}, "tcp://b:2": {"nthreads": 1}}
    assert news(1) == []
    del client.workers["tcp://a:1"]
    assert news(1) == ["the Dask worker at tcp://a:1 is lost, 1 worker left: what it ran is run again"]
    client.workers.clear()
    assert "tcp://b:2 is lost, 0 workers left" in news(1)[0]
    assert "has no worker" in news(4)[0]
