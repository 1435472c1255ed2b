"""A golden that a script writes is the one that a marked test writes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import yaml
from warm_pytest import WHOLE_NOISE, own_variables

if TYPE_CHECKING:
    from projects import Projects

FUNCTION = """
import jax, numpy as np
import jax.numpy as jnp

X = np.linspace(0.0, 1.0, 16, dtype=np.float32).reshape(4, 4)
KEYWORDS = {"platforms": ["cpu", "tpu"], "vjp_order": 1, "symbolic_shapes": "b, 4", "rtol": {"float32": 1e-5}}
function = jax.jit(lambda x: (jnp.tanh(x).sum(1), x > 0.5))
"""

TEST = """
import pytest
from function import KEYWORDS, X, function

@pytest.mark.export_compat(**KEYWORDS)
def test_f(export_golden):
    exported = export_golden(function, X)
    exported.also(X[:2])
    exported.refused(X[:, :2])
"""

SCRIPT = """
import export_core
from function import KEYWORDS, X, function

written = export_core.write_golden("scripted", function, X, also=[(X[:2],)], refused=[(X[:, :2],)], **KEYWORDS)
assert written.golden.read_artifact().data == export_core.export_artifact(function, X, **KEYWORDS).data
"""


def test_a_script_writes_the_golden_of_a_marked_test(projects: Projects) -> None:
    project = projects(noise=WHOLE_NOISE, test_a=TEST, function=FUNCTION, script=SCRIPT)
    project.use_warm_workers()
    assert project.pytest("--update-goldens").code == 0
    variables = {**own_variables(), "JAXEXPORT_CACHE": str(project.cache)}
    subprocess.run([sys.executable, "script.py"], cwd=project.folder, env=variables, check=True)
    by_test, by_script = project.stored("test_a.test_f"), project.stored("scripted")
    assert by_script.keys() == by_test.keys()
    (manifest,) = (name for name in by_test if name.endswith("golden.yaml"))
    of_test, of_script = (yaml.safe_load(stored.pop(manifest)) for stored in (by_test, by_script))
    assert by_script == by_test
    assert of_script == {**of_test, "case": "scripted", "test": ""}
    assert of_script["noise"]
