"""The cache of outcomes: several processes read them back as written, and a broken file never stops a run."""

import contextlib
import datetime
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from making import golden, release

from export_core.matrix import Cell, Result, Verdict, cached_replay
from export_core.matrix.cached_replay import FILE, STORED_DAYS, OutcomeCache, replay_here
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import for_cell, new_result, without_cell
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.releases import load_calendar

CELL = Cell(golden(), release("0.12.0.1"), "cpu")
NUMERICS = new_result(
    *(CELL, Stage.COMPARE, Verdict.NUMERICS, "a\nb é"), stderr="said\x00", seconds=0.25, outputs="0a",
    max_noise_error=2.5, allowed="rtol 1",
)  # fmt: skip
PASS = new_result(
    *(CELL, Stage.COMPARE, Verdict.PASS), max_abs_error=0.0, max_rel_error=0.0, seconds=1.5, outputs="0b",
    as_written=True, cost=Cost(temp_bytes=1, flops=2.5), timings=Timings(compile=0.5, runs=(0.25,)),
)  # fmt: skip
CRASH = new_result(CELL, Stage.RUN, Verdict.CRASH, "died by signal 11 (SIGSEGV)", signal=11)


@contextlib.contextmanager
def cache_in(folder: Path) -> Iterator[OutcomeCache]:
    """Yield an open cache in this folder, and check at the end that the cache has reported nothing."""
    notes: list[str] = []
    with contextlib.closing(OutcomeCache(folder, notes.append)) as cache:
        yield cache
    assert not notes


def stored(folder: Path, *keys: str) -> dict[str, Result]:
    """Return the outcomes that a cache has for these keys."""
    with cache_in(folder) as cache:
        return {key: for_cell(outcome, CELL) for key, outcome in cache.get(keys).items()}


def store(folder: Path, **outcomes: Result) -> None:
    with cache_in(folder) as cache:
        for key, outcome in outcomes.items():
            cache.put(key, outcome)


def flaky_when_stored(folder: Path, outcome: Result) -> str:
    """Store an outcome under the key of an earlier one, and return its `flaky` text."""
    with cache_in(folder) as cache:
        return cache.put("key", outcome).flaky


def changed(folder: Path, *statement: object) -> None:
    """Change what is stored, by SQL."""
    with contextlib.closing(sqlite3.connect(folder / FILE, isolation_level=None)) as database:
        database.execute(*statement)


def test_an_outcome_is_read_back_as_it_was(tmp_path):
    store(tmp_path / "new", wrong=NUMERICS, right=PASS, dead=CRASH)
    outcomes = stored(tmp_path / "new", "wrong", "right", "dead", "unknown")
    written = {"dead": CRASH, "right": PASS, "wrong": NUMERICS}
    assert outcomes == written


def test_a_stored_outcome_does_not_name_its_cell(tmp_path):
    store(tmp_path, right=PASS)
    assert CELL.golden.manifest.case.encode() not in (tmp_path / FILE).read_bytes()


def test_a_replay_closes_the_cache_that_it_opened(tmp_path, monkeypatch):
    opened: list[OutcomeCache] = []
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path))
    monkeypatch.setattr(
        cached_replay, "OutcomeCache", lambda *arguments: opened.append(OutcomeCache(*arguments)) or opened[-1]
    )
    assert list(replay_here([], ReplayOptions(load_calendar()))) == []
    assert [cache._connection for cache in opened] == [None]


def test_a_stored_outcome_without_costs_can_still_be_read():
    row = msgspec.to_builtins(without_cell(PASS))
    row = {name: value for name, value in row.items() if name not in ("cost", "timings")}
    read = for_cell(msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=Result), CELL)
    assert read == msgspec.structs.replace(PASS, cost=None, timings=None)


def test_more_cache_keys_than_one_query_takes_are_looked_up(tmp_path):
    keys = [f"key{number}" for number in range(1203)]
    store(tmp_path, **dict.fromkeys(keys, PASS))
    assert set(stored(tmp_path, *keys)) == set(keys)


TIMEOUT = new_result(CELL, Stage.RUN, Verdict.TIMEOUT, "still in stage run after 2 s, killed", seconds=2.0)
NOT_RUN = new_result(CELL, Stage.ENVIRONMENT, Verdict.NOT_RUN, "no wheel")


@pytest.mark.parametrize("outcome", [NOT_RUN, TIMEOUT], ids=["not_run", "timeout"])
def test_outcomes_that_may_change_are_not_cached(tmp_path, outcome):
    store(tmp_path, key=outcome)
    assert stored(tmp_path, "key") == {}


def test_a_timeout_deletes_a_cached_outcome_but_not_run_does_not(tmp_path):
    store(tmp_path, hung=PASS, missed=PASS)
    store(tmp_path, hung=TIMEOUT, missed=NOT_RUN)
    assert set(stored(tmp_path, "hung", "missed")) == {"missed"}


