"""The next run removes the temporary folders of a killed run, and no others."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from export_core.base import scratch as module
from export_core.base.errors import InfrastructureFault
from export_core.base.scratch import remove_abandoned, scratch_folder

OWNER = """
import sys, time
from export_core.base.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "1").mkdir()
    (folder / "1" / "outputs.npz").write_bytes(bytes(1000))
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path, monkeypatch) -> Path:
    """The folder for temporary files of this test."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "tmp"


def owner() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_only_folders_of_dead_processes_are_removed(parent):
    (killed, left), (living, used) = owner(), owner()
    end(killed)
    try:
        remove_abandoned()
        assert not left.exists()
        assert (used / "1" / "outputs.npz").exists()
    finally:
        end(living)


def test_folders_and_links_without_our_lock_file_are_not_removed(parent, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "owner.lock").touch()
    (parent / "jaxexport-link").symlink_to(mine)
    (parent / "jaxexport-file").touch()
    (parent / "jaxexport-without-lock").mkdir()
    (parent / "jaxexport-with-link").mkdir()
    (parent / "jaxexport-with-link" / "owner.lock").symlink_to(mine / "owner.lock")
    (parent / "other").mkdir()
    (parent / "other" / "owner.lock").touch()
    before = sorted(tmp_path.rglob("*"))
    remove_abandoned()
    assert sorted(tmp_path.rglob("*")) == before


def test_another_users_folder_is_left_alone(parent, monkeypatch):
    process, left = owner()
    end(process)
    monkeypatch.setattr(module.os, "getuid", lambda: os.geteuid() + 1)
    remove_abandoned()
    assert left.exists()


def test_a_link_in_an_abandoned_folder_is_not_followed(parent, tmp_path):
    process, left = owner()
    end(process)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (left / "2").symlink_to(tmp_path / "mine")
    remove_abandoned()
    assert not left.exists()
    assert (tmp_path / "mine" / "file").exists()


def test_a_scratch_folder_is_removed_after_use(parent):
    with scratch_folder() as folder:
        assert folder.parent == parent
        remove_abandoned()
        assert folder.exists()
    assert list(parent.iterdir()) == []


def test_a_missing_temporary_folder_is_reported_as_machine_fault(parent, monkeypatch):
    parent.rmdir()
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    with pytest.raises(InfrastructureFault, match="cannot make a temporary folder"), scratch_folder():
        pass


def test_a_run_removes_the_scratch_folder_of_a_killed_run(parent, run):
    process, left = owner()
    end(process)
    run("waves")
    assert not left.exists()
