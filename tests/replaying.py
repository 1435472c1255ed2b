"""Fixtures that replay goldens in this interpreter: `goldens`, written by its jax, and `run`, which replays them.

tests/conftest.py loads this file as a plugin, so that every folder has them. tests/misbehaving defines how cells
misbehave.
"""

import dataclasses
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from warm_commands import warm_commands
from warm_worker import Start, starts, warm_worker

from export_core.goldens import Golden, GoldenStore
from export_core.matrix import Cell, CellLimits, Result
from export_core.matrix.replay import Replayed, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.readers import installed
from export_core.readers.build import environments_folder
from export_core.readers.environment import CELL_VARIABLES, Environment, this_interpreter
from export_core.readers.placement import Placement
from export_core.readers.worker import client
from export_core.readers.worker.client import FreshInterpreters, WarmWorkers
from export_core.releases import Calendar, Release, load_calendar

HERE = Path(__file__).parent
ENVIRONMENTS = environments_folder().resolve()
"""The folder of readers' environments in the user's cache: a test may have another cache."""
FLAKY = Path(tempfile.gettempdir()) / f"jaxexport-test-flaky-{os.getpid()}"
"""While this file exists, the cell of the golden `is_flaky` hangs."""
AWAKE = FLAKY.with_suffix(".awake")  # Written by a cell that survives its sleep, in which it should be killed.
START = client.start_process  # The original function, which starts a new interpreter.
MISBEHAVING = {"PYTHONPATH": str(HERE / "misbehaving"), "JAXEXPORT_TEST_FLAKY": str(FLAKY)}


def replayed(
    cells: Sequence[Cell],
    environment_of: Callable[[Release], Environment],
    calendar: Calendar | None = None,
    *,
    limits: CellLimits | None = None,
    dump: Path | None = None,
    allow: Mapping[str, str] | None = None,
    silence: float | None = None,
    **options: Any,
) -> Generator[Replayed, None, None]:
    """Replay cells, with an environment for each release."""
    rules = ReplayOptions(
        calendar or load_calendar(),
        Policy(allow=dict(allow or {})),
        limits or CellLimits(),
        dump=dump,
        silence=silence,
    )
    return replay(cells, lambda placement: environment_of(placement.reader), rules, **options)


