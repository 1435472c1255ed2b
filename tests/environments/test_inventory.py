"""Environments in the cache folder: listed, cleaned, and never taken from under a process that uses them."""

from __future__ import annotations

import datetime
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from export_core.cli.app import jaxexport
from export_core.environments import locks as holding
from export_core.environments.build import READY, standing
from export_core.environments.inventory import kept_environments, remove, to_clean
from export_core.environments.locks import hold


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
        held = hold(folder)
        assert held
        held.close()
        noon = datetime.datetime.combine(
            today() - datetime.timedelta(days), datetime.time(12), datetime.UTC
        ).timestamp()
        os.utime(folder / "in-use.lock", (noon, noon))
    return folder


def run(*words: str) -> str:
    done = CliRunner().invoke(jaxexport, ["environments", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_each_is_listed_with_its_reader_platform_size_and_last_use(cache):
    before = today()
    made(cache, "jaxlib-0.12.0.1-libtpu-abc", days=3)
    days = {day - datetime.timedelta(3) for day in (before, today())}
    made(cache, "writer-0.9.2-def")
    made(cache, "jaxlib-0.10.2-cuda12-run-0123", whole=False)
    kept = {each.folder.name: each for each in kept_environments()}
    tpu = kept["jaxlib-0.12.0.1-libtpu-abc"]
    assert (tpu.jaxlib, tpu.plugin, tpu.kind, tpu.whole) == ("0.12.0.1", "libtpu", "reader", True)
    assert (tpu.size // 1_000_000, tpu.in_use) == (3, False)
    assert tpu.used in days
    assert (kept["writer-0.9.2-def"].kind, kept["writer-0.9.2-def"].plugin) == ("writer", "")
    assert (kept["jaxlib-0.10.2-cuda12-run-0123"].plugin, kept["jaxlib-0.10.2-cuda12-run-0123"].whole) == (
        "cuda12-run",
        False,
    )
    text = run("list")
    assert "0.12.0.1" in text
    assert "half built" in text
    assert "3 environments of 0.0 GB" in text


def test_nothing_goes_without_yes_and_then_what_was_not_used_for_so_long(cache):
    old, new = made(cache, "jaxlib-0.9.0-a", days=40), made(cache, "jaxlib-0.9.1-b")
    half = made(cache, "jaxlib-0.9.2-c", whole=False)
    assert "2 environments of 0.0 GB would go; --yes removes them" in run("clean")
    assert old.exists()
    assert "2 environments" in run("clean", "--yes")
    assert (old.exists(), half.exists(), new.exists()) == (False, False, True)
    run("clean", "--all", "--yes")
    assert not new.exists()


def test_one_that_a_running_process_uses_stays_and_goes_when_that_is_gone(cache):
    folder = made(cache, "jaxlib-0.9.0-a", days=40)
    started = today()
    script = (
        "import sys, pathlib; from export_core.environments.build import standing\n"
        "found = standing(pathlib.Path(sys.argv[1])); print('has it', flush=True); sys.stdin.read()"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout
    assert user.stdout.readline() == "has it\n"
    (kept,) = kept_environments()
    assert kept.in_use
    assert to_clean([kept], started, None) == []
    assert not remove(kept), "also where it was taken after the list was made"
    assert "in use" in run("list")
    user.kill()
    user.wait()
    user.stdout.close()
    assert user.stdin
    user.stdin.close()
    (kept,) = kept_environments()
    assert kept.used >= started
    assert remove(kept)
    assert not folder.exists()


def test_what_is_being_removed_is_not_taken_for_a_whole_one(cache):
    folder = made(cache, "jaxlib-0.9.0-a")
    assert standing(folder)
    (folder / READY).unlink()
    assert standing(folder) is None


@pytest.mark.parametrize(("number", "held"), [(errno.ENOLCK, True), (errno.EAGAIN, False)], ids=["no locks", "removed"])
def test_a_disk_without_locks_is_no_reason_not_to_use_an_environment(tmp_path, monkeypatch, number, held):
    def refuses(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(holding.fcntl, "flock", refuses)
    assert (hold(tmp_path) is not None) is held
