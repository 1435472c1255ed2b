"""Custom calls that a policy allows: only artifacts that make the call are changed by it."""

import pytest
from projects import Projects

from export_core.artifact import read

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.linspace(0.1, 1.0, 9, dtype="float32").reshape(3, 3)

@pytest.mark.export_compat
def test_calls_none(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat(compare="shape")
def test_calls_one(export_golden):
    export_golden(jax.jit(lambda x: jax.scipy.linalg.qr(x, pivoting=True)), X)
"""
POLICY = "allow: {lapack_sgeqp3_ffi: LAPACK's manual says what it does, of_others: we ship it}\n"


@pytest.fixture(scope="module")
def project(projects: Projects):
    project = projects(test_a=TESTS)
    written = project.pytest("--update-goldens", "-k", "none")
    assert written.code == 0, written.text
    (project.folder / "export_compat.yaml").write_text(POLICY)
    return project


def test_a_policy_may_allow_targets_that_a_test_never_calls(project):
    run = project.pytest("-k", "none")
    assert run.code == 0, run.text


def test_checks_are_disabled_only_for_targets_that_are_called(project):
    written = project.pytest("--update-goldens")
    assert written.code == 0, written.text
    for case, called in (("test_a.test_calls_none", []), ("test_a.test_calls_one", ["lapack_sgeqp3_ffi"])):
        assert [*project.manifest(case)["options"].get("allow", ())] == called
        (folder,) = (project.goldens / case).iterdir()
        envelope = read(folder / "artifact.jaxexport").envelope
        assert [check.target for check in envelope.disabled_checks] == called
