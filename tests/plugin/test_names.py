"""The names of goldens: parameters, classes, files of one name, and a run spread over processes."""

import re
import shlex
from types import SimpleNamespace

import pytest
from projects import Projects, Run

from export_core.export.case import case_id

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

ODD = ["plain", "0.5", "a/b", "a@b", "", "x" * 300, "你好"]

@pytest.mark.export_compat
@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("factor", range(len(ODD)), ids=ODD)
def test_scale(export_golden, factor):
    export_golden(jax.jit(lambda x: x * factor), np.arange(4.0))

@pytest.mark.export_compat
class TestOne:
    def test_same(self, export_golden):
        export_golden(jax.jit(jnp.negative), np.arange(4.0))

class TestTwo(TestOne):
    pass
"""

AGAIN = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat
def test_scale(export_golden):
    export_golden(jax.jit(jnp.square), np.arange(4.0))
"""


@pytest.fixture(scope="module")
def named(projects: Projects) -> SimpleNamespace:
    """Goldens written by two processes of xdist, with a group, and checked by one process."""
    project = projects(test_names=TESTS, below__test_names=AGAIN)
    named = SimpleNamespace(project=project, missing=project.pytest("-k", "a/b"))
    named.by_its_command = project.pytest(*_command(named.missing))
    named.after_command = {path.name for path in project.goldens.iterdir()}
    named.written = project.pytest("--update-goldens", "-n", "2", "--dist", "loadgroup")
    named.checked = project.pytest("-q", "-p", "no:cacheprovider")
    named.cases = sorted(path.name for path in project.goldens.iterdir())
    return named


def _command(run: Run) -> list[str]:
    """Return the arguments of the command that a failure advises."""
    found = re.search(r"^Write it: pytest (.*)$", run.text, re.MULTILINE)
    assert found, run.text
    return shlex.split(found.group(1))


def test_no_two_tests_share_a_golden(named):
    assert named.written.code == 0
    assert len(named.written.tests) == len(named.cases) == 7 + 2 + 1


def test_case_names_show_parameters_classes_and_folders(named):
    scaled = {"test_names.test_scale[plain]", "test_names.test_scale[0.5]", "test_names.test_scale[]"}
    same = {"test_names.TestOne.test_same", "test_names.TestTwo.test_same", "below.test_names.test_scale"}
    assert scaled | same <= set(named.cases)
    assert all(PORTABLE.fullmatch(case) for case in named.cases)


PORTABLE = re.compile(r"[\w.+=\[\],-]{1,140}", re.ASCII)


def test_odd_parameters_have_distinct_portable_names():
    odd = ["a/b", "a@b", "a b", "a-b", "..", "", "x" * 300, "x" * 301, "你好", "好你", "[]"]
    cases = {case_id("test_a.py", (f"test_f[{parameter}]",), None) for parameter in odd}
    assert len(cases) == len(odd)
    assert all(PORTABLE.fullmatch(case) for case in cases)


def test_case_names_leave_out_the_group_of_xdist(named):
    assert not [case for case in named.cases if "together" in case]
    assert named.project.manifest("test_names.test_scale[plain]")["test"] == "test_names.py::test_scale[plain]"


def test_goldens_that_two_processes_wrote_pass_in_one_process(named):
    assert named.checked.code == 0
    assert named.checked.outcomes() == {"passed": list(named.checked.tests)}
    assert "10 cases checked against 10 goldens: 10 kept" in named.checked.text


def test_the_command_for_a_missing_golden_writes_only_that_golden(named):
    assert named.missing.code == 1
    assert (named.by_its_command.code, len(named.after_command)) == (0, 1)
    assert "9 goldens new" in named.written.text
    assert "1 golden unchanged" in named.written.text
