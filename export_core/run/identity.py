"""What a run is a run of: project, commit, CI job, tool, machine. What the environment does not tell stays empty."""

from __future__ import annotations

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
    """The identity of a run that starts now, of the project in `folder`."""
    commit = environment.get("GITHUB_SHA") or environment.get("CI_COMMIT_SHA") or _git(folder, "rev-parse", "HEAD")
    repository, job = _ci_urls(environment)
    source = f"{repository}/blob/{commit}" if repository and commit else ""
    return RunIdentity(
        project=_project(folder) or environment.get("GITHUB_REPOSITORY") or environment.get("CI_PROJECT_PATH") or "",
        commit=commit,
        source_url=without_credentials(source),
        ci_url=without_credentials(job),
        tool=version("pytest-jaxexport"),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count() or 1} cores",
        goldens=str(goldens),
        policy_sha256=policy_hash(recorded_policy(policy)),
        started=_now(),
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0)


def _ci_urls(environment: Mapping[str, str]) -> tuple[str, str]:
    """The URL of the repository and that of the job, as GitHub Actions and GitLab CI give them.

    Source: GitHub's "Default environment variables", GitLab's "Predefined CI/CD variables".
    """
    if server := environment.get("GITHUB_SERVER_URL"):
        repository = f"{server}/{environment.get('GITHUB_REPOSITORY', '')}"
        run = environment.get("GITHUB_RUN_ID", "")
        return repository, f"{repository}/actions/runs/{run}" if run else ""
    url = environment.get("CI_PROJECT_URL", "")
    return f"{url}/-" if url else "", environment.get("CI_JOB_URL", "")


def _project(folder: Path) -> str:
    try:
        name = tomllib.loads(read_named(folder / "pyproject.toml").decode())["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return name if isinstance(name, str) else ""


def _git(folder: Path, *words: str) -> str:
    """What git prints; empty where it does not work here."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