def test_a_changed_verdict_is_noted_flaky_with_date(tmp_path):
    today = datetime.datetime.now(datetime.UTC).date()
    assert flaky_when_stored(tmp_path, CRASH) == ""
    assert (
        flaky_when_stored(tmp_path, msgspec.structs.replace(CRASH, signal=6, message="died by signal 6 (SIGABRT)"))
        == ""
    )
    assert flaky_when_stored(tmp_path, PASS) == f"was crash on {today}"
    assert flaky_when_stored(tmp_path, NOT_RUN) == "", "it is no verdict"
    assert flaky_when_stored(tmp_path, PASS) == "", "as the last time"
    changed(tmp_path, "UPDATE cached_outcomes SET day = day - 3")
    assert flaky_when_stored(tmp_path, NUMERICS) == f"was pass on {today - datetime.timedelta(days=3)}"
    assert stored(tmp_path, "key")["key"].flaky.startswith("was pass on "), (
        "whoever reads it from the cache sees that too"
    )


@pytest.mark.parametrize("first", [CRASH, TIMEOUT], ids=["crash", "timeout"])
def test_a_flaky_pass_runs_again_until_it_passes_twice(tmp_path, first):
    store(tmp_path, key=first)
    assert flaky_when_stored(tmp_path, PASS)
    assert stored(tmp_path, "key") == {}, "whether it works each time is asked again"
    assert flaky_when_stored(tmp_path, PASS) == ""
    assert stored(tmp_path, "key").keys() == {"key"}


@pytest.mark.parametrize(
    ("first", "then", "flaky"),
    [(2.0, 1.5, True), (2.0, 2.5, False), (1.5, 2.0, True)],
    ids=["ended sooner than the timeout", "needed longer than it had", "the same time was enough before"],
)
def test_a_timeout_is_flaky_only_if_its_limit_was_long_enough(tmp_path, first, then, flaky):
    passed = msgspec.structs.replace(PASS, seconds=min(first, then) if flaky else max(first, then))
    hung = msgspec.structs.replace(TIMEOUT, seconds=2.0)
    before, after = (hung, passed) if first == 2.0 else (passed, hung)
    flaky_when_stored(tmp_path, before)
    assert bool(flaky_when_stored(tmp_path, after)) is flaky


def test_several_processes_store_outcomes_at_once(tmp_path):
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3]); from making import golden, release\n"
        "from export_core.matrix import Cell, Verdict\n"
        "from export_core.matrix.result import new_result\n"
        "from export_core.readers.worker.protocol import Stage\n"
        "from export_core.matrix.cached_replay import OutcomeCache\n"
        "def complain(text): raise SystemExit(text)\n"
        "cache = OutcomeCache(Path(sys.argv[1]), complain)\n"
        "cell = Cell(golden(), release('0.12.0.1'), 'cpu')\n"
        "for number in range(200): cache.put(f'{sys.argv[2]}-{number}', new_result(cell, Stage.RUN, Verdict.ERROR, "
        "sys.argv[2]))\n"
    )
    tests = str(Path(__file__).parents[1])
    both = [subprocess.Popen([sys.executable, "-c", script, tmp_path, name, tests]) for name in ("one", "two")]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    outcomes = stored(tmp_path, *(f"{name}-{number}" for name in ("one", "two") for number in range(200)))
    assert len(outcomes) == 400
    assert {(key[:3], outcome.message) for key, outcome in outcomes.items()} == {("one", "one"), ("two", "two")}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"no database" * 500,
        lambda data: data[: len(data) // 2],
        lambda data: data[:100] + bytes(len(data) - 100),
    ],
    ids=["something else", "cut", "emptied"],
)
def test_a_broken_cache_file_is_replaced_by_a_new_one(tmp_path, damage):
    store(tmp_path, **{f"key{number}": NUMERICS for number in range(100)})
    path = tmp_path / FILE
    path.write_bytes(damage(path.read_bytes()))
    notes: list[str] = []
    cache = OutcomeCache(tmp_path, notes.append)
    assert cache.get(["key1"]) == {}
    cache.put("key", PASS)
    assert set(cache.get(["key"])) == {"key"}
    cache.close()
    assert len(notes) == 1
    assert "was broken" in notes[0]
    assert set(stored(tmp_path, "key", "key1")) == {"key"}


def test_a_stored_outcome_changed_by_hand_is_not_used(tmp_path):
    store(tmp_path, key=NUMERICS, other=PASS)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        (data,) = database.execute("SELECT outcome FROM cached_outcomes WHERE key = 'key'").fetchone()
    assert b"numerics" in data
    other = (data.replace(b"numerics", b"compiled"),)
    changed(tmp_path, "UPDATE cached_outcomes SET outcome = ? WHERE key = 'key'", other)
    assert set(stored(tmp_path, "key", "other")) == {"other"}
    assert flaky_when_stored(tmp_path, CRASH) == "", "its earlier verdict is unknown"
    assert stored(tmp_path, "key")["key"].verdict is Verdict.CRASH


def test_a_cache_that_cannot_be_written_is_reported_once(tmp_path):
    (tmp_path / "file").write_text("")
    notes: list[str] = []
    cache = OutcomeCache(tmp_path / "file", notes.append)
    cache.put("key", PASS)
    assert cache.get(["key"]) == {}
    cache.close()
    assert len(notes) == 1
    assert notes[0].startswith("outcomes are not cached, and those of earlier runs are not used: ")


def test_old_stored_outcomes_are_deleted(tmp_path):
    store(tmp_path, old=PASS, new=PASS)
    changed(tmp_path, "UPDATE cached_outcomes SET day = day - ? WHERE key = 'old'", (STORED_DAYS + 1,))
    assert set(stored(tmp_path, "old", "new")) == {"new"}
