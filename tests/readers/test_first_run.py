"""The first replay of a golden: its first call or the measurement of its noise answers it, once."""

from concurrent.futures import Future
from pathlib import Path

from msgspec.structs import replace

from export_core.readers.worker.first_run import FirstRuns
from export_core.readers.worker.protocol import CheckRequest, Reply, Request, Stage, VariantRequest


class FakeWorker:
    """A stand-in for a worker: it records requests, writes outputs, and gives one reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[Request] = []

    def submit(self, request: Request) -> Future[Reply]:
        self.requests.append(request)
        Path(request.checks[0].outputs or "").write_bytes(b"outputs")
        future: Future[Reply] = Future()
        future.set_result(self.reply)
        return future

    def close(self) -> None:
        """Do nothing, since no process was started."""


def request_in(folder: Path, artifact: bytes = b"artifact") -> Request:
    folder.mkdir()
    (folder / "artifact").write_bytes(artifact)
    (folder / "inputs").write_bytes(b"inputs")
    check = CheckRequest("", 0, str(folder / "inputs"), str(folder / "outputs"), (), "own")
    return Request(str(folder / "artifact"), (check,), (), devices=1, x64=False, timeout=1.0, memory=0)


def measured(request: Request) -> Request:
    check = replace(request.checks[0], variants=(VariantRequest("moved 0", "inputs", "outputs"),))
    return replace(request, checks=(check,))


def test_the_first_replay_after_measuring_noise_runs_no_process(tmp_path):
    worker, runs = (
        FakeWorker(Reply(Stage.RUN, "ok", variant="moved 0", failed={"moved 0": "no"}, seconds=9, ran=1)),
        FirstRuns(),
    )
    runs.run(worker, measured(request_in(tmp_path / "first")))
    replayed = request_in(tmp_path / "again")
    reply = runs.before(worker).submit(replayed).result()
    assert reply == Reply(Stage.RUN, "ok", seconds=1)
    assert Path(replayed.checks[0].outputs or "").read_bytes() == b"outputs"
    assert len(worker.requests) == 1
    runs.before(worker).submit(replayed)
    assert len(worker.requests) == 2


def test_a_replay_of_another_artifact_runs_it_in_a_process(tmp_path):
    worker, runs = FakeWorker(Reply(Stage.RUN, "ok")), FirstRuns()
    runs.run(worker, request_in(tmp_path / "first"))
    runs.before(worker).submit(request_in(tmp_path / "other", b"another"))
    assert len(worker.requests) == 2


def test_a_replay_runs_if_only_the_call_on_moved_inputs_crashed(tmp_path):
    worker, runs = FakeWorker(Reply(Stage.RUN, "crash", variant="moved 0")), FirstRuns()
    runs.run(worker, measured(request_in(tmp_path / "first")))
    runs.before(worker).submit(request_in(tmp_path / "again"))
    assert len(worker.requests) == 2


def test_replays_reuse_a_crash_on_the_unmoved_inputs(tmp_path):
    worker, runs = FakeWorker(Reply(Stage.RUN, "crash", signal=11)), FirstRuns()
    runs.run(worker, measured(request_in(tmp_path / "first")))
    reply = runs.before(worker).submit(request_in(tmp_path / "again")).result()
    assert (reply.end, reply.signal, len(worker.requests)) == ("crash", 11, 1)


def test_outputs_above_the_limit_are_not_stored_for_replays(tmp_path):
    worker, runs = FakeWorker(Reply(Stage.RUN, "ok")), FirstRuns()
    for number, (most, requests) in enumerate([(len(b"outputs"), 1), (len(b"outputs") - 1, 3)]):
        assert runs.run(worker, request_in(tmp_path / f"first {number}"), most).end == "ok"
        runs.before(worker).submit(request_in(tmp_path / f"again {number}"))
        assert len(worker.requests) == requests
