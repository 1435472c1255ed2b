"""The pre-commit hooks of this repository, run by the real pre-commit in a user's repository."""

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
VERIFY = ROOT / "hooks" / "verify_goldens.py"
ENTRIES = {"jaxexport-verify-goldens": str(VERIFY)}
GOOD = ARTIFACTS / "0.9.2" / "mlp.jaxexport"
# This golden's test allows its custom call, which a repository without that test does not.
BAD = ROOT / "golden" / "tests.compat.test_safety_checks.test_allowed_target" / "0.9.2-cpu" / "artifact.jaxexport"


@pytest.fixture
def commit(tmp_path, monkeypatch) -> Callable[..., str]:
    """The function that runs pre-commit on a new repository, with hooks of this environment."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    hooks = [{**hook, "language": "system", "entry": ENTRIES.get(hook["id"], hook["entry"])} for hook in HOOKS]
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


def test_pre_commit_accepts_the_manifest_of_our_hooks():
    subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"], check=True
    )


def test_artifacts_and_goldens_without_a_problem_pass(commit, tmp_path):
    shutil.copy(GOOD, tmp_path)
    printed = commit(0)
    assert [line.rpartition(".")[2] for line in printed.splitlines()] == ["Passed", "Passed"]


def test_an_unpromised_call_and_a_deleted_file_fail(commit, tmp_path):
    shutil.copy(BAD, tmp_path / "scale.jaxexport")
    (outputs,) = tmp_path.glob("golden/*/*/outputs.npz")
    outputs.unlink()
    printed = commit(1)
    assert "scale.jaxexport: " in printed.partition("hook id: jaxexport-audit")[2]
    assert "outputs.npz" in printed.partition("hook id: jaxexport-verify-goldens")[2]


@pytest.fixture
def golden(tmp_path) -> Path:
    store = GoldenStore(tmp_path / "golden")
    write_golden(store, manifest("t.test_f", "0.9.2"))
    (golden,) = store.goldens()
    return golden.folder


def verified(folder: Path, *words: str) -> str:
    """Return the errors of the hook that compares hashes, run by a Python without packages."""
    command = [sys.executable, "-I", "-S", str(VERIFY), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == bool(done.stderr)
    return done.stderr


def test_hashes_are_compared_without_any_package(golden, tmp_path):
    assert verified(tmp_path) == verified(ROOT) == ""
    assert verified(tmp_path, str(ROOT / "examples" / "serving" / "models")) == ""
    assert verified(golden) == "golden: expected goldens, found none. Name their folder: args: [FOLDER]\n"


def damaged(golden: Path, how: str) -> None:
    inputs = golden / "inputs.npz"
    if how == "changed":
        inputs.write_bytes(inputs.read_bytes()[:-1] + b"x")
    elif how == "a link":
        inputs.rename(golden.parents[1] / "inputs.npz")
        inputs.symlink_to(golden.parents[1] / "inputs.npz")
    elif how == "elsewhere":
        inputs.rename(golden.parent / "inputs.npz")
        text = (golden / "golden.yaml").read_text()
        (golden / "golden.yaml").write_text(text.replace("  inputs.npz: ", "  ../inputs.npz: "))
    elif how == "unlisted":
        (golden / "more.npz").touch()
    elif how == "no manifest":
        (golden / "golden.yaml").unlink()
    else:
        text = (golden / "golden.yaml").read_text()
        (golden / "golden.yaml").write_text(text.replace("  artifact.jaxexport: ", "  ../artifact.jaxexport: "))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("changed", "inputs.npz: expected SHA-256 "),
        ("a link", "inputs.npz: expected a file of this golden, found none."),
        ("elsewhere", "../inputs.npz: expected a file of this golden, found none."),
        ("unlisted", "more.npz: expected only files that golden.yaml lists, found another."),
        ("no manifest", "expected a golden, found no golden.yaml."),
        ("another name", "golden.yaml: expected the SHA-256 of artifact.jaxexport under `files`, found none."),
    ],
)
def test_the_hook_finds_any_damage_of_a_golden(golden, tmp_path, how, message):
    damaged(golden, how)
    assert message in verified(tmp_path)


@pytest.fixture
def hooks(tmp_path_factory) -> Path:
    """A git repository with the hooks, made here since an unpacked source distribution is not a repository."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "hooks/verify_goldens.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    git = ["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "hooks"]):
        subprocess.run([*git, *words], check=True)
    return folder


def test_the_hook_that_compares_hashes_installs_nothing(golden, hooks, tmp_path, monkeypatch):
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(golden.parents[2])
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "golden"], check=True)
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "jaxexport-verify-goldens", "--all-files"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("Passed")
    assert not list((tmp_path / "cache").rglob("py_env*"))
