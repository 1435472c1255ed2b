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
import json, sys
from importlib.metadata import version
from pathlib import Path
from export_core.goldens import GoldenStore
from export_core.policy import find_policy
from export_core.policy.run_options import RunOptions, Selection
from export_core.readers.environment import this_interpreter
from export_core.releases import Release, load_calendar
from export_core.report.view import view
from export_core.run.session import Interpreter, run_matrix

built = load_calendar().built(version("jaxlib"))
here = Release(jaxlib=version("jaxlib"), jax=version("jax"), built=built)
goldens, options = GoldenStore(Path("golden")).goldens(), RunOptions(results=None, convert="--convert" in sys.argv)
interpreter = Interpreter(this_interpreter(here))
run = run_matrix(find_policy(Path()), Selection(), options, goldens=goldens, interpreter=interpreter)
assert len(run.results) == 1 and view(run).headline
print(json.dumps({LOADED}))
"""
"""A program that runs a matrix and makes its report."""
KEYS = ["export_core.features.costs.policy_key"]
"""The modules that add keys to the policy, which are needed to read one."""


@pytest.fixture(scope="module")
def project(projects) -> Project:
    project = projects(conftest=WATCH, test_marked=MARKED)
    assert project.pytest("--update-goldens").code == 0
    return project


def loaded_by_matrix(project: Project, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MATRIX, *words],
        cwd=project.folder,
        env={**own_variables(), "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_marked_test_imports_only_policy_keys_of_features(project):
    assert project.pytest(cold=True).code == 0
    assert json.loads((project.folder / "loaded.json").read_text()) == KEYS


def test_a_plain_matrix_imports_only_keys_and_the_forecast_rule(project):
    assert loaded_by_matrix(project) == [*KEYS, "export_core.features.forecast.wrong"]


@pytest.mark.parametrize(
    ("policy", "words", "module"),
    [
        ("{}", ["--convert"], "convert.fixed_by_conversion"),
        ("budgets: [{max_temp_bytes: 1000000}]", [], "costs.over_budget"),
        ("deployed: [{name: prod, jaxlib: 0.9.2}]", [], "deploy.answers"),
    ],
)
def test_a_matrix_imports_a_feature_that_it_uses(project, tmp_path, policy, words, module):
    copy = project.copy(tmp_path / "copy")
    (copy.folder / "export_compat.yaml").write_text(f"{policy}\n")
    assert f"export_core.features.{module}" in loaded_by_matrix(copy, *words)


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
