"""The identity of a run: project, commit and links, from files and environment variables."""

import subprocess
from pathlib import Path

from export_core.policy import Policy
from export_core.run.session import run_identity

GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "someone/models", "GITHUB_RUN_ID": "17",
    "GITHUB_SHA": "a" * 40,
}  # fmt: skip
GITLAB = {
    "CI_PROJECT_URL": "https://user:secret@gitlab.example/some/models", "CI_PROJECT_PATH": "some/models",
    "CI_JOB_URL": "https://gitlab.example/some/models/-/jobs/5", "CI_COMMIT_SHA": "b" * 40,
}  # fmt: skip


def identity(folder, environment):
    return run_identity(Policy(), Path("golden"), folder, environment)


def test_a_job_on_github_links_its_run_and_its_files(tmp_path):
    made = identity(tmp_path, GITHUB)
    assert (made.project, made.commit) == ("someone/models", "a" * 40)
    assert made.ci_url == "https://github.com/someone/models/actions/runs/17"
    assert made.source_url == f"https://github.com/someone/models/blob/{'a' * 40}"


def test_a_job_on_gitlab_links_without_a_password(tmp_path):
    made = identity(tmp_path, GITLAB)
    assert (made.project, made.ci_url) == ("some/models", GITLAB["CI_JOB_URL"])
    assert made.source_url.endswith(f"gitlab.example/some/models/-/blob/{'b' * 40}")
    assert "secret" not in made.source_url


def test_git_and_pyproject_identify_a_run_outside_ci(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'models'\n")
    for words in (
        ("init", "-q"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "m"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    made = identity(tmp_path, {})
    assert made.project == "models"
    assert len(made.commit) == 40
    assert (made.ci_url, made.source_url) == ("", "")


def test_an_unknown_project_and_commit_stay_empty(tmp_path):
    (tmp_path / "pyproject.toml").write_text("project = 7\n")
    made = identity(tmp_path, {})
    assert (made.project, made.commit) == ("", "")
    assert made.tool
    assert made.machine
    assert len(made.policy_sha256) == 64
