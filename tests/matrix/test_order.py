"""The order of cells: those that decide the gate run first in all readers, in environments that are built once."""

import dataclasses
import threading
from collections import Counter

import msgspec
import pytest
from making import day, golden, release
from replaying import StubEnvironments, replayed

from export_core.matrix import Cell, CellLimits, Selection, Verdict, make_plan
from export_core.matrix.cached_replay import OutcomeCache, replay_unknown
from export_core.matrix.replay import deciding_first, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import load_policy
from export_core.readers.environment import this_interpreter
from export_core.readers.errors import WorkerDied
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

pytestmark = pytest.mark.usefixtures("forked_workers")

OLD, NEW = release("0.9.2"), release("0.12.0.1")


def cell(case: str, reader=OLD, *, promised: bool = False) -> Cell:
    return Cell(golden(case), reader, "cpu", promised=promised)


def shown(groups) -> list[str]:
    """Return each group as text: case and jaxlib of its cells."""
    return [" ".join(f"{one.golden.manifest.case} in {one.reader.jaxlib}" for one in group) for group in groups]


def test_promised_cells_of_all_readers_come_first():
    cells = [cell("a"), cell("b", promised=True), cell("c", NEW), cell("d", NEW, promised=True)]
    assert shown(deciding_first(cells, lambda one: one.key)) == [
        *("b in 0.9.2", "d in 0.12.0.1"),
        *("a in 0.9.2", "c in 0.12.0.1"),
    ]


def test_cells_of_a_deployment_target_come_first_like_promised_cells():
    of_target = dataclasses.replace(cell("a"), deployed=("robot",))
    cells = [cell("b"), of_target, cell("c", NEW), cell("d", NEW, promised=True)]
    assert shown(deciding_first(cells, lambda one: one.key)) == [
        *("a in 0.9.2", "d in 0.12.0.1"),
        *("b in 0.9.2", "c in 0.12.0.1"),
    ]


DEPLOYED = """
deployed:
  - {name: robot, jaxlib: 0.9.2, cases: [a, c]}
  - {name: retired, jaxlib: 0.10.2, until: 2026-11-20}
"""


def test_cells_that_a_policy_deploys_run_before_others(tmp_path):
    """The targets in force alone, and of their readers only the cells of their cases."""
    (tmp_path / "export_compat.yaml").write_text(DEPLOYED)
    policy, today = load_policy(tmp_path / "export_compat.yaml"), day("2026-11-21")
    goldens, readers = [golden("a"), golden("b"), golden("c")], "0.9.2,0.10.2,0.12.0.1"
    selection, windows = Selection(readers=readers), policy.window_lengths()
    plan = make_plan(goldens, policy.calendar(), windows, selection, today, targets=policy.targets_on(today))
    assert [one.deployed for one in plan.cells[:3]] == [("robot",), (), ("robot",)]
    assert shown(deciding_first(plan.cells, lambda one: one.key)) == [
        *("a in 0.9.2 c in 0.9.2", "a in 0.12.0.1 b in 0.12.0.1 c in 0.12.0.1"),
        *("b in 0.9.2", "a in 0.10.2 b in 0.10.2 c in 0.10.2"),
    ]


def test_a_cell_with_the_content_of_a_promised_cell_comes_first():
    cells = [cell("twin"), cell("twin", NEW), cell("other"), cell("b", promised=True)]
    same = {"twin": "x", "b": "x", "other": "y"}
    groups = deciding_first(cells, lambda one: same[one.golden.manifest.case])
    assert shown(groups) == ["twin in 0.9.2 b in 0.9.2", "twin in 0.12.0.1", "other in 0.9.2"]


def test_readers_with_the_same_jax_alternate_with_others():
    first, second = release("0.10.1"), release("0.10.2")
    assert first.jax == second.jax != OLD.jax
    cells = [cell(case, reader, promised=case == "b") for reader in (first, second, OLD) for case in ("a", "b")]
    assert shown(deciding_first(cells, lambda one: one.key)) == [
        *("b in 0.10.1", "b in 0.9.2", "b in 0.10.2"),
        *("a in 0.10.1", "a in 0.9.2", "a in 0.10.2"),
    ]


@pytest.fixture
def in_two_readers(goldens, here) -> list[Cell]:
    """The cells of two goldens in two readers; in each reader the second cell is promised, and the first one is not."""
    readers = here, msgspec.structs.replace(here, jax="another")
    return [
        Cell(goldens[case], reader, "cpu", promised=case == "waves") for reader in readers for case in ("both", "waves")
    ]


