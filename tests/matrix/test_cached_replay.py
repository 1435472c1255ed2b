"""Cells with equal content, which are run once, in one run and from one run to the next."""

import dataclasses
import functools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from making import ARTIFACTS, REGISTERING, files, golden, manifest, release, write_golden
from replaying import StubEnvironments, replayed

from export_core.goldens import Comparison, Golden, GoldenStore, Options
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.matrix import Cell, CellLimits, Result, Verdict, cache_keys
from export_core.matrix.cache_keys import ExecutionKeys, OutcomeKeys
from export_core.matrix.cached_replay import OutcomeCache, replay_unknown
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.environment import Environment, this_interpreter
from export_core.readers.placement import Placement
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, load_calendar

pytestmark = pytest.mark.usefixtures("forked_workers")

FILES = {ARTIFACT: "a", INPUTS: "i", OUTPUTS: "o"}
PLAIN = golden("t.a", files=FILES)
READER = release("0.12.0.1")
LIMITS = CellLimits(timeout=60.0, memory=1 << 30)


# --- what decides an outcome ------------------------------------------------------------------------------------------


def environment(lock: str = "lock", reader: Release = READER, **variables: str) -> Environment:
    return Environment(reader, Path("python"), variables, lock)


def key(
    made: Golden = PLAIN, limits: CellLimits = LIMITS, in_environment: Environment | None = None, allow: str = ""
) -> str:
    """Return the key of the outcome of a golden in an environment."""
    in_environment = in_environment or environment()
    options = ReplayOptions(load_calendar(), Policy(allow={allow: "why"}), limits)
    return OutcomeKeys(options).of(Cell(made, in_environment.release, "cpu"), in_environment)


