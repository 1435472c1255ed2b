"""Cells in real workers of this interpreter: whatever happens in one, each ends in exactly one outcome."""

import dataclasses
import os
import signal
import threading
import time
from pathlib import Path

import making
import msgspec
import pytest
from replaying import START, misbehaving, replayed

import export_core.matrix.replay as matrix_run
from export_core.matrix import Cell, CellLimits, Result, Verdict
from export_core.readers.cell import request_of
from export_core.readers.environment import this_interpreter, with_variables
from export_core.readers.errors import STILL_STARTS, EnvironmentFailed, WorkerDied
from export_core.readers.hardware import instruction_set
from export_core.readers.worker import client as pool
from export_core.readers.worker.client import ForkingWorker, FreshInterpreters, WarmWorkers, start_worker
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

WELL = ("waves", "both", "keys", "every_dtype", "cholesky", "eigh", "x64")
BOTH = pytest.mark.parametrize("fork", [True, False], ids=["fork", "no fork"])

pytestmark = pytest.mark.usefixtures("forked_workers")


def ending(outcome: Result) -> tuple[Verdict, Stage, int | None]:
    return outcome.verdict, outcome.stage, outcome.signal


@BOTH
def test_goldens_pass_in_the_interpreter_that_wrote_them(run, fork, monkeypatch):
    monkeypatch.setattr(pool, "start_process", START)  # workers that are no forks
    cases = WELL if fork else ("x64",)  # without fork each imports jax anew
    outcomes = run(*cases, fork=fork, environment_of=this_interpreter)
    for case, outcome in outcomes.items():
        assert ending(outcome) == (Verdict.PASS, Stage.COMPARE, None), (case, outcome.message, outcome.stderr)
        assert outcome.max_abs_error is not None
        assert outcome.as_written, "this interpreter wrote it"
        assert len(outcome.outputs) == 16
        assert outcome.seconds > 0
        assert outcome.cost.instructions
        assert outcome.timings.run > 0


def test_a_cell_with_different_numbers_names_both_processors(run, goldens):
    golden = goldens["other_numbers"]
    made = msgspec.structs.replace(golden.manifest, instruction_set="x86_64 SSE")
    goldens = {"other_numbers": dataclasses.replace(golden, manifest=made)}
    (outcome,) = run("other_numbers", of=goldens).values()
    assert outcome.processors == f"written on x86_64 SSE, read on {instruction_set()}"
    (outcome,) = run("other_numbers").values()
    assert outcome.processors == "", "the processor that wrote it is unknown"


def test_the_message_on_different_numbers_has_index_and_error(run):
    outcomes = run("other_numbers", "other_count")
    outcome = outcomes["other_numbers"]
    assert ending(outcome) == (Verdict.NUMERICS, Stage.COMPARE, None)
    first = (
        "output 0 (result[0]) float32[2]: 2 of 2 elements differ (max abs error 1.91, max rel error 1.91, "
        "max ulp 2129184695; allowed rtol 1e-05, atol 1e-05 (default of float32))"
    )
    assert outcome.message.splitlines()[0] == first
    assert outcome.message.splitlines()[1] == "  largest error at [1]: expected -1.0, got 0.9092974"
    assert outcome.outputs
    assert not outcome.as_written
    assert ending(outcomes["other_count"]) == (Verdict.NUMERICS, Stage.COMPARE, None)
    assert outcomes["other_count"].message == "expected 2 outputs, got 1"


@BOTH
def test_every_way_a_cell_can_misbehave_has_its_outcome(run, fork):
    outcomes = run(
        "dies_by_segv", "exits_silently", "prints_on_stdout", "reads_stdin", "says_on_stderr", "waves", fork=fork
    )  # fmt: skip
    assert ending(outcomes["dies_by_segv"]) == (Verdict.CRASH, Stage.DESERIALIZE, 11)
    assert outcomes["dies_by_segv"].message == "died by signal 11 (SIGSEGV)"
    assert ending(outcomes["exits_silently"]) == (Verdict.CRASH, Stage.DESERIALIZE, None)
    assert outcomes["exits_silently"].message == "the process ended without a reply, with exit status 3"
    assert ending(outcomes["prints_on_stdout"]) == (Verdict.PASS, Stage.COMPARE, None)
    assert '{"ready": true}' in outcomes["prints_on_stdout"].stderr
    assert ending(outcomes["reads_stdin"]) == (Verdict.PASS, Stage.COMPARE, None), outcomes["reads_stdin"].message
    assert ending(outcomes["says_on_stderr"]) == (Verdict.ERROR, Stage.DESERIALIZE, None)
    assert outcomes["says_on_stderr"].message == "ValueError: jax says little"
    assert "error: native code says why" in outcomes["says_on_stderr"].stderr
    assert ending(outcomes["waves"]) == (Verdict.PASS, Stage.COMPARE, None)


