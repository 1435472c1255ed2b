"""What a run is a run of: project, commit, CI job, tool, machine. What the environment does not tell stays empty."""

import datetime
import os
import platform
import subprocess
import tomllib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from export_core.base.escaping import without_credentials
from export_core.base.untrusted import read_named
from export_core.judge.gate import RunIdentity, recorded_policy
from export_core.policy import Policy
from export_core.run.plan_record import policy_hash

_GIT_SECONDS = 5.0


def run_identity(
    policy: Policy, goldens: Path, folder: Path = Path(), environment: Mapping[str, str] = os.environ
) -> RunIdentity:
    """The identity of a run that starts now, of the project in `folder`.

    Sources of the variables: GitHub's "Default environment variables", GitLab's "Predefined CI/CD variables".
    """
    commit = environment.get("GITHUB_SHA") or environment.get("CI_COMMIT_SHA") or _git_head(folder)
    repository = environment.get("GITHUB_REPOSITORY", "")
    files, job = environment.get("CI_PROJECT_URL", ""), environment.get("CI_JOB_URL", "")
    if files:
        files += "/-"
    if server := environment.get("GITHUB_SERVER_URL"):
        files, number = f"{server}/{repository}", environment.get("GITHUB_RUN_ID")
        job = f"{files}/actions/runs/{number}" if number else ""
    return RunIdentity(
        project=_project(folder) or repository or environment.get("CI_PROJECT_PATH", ""),
        commit=commit,
        source_url=without_credentials(f"{files}/blob/{commit}" if files and commit else ""),
        ci_url=without_credentials(job),
        tool=version("pytest-jaxexport"),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count() or 1} cores",
        goldens=str(goldens),
        policy_sha256=policy_hash(recorded_policy(policy)),
        started=datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0),
    )


def _project(folder: Path) -> str:
    try:
        name = tomllib.loads(read_named(folder / "pyproject.toml").decode())["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return name if isinstance(name, str) else ""


def _git_head(folder: Path) -> str:
    """The commit that is checked out; empty where git does not work here."""
    words = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