OTHERS = {
    "artifact": key(golden("t.a", files={**FILES, ARTIFACT: "b"})),
    "inputs": key(golden("t.a", files={**FILES, INPUTS: "b"})),
    "outputs": key(golden("t.a", files={**FILES, OUTPUTS: "b"})),
    "comparison": key(golden("t.a", files=FILES, comparison=Comparison(rtol=0.1))),
    "x64": key(golden("t.a", files=FILES, flags={"jax_enable_x64": True})),
    "options": key(golden("t.a", files=FILES, options=Options(("cpu", "tpu")))),
    "memory": key(limits=dataclasses.replace(LIMITS, memory=2 << 30)),
    "packages": key(in_environment=environment("other packages")),
    "loader": key(in_environment=environment(LD_PRELOAD="other.so")),
    "kernels": key(in_environment=environment(OPENBLAS_CORETYPE="Haswell")),
    "date": key(in_environment=environment(reader=msgspec.structs.replace(READER, jax="0.11.2"))),
    "worker": key(in_environment=dataclasses.replace(environment(), half=Path(__file__))),
    "allow": key(allow="my_target"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_decides_an_outcome_changes_its_cache_key(what):
    assert OTHERS[what] != key()


@pytest.mark.parametrize(
    ("module", "name", "other"),
    [
        (os, "cpu_count", lambda: 7),
        (cache_keys, "version", lambda package: "0"),
        (cache_keys, "hash_of_code", lambda: "other code"),
    ],
    ids=["processors", "packages that compare", "code"],
)
def test_another_machine_or_tool_code_changes_the_cache_key(monkeypatch, module, name, other):
    before = key()
    monkeypatch.setattr(module, name, other)
    monkeypatch.setattr(cache_keys, "machine", cache_keys.machine.__wrapped__)
    assert key() != before


@pytest.mark.parametrize(
    "same",
    [
        key(golden("t.other", files=FILES)),
        key(golden("t.a", files={**FILES, "module.mlir": "x", "jaxpr.txt": "y"})),
        key(limits=dataclasses.replace(LIMITS, timeout=5.0, jobs=7)),
        key(in_environment=environment(HOME="/elsewhere")),
    ],
    ids=["name", "files for the eye", "timeout and jobs", "other variables"],
)
def test_the_cache_key_ignores_what_cannot_change_an_outcome(same):
    assert same == key()


def test_expected_outputs_do_not_change_the_cache_key():
    runs = ExecutionKeys(LIMITS)
    first, *others = (
        runs.of(Cell(golden(case, files=files, comparison=how), READER, "cpu"))
        for case, files, how in [
            ("t.a", FILES, Comparison()),
            ("t.b", {**FILES, OUTPUTS: "b"}, Comparison("exact")),
            ("t.c", {**FILES, INPUTS: "b"}, Comparison()),
            ("t.d", {**FILES, ARTIFACT: "b"}, Comparison()),
        ]
    )
    assert [other == first for other in others] == [True, False, False]


def test_goldens_with_an_unlisted_file_share_no_outcome():
    runs = ExecutionKeys(LIMITS)
    unlisted = [golden(case, files={INPUTS: "i", OUTPUTS: "o"}) for case in ("t.a", "t.b")]
    assert len({runs.of(Cell(made, READER, "cpu")) for made in unlisted}) == 2


# --- one run ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def twins(goldens, tmp_path) -> list[Golden]:
    """Three goldens with one artifact and its inputs; the last expects other outputs."""
    waves = goldens["waves"]
    store = GoldenStore(tmp_path / "golden")
    content = {name: (waves.folder / name).read_bytes() for name in (ARTIFACT, INPUTS, OUTPUTS)}
    wrong = {OUTPUTS: to_npz([leaf_of(np.array([7.0, 8.0], np.float32))] * 2)}
    made = [("one", {}), ("two", {}), ("wrong", wrong)]
    return [
        write_golden(store, msgspec.structs.replace(waves.manifest, case=case), {**content, **other})
        for case, other in made
    ]


class Counting:
    """A starter of workers that counts the requests which reach them."""

    def __init__(self, start) -> None:
        self.start = start
        self.requests: list[str] = []

    def __call__(self, environment, slots):
        worker = self.start(environment, slots)

        def submit(request):
            self.requests.append(request.artifact)
            return worker.submit(request)

        return SimpleNamespace(submit=submit, close=worker.close)


def test_cells_of_equal_artifacts_run_once_and_are_each_compared(twins, goldens, here, warm_workers):
    start = Counting(warm_workers.start)
    cells = [Cell(golden, here, "cpu") for golden in (*twins, goldens["both"])]
    outcomes = list(replayed(cells, this_interpreter, load_calendar(), limits=LIMITS, start=start))
    assert len(start.requests) == 2
    assert Counter(outcome.golden for _, outcome in outcomes) == Counter(cell.golden.id for cell in cells)
    messages = {outcome.case: outcome.message for _, outcome in outcomes if outcome.message}
    assert list(messages) == ["wrong"], "the others pass"
    assert "expected 8.0" in messages["wrong"]


# --- from one run to the next -----------------------------------------------------------------------------------------


@pytest.fixture
def again(tmp_path, here, warm_workers) -> Callable[..., tuple[dict[str, Result], list[str], list[str]]]:
    """A function that replays goldens through a cache. It returns outcomes, requests, and the readers it built."""

    def run(*goldens: Golden, lock: str = "lock", is_built: bool = True, allow: tuple[str, ...] = ()):
        options = ReplayOptions(load_calendar(), Policy(allow=dict.fromkeys(allow, "why")), LIMITS, cache=True)
        start = Counting(warm_workers.start)
        built: list[str] = []
        notes: list[str] = []

        def built_environment(placement: Placement) -> Environment:
            return dataclasses.replace(this_interpreter(placement.reader), content_hash=lock)

        def build(placement: Placement) -> Environment:
            built.append(placement.reader.jaxlib)
            return built_environment(placement)

        cache = OutcomeCache(tmp_path / "cache", notes.append)
        cells = [Cell(one, here, "cpu") for one in goldens]
        environments = StubEnvironments(built_environment if is_built else lambda placement: None, build)
        run = functools.partial(replay, options=options, start=start)
        outcomes = list(replay_unknown(cells, cache, environments, options, run))
        cache.close()
        assert not notes
        assert sorted(outcome.golden for _, outcome in outcomes) == sorted(one.id for one in goldens)
        return {outcome.case: outcome for _, outcome in outcomes}, start.requests, built

    return run


def test_an_unchanged_second_run_runs_and_builds_nothing(again, twins, goldens):
    cells = (*twins, goldens["both"], goldens["other_count"])
    first, requests, built = again(*cells)
    assert (len(requests), len(built)) == (3, 1)
    second, requests, built = again(*cells)
    assert (requests, built) == ([], [])
    assert second == first, "the very outcomes, messages, numbers and seconds"
    assert second["wrong"].verdict is Verdict.NUMERICS


def test_only_new_cells_are_run(again, twins, goldens):
    again(*twins)
    outcomes, requests, _ = again(*twins, goldens["both"])
    assert requests == [str(goldens["both"].artifact.resolve())]
    assert len(outcomes) == 4


@pytest.mark.parametrize(
    ("first", "then", "requests"),
    [({}, {"lock": "other"}, 1), ({"is_built": False}, {}, 0), ({"lock": ""}, {"lock": ""}, 1)],
    ids=["other packages run everything anew", "a missing environment is built", "without a lock nothing is cached"],
)
def test_installed_packages_decide_which_cells_rerun(again, twins, first, then, requests):
    _, requested, built = again(twins[0], **first)
    assert (len(requested), len(built)) == (1, 1)
    assert len(again(twins[0], **then)[1]) == requests


def is_stored(made: Golden, cache: OutcomeCache, times: int = 1) -> bool:
    """Return whether the outcome of a cell is stored if its run has asked for the environment `times` times."""

    def first_run(cells, environment_for):
        for _ in range(times):
            environment_for(cells[0].placement)
        yield cells[0], new_result(cells[0], Stage.COMPARE, Verdict.PASS)

    def second_run(cells, environment_for):
        ran.extend(cells)
        yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)

    ran: list[Cell] = []
    notes: list[str] = []
    for run in (first_run, second_run):
        environments = StubEnvironments(lambda placement: environment(), lambda placement: environment())
        options = ReplayOptions(load_calendar(), limits=LIMITS, cache=True)
        list(replay_unknown([Cell(made, READER, "cpu")], cache, environments, options, run, notes.append))
    assert notes == ([] if ran else ["1 of 1 cell ran before with the same content: not run again"])
    return not ran


@pytest.mark.parametrize(
    ("registered", "compare", "listed", "is_cached"),
    [
        pytest.param((), "allclose", True, True, id="plain"),
        pytest.param((), "mypackage:alike", True, False, id="compares"),
        pytest.param((REGISTERING,), "allclose", True, True, id="registers"),
        pytest.param((REGISTERING,), "allclose", False, False, id="of no known content"),
        pytest.param((REGISTERING,), "mypackage:alike", True, False, id="both"),
        pytest.param((REGISTERING, REGISTERING + "import my"), "allclose", True, False, id="another that imports"),
        pytest.param((None,), "allclose", True, False, id="its module is gone"),
    ],
)
def test_cells_with_user_code_outside_a_golden_always_run(tmp_path, registered, compare, listed, is_cached):
    names = tuple(f"nodes_{number}" for number in range(len(registered)))
    for name, text in zip(names, registered, strict=True):
        if text:
            (tmp_path / f"{name}.register.py").write_text(text)
    content = {**FILES, **({f"{name}.register.py": "m" for name in names} if listed else {})}
    made = golden(
        "t.a", files=content, options=Options(("cpu",), register=names), comparison=Comparison(compare=compare)
    )
    cache = OutcomeCache(tmp_path)
    assert is_stored(dataclasses.replace(made, folder=tmp_path), cache) is is_cached
    cache.close()


def test_another_content_of_a_registered_module_changes_the_cache_key():
    registers = Options(("cpu",), register=("nodes",))
    one, other = (golden("t.a", files={**FILES, "nodes.register.py": content}, options=registers) for content in "mn")
    assert key(one) != key(other)


def test_an_outcome_after_an_environment_retry_is_not_cached(tmp_path):
    cache = OutcomeCache(tmp_path)
    assert not is_stored(PLAIN, cache, times=2)
    cache.close()


def test_cached_outcomes_are_audited_by_todays_allowed_calls(again, tmp_path):
    content = {**files(), ARTIFACT: (ARTIFACTS / "0.12.0.1" / "cholesky.jaxexport").read_bytes()}
    older = write_golden(GoldenStore(tmp_path / "golden"), manifest("t.cholesky", "0.4.24"), content)
    for allow, audited in (((), True), (("lapack_spotrf_ffi", "lapack_strsm_ffi"), False), ((), True)):
        outcomes, *_ = again(older, allow=allow)
        assert (outcomes["t.cholesky"].stage is Stage.AUDIT) is audited, outcomes["t.cholesky"].message


def test_a_cell_that_was_not_run_is_run_the_next_time(again, twins, goldens):
    first, *_ = again(goldens["wrong_comparator"])
    assert first["wrong_comparator"].verdict is Verdict.NOT_RUN
    assert len(again(goldens["wrong_comparator"])[1]) == 1
