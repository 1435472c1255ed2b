"""`--noise=later`: goldens are written without noise; the summary says how many have none, and what measures them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from warm_pytest import WHOLE_NOISE

if TYPE_CHECKING:
    from projects import Project, Projects, Run

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.ones(3, "float32")

@pytest.mark.export_compat
def test_first(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat
def test_second(export_golden):
    export_golden(jax.jit(jnp.cos), X)
"""
COMMAND = "jaxexport goldens noise --goldens stored measures it"


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    """The first golden has noise, the second none."""
    project = projects(noise=WHOLE_NOISE, test_a=TESTS)
    project.pytest("--update-goldens", "--goldens", "stored", "-k", "first")
    return project


@pytest.fixture(scope="module")
def written(project: Project) -> Run:
    return project.pytest("--update-goldens", "--goldens", "stored", "--noise=later")


def test_a_new_golden_has_no_noise(project: Project, written: Run) -> None:
    assert "1 golden new: test_a.test_second/" in written.text
    assert "noise" not in project.manifest("test_a.test_second", "stored")


def test_an_unchanged_golden_keeps_its_noise(project: Project, written: Run) -> None:
    assert "1 golden unchanged: test_a.test_first/" in written.text
    assert "noise" in project.manifest("test_a.test_first", "stored")


def test_the_summary_says_how_many_have_no_noise(written: Run) -> None:
    assert f"1 golden without noise yet: {COMMAND}" in written.text


def test_the_summary_of_a_check_says_it_too(project: Project, written: Run) -> None:
    checked = project.pytest("--goldens", "stored")
    assert "2 cases checked against 2 goldens: 2 kept" in checked.text
    assert f"1 golden without noise yet: {COMMAND}" in checked.text


def test_a_run_that_measures_does_not_speak_of_it(projects: Projects) -> None:
    project = projects(noise=WHOLE_NOISE, test_a=TESTS)
    assert "without noise" not in project.pytest("--update-goldens", "-k", "first").text