def test_artifacts_are_audited_while_the_worker_starts(in_two_readers, here, monkeypatch):
    started = threading.Event()

    def start(*_, **__):
        started.set()
        raise WorkerDied("not in this test")

    def audit(*_):
        return "" if started.wait(5) else "audited before the worker was started"

    monkeypatch.setattr("export_core.matrix.replay.audit_problem", audit)
    options = ReplayOptions(load_calendar())
    ((_, outcome),) = replay(in_two_readers[:1], lambda _: this_interpreter(here), options, start=start)
    assert outcome.verdict is Verdict.NOT_RUN
    assert "not in this test" in outcome.message


def test_progress_lines_name_the_jax_of_a_jaxlib_used_with_two_jax(in_two_readers, here):
    def start(*_, **__):
        raise WorkerDied("not in this test")

    noted: list[str] = []
    list(replayed(in_two_readers, this_interpreter, start=start, notify=noted.append))
    ready = {f"environment of {here.title} (jax {jax}) is ready" for jax in (here.jax, "another")}
    assert {line for line in noted if line.endswith("is ready")} == ready
    noted.clear()
    list(replayed(in_two_readers[:1], this_interpreter, start=start, notify=noted.append))
    assert f"environment of {here.title} is ready" in noted


def test_promised_and_other_cells_of_a_reader_share_an_environment(in_two_readers, warm_workers):
    built: Counter[str] = Counter()

    def environment_of(reader):
        built[reader.jax] += 1
        return this_interpreter(reader)

    outcomes = replayed(
        in_two_readers, environment_of, limits=CellLimits(jobs=1, timeout=60.0), start=warm_workers.start
    )
    assert [cell.promised for cell, _ in outcomes] == [True, True, False, False]
    assert set(built.values()) == {1}


@pytest.mark.parametrize(("most", "starts"), [(4, [1, 1]), (1, [1, 2]), (0, [2, 2])])
def test_a_worker_stays_open_for_unpromised_cells_if_few_are_idle(
    in_two_readers, here, warm_workers, monkeypatch, most, starts
):
    monkeypatch.setattr("export_core.matrix.replay.MOST_IDLE", most)
    started: Counter[str] = Counter()
    open_workers: set[object] = set()

    class Worker:
        def __init__(self, worker):
            self.submit = worker.submit
            open_workers.add(self)

        def close(self):
            open_workers.remove(self)

    def start(environment, slots):
        started[environment.release.jax] += 1
        return Worker(warm_workers.start(dataclasses.replace(environment, release=here), slots))

    limits = CellLimits(jobs=1, timeout=60.0)
    outcomes = list(replayed(in_two_readers, this_interpreter, limits=limits, start=start))
    assert [outcome.verdict for _, outcome in outcomes] == [Verdict.PASS] * 4
    assert [started[here.jax], started["another"]] == starts
    assert open_workers == set()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_new_environment_gets_bytecode_of_earlier_ones(
    in_two_readers, here, warm_workers, monkeypatch, tmp_path, jobs
):
    shared: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        "export_core.matrix.replay.share",
        lambda folder, others: shared.append((folder.name, *(other.name for other in others))),
    )

    def environment_of(reader):
        return dataclasses.replace(this_interpreter(reader), folder=tmp_path / reader.jax)

    def start(environment, slots):
        return warm_workers.start(dataclasses.replace(environment, release=here, folder=None), slots)

    list(replayed(in_two_readers, environment_of, limits=CellLimits(jobs=jobs, timeout=60.0), start=start))
    (first,), *later = shared
    assert later
    assert all(first in others for _, *others in later), "with two jobs, the second one has waited for the first"


def test_no_reader_waits_for_a_reader_that_cannot_start(in_two_readers, here, monkeypatch, tmp_path):
    monkeypatch.setattr("export_core.matrix.replay.FIRST_SECONDS", 1_000.0)
    started: list[str] = []

    def start(environment, slots):
        started.append(environment.release.jax)
        raise WorkerDied("not in this test")

    def environment_of(reader):
        return dataclasses.replace(this_interpreter(reader), folder=tmp_path / reader.jax)

    outcomes = list(replayed(in_two_readers, environment_of, limits=CellLimits(jobs=2, timeout=60.0), start=start))
    assert {*started} == {here.jax, "another"}
    assert {outcome.verdict for _, outcome in outcomes} == {Verdict.NOT_RUN}


def test_cached_outcomes_of_promised_cells_come_first_too(in_two_readers, tmp_path):
    def passes(cells, environment_for):
        for one in cells:
            environment_for(one.placement)
            yield one, new_result(one, Stage.COMPARE, Verdict.PASS)

    def locked(placement):
        return dataclasses.replace(this_interpreter(placement.reader), content_hash=placement.reader.jax)

    cache = OutcomeCache(tmp_path)
    options = ReplayOptions(load_calendar(), cache=True)
    for _ in range(2):
        outcomes = list(replay_unknown(in_two_readers, cache, StubEnvironments(locked, locked), options, passes))
    cache.close()
    assert [cell.promised for cell, _ in outcomes] == [True, True, False, False]
