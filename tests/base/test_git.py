"""Git reads a checkout that somebody else may have made, and runs no program that its configuration names."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from export_core.base.processes import run_git

ROOT = Path(__file__).parents[2]
STATUS = ("status", "--porcelain=v2", "--branch")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", folder], check=True)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nenv > {tmp_path}/started\n")
    program.chmod(0o755)
    subprocess.run(["git", "-C", folder, "config", "core.fsmonitor", str(program)], check=True)
    return folder


def test_no_command_of_a_git_configuration_runs(repository, tmp_path):
    assert b"# branch.head" in run_git(STATUS, repository, 10)
    assert not (tmp_path / "started").exists()


def test_a_bare_repository_in_a_folder_is_not_read(repository, tmp_path):
    subprocess.run(["git", "-C", repository, "config", "core.worktree", str(tmp_path)], check=True)
    with pytest.raises(subprocess.CalledProcessError):
        run_git(STATUS, repository / ".git", 10)
    bare = (repository / ".git").rename(tmp_path / "bare")
    with pytest.raises(subprocess.CalledProcessError):
        run_git(STATUS, bare, 10)
    assert not (tmp_path / "started").exists()


def test_git_gets_no_secret_from_the_environment(repository):
    assert b"secret" not in run_git(("-c", "alias.tell=!env", "tell"), repository, 10)


def test_only_one_module_starts_git():
    files = [path for name in ("export_core", "pytest_jaxexport") for path in (ROOT / name).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    starting = [
        path.name
        for path, text in texts.items()
        if re.search(r"""["'}]git["' ]""", text)  # to parse all files would take a second
        and any(
            isinstance(node, ast.Constant) and (node.value == "git" or str(node.value).startswith("git "))
            for node in ast.walk(ast.parse(text))
        )
    ]
    assert starting == ["processes.py"]
