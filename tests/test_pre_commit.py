"""The hooks that this repository offers, run by the real pre-commit in a repository of a user."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from making import ARTIFACTS, manifest, write_golden

from export_core.goldens import GoldenStore

ROOT = Path(__file__).parents[1]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
TOOLS = Path(sys.executable).parent
GOOD = ARTIFACTS / "0.9.2" / "mlp.jaxexport"
# Its test allows the call; a repository without that test and policy does not.
BAD = ROOT / "golden" / "tests.compat.test_safety_checks.test_allowed_target" / "0.9.2-cpu" / "artifact.jaxexport"


@pytest.fixture
def commit(tmp_path, monkeypatch) -> Callable[..., str]:
    """Runs pre-commit on all files of a new repository, with the hooks taken from this environment."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    hooks = [{**hook, "language": "system"} for hook in HOOKS]
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    write_golden(GoldenStore(tmp_path / "golden"), manifest("t.test_f", "0.9.2"))
    subprocess.run(["git", "init", "-q"], check=True)

    def run(code: int) -> str:
        subprocess.run(["git", "add", "--all"], check=True)
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


def test_pre_commit_accepts_the_manifest():
    subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"], check=True
    )


def test_artifacts_and_goldens_without_a_problem_pass(commit, tmp_path):
    shutil.copy(GOOD, tmp_path)
    printed = commit(0)
    assert [line.rpartition(".")[2] for line in printed.splitlines()] == ["Passed", "Passed"]


def test_a_call_that_is_not_promised_and_a_deleted_file_fail(commit, tmp_path):
    shutil.copy(BAD, tmp_path / "scale.jaxexport")
    (outputs,) = tmp_path.glob("golden/*/*/outputs.npz")
    outputs.unlink()
    printed = commit(1)
    assert "scale.jaxexport: " in printed.partition("hook id: jaxexport-audit")[2]
    assert "outputs.npz" in printed.partition("hook id: jaxexport-verify-goldens")[2]
