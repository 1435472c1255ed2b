"""`--update-goldens=missing`: goldens that this writer does not have are written, all others are checked."""

from types import SimpleNamespace

import pytest
from projects import Projects

TESTS = """
import jax, numpy as np, pytest

X = np.ones(3, "float32")

@pytest.mark.export_compat
def test_same(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X)

@pytest.mark.export_compat
def test_changed(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X)

@pytest.mark.export_compat
def test_older(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X)

@pytest.mark.export_compat
def test_more(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X, name="one")
"""
MORE = """
    export_golden(jax.jit(lambda x: x + 2), X, name="two")

@pytest.mark.export_compat
def test_new(export_golden):
    export_golden(jax.jit(lambda x: x + 3), X)
"""


@pytest.fixture(scope="module")
def missing(projects: Projects) -> SimpleNamespace:
    """A run with `--update-goldens=missing`.

    Its tests: a changed one, a new one, one with a new call, and one that has only another writer's golden.
    """
    project = projects(test_a=TESTS)
    assert project.pytest("--update-goldens").code == 0
    older = project.add_older_generation("test_a.test_older")
    (own,) = (folder for folder in older.parent.iterdir() if folder != older)
    for path in own.iterdir():
        path.unlink()
    own.rmdir()
    changed = "def test_changed(export_golden):\n    export_golden(jax.jit(lambda x: x + 1)"
    project.write(test_a=TESTS.replace(changed, changed.replace("+", "-")) + MORE)
    before = project.stored()
    return SimpleNamespace(project=project, before=before, run=project.pytest("--update-goldens=missing", "-n", "2"))


def test_update_goldens_missing_writes_only_missing_goldens(missing):
    assert "3 goldens new: " in missing.run.text
    new = {name.partition("/")[0] for name in missing.project.stored().keys() - missing.before.keys()}
    assert new == {"test_a.test_older", "test_a.test_more.two", "test_a.test_new"}
    assert missing.before.items() <= missing.project.stored().items()


def test_update_goldens_missing_checks_tests_that_have_a_golden(missing):
    report = missing.run["test_changed"]
    assert missing.run.outcomes()["failed"] == ["test_a.test_changed"]
    assert "than its golden by jaxlib" in report.text
    assert "pytest --update-goldens test_a.py::test_changed" in report.text
    assert "2 cases checked against 2 goldens: 2 kept" in missing.run.text


def test_update_goldens_missing_checks_all_tests_if_none_is_missing(missing):
    again = missing.project.pytest("--update-goldens=missing", "--deselect", "test_a.py::test_changed")
    assert again.code == 0
    assert "5 cases checked against 6 goldens: 6 kept" in again.text
    assert " new" not in again.text


@pytest.mark.parametrize("option", ["--update-goldens=mising", "--noise=never"])
def test_an_unknown_value_of_an_option_is_a_usage_error(missing, option):
    run = missing.project.pytest("--update-goldens", option)
    assert run.code == 4
    assert option.partition("=")[0] in run.text
