"""Backfill installs the pytest-jaxexport that runs, and never a name that an index may have other code under."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest
from making import make_wheel

from export_core.readers.build import uv_command
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.packages import own_requirement


def install(wheel: str | Path, folder: Path) -> Distribution:
    command = [uv_command(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    subprocess.run([*command, "--target", folder, wheel], check=True)
    (info,) = folder.glob("*.dist-info")
    return PathDistribution(info)


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "fork").rglob("*.*") if path.suffix != ".pyc"}


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Distribution:
    """A fork that was installed from a wheel file which is gone, and then changed in place."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path, "fork", "1.0", modules={"fork/more.py": "", "fork/data/table.yaml": "a: 1"})
    package = install(wheel, tmp_path / "here")
    wheel.unlink()
    # Another file in its place: the cache of the installer has the old one by a hard link.
    (tmp_path / "here" / "fork" / "more.py").unlink()
    (tmp_path / "here" / "fork" / "more.py").write_text("changed = True")
    return package


def test_what_is_installed_is_installed_again_as_it_is(installed, tmp_path):
    requirement = own_requirement(installed)
    install(requirement, tmp_path / "there")
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert content(tmp_path / "there")["more.py"] == "changed = True"
    assert own_requirement(installed) == requirement, "the same code is the same environment"
    (tmp_path / "here" / "fork" / "more.py").write_text("changed = 2")
    assert own_requirement(installed) != requirement, "and other code is another one"


def test_a_lost_file_is_told(installed, tmp_path):
    (tmp_path / "here" / "fork" / "more.py").unlink()
    with pytest.raises(EnvironmentFailed, match=r"one of its files cannot be read: .*more\.py.*Install"):
        own_requirement(installed)


def test_an_editable_folder_is_installed_as_such(tmp_path):
    info = tmp_path / "fork-1.0.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///a%20b/fork", "dir_info": {"editable": True}}))
    assert own_requirement(PathDistribution(info)) == "-e/a b/fork"
