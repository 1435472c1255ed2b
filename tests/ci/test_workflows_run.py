"""The steps of docs/ci and action.yml, run in a real bash for projects that keep and break their promise."""

import ensurepip
import functools
import http.server
import json
import os
import re
import shutil
import string
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from actions import FOR_THE_ACTION, Actions, Job, scripts
from making import make_wheel

from export_core.readers.build import cache_folder
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from tools.wheel import wheel_folder

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
ACTION = ROOT / "action.yml"
READERS = ("0.11.2", "0.12.0.1")
WAVE = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.export_compat(compare="waves.checks:close")
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) * 2), jnp.ones(3))

@pytest.mark.export_compat
def test_sum(export_golden):
    export_golden(jax.jit(lambda x: jnp.cumsum(x)), jnp.ones(3))
"""

REPORTS = ("report.html", "junit.xml", "report.sarif")
CHECKS = """
import numpy as np

def close(expected, actual):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-3)
"""
PYPROJECT = """
[project]
name = "waves"
version = "1"

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# A build backend without requirements, so that nothing is downloaded. As setuptools, it refuses a folder that may be a
# second package: each that no commit has, and whose name can be one.
BACKEND = """
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    top = {path.name for path in pathlib.Path().iterdir() if path.is_dir() and path.name.isidentifier()}
    more = top - {"src", "golden", "ci", "candidates", "__pycache__"}
    assert not more, f"Multiple top-level packages discovered in a flat-layout: {more}"
    name, info = "waves-1-py3-none-any.whl", "waves-1.dist-info"
    files = {
        "waves.pth": str(pathlib.Path("src").resolve()),
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: waves\\nVersion: 1\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": "".join(f"{path},,\\n" for path in files)}.items():
            wheel.writestr(path, text)
    return name
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """The programs that setup-python provides, with the packages of this environment already installed."""
    folder = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # As ensurepip does, which takes seconds to compile all of pip.
    (pip,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    shutil.unpack_archive(pip, site, "zip")
    (site / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    programs = folder / "bin"
    modules = {"jaxexport": "export_core.cli.entry", "pytest": "pytest", "pip": "pip._internal.cli.main"}
    for name, module in modules.items():
        entry = "console_main" if name == "pytest" else "main"
        (programs / name).write_text(f"#!{programs}/python\nimport sys, {module}\nsys.exit({module}.{entry}())\n")
        (programs / name).chmod(0o755)
    (programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    return programs


@pytest.fixture(scope="module")
def project(tmp_path_factory, python) -> Path:
    """A repository whose goldens pass in two readers, with a comparator from a package that must be installed."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "src" / "waves").mkdir(parents=True)
    (folder / "src" / "waves" / "checks.py").write_text(CHECKS)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "test_waves.py").write_text(WAVE)
    (folder / "export_compat.yaml").write_text(f"readers: {','.join(READERS)}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--update-goldens", "--noise=later"]
    command += ["--no-second-export"]  # which takes two more interpreters
    subprocess.run(command, cwd=folder, check=True, env=plain(python, PYTHONPATH=str(folder / "src")))
    (folder / ".gitignore").write_text(".cache/\njaxexport-wheels/\n")
    shutil.copytree(wheel_folder(), folder / "ci")
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def broken(project, tmp_path_factory) -> Path:
    """The project with outputs in one golden that its artifact does not compute."""
    folder = Path(shutil.copytree(project, tmp_path_factory.mktemp("broken") / "project"))
    (golden,) = folder.glob("golden/*test_wave/*")
    import numpy as np

    from export_core.goldens.arrays import leaf_of, to_npz
    from export_core.goldens.store import OUTPUTS, sha256

    before = sha256((golden / OUTPUTS).read_bytes())
    (golden / OUTPUTS).write_bytes(to_npz([leaf_of(np.full(3, 0.5, np.float32))]))
    manifest = golden / "golden.yaml"
    manifest.write_text(manifest.read_text().replace(before, sha256((golden / OUTPUTS).read_bytes())))
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def broken_in_one_reader(broken, tmp_path_factory) -> Path:
    """The project with other outputs, and with only one reader in its policy."""
    folder = Path(shutil.copytree(broken, tmp_path_factory.mktemp("one-reader") / "project"))
    (folder / "export_compat.yaml").write_text(f"readers: {READERS[-1]}\n")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "goldens"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


