"""Matrix runs that are killed and resumed, which end as undisturbed ones, and runs that are repeated."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import timeless
from making import make_wheel
from replaying import replayed

from export_core.goldens import GoldenStore
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.readers.build import cache_folder
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar

WITH_WARM_WORKERS = Path(__file__).parents[1] / "with_warm_workers.py"
PASSING = ("waves", "both", "cholesky", "eigh", "x64")
CASES = (*PASSING, "other_numbers")
KILLED = ("waves", "both", "x64", "other_numbers")
"""The cases of a run that is killed: seven runs replay them, so that none takes long to compile."""

pytestmark = pytest.mark.matrix


@pytest.fixture
def start(small, tmp_path, usual_workers) -> Callable[..., subprocess.Popen[str]]:
    """A function that starts a matrix of the named cases in a process, with a new cache and the user's environments."""

    def started(
        results: str, *words: str, cache: str = "cache", cases: tuple[str, ...] = PASSING
    ) -> subprocess.Popen[str]:
        home = tmp_path / cache
        if not home.exists():
            home.mkdir()
            (home / "environments").symlink_to(cache_folder() / "environments")
        chosen = [word for case in cases for word in ("--cases", case)]
        command = [sys.executable, WITH_WARM_WORKERS, usual_workers, "matrix", *chosen, "--readers", "0.12.0.1"]
        return subprocess.Popen(
            [*command, "--results", results, *words],
            cwd=small,
            env={**os.environ, "JAXEXPORT_CACHE": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return started


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, _ = process.communicate(timeout=300)
    return process.returncode, out


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # the two are on different disks
        shutil.copy2(source, target)


def lines_of(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def test_a_run_killed_at_random_and_resumed_ends_the_same(start, small):
    before = time.monotonic()
    code, out = ended(start("undisturbed", cases=KILLED))
    whole = time.monotonic() - before
    assert code == 1, out
    wanted = timeless(small / "undisturbed")
    assert len(wanted[0]) == len(KILLED)
    moments = random.Random()
    middle = len(KILLED) // 2
    few, many = moments.randrange(1, middle), moments.randrange(middle, len(KILLED) + 1)
    # Killed at a random time, mostly before the first result, and after so many results.
    for count, words in ((0, ()), (few, ("--no-cache",)), (many, ())):
        moment = moments.uniform(0, 0.05 if count else whole)
        folder = f"killed{count}"
        results = small / folder / "results.jsonl"
        process = start(folder, *words, cache=f"cache{count}", cases=KILLED)
        while lines_of(results) < count and process.poll() is None:
            time.sleep(0.005)
        assert count != few or lines_of(results) < len(KILLED), "all results were written at once"
        time.sleep(moment)
        process.kill()
        ended(process)
        code, out = ended(start(folder, "--resume", *words, cache=f"cache{count}", cases=KILLED))
        assert code == 1, (count, moment, out)
        assert timeless(small / folder) == wanted, f"killed {moment:.3f} s after {count} results"


def test_the_same_matrix_again_runs_no_cell(start, small):
    first, _ = ended(start("first"))
    code, out = ended(start("second"))
    assert (first, code) == (0, 0)
    assert f"{len(PASSING)} of {len(PASSING)} cells ran before with the same content" in out
    assert "is ready" not in out
    same = [(small / name / "results.jsonl").read_bytes() for name in ("first", "second")]
    assert same[0] == same[1], "seconds too: they are those of the first run"
    code, out = ended(start("third", "--no-cache"))
    assert "is ready" in out
    assert timeless(small / "third") == timeless(small / "first")


def test_two_runs_at_once_share_the_cache_and_agree(start, small):
    both = [start("one"), start("two")]
    assert [ended(process)[0] for process in both] == [0, 0]
    one, two = timeless(small / "one"), timeless(small / "two")
    assert one == two
    assert [line["verdict"] for line in one[0]].count("not_run") == 0
    assert "ran before with the same content" in ended(start("three"))[1]
    assert timeless(small / "three") == one


def test_an_environment_that_loses_a_file_is_rebuilt(small, tmp_path, monkeypatch):
    calendar = load_calendar()
    reader = calendar.release("0.12.0.1")
    users = ReaderEnvironments(calendar).build(Placement(reader)).folder
    # As if it was built here: links to all files of the user's environment.
    leave_out = shutil.ignore_patterns("*.lock")
    copy = tmp_path / "home" / "environments" / users.name
    shutil.copytree(users, copy, symlinks=True, ignore=leave_out, copy_function=link_or_copy)
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "home"))
    built = ReaderEnvironments(calendar).build(Placement(reader))
    assert built.folder == copy
    # jax imports it with the first artifact only.
    (lazy,) = built.python.parents[1].glob("lib/python*/site-packages/jaxlib/mlir/dialects/mhlo.py")
    lazy.unlink()
    requested = []

    def environment_of(release):
        requested.append(release)
        return built if len(requested) == 1 else ReaderEnvironments(calendar).build(Placement(release))

    goldens = [golden for golden in GoldenStore(small / "golden").goldens() if golden.manifest.case in CASES]
    cells = [Cell(golden, reader, "cpu") for golden in goldens]
    notes: list[str] = []
    outcomes = list(replayed(cells, environment_of, calendar, limits=CellLimits(jobs=2), notify=notes.append))
    assert {outcome.verdict for _, outcome in outcomes} == {Verdict.PASS, Verdict.NUMERICS}
    assert len(requested) == 2
    assert any("again: the environment broke: " in text and "mhlo.py" in text for text in notes), notes


def test_results_can_be_read_while_the_run_continues(start, small):
    process = start("followed", "--no-cache", "--jobs", "1")
    seen = set()
    file = small / "followed" / "results.jsonl"
    while process.poll() is None:
        if file.exists():
            whole = file.read_bytes().rpartition(b"\n")[0].splitlines()
            assert all(json.loads(line)["judgement"] for line in whole)
            seen.add(len(whole))
        time.sleep(0.01)
    process.communicate()
    assert len(seen & set(range(1, len(PASSING)))) > 2, seen


def test_a_reader_from_wheel_files_runs_their_code(start, small, tmp_path):
    nightly = "0.13.0.dev20261120"
    version = {"jaxlib/version.py": f"__version__ = {nightly!r}\n"}
    wheel = make_wheel(tmp_path, "jaxlib", nightly, modules=version)
    export = {
        "jax/__init__.py": f"import types; __version__ = {nightly!r}; config = types.SimpleNamespace(update=print)\n",
        "jax/sharding.py": "Mesh = NamedSharding = PartitionSpec = SingleDeviceSharding = None\n",
        "jax/export.py": "def deserialize(data): raise ValueError('a nightly that deserializes nothing')\n",
    }
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "jax", nightly, needs="jaxlib>=0.12.0", modules=export)
    words = ("--readers", str(wheel), "--wheels", str(wheels), "--as-of", "2026-11-21")
    code, out = ended(start("nightly", *words))
    assert code == 1, out
    lines, summary = timeless(small / "nightly")
    assert {(line["verdict"], line["message"]) for line in lines} == {
        ("error", "ValueError: a nightly that deserializes nothing")
    }
    assert {line["reader"]["built"] for line in lines} == {"2026-11-20"}
    assert f"--readers {wheel}" in lines[0]["reproduce"]
    assert summary["calendar"]["newest_jaxlib"] == nightly
