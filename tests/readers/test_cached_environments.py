"""Environments in the cache folder: how they are listed, cleaned and locked, and what missing ones cost."""

import datetime
import errno
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import pytest
from click.testing import CliRunner
from making import day, make_wheel

from export_core.cli.app import jaxexport
from export_core.readers import build as locks_module
from export_core.readers.build import READY, EnvironmentLocks, Recipe, build, find_built
from export_core.readers.cached_environments import (
    EnvironmentsCost,
    cached_environments,
    expected_cost,
    remove,
    to_clean,
)
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import UnknownEnvironment
from export_core.readers.placement import TYPICAL, Mode, Placement, parse_targets
from export_core.releases import JaxlibRelease, JaxRelease, load_calendar

pytestmark = pytest.mark.usefixtures("cache")


def today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def made(cache: Path, name: str, *, whole: bool = True, days: int = 0) -> Path:
    folder = cache / name
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(bytes(3_000_000))
    (folder / "in-use.lock").touch()
    if whole:
        (folder / READY).write_text(json.dumps({"checked": "", "lock": "x", "requirements": []}))
        with EnvironmentLocks() as locks:
            assert locks.take(folder)
        then = time.time() - days * 86400
        os.utime(folder / "in-use.lock", (then, then))
    return folder


def run(*words: str) -> str:
    done = CliRunner().invoke(jaxexport, ["environments", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_list_shows_reader_plugin_size_and_last_use(cache):
    made(cache, "jaxlib-0.12.0.1-libtpu-abc", days=3)
    made(cache, "writer-0.9.2-def")
    made(cache, "jaxlib-0.10.2-cuda12-run-0123", whole=False)
    listed = {cached.folder.name: cached for cached in cached_environments()}
    tpu = listed["jaxlib-0.12.0.1-libtpu-abc"]
    assert (tpu.jaxlib, tpu.plugin, tpu.kind, tpu.is_built) == ("0.12.0.1", "libtpu", "reader", True)
    assert (tpu.size // 1_000_000, tpu.in_use) == (3, False)
    assert 3 <= (today() - tpu.last_used).days <= 4, "midnight may have passed"
    assert (listed["writer-0.9.2-def"].kind, listed["writer-0.9.2-def"].plugin) == ("writer", "")
    half = listed["jaxlib-0.10.2-cuda12-run-0123"]
    assert (half.plugin, half.is_built) == ("cuda12-run", False)
    text = run("list")
    assert text == run()
    assert "0.12.0.1" in text
    assert "half built" in text
    assert "3 environments of 0.0 GB" in text


def test_clean_with_yes_removes_unused_environments(cache):
    old, new = made(cache, "jaxlib-0.9.0-a", days=40), made(cache, "jaxlib-0.9.1-b")
    half = made(cache, "jaxlib-0.9.2-c", whole=False)
    assert "2 environments of 0.0 GB would be removed" in run("clean", "--dry-run")
    assert "2 environments" in run("list", "--older-than", "30")
    asked = CliRunner().invoke(jaxexport, ["environments", "clean"])
    assert (asked.exit_code, "--yes removes without asking" in asked.output) == (2, True), "no terminal to ask on"
    assert old.exists()
    assert "2 environments" in run("clean", "--yes")
    assert (old.exists(), half.exists(), new.exists()) == (False, False, True)
    run("clean", "--older-than", "0", "--yes")
    assert not new.exists()
    for words in ([], ["--yes"], ["--dry-run"]):
        assert run("clean", *words) == "Nothing to remove.\n"


def test_clean_leaves_folders_that_this_tool_did_not_make(cache, tmp_path):
    made(cache, "jaxlib-0.9.0-a", days=40)
    elsewhere = made(tmp_path, "jaxlib-0.9.0-b", days=40)
    (cache / "jaxlib-0.9.0-b").symlink_to(elsewhere)
    (cache / "jaxlib-0.9.0-0123456789ab").mkdir()
    (cache / "conda").mkdir()
    (cache / "conda" / READY).write_text("{}")
    assert [cached.folder.name for cached in cached_environments()] == ["jaxlib-0.9.0-a"]
    run("clean", "--older-than", "0", "--yes")
    left = {path.name for path in cache.iterdir() if path.is_dir()}
    assert left == {"jaxlib-0.9.0-b", "jaxlib-0.9.0-0123456789ab", "conda"}
    assert (elsewhere / READY).exists()
    with pytest.raises(UnknownEnvironment):
        CliRunner().invoke(jaxexport, ["environments", "clean", "conda", "--yes"], catch_exceptions=False)


def test_an_environment_is_marked_before_installation(cache, monkeypatch):
    class KilledError(BaseException):
        pass

    def install(recipe: Recipe, stopping: object) -> None:
        assert [(one.folder, one.is_built) for one in cached_environments()] == [(recipe.folder, False)]
        raise KilledError

    monkeypatch.setattr(locks_module, "_install", install)
    with EnvironmentLocks() as locks, pytest.raises(KilledError):
        build(Recipe("jaxlib-0.9.0", sys.executable, ("numpy",), ""), locks)


def test_clean_removes_environments_by_name(cache):
    first, second, other = (made(cache, name) for name in ("jaxlib-0.9.0-a", "writer-0.9.0-b", "jaxlib-0.9.1-c"))
    assert "2 environments of 0.0 GB would be removed" in run("clean", "--dry-run", "jaxlib-0.9.0-a", "writer-*", "*-b")
    run("clean", "jaxlib-0.9.0-a", "writer-*", "--yes")
    assert (first.exists(), second.exists(), other.exists()) == (False, False, True)


def test_clean_removes_nothing_in_use_or_unknown(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    with EnvironmentLocks() as locks:
        assert locks.take(folder)
        for words in ([], ["--yes"], ["--dry-run"]):
            printed = run("clean", folder.name, *words)
            assert printed.endswith("jaxlib-0.9.0-a: in use, not removed\nNothing to remove.\n")
    with pytest.raises(UnknownEnvironment, match=r"^jaxlib-0\.9\.9: no environment has this name in .*list` shows all"):
        CliRunner().invoke(jaxexport, ["environments", "clean", "*-a", "jaxlib-0.9.9"], catch_exceptions=False)
    done = CliRunner().invoke(jaxexport, ["environments", "clean", "x", "--older-than", "3"])
    assert "NAME cannot be combined with --older-than." in done.output
    assert folder.exists()


def test_clean_keeps_an_environment_until_its_process_ends(cache):
    folder = made(cache, "jaxlib-0.9.0-a", days=40)
    started = today()
    script = (
        "import sys, pathlib; from export_core.readers.build import EnvironmentLocks, find_built\n"
        "with EnvironmentLocks() as locks:\n"
        "    found = find_built(pathlib.Path(sys.argv[1]), locks); print('has it', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], text=True, **pipes) as user:
        assert user.stdout.readline() == "has it\n"
        (cached,) = cached_environments()
        assert cached.in_use
        assert to_clean([cached], started, 0) == []
        assert not remove(cached), "also where it was taken after the list was made"
        assert "in use" in run()
        user.kill()
    (cached,) = cached_environments()
    assert cached.last_used >= started
    assert remove(cached)
    assert not folder.exists()


def test_clean_keeps_an_environment_that_this_process_locks(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    (cached,) = cached_environments()
    with filelock.FileLock(f"{folder}.lock"):  # as a builder has it
        assert [one.in_use for one in cached_environments()] == [True]
        assert not remove(cached)
    with EnvironmentLocks() as locks:
        assert find_built(folder, locks)
        assert find_built(folder, locks), "once more, as after a worker has died"
        assert not remove(cached)
        (folder / READY).unlink()
        assert find_built(folder, locks) is None, "it is being removed"
    assert remove(cached)


def test_clean_keeps_environments_that_threads_built_and_lock(cache, tmp_path):
    recipes = [
        Recipe(f"jaxlib-0.9.{number % 2}", sys.executable, (str(make_wheel(tmp_path, f"w{number % 2}", "1.0")),), "")
        for number in range(4)
    ]
    with EnvironmentLocks() as locks, ThreadPoolExecutor(4) as threads:
        folders = {built.folder for built in threads.map(lambda recipe: build(recipe, locks), recipes)}
        cached = cached_environments()
        assert {environment.folder for environment in cached} == folders
        assert [remove(environment) for environment in cached] == [False, False]
    assert [remove(environment) for environment in cached] == [True, True]


@pytest.mark.parametrize(
    ("number", "is_taken"), [(errno.ENOLCK, True), (errno.EAGAIN, False)], ids=["no locks", "removed"]
)
def test_an_environment_is_usable_on_a_disk_without_locks(tmp_path, monkeypatch, number, is_taken):
    def refuses(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks_module.fcntl, "flock", refuses)
    with EnvironmentLocks() as locks:
        assert locks.take(tmp_path) is is_taken


# --- missing environments ---------------------------------------------------------------------------------------------

VERSIONS = ("9.0", "9.1", "9.2")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
CALENDAR = load_calendar().extended(
    {version: JaxlibRelease(day("2026-11-01"), python=(HERE,)) for version in VERSIONS},
    {version: JaxRelease(day("2026-11-01"), version) for version in VERSIONS},
)
ENVIRONMENTS = ReaderEnvironments(CALENDAR)
PLACEMENTS = [Placement(CALENDAR.release(version)) for version in VERSIONS]


def test_unbuilt_environments_are_estimated_by_typical_sizes(cache):
    each = TYPICAL[""]
    assert expected_cost(ENVIRONMENTS, PLACEMENTS) == EnvironmentsCost(3, 0, 3 * each.megabytes, 3 * each.download)
    assert not cache.exists(), "nothing was built"
    folders = [ENVIRONMENTS.folder(placement) for placement in PLACEMENTS]
    for folder in folders[:2]:
        folder.mkdir(parents=True)
    (folders[0] / READY).touch()
    assert expected_cost(ENVIRONMENTS, PLACEMENTS) == EnvironmentsCost(3, 1, 2 * each.megabytes, 2 * each.download)


def test_an_environment_for_two_devices_is_counted_once():
    devices = [parse_targets((text,))["tpu"] for text in ("tpu=v5e", "tpu=v6e")]
    placements = [Placement(CALENDAR.release("9.0"), "tpu", Mode.COMPILE, device) for device in devices]
    assert expected_cost(ENVIRONMENTS, placements).needed == 1


def test_an_environment_of_unknown_size_counts_as_zero_megabytes():
    cuda = Placement(CALENDAR.release("9.0"), "cuda", Mode.RUN, parse_targets(())["cuda"])
    assert expected_cost(ENVIRONMENTS, [cuda]) == EnvironmentsCost(1, 0, 0, TYPICAL["cuda12-run"].download, 1)
