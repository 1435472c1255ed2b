"""The first call of an artifact is made in another process: if that one crashes, this process makes no call."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.export.produce import Uncalled, produce
from export_core.goldens.store import staged_goldens
from export_core.matrix import Verdict
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.worker.client import ForkingWorker
from export_core.readers.worker.protocol import Reply, Request, Stage
from export_core.releases import load_calendar
from export_core.run.golden_writing import OwnReader, require_first_call

LIVES = Reply(Stage.RUN, "ok")
DIES = Reply(Stage.COMPILE, "crash", signal=11)


@pytest.fixture
def first_call(monkeypatch, tmp_path) -> Iterator[Callable[..., tuple[str, int]]]:
    """Return a function that makes the first call of `uncalled` with workers that give prepared replies.

    A new process answers `cold`, a warm one `traced`. The function returns the problem, empty if there is none, and
    the number of requests.
    """
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path))
    with closing(UserCode()) as user_code, closing(OwnReader(Policy(), RunOptions(results=None), user_code)) as reader:

        def call(uncalled: Uncalled, cold: Reply, traced: Reply) -> tuple[str, int]:
            requests: list[Request] = []

            def submit(request: Request) -> Future[Reply]:
                requests.append(request)
                future: Future[Reply] = Future()
                future.set_result(traced if request.warm else cold)
                return future

            monkeypatch.setattr(reader, "start_worker", lambda: SimpleNamespace(submit=submit))
            return reader.first_call(uncalled), len(requests)

        yield call


def uncalled_of(function: Callable[..., object]) -> Uncalled:
    """Return the golden of a function as it is before the function is called."""
    case, uncalled = Case("a", "test_a.py::a", None, jax.jit(function), (np.ones(3, np.float32),), {}), []
    produce(case, load_calendar(), reproducible=False, before_call=uncalled.append)
    (one,) = uncalled
    return one


def test_an_artifact_that_ran_in_a_trial_process_is_not_tried_again(first_call):
    assert first_call(uncalled_of(jnp.sin), LIVES, LIVES) == ("", 1)
    assert first_call(uncalled_of(jnp.sin), LIVES, LIVES) == ("", 0)
    assert first_call(uncalled_of(jnp.cos), LIVES, LIVES) == ("", 1)


@pytest.mark.usefixtures("forked_workers")
def test_the_first_replay_uses_the_reply_of_the_first_call(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path))
    requests, submit = [], ForkingWorker.submit
    monkeypatch.setattr(ForkingWorker, "submit", lambda *words: requests.append(words) or submit(*words))
    case, uncalled = Case("a", "test_a.py::a", None, jax.jit(jnp.sin), (np.ones(3, np.float32),), {}), []
    produced = produce(case, load_calendar(), reproducible=False, before_call=uncalled.append)
    options = RunOptions(results=None, cache=False)
    with (
        closing(UserCode()) as user_code,
        closing(OwnReader(Policy(), options, user_code)) as reader,
        staged_goldens((produced.manifest, produced.files)) as goldens,
    ):
        assert (reader.first_call(uncalled[0]), len(requests)) == ("", 1)
        for cells in (1, 2):
            assert [result.verdict for result in reader.replay(goldens)] == [Verdict.PASS]
            assert len(requests) == cells


def test_a_crash_in_a_cold_process_alone_does_not_prevent_the_call(first_call):
    assert first_call(uncalled_of(jnp.sin), DIES, LIVES) == ("", 2)


def test_a_crashing_artifact_is_tried_again_at_each_first_call(first_call):
    for _ in range(2):
        assert first_call(uncalled_of(jnp.sin), DIES, DIES) == ("stage compile: died by signal 11 (SIGSEGV)", 2)


@pytest.mark.parametrize("end", ["error", "timeout", "fault", "memory"])
def test_only_a_crash_prevents_the_call_in_this_process(end, first_call):
    for processes in (1, 0 if end == "error" else 1):
        assert first_call(uncalled_of(jnp.sin), Reply(Stage.RUN, end), DIES) == ("", processes)


def test_a_crash_while_reading_does_not_prevent_the_call(first_call):
    assert first_call(uncalled_of(jnp.sin), Reply(Stage.READ, "crash", signal=11), DIES) == ("", 1)


def test_a_refused_first_call_leaves_the_function_uncalled(monkeypatch):
    monkeypatch.setattr(
        "export_core.export.produce.results", lambda *_: pytest.fail("expected no call of the function")
    )

    def refuse(uncalled: Uncalled) -> None:
        require_first_call(uncalled.case.test, "stage run: died by signal 6 (SIGABRT)")

    case = Case("a", "test_a.py::a", None, jax.jit(jnp.sin), (np.ones(3, np.float32),), {})
    with pytest.raises(ExportError, match=r"its call ends the process: stage run: died by signal 6 \(SIGABRT\)"):
        produce(case, load_calendar(), reproducible=False, before_call=refuse)
