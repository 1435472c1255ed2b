"""Inputs that are made for types must show what a function computes: goldens of NaN that nobody meant are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from warm_pytest import WHOLE_NOISE

if TYPE_CHECKING:
    from projects import Project, Projects

TESTS = """
import jax, jax.numpy as jnp, pytest

S = jax.ShapeDtypeStruct((3, 3), jnp.float32)

@pytest.mark.export_compat
def test_cholesky(export_golden):
    export_golden(jax.jit(jnp.linalg.cholesky), S)

@pytest.mark.export_compat
def test_undefined(export_golden):
    export_golden(jax.jit(lambda x: (jnp.log(-x * x), x)), S)
"""
OLDER = """
from export_core.export import abstract_inputs

abstract_inputs.RULES = ("",)
"""


@pytest.fixture
def project(projects: Projects) -> Project:
    return projects(noise=WHOLE_NOISE, test_a=TESTS)


def test_inputs_are_made_that_give_numbers_or_asked_for(project: Project) -> None:
    written = project.pytest("--update-goldens")
    assert written.outcomes() == {"passed": ["test_a.test_cholesky"], "failed": ["test_a.test_undefined"]}, written.text
    assert project.manifest("test_a.test_cholesky")["inputs_rule"] == "positive definite"
    assert "Pass arrays for which the function is defined" in written["test_undefined"].text
    assert not (project.goldens / "test_a.test_undefined").exists()
    assert project.pytest("-k", "cholesky").code == 0


def test_a_golden_of_other_made_inputs_is_still_checked(project: Project) -> None:
    """Older versions made them by one rule, whatever it gave."""
    reason = "export_compat(nothing_to_compare='an older version')"
    project.write(conftest=WHOLE_NOISE + project.warm.workers_too + OLDER)
    project.write(test_a=TESTS.replace("export_compat", reason))
    assert project.pytest("--update-goldens").code == 0
    assert "inputs_rule" not in project.manifest("test_a.test_cholesky")
    project.write(conftest=WHOLE_NOISE + project.warm.workers_too, test_a=TESTS)
    assert project.pytest().outcomes() == {"passed": ["test_a.test_cholesky", "test_a.test_undefined"]}
    project.write(test_a=TESTS.replace("jnp.linalg.cholesky", "lambda x: jnp.linalg.cholesky(x) + 1"))
    assert project.pytest("-k", "cholesky").outcomes() == {"failed": ["test_a.test_cholesky"]}