# Without fork the import of jax is part of the time. `hangs` computes for ever, `is_flaky` sleeps.
@pytest.mark.parametrize(
    ("fork", "case", "stage", "limit"),
    [(True, "hangs", Stage.RUN, 1.5), (False, "is_flaky", Stage.DESERIALIZE, 3)],
    ids=["fork", "no fork"],
)
def test_a_cell_that_hangs_is_killed_and_others_continue(run, flaky, fork, case, stage, limit):
    flaky.touch()
    notes: list[str] = []
    outcomes = run(case, "waves", timeout=limit, fork=fork, notify=notes.append)
    assert ending(outcomes[case]) == (Verdict.TIMEOUT, stage, None), outcomes[case].message
    assert outcomes[case].message == f"still in stage {stage} after {limit} s, killed"
    assert limit <= outcomes[case].seconds
    assert not [text for text in notes if "again" in text], "a verdict is not tried again"
    assert outcomes["waves"].verdict is Verdict.PASS


@BOTH
def test_a_cell_over_the_memory_limit_is_killed_with_a_reason(run, fork):
    outcomes = run("eats_memory", "waves", memory=900 << 20, fork=fork)
    assert ending(outcomes["eats_memory"])[:2] == (Verdict.CRASH, Stage.RUN)
    assert outcomes["eats_memory"].message == "killed: it used more than the limit of 0.9 GiB"
    assert outcomes["eats_memory"].cost.instructions, "it was compiled"
    assert outcomes["eats_memory"].timings.run is None
    assert outcomes["waves"].verdict is Verdict.PASS


def test_a_refusal_counts_only_in_releases_known_to_give_it(run, here):
    outcomes = run("refused_by_age", "refused_by_version")
    says_so = load_calendar().jax[here.jax].built >= load_calendar().jax["0.11.1"].built
    by_age = Verdict.REFUSED if says_so else Verdict.ERROR
    assert ending(outcomes["refused_by_age"]) == (by_age, Stage.DESERIALIZE, None), "0.11.1 and later say so"
    assert ending(outcomes["refused_by_version"]) == (Verdict.ERROR, Stage.DESERIALIZE, None), "0.8.2 and later do not"


def test_a_file_that_is_not_an_artifact_starts_no_worker(run):
    def no_worker(*_, **__):
        raise AssertionError("a worker was started")

    outcome = run("no_artifact", start=no_worker)["no_artifact"]
    assert (outcome.verdict, outcome.stage) == (Verdict.ERROR, Stage.AUDIT)
    assert "artifact.jaxexport" in outcome.message


def test_a_cell_with_a_wrong_comparator_is_not_run(run):
    outcome = run("wrong_comparator")["wrong_comparator"]
    assert outcome.verdict is Verdict.NOT_RUN
    assert "compare='svd': expected the outputs (U, s, V^H), found float32[2]." in outcome.message


