"""Imports of features: the declaration of each, and only what a run uses of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from projects import Project, own_variables

LOADED = 'sorted(name for name in sys.modules if name.startswith("export_core.features.") and name.count(".") > 2)'
WATCH = f"""
import json, pathlib, sys

def pytest_unconfigure(config):
    pathlib.Path(config.rootpath, "loaded.json").write_text(json.dumps({LOADED}))
"""
MARKED = """
import pytest

@pytest.mark.export_compat
def test_marked(export_golden):
    import jax, jax.numpy as jnp, numpy as np
    export_golden(jax.jit(jnp.sin), np.arange(3.0, dtype=np.float32))
"""
MATRIX = f"""
import json, os, sys
from importlib.metadata import version
from pathlib import Path

sys.path[:0] = {[str(Path(__file__).parents[1]), str(Path(__file__).parent)]!r}
from warm_worker import use_warm_workers

from export_core.goldens import GoldenStore
from export_core.policy import find_policy
from export_core.policy.run_options import RunOptions, Selection
from export_core.readers.environment import this_interpreter
from export_core.releases import Release, load_calendar
from export_core.report.view import view
from export_core.run.session import Interpreter, run_matrix

use_warm_workers(sys.argv[1])
for folder, convert in json.loads(sys.argv[2]):
    if os.fork():
        assert os.wait()[1] == 0
        continue
    os.chdir(folder)
    built = load_calendar().built(version("jaxlib"))
    here = Release(jaxlib=version("jaxlib"), jax=version("jax"), built=built)
    goldens, options = GoldenStore(Path("golden")).goldens(), RunOptions(results=None, convert=convert)
    interpreter = Interpreter(this_interpreter(here))
    run = run_matrix(find_policy(Path()), Selection(), options, goldens=goldens, interpreter=interpreter)
    assert len(run.results) == 1 and view(run).headline
    print(json.dumps({LOADED}), flush=True)
    break
"""
"""A program that runs a matrix in each of some folders and makes its report, each in a fork of its own.

It prints a line for each folder: the modules of features that the fork has imported.
"""
KEYS = ["export_core.features.costs.policy_key"]
"""The modules that add keys to the policy, which are needed to read one."""


@pytest.fixture(scope="module")
def project(projects) -> Project:
    project = projects(conftest=WATCH, test_marked=MARKED)
    assert project.pytest("--update-goldens").code == 0
    project.use_warm_workers()
    return project


USES = {
    "nothing": ("{}", False, "forecast.wrong"),
    "conversion": ("{}", True, "convert.fixed_by_conversion"),
    "a budget": ("budgets: [{max_temp_bytes: 1000000}]", False, "costs.over_budget"),
    "a deployment target": ("deployed: [{name: prod, jaxlib: 0.9.2}]", False, "deploy.answer_lines"),
}
"""What a run uses: its policy, whether it converts, and a module that it imports."""


@pytest.fixture(scope="module")
def loaded_by_matrix(project: Project, usual_workers: Path, tmp_path_factory) -> dict[str, list[str]]:
    """The modules of features that a matrix imports, by what it uses."""
    runs = []
    for policy, convert, _ in USES.values():
        copy = project.copy(tmp_path_factory.mktemp("matrix") / "project")
        (copy.folder / "export_compat.yaml").write_text(f"{policy}\n")
        runs.append((str(copy.folder), convert))
    done = subprocess.run(
        [sys.executable, "-c", MATRIX, str(usual_workers), json.dumps(runs)],
        env=own_variables(),  # without PYTHONPATH, with which workers are not forked
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(zip(USES, map(json.loads, done.stdout.splitlines()), strict=True))


def test_a_marked_test_imports_only_policy_keys_of_features(project):
    assert project.pytest(cold=True).code == 0
    assert json.loads((project.folder / "loaded.json").read_text()) == KEYS


def test_a_plain_matrix_imports_only_policy_keys_and_the_forecast_rule(loaded_by_matrix):
    assert loaded_by_matrix["nothing"] == [*KEYS, "export_core.features.forecast.wrong"]


@pytest.mark.parametrize("use", USES)
def test_a_matrix_imports_a_feature_that_it_uses(loaded_by_matrix, use):
    assert f"export_core.features.{USES[use][-1]}" in loaded_by_matrix[use]


def test_a_kernel_command_imports_no_command_of_a_feature():
    program = f"""
import json, sys
from export_core.cli.app import jaxexport
jaxexport(["matrix", "--help"], standalone_mode=False)
print(json.dumps({LOADED}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not [name for name in loaded if "command" in name]