HASHED = installed.HashedFiles()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test in other releases read a file of an environment only if no test of this process has read it.

    Where a cell fails, a run looks for damage in all files of its environment, which takes half a second. A fixture
    for this would take a fifth of what pytest itself needs for each of the thousands of other tests.
    """
    if item.get_closest_marker("matrix") is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed, "HashedFiles", lambda: HASHED)
        return (yield)


@dataclasses.dataclass(frozen=True)
class StubEnvironments:
    """A stand-in for the environments of a cached replay: one function finds them, the other one builds them."""

    find: Callable[[Placement], Environment | None]
    build: Callable[[Placement], Environment]


@pytest.fixture(scope="session")
def here() -> Release:
    """The release of jax and jaxlib in this interpreter."""
    return Release(jax=version("jax"), jaxlib=version("jaxlib"), built=load_calendar().built(version("jaxlib")))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """The folder that all processes of xdist have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def compiled_folder(shared_folder) -> Path:
    """The folder for what XLA compiles in forks of warm processes."""
    folder = shared_folder / "compiled"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def golden_folder(shared_folder) -> Path:
    """The folder with the goldens of tests/write_goldens.py, written once for all processes of xdist."""
    folder = shared_folder / "goldens-of-here"
    with (shared_folder / "goldens-of-here.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            beside = shared_folder / "goldens-being-written"
            shutil.rmtree(beside, ignore_errors=True)
            subprocess.run([sys.executable, HERE / "write_goldens.py", beside], check=True)
            beside.rename(folder)
    return folder


@pytest.fixture(scope="session")
def goldens(golden_folder) -> dict[str, Golden]:
    """The goldens of tests/write_goldens.py, by case."""
    return {golden.manifest.case: golden for golden in GoldenStore(golden_folder).goldens()}


@pytest.fixture(scope="module")
def small(request, golden_folder, tmp_path_factory) -> Path:
    """A project with those goldens of tests/write_goldens.py that `CASES` of the test's module names."""
    folder = tmp_path_factory.mktemp("project")
    for case in request.module.CASES:
        shutil.copytree(golden_folder / case, folder / "golden" / case)
    return folder


def misbehaving(release: Release) -> Environment:
    """Return this interpreter as an environment in which cells misbehave by the names of their functions."""
    plain = this_interpreter(release)
    return dataclasses.replace(plain, variables={**plain.variables, **MISBEHAVING})


@pytest.fixture
def flaky() -> Iterator[Path]:
    """The file that makes a flaky cell hang while it exists."""
    yield FLAKY
    FLAKY.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def usual_workers(shared_folder, compiled_folder) -> Iterator[Path]:
    """The socket of a process of warm_worker.py, whose forks are workers of this interpreter."""
    with warm_worker(shared_folder / "warm-workers", CELL_VARIABLES, compiled_folder, ENVIRONMENTS) as path:
        yield path


@pytest.fixture(scope="session")
def warm_programs(usual_workers, forked_pytest, shared_folder, tmp_path_factory) -> Iterator[Path | None]:
    """A folder of programs `python`, `jaxexport` and `pytest` that are forks of warm processes, if those can fork."""
    folder, own = shared_folder / "warm-commands", tmp_path_factory.mktemp("commands")
    with warm_commands(folder, own, usual_workers, forked_pytest.path) as programs:
        yield programs


@pytest.fixture(scope="session")
def misbehaving_workers(shared_folder, compiled_folder) -> Iterator[Path]:
    """The socket of a process of warm_worker.py, whose forks are workers with misbehaving cells."""
    variables = {**CELL_VARIABLES, **MISBEHAVING}  # FLAKY among them is read in cells, which have their own variables
    with warm_worker(shared_folder / "warm-misbehaving", variables, compiled_folder) as path:
        yield path


@pytest.fixture(scope="session")
def warm_starts(request) -> Start:
    """A replacement of `client.start_process` that forks workers of this interpreter, misbehaving or not."""
    lock = threading.Lock()

    def path_of(deciding: Mapping[str, str]) -> Path | None:
        with lock:  # without fork, several threads start interpreters
            if deciding == CELL_VARIABLES:
                return request.getfixturevalue("usual_workers")
            return request.getfixturevalue("misbehaving_workers") if deciding == CELL_VARIABLES | MISBEHAVING else None

    return starts(path_of)


@pytest.fixture
def forked_workers(monkeypatch, warm_starts) -> None:
    """Workers of this interpreter that are forks of a process that has imported jax."""
    monkeypatch.setattr(client, "start_process", warm_starts)


@pytest.fixture(scope="session")
def warm_workers(usual_workers, misbehaving_workers) -> Iterator[WarmWorkers]:
    """Workers that stay alive for all tests that do not start their own. They end before what forked them."""
    workers = WarmWorkers()
    yield workers
    workers.close()


@pytest.fixture
def run(goldens, here, warm_workers, forked_workers) -> Callable[..., dict[str, Result]]:
    """The function that replays the named goldens here, and checks that every cell has exactly one outcome."""

    def run(*cases: str, environment_of=misbehaving, of=goldens, **options) -> dict[str, Result]:
        if not options.pop("fork", True):
            options["start"] = FreshInterpreters
        elif environment_of is misbehaving:
            options.setdefault("start", warm_workers.start)
        own_limits = {name: options.pop(name) for name in ("jobs", "timeout", "memory", "repeat") if name in options}
        limits = {"jobs": 2, "timeout": 60.0, **own_limits}
        cells = [Cell(of[case], here, "cpu") for case in cases]
        outcomes = list(replayed(cells, environment_of, limits=CellLimits(**limits), **options))
        assert sorted(outcome.key for _, outcome in outcomes) == sorted(cell.key for cell in cells)
        return {outcome.case: outcome for _, outcome in outcomes}

    return run
