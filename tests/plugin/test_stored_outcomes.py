"""A golden runs again only when something has changed: pytest takes the outcomes of earlier runs."""

import re

import pytest
from projects import Project, Projects

TESTS = """
import contextlib, os, sqlite3, time
import jax, pytest

@pytest.mark.export_compat
def test_a(export_golden):
    export_golden(jax.jit(lambda x: 2 * x), 1.0)
    if "AWAITED" in os.environ.get("JAXEXPORT_CACHE", ""):
        until = time.monotonic() + 60
        while stored() < 4:
            assert time.monotonic() < until, "the cells of the next test did not run"
            time.sleep(0.05)

@pytest.mark.export_compat
def test_b(export_golden):
    export_golden(jax.jit(lambda x: 3 * x), 1.0)

def stored():
    path = os.environ["JAXEXPORT_CACHE"] + "/outcomes.sqlite3"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT count(*) FROM cached_outcomes").fetchone()[0]
    return 0
"""


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    """Two tests with two generations of goldens each."""
    made = projects(test_it=TESTS)
    # Its own cache: else the replay that comes before writing would already store the outcomes.
    assert made.pytest("--update-goldens", environment={"JAXEXPORT_CACHE": f"{made.folder}/writing"}).code == 0
    for case in ("test_it.test_a", "test_it.test_b"):
        made.add_older_generation(case)
    return made


@pytest.fixture(scope="module")
def first_run(project: Project) -> str:
    """The run that fills the cache, whose first test waits for the outcomes of the second."""
    return from_cache(project)


def from_cache(project: Project, *words: str) -> str:
    """Run pytest and return how many of its goldens it took from the cache, such as "2 of 4"."""
    run = project.pytest("-v", *words, environment={"JAXEXPORT_CACHE": f"{project.folder}/AWAITED"})
    assert run.code == 0, run.text
    (checked,) = re.findall(r"checked against (\d+) goldens", run.text)
    (stored,) = re.findall(r"(\d+) of them by the outcome of an earlier run", run.text)
    return f"{stored} of {checked}"


def test_goldens_of_the_next_test_are_replayed_while_a_test_runs(first_run):
    assert first_run == "0 of 4"


def test_unchanged_goldens_are_not_run_again(project, first_run):
    assert from_cache(project) == "4 of 4"
    assert from_cache(project, "-k", "test_b") == "2 of 2"
    assert from_cache(project, "-k", "test_b", "--no-export-cache") == "0 of 2"


def test_an_environment_variable_set_by_a_test_file_reruns_nothing(project, first_run):
    project.write(test_other="import os\nos.environ['CUDA_ROOT'] = '/usr/local/cuda'")  # as jax's Pallas does
    assert from_cache(project) == "4 of 4"


def test_a_changed_tolerance_runs_goldens_again(project, first_run):
    assert from_cache(project, "-k", "test_b", "--export-rtol=0.1") == "0 of 2"