class Killer:
    """A starter of real workers that kills the first `times` of them soon after their cells have begun."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.started = 0

    def __call__(self, environment, slots):
        worker = start_worker(environment, slots)
        self.started += 1
        if self.started <= self.times:
            threading.Timer(0.7, os.kill, (worker._process.pid, signal.SIGKILL)).start()
        return worker


def test_cells_of_a_killed_worker_are_run_once_more(run):
    notes: list[str] = []
    killer = Killer(1)
    outcomes = run("sleeps_a_second", "waves", "both", "keys", start=killer, notify=notes.append)
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.PASS}
    assert sum(" again: " in text for text in notes) == 1
    # The sleeper was out; the others may have ended by then, where the worker knew what to import.
    assert 2 <= killer.started <= 4, "the cells that were out each get a worker of their own, the rest a new one"


def test_cells_whose_worker_is_killed_twice_are_not_run(run):
    killer = Killer(2)
    outcome = run("sleeps_a_second", start=killer)["sleeps_a_second"]
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    why = "the worker died before this cell ended: exit status -9"
    assert outcome.message == f"infrastructure: tried twice, and each time {why}"
    assert killer.started == 2, "once more, and not for ever"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_kills_its_worker_harms_no_other_cell(run, jobs):
    outcomes = run("waves", "kills_its_worker", "both", "keys", jobs=jobs)
    assert {ending(outcomes[case]) for case in ("waves", "both", "keys")} == {(Verdict.PASS, Stage.COMPARE, None)}
    assert outcomes["kills_its_worker"].verdict is Verdict.NOT_RUN
    assert "exit status -9" in outcomes["kills_its_worker"].message


def test_a_stuck_worker_is_killed_and_its_cells_run_again(run, monkeypatch):
    monkeypatch.setattr(pool, "GRACE_SECONDS", 1.0)
    started = []

    def stuck_at_first(environment, slots):
        worker = start_worker(environment, slots)
        if not started:
            os.kill(worker._process.pid, signal.SIGSTOP)
        started.append(worker)
        return worker

    delays, timer = [], threading.Timer

    def noted_timer(seconds, *arguments):
        delays.append(seconds)
        return timer(0.1 if len(started) == 1 else seconds, *arguments)

    monkeypatch.setattr(threading, "Timer", noted_timer)
    outcomes = run("waves", "both", timeout=3, start=stuck_at_first)
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.PASS}
    assert set(delays) == {2 * 3 + 1.0}, "twice the limit of a cell and the grace"


def test_no_cell_outlives_a_worker_that_was_killed(goldens, here, tmp_path):
    worker = ForkingWorker(this_interpreter(here))
    request = _request(goldens["hangs"], tmp_path)
    future = worker.submit(request)
    children = Path(f"/proc/{worker._process.pid}/task/{worker._process.pid}/children")
    cell = _wait_for(lambda: children.read_text().split())[0]
    os.kill(worker._process.pid, signal.SIGKILL)
    assert "exit status -9" in str(future.exception(timeout=10))
    _wait_for(lambda: not Path(f"/proc/{cell}/cmdline").exists() or not Path(f"/proc/{cell}/cmdline").read_bytes())
    worker.close()


def _request(golden, folder):
    return request_of(Cell(golden, making.release(making.NEWEST), "cpu"), folder, CellLimits(timeout=60, memory=0))


def _wait_for(condition):
    """Return the first true value of a condition, or fail after ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("waited 10 s for nothing")


def test_cells_without_an_environment_give_the_reason(run):
    def fails(release):
        raise EnvironmentFailed("installing jax==9 failed with status 1:\nno such wheel")

    def none(release):
        return dataclasses.replace(this_interpreter(release), python=Path("/nowhere/python"))

    for build, reason in ((fails, "installing jax==9 failed with status 1:\nno such wheel"), (none, "/nowhere/python")):
        for outcome in run("waves", "both", environment_of=build).values():
            assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
            assert reason in outcome.message


def test_the_audit_needs_no_environment(run):
    def fails(release):
        raise EnvironmentFailed("no such wheel")

    outcomes = run("no_artifact", "waves", environment_of=fails)
    assert ending(outcomes["no_artifact"]) == (Verdict.ERROR, Stage.AUDIT, None)
    assert outcomes["waves"].verdict is Verdict.NOT_RUN


@BOTH
def test_a_jax_that_does_not_import_shows_the_import_error(run, tmp_path, fork):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("raise ImportError('libmissing.so: cannot open shared object file')")

    def broken(release):
        return with_variables(this_interpreter(release), PYTHONPATH=str(tmp_path))

    outcome = run("waves", environment_of=broken, fork=fork)["waves"]
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert outcome.message.startswith("infrastructure: tried twice")
    assert "libmissing.so: cannot open shared object file" in outcome.message


def test_cells_of_a_platform_without_its_device_are_not_run(goldens, here):
    cells = [Cell(goldens["both"], here, platform) for platform in ("cpu", "tpu")]
    by_platform = {outcome.platform: outcome for _, outcome in replayed(cells, this_interpreter, load_calendar())}
    assert by_platform["cpu"].verdict is Verdict.PASS
    assert (by_platform["tpu"].verdict, by_platform["tpu"].stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)