def plain(python: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a CI machine: without variables of this test run, and with the cached readers."""
    left_out = ("PYTEST_", "JAXEXPORT_", "VIRTUAL_ENV", "PYTHON")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(left_out)},
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_COMPILE": "1",  # Python compiles what it imports
        "JAXEXPORT_CACHE": str(cache_folder()),
        **variables,
    }


@pytest.fixture(scope="module")
def readers() -> None:
    """Environments of the readers, which are built before a test changes the package index."""
    calendar = load_calendar()
    for reader in READERS:
        ReaderEnvironments(calendar).build(Placement(calendar.release(reader)))


@pytest.fixture
def actions(tmp_path, python) -> Callable[..., Actions]:
    def actions(project: Path, **variables: str) -> Actions:
        return Actions(tmp_path, project, cache_folder() / "environments", plain(python, **variables))

    return actions


def every_step_ran(path: Path, jobs: list[Job]) -> None:
    """Check that each step with shell ran, and ended with exit code 0."""
    codes = {name: code for job in jobs for name, code in job.codes.items()}
    assert codes == dict.fromkeys(scripts(path), 0), "\n".join(job.log for job in jobs)


def results_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} & {"results.jsonl", "summary.json", *REPORTS}


@pytest.fixture(scope="module")
def green(tmp_path_factory, project, python) -> tuple[Actions, dict[str, list[Job]]]:
    """An emulator of GitHub Actions for a project that keeps its promise, and the finished jobs of its workflow."""
    run = Actions(tmp_path_factory.mktemp("green"), project, cache_folder() / "environments", plain(python))
    return run, run.run(CI / "github.yml", event="pull_request")


@pytest.mark.matrix
def test_the_gate_is_green_for_a_kept_promise(green):
    run, jobs = green
    every_step_ran(CI / "github.yml", run.jobs)
    assert [job.name for job in jobs["matrix"]] == ["jaxlib 0.11.2 on cpu", "jaxlib 0.12.0.1 on cpu"]
    assert {job.result for job in run.jobs} == {"success"}
    assert re.search(r"(Successfully installed|Requirement already satisfied:).* pytest-jaxexport", run.jobs[0].log)
    (judge,) = jobs["judge"]
    assert "KEPT" in judge.summary
    assert sorted(run.artifacts) == ["results", "shard-1", "shard-2"]
    assert len(results_in(run.artifacts["results"])) == 5
    assert [key.rpartition("-")[0] for key in run.cache_keys] == [
        f"jaxexport-Linux-X64-3.12.0-{load_calendar().release(reader).pair}" for reader in READERS
    ]


@pytest.mark.matrix
def test_a_broken_golden_turns_the_gate_red(actions, broken_in_one_reader):
    run = actions(broken_in_one_reader)
    jobs = run.run(CI / "github.yml", event="push")
    assert [job.codes["Matrix"] for job in jobs["matrix"]] == [1]
    assert jobs["pytest"][0].codes == {"Install project": 0, "pytest": 1}
    (judge,) = jobs["judge"]
    assert judge.result == "failure"
    assert (judge.codes["Merge and judge"], judge.codes["Report"]) == (1, 0)
    assert "BROKEN" in judge.summary
    assert "::error file=test_waves.py,line=5,title=" in judge.log
    assert len(results_in(run.artifacts["results"])) == 5


@pytest.mark.matrix
def test_the_gate_is_incomplete_if_a_shards_machine_is_lost(actions, project, green):
    before, jobs = green
    lost, other = jobs["matrix"]
    run = actions(project)
    run.artifacts["shard-2"] = before.artifacts["shard-2"]
    done = {"pytest": jobs["pytest"], "plan": jobs["plan"], "matrix": [Job(lost.name, "failure"), other]}
    (judge,) = run.run(CI / "github.yml", done=done)["judge"]
    assert judge.codes["Merge and judge"] == 3
    assert "--shard 1/2. Run them" in judge.log
    assert "INCOMPLETE" in judge.summary


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing for a request."""


@pytest.fixture
def index(tmp_path) -> Iterator[str]:
    """A package index with releases that no calendar has: folders of wheels, as a plain server lists them."""
    for name in ("jaxlib", "jax"):
        folder = tmp_path / "index" / name
        folder.mkdir(parents=True)
        make_wheel(folder, name, "99.0.0", stamps=("2026-11-20",), needs="jaxlib>=99.0.0", python="cp312")
    handler = functools.partial(Quiet, directory=tmp_path / "index")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.weekly
def test_the_weekly_run_uploads_a_calendar_of_releases(actions, project, readers, index):
    run = actions(project, UV_DEFAULT_INDEX=index)
    (job,) = run.run(CI / "github-weekly.yml", event="schedule")["weekly"]
    every_step_ran(CI / "github-weekly.yml", run.jobs)
    assert "new  jaxlib 99.0.0  built 2026-11-20" in job.summary
    assert "::notice::There are new releases" in job.log
    assert '"99.0.0"' in (run.artifacts["calendar"] / "export_releases.yaml").read_text()
    assert "KEPT" in job.summary
    assert len(results_in(run.artifacts["results"])) == 5


def make_candidate(folder: Path) -> list[Path]:
    """Make wheels of a release candidate built today: the newest jaxlib and jax with another version number."""
    release = load_calendar().release("0.12.0.1")
    (site,) = (
        ReaderEnvironments(load_calendar())
        .build(Placement(release))
        .python.parents[1]
        .glob("lib/python*/site-packages")
    )
    today = subprocess.run(["date", "-u", "+%F"], capture_output=True, text=True, check=True).stdout.strip()
    number = "0.13.0rc1"
    needs = "\nRequires-Dist: ".join(("jaxlib>=0.12.0", "ml_dtypes", "opt_einsum", "scipy", "numpy"))
    made = []
    for name, version in (("jaxlib", release.jaxlib), ("jax", release.jax)):
        real = site / name
        modules = {
            f"{name}/__init__.py": f"__path__.append({str(real)!r})\n" + (real / "__init__.py").read_text(),
            f"{name}/version.py": (real / "version.py").read_text().replace(f"'{version}'", f"'{number}'"),
        }
        made.append(
            make_wheel(folder, name, number, stamps=(today,), needs=needs if name == "jax" else "", modules=modules)
        )
    return made


@pytest.mark.weekly
def test_a_release_candidate_reads_and_writes_goldens(actions, project, tmp_path):
    repository = Path(shutil.copytree(project, tmp_path / "repository"))
    wheels = repository / "candidates"
    wheels.mkdir()
    make_candidate(wheels)
    run = actions(repository)
    given = {"candidate": " ".join(f"candidates/{wheel.name}" for wheel in wheels.iterdir())}
    (job,) = run.run(CI / "github-prerelease.yml", event="workflow_dispatch", inputs=given)["candidate"]
    every_step_ran(CI / "github-prerelease.yml", run.jobs)
    lines = [json.loads(line) for line in (run.artifacts["results"] / "results.jsonl").read_bytes().splitlines()]
    pairs = {(line["writer"]["jaxlib"], line["reader"]["jaxlib"]) for line in lines}
    assert {"0.13.0rc1"} < {reader for writer, reader in pairs if writer == "0.13.0rc1"}, (
        "other readers replay its goldens"
    )
    assert {"0.13.0rc1"} < {writer for writer, reader in pairs if reader == "0.13.0rc1"}, (
        "it replays the goldens of other writers"
    )
    assert all("0.13.0rc1" in pair for pair in pairs)
    assert "KEPT" in job.summary


@pytest.fixture(scope="module")
def action(tmp_path_factory) -> Path:
    """The path of action.yml in a folder that has only those files of this repository that the docs tell to copy."""
    folder = tmp_path_factory.mktemp("action")
    for name in FOR_THE_ACTION:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder / "action.yml"


@pytest.mark.matrix
def test_the_action_runs_the_whole_gate_in_one_job(actions, action, broken):
    # The action installs itself from its own folder, with the dependencies of this environment.
    run = actions(broken, PYTHONPATH=sysconfig.get_path("purelib"))
    for name in ("PIP_NO_INDEX", "PIP_NO_DEPS", "JAXEXPORT_CACHE"):
        del run.variables[name]
    job = run.action(action, readers="0.12.0.1", options="--timeout 100\n--quiet", install="-e .")
    assert {name: code for name, code in job.codes.items() if code} == {"Matrix": 1}, job.log
    assert (job.outputs["exit-code"], job.result) == ("1", "failure")
    assert {*job.codes} == {*scripts(ACTION)}
    assert "BROKEN" in job.summary
    assert "partial: only readers 0.12.0.1" in job.summary
    assert len(results_in(run.artifacts["jaxexport-results"])) == 5
    assert run.cache_keys[0].startswith("jaxexport-Linux-X64-3.")


def gitlab(project: Path, folder: Path, python: Path) -> dict[str, list[int]]:
    """Run the pipeline of gitlab.yml as its runner does: each job in one bash, which ends at the first failing line."""
    import yaml

    pipeline = yaml.safe_load((CI / "gitlab.yml").read_text())
    artifacts, codes = folder / "artifacts", {}
    artifacts.mkdir()
    for name in ("pytest", "replay", "judge"):
        job = pipeline[name]
        count = job.get("parallel", 1)
        codes[name] = []
        for index in range(1, count + 1):
            workspace = Path(shutil.copytree(project, folder / f"{name}-{index}"))
            if "needs" in job:
                shutil.copytree(artifacts, workspace, dirs_exist_ok=True)
            for path in job.get("cache", {}).get("paths", []):
                (workspace / path).parent.mkdir(parents=True)
                (workspace / path).symlink_to(cache_folder() / "environments")
            variables = plain(
                python,
                CI_PROJECT_DIR=str(workspace),
                CI_NODE_INDEX=str(index),
                CI_NODE_TOTAL=str(count),
                CI_PIPELINE_CREATED_AT="2026-11-21T09:30:00Z",
            )
            for key, value in pipeline["variables"].items():
                variables[key] = string.Template(value).substitute(variables)
            lines = [*pipeline["default"]["before_script"], *job["script"]]
            for number, script in enumerate((lines, job.get("after_script", []))):
                shell = ["bash", "-c", "set -eo pipefail\n" + "\n".join(script)]
                done = subprocess.run(shell, cwd=workspace, env=variables, check=False, timeout=300)
                assert number == 0 or done.returncode == 0
                codes[name] += [done.returncode] if number == 0 else []
            assert job["artifacts"]["when"] == "always"
            assert all((workspace / path).exists() for path in job["artifacts"].get("reports", {}).values())
            for path in job["artifacts"].get("paths", []):
                shutil.copytree(workspace / path, artifacts / path, dirs_exist_ok=True)
    return codes


@pytest.mark.weekly
def test_the_gitlab_pipeline_is_red_for_a_broken_golden(broken, tmp_path, python):
    codes = gitlab(broken, tmp_path, python)
    assert codes["pytest"] == [1]
    assert sorted(codes["replay"]) == [0, 0, 1, 1], "each part is judged by its own cells"
    assert codes["judge"] == [1]
    assert len(results_in(tmp_path / "artifacts" / "jaxexport-results")) == 4
