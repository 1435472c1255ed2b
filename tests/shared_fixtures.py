"""Fixtures of all tests, also of studies/: a check of 64-bit numbers, the command in this process, a policy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Ended

    from export_core.policy import Policy


HAD_64_BITS = pytest.StashKey[bool | None]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Note whether 64-bit numbers are on before a test and its fixtures."""
    item.stash[HAD_64_BITS] = _has_64_bits()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Check that no test leaves 64-bit numbers on, which would change the tests after it."""
    result = yield
    before, after = item.stash.get(HAD_64_BITS, None), _has_64_bits()
    if before is not None and after != before:
        sys.modules["jax"].config.update("jax_enable_x64", before)
        pytest.fail(f"jax_enable_x64 was {before} before this test and is {after} after it")
    return result


def _has_64_bits() -> bool | None:
    jax = sys.modules.get("jax")
    return None if jax is None else bool(jax.config.jax_enable_x64)


@pytest.fixture
def jaxexport(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """The function that runs `jaxexport WORDS` in this process, from its entry point."""
    from commands import Ended

    from export_core.cli.app import main

    def run(*words: object, code: int | None = None) -> Ended:
        """Run the command, and return its output and its exit code, which must be `code` if that is given."""
        monkeypatch.setattr(sys, "argv", ["jaxexport", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        ended = Ended(int(left.value.code or 0), *capsys.readouterr())
        assert code in (None, ended.code), ended
        return ended

    return run


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which is the test's own folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Policy]:
    """The function that loads a policy with this text, from a file of its own."""
    from export_core.policy import load_policy

    def load(text: str | bytes, name: str = "export_compat.yaml") -> Policy:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_policy(path)

    return load


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder on a mounted disk of 300 kB, and 0; else a plain folder, and the largest size of a file in it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield folder, 0 if mounted else 100_000
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def two_runtimes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two installed runtimes beside jaxlib, and no other: tensorflow, and iree, which promises nothing."""
    import datetime
    from importlib.metadata import EntryPoint

    from export_core.releases import runtimes

    promise = runtimes.RuntimePromise(180, 30, "https://example.org/promise", "It is promised in a test.")
    releases = {
        version: runtimes.RuntimeRelease(built=datetime.date.fromisoformat(built))
        for version, built in (("2.19.1", "2026-04-30"), ("2.20.0", "2026-08-13"), ("2.21.0", "2026-11-05"))
    }
    of_iree = {"3.13.0": runtimes.RuntimeRelease(built=datetime.date(2026, 10, 28))}
    common = {"about": "A runtime of a test.", "worker": "worker.py", "requirements": (), "check": "print(1)"}
    made = {
        "tensorflow": runtimes.Runtime(name="tensorflow", promise=promise, releases=releases, **common),
        "iree": runtimes.Runtime(name="iree", releases=of_iree, **common),
    }
    monkeypatch.setattr(EntryPoint, "load", lambda point: lambda: made[point.name])
    points = [EntryPoint(name, name, runtimes.GROUP) for name in made]
    monkeypatch.setattr(runtimes, "entry_points", lambda group: points)
    runtimes.known_runtimes.cache_clear()
    yield
    runtimes.known_runtimes.cache_clear()