def test_a_run_that_is_stopped_ends_its_cells_at_once(goldens, here):
    cells = [Cell(goldens[case], here, "cpu") for case in ("waves", "hangs", "both")]
    outcomes = replayed(cells, this_interpreter, limits=CellLimits(jobs=2, timeout=0))
    assert next(outcomes)[1].verdict is Verdict.PASS
    closing = threading.Thread(target=outcomes.close, daemon=True)
    closing.start()
    closing.join(timeout=60)
    assert not closing.is_alive(), "it waits for a cell that has no limit and never ends"


@pytest.mark.parametrize(("silence", "is_noted"), [(0.0, True), (None, False)])
def test_a_cell_that_runs_long_is_named(goldens, here, silence, is_noted):
    noted, seen = [], threading.Event()

    def note(line):
        if ": running for " in line:
            noted.append(line)
            seen.set()

    def ends_when_seen(cell, reply, outputs):
        assert not is_noted or seen.wait(60)

    cells = [Cell(goldens["waves"], here, "cpu")]
    ((_, outcome),) = replayed(cells, this_interpreter, silence=silence, notify=note, look=ends_when_seen)
    assert outcome.verdict is Verdict.PASS
    assert bool(noted) is is_noted
    assert all(line.startswith(f"{goldens['waves'].id} in {here.title}: running for ") for line in noted)


def test_the_next_cell_runs_while_outputs_are_compared(run, monkeypatch):
    submitted, waited = threading.Semaphore(0), []
    submit, compare = ForkingWorker.submit, matrix_run.outcome_of

    def note_and_submit(worker, request):
        submitted.release()
        return submit(worker, request)

    def wait_and_compare(*arguments, **options):
        if not waited:
            waited.append(all(submitted.acquire(timeout=60) for _ in range(2)))
        return compare(*arguments, **options)

    monkeypatch.setattr(ForkingWorker, "submit", note_and_submit)
    monkeypatch.setattr(matrix_run, "outcome_of", wait_and_compare)
    outcomes = run("waves", "both", jobs=1, start=start_worker)
    assert waited == [True]
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.PASS}


def test_a_warm_worker_serves_many_replays_and_is_replaced(run):
    workers = WarmWorkers()
    try:
        assert run("waves", start=workers.start)["waves"].verdict is Verdict.PASS
        first = workers._worker
        assert run("both", start=workers.start)["both"].verdict is Verdict.PASS
        assert workers._worker is first
        first._process.kill()
        _wait_for(lambda: first.ended)
        assert run("waves", start=workers.start)["waves"].verdict is Verdict.PASS
        assert workers._worker is not first
    finally:
        workers.close()


def test_a_worker_that_does_not_start_in_time_is_given_up(here, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(30)")
    monkeypatch.setattr(pool, "START_SECONDS", 0.5)
    monkeypatch.setattr(pool, "CLOSE_SECONDS", 0.5)
    with pytest.raises(WorkerDied, match=f"{STILL_STARTS}, after"):
        ForkingWorker(with_variables(this_interpreter(here), PYTHONPATH=str(tmp_path)))


def test_no_more_new_interpreters_run_than_there_are_slots(here, goldens, tmp_path):
    worker = FreshInterpreters(this_interpreter(here), 1)
    futures = [worker.submit(_request(goldens["waves"], tmp_path)) for _ in range(2)]
    assert not futures[1].running()
    assert [future.result(timeout=60).end for future in futures] == ["ok", "ok"]
    worker.close()


def test_an_outcome_names_openblas_kernels_and_cpython(run, here, warm_workers):
    def forced(release):
        return with_variables(misbehaving(release), OPENBLAS_CORETYPE="Haswell", OPENBLAS_L2_SIZE="0x100")

    def elsewhere(release):
        return dataclasses.replace(misbehaving(release), note="runs on CPython 3.11")

    def usual(environment, slots):  # the worker itself has none of these variables
        return warm_workers.start(misbehaving(here), slots)

    (outcome,) = run("waves", environment_of=forced, start=usual).values()
    assert outcome.message == "ran with OPENBLAS_CORETYPE=Haswell, OPENBLAS_L2_SIZE=0x100"
    outcomes = run("waves", "says_on_stderr", environment_of=elsewhere, start=usual)
    assert outcomes["waves"].message == "runs on CPython 3.11"
    assert outcomes["says_on_stderr"].message == "ValueError: jax says little\nruns on CPython 3.11"
