"""A cache folder with committed files is refused: they are neither run nor believed."""

import subprocess
from pathlib import Path

import pytest

from export_core.base import cache_folder, committed_files
from export_core.base.cache_folder import cache_path
from export_core.base.errors import CacheFolderError


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / ".cache" / "jaxexport"))
    return tmp_path


def commit(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("harmless\n")
    subprocess.run(["git", "-C", project, "add", "--force", name], check=True)


def test_a_cache_folder_without_committed_files_is_used(project):
    commit(project, ".cache/other")
    assert cache_path("x") == str(project / ".cache" / "jaxexport" / "x")


@pytest.mark.parametrize("name", ["outcomes.sqlite3", "environments/bin/python"])
def test_a_cache_folder_with_committed_files_is_refused(project, name):
    commit(project, f".cache/jaxexport/{name}")
    with pytest.raises(CacheFolderError, match=rf"found that git tracks \.cache/jaxexport/{name}") as error:
        cache_path()
    assert error.value.exit_code == 2


def test_a_link_to_committed_files_is_refused_as_a_cache_folder(project):
    commit(project, "golden/outcomes.sqlite3")
    (project / ".cache").mkdir()
    (project / ".cache" / "jaxexport").symlink_to(project / "golden")
    with pytest.raises(CacheFolderError, match="git tracks golden/outcomes"):
        cache_path()


def test_a_cache_folder_is_refused_if_git_is_missing(project, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CacheFolderError, match="cannot tell whether it tracks one"):
        cache_path()


def test_git_is_asked_once_and_only_in_a_repository(tmp_path, project, monkeypatch):
    asked, run_git = [], committed_files.run_git
    monkeypatch.setattr(committed_files, "run_git", lambda *words: asked.append(words) or run_git(*words))
    assert cache_path("a") != cache_path("b")
    assert len(asked) == 1
    monkeypatch.setenv("JAXEXPORT_CACHE", "/nowhere/at/all")
    assert cache_path() == "/nowhere/at/all"
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("named", "found"), [("cache", "work/cache"), ("../cache", "cache"), ("~/cache", "home/cache"), ("~", "home")]
)
def test_a_cache_folder_is_absolute_and_has_the_home_expanded(tmp_path, monkeypatch, named, found):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JAXEXPORT_CACHE", named)
    cache_folder._usable.cache_clear()
    assert cache_path("x") == str(tmp_path / found / "x")
    monkeypatch.chdir("/")
    assert cache_path("x") == str(tmp_path / found / "x"), "the folder where the process first asked counts"


def test_pytest_refuses_a_cache_with_committed_files(pytester, monkeypatch):
    subprocess.run(["git", "init", "-q", pytester.path], check=True)
    commit(pytester.path, "cache/x")
    monkeypatch.setenv("JAXEXPORT_CACHE", str(pytester.path / "cache"))
    pytester.makepyfile("import pytest\n@pytest.mark.export_compat\ndef test_a(export_golden):\n    pass\n")
    run = pytester.runpytest_subprocess()
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines("ERROR: jaxexport: error: *found that git tracks cache/x*")
