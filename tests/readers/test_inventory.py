"""Environments in the cache folder: listed, cleaned, and never taken from under a process that uses them."""

from __future__ import annotations

import datetime
import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from making import make_wheel

from export_core.cli.app import jaxexport
from export_core.readers import build as locks_module
from export_core.readers.build import READY, EnvironmentLocks, Recipe, build, find_built
from export_core.readers.errors import UnknownEnvironment
from export_core.readers.inventory import cached_environments, remove, to_clean


def today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "environments"


def made(cache: Path, name: str, *, whole: bool = True, days: int = 0) -> Path:
    folder = cache / name
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(bytes(3_000_000))
    if whole:
        (folder / READY).write_text(json.dumps({"checked": "", "lock": "x", "requirements": []}))
        with EnvironmentLocks() as locks:
            assert locks.take(folder)
        noon = datetime.datetime.combine(
            today() - datetime.timedelta(days), datetime.time(12), datetime.UTC
        ).timestamp()
        os.utime(folder / "in-use.lock", (noon, noon))
    return folder


def run(*words: str) -> str:
    done = CliRunner().invoke(jaxexport, ["environments", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_each_is_listed_with_reader_platform_size_and_last_use(cache):
    before = today()
    made(cache, "jaxlib-0.12.0.1-libtpu-abc", days=3)
    days = {day - datetime.timedelta(3) for day in (before, today())}
    made(cache, "writer-0.9.2-def")
    made(cache, "jaxlib-0.10.2-cuda12-run-0123", whole=False)
    listed = {cached.folder.name: cached for cached in cached_environments()}
    tpu = listed["jaxlib-0.12.0.1-libtpu-abc"]
    assert (tpu.jaxlib, tpu.plugin, tpu.kind, tpu.is_built) == ("0.12.0.1", "libtpu", "reader", True)
    assert (tpu.size // 1_000_000, tpu.in_use) == (3, False)
    assert tpu.last_used in days
    assert (listed["writer-0.9.2-def"].kind, listed["writer-0.9.2-def"].plugin) == ("writer", "")
    half = listed["jaxlib-0.10.2-cuda12-run-0123"]
    assert (half.plugin, half.is_built) == ("cuda12-run", False)
    text = run("list")
    assert "0.12.0.1" in text
    assert "half built" in text
    assert "3 environments of 0.0 GB" in text


def test_with_yes_what_is_unused_for_that_long_is_removed(cache):
    old, new = made(cache, "jaxlib-0.9.0-a", days=40), made(cache, "jaxlib-0.9.1-b")
    half = made(cache, "jaxlib-0.9.2-c", whole=False)
    assert "2 environments of 0.0 GB would be removed; --yes removes them" in run("clean")
    assert old.exists()
    assert "2 environments" in run("clean", "--yes")
    assert (old.exists(), half.exists(), new.exists()) == (False, False, True)
    run("clean", "--all", "--yes")
    assert not new.exists()


def test_those_with_a_name_are_removed(cache):
    first, second, other = (made(cache, name) for name in ("jaxlib-0.9.0-a", "writer-0.9.0-b", "jaxlib-0.9.1-c"))
    assert "2 environments of 0.0 GB would be removed" in run("clean", "jaxlib-0.9.0-a", "writer-*", "*-b")
    run("clean", "jaxlib-0.9.0-a", "writer-*", "--yes")
    assert (first.exists(), second.exists(), other.exists()) == (False, False, True)


def test_a_named_one_that_is_in_use_stays(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    with EnvironmentLocks() as locks:
        assert locks.take(folder)
        for words in ([], ["--yes"]):
            printed = run("clean", folder.name, *words)
            assert "jaxlib-0.9.0-a: in use, not removed\n0 environments of 0.0 GB" in printed
    assert folder.exists()


def test_an_unknown_name_removes_nothing(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    with pytest.raises(UnknownEnvironment, match=r"^jaxlib-0\.9\.9: no environment has this name in .*list` shows all"):
        CliRunner().invoke(jaxexport, ["environments", "clean", "*-a", "jaxlib-0.9.9", "--yes"], catch_exceptions=False)
    assert folder.exists()


def test_names_go_without_an_age(cache):
    done = CliRunner().invoke(jaxexport, ["environments", "clean", "x", "--older-than", "3"])
    assert "NAME cannot be combined with --all or --older-than." in done.output


def test_one_in_use_stays_until_its_process_is_killed(cache):
    folder = made(cache, "jaxlib-0.9.0-a", days=40)
    started = today()
    script = (
        "import sys, pathlib; from export_core.readers.build import find_built\n"
        "from export_core.readers.build import EnvironmentLocks\n"
        "with EnvironmentLocks() as locks:\n"
        "    found = find_built(pathlib.Path(sys.argv[1]), locks); print('has it', flush=True); sys.stdin.read()"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout
    assert user.stdout.readline() == "has it\n"
    (cached,) = cached_environments()
    assert cached.in_use
    assert to_clean([cached], started, None) == []
    assert not remove(cached), "also where it was taken after the list was made"
    assert "in use" in run("list")
    user.kill()
    user.wait()
    user.stdout.close()
    assert user.stdin
    user.stdin.close()
    (cached,) = cached_environments()
    assert cached.last_used >= started
    assert remove(cached)
    assert not folder.exists()


def test_one_that_this_process_uses_stays_until_its_with_ends(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    (cached,) = cached_environments()
    with EnvironmentLocks() as locks:
        assert find_built(folder, locks)
        assert find_built(folder, locks), "once more, as after a worker has died"
        assert not remove(cached)
    assert remove(cached)


def test_those_built_by_threads_stay_until_the_with_ends(cache, tmp_path):
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


def test_what_is_being_removed_is_not_taken_for_a_built_one(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    with EnvironmentLocks() as locks:
        assert find_built(folder, locks)
        (folder / READY).unlink()
        assert find_built(folder, locks) is None


@pytest.mark.parametrize(
    ("number", "is_taken"), [(errno.ENOLCK, True), (errno.EAGAIN, False)], ids=["no locks", "removed"]
)
def test_an_environment_on_a_disk_without_locks_can_be_used(tmp_path, monkeypatch, number, is_taken):
    def refuses(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks_module.fcntl, "flock", refuses)
    with EnvironmentLocks() as locks:
        assert locks.take(tmp_path) is is_taken
