"""A golden is replayed once, cold, before it is stored: what its own writer cannot replay is its test's fault."""

from types import SimpleNamespace

import pytest
from projects import Projects

ONES = 'np.ones(3, "float32")'
OTHER = 'also(np.ones(4, "float32"))'
REFUSED = 'refused_on=("cpu",), platforms=("cuda",), disabled_checks={"platform": "to see"}'
FAULTS = {  # the marker, the call, how its own writer's replay ends, and what is said of it
    "first_call_outside_the_constraints": (
        *('symbolic_shapes="b", constraints=("b >= 4",)', f"export_golden(double, {ONES})", "failed", "b >= 4"),
    ),
    "other_call_on_a_fixed_shape": (
        *("", f"export_golden(double, {ONES}).{OTHER}", "failed", "call1: ValueError: Shape mismatch"),
    ),
    "own_tree_node": ("", f"export_golden(jax.jit(lambda point: point.x), Point({ONES}))", "failed", "test_a.Point"),
    "refused_on_its_own_platform": (
        *(REFUSED, f"export_golden(double, {ONES})", "failed", "expected this call to be refused"),
    ),
    "other_numbers_each_time": (
        *("", f"export_golden(jax.jit(lambda x: x + next(calls)), {ONES})"),
        *("ran with different numbers", "3 of 3 elements differ"),
    ),
    "one_of_two": (
        *("", f'export_golden(double, {ONES}, name="good"); export_golden(double, {ONES}, name="bad").{OTHER}'),
        *("failed", "Shape mismatch"),
    ),
}
OTHERS = {"fine": "", "comparator_that_says_yes": 'compare="comparing:says_yes"', "crash": 'register=("crashing",)'}
TEST = """
@pytest.mark.export_compat({marked})
def test_{name}(export_golden):
    {call}
"""
TESTS = """
import itertools
from typing import NamedTuple
import crashing, jax, jax.export, jax.numpy as jnp, numpy as np, pytest

class Point(NamedTuple):
    x: jax.Array

jax.export.register_namedtuple_serialization(Point, serialized_name="test_a.Point")
double = jax.jit(lambda x: x * 2)
calls = itertools.count()
"""
TESTS += "".join(TEST.format(name=name, marked=marked, call=call) for name, (marked, call, *_) in FAULTS.items())
TESTS += "".join(TEST.format(name=name, marked=m, call=f"export_golden(double, {ONES})") for name, m in OTHERS.items())
COMPARING = """
    def says_yes(expected, actual):
        return True
"""
CRASHING = """
    import os
    import signal
    import sys

    if "pytest" not in sys.modules:
        os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.fixture(scope="module")
def written(projects: Projects) -> SimpleNamespace:
    project = projects(test_a=TESTS, crashing=CRASHING, comparing=COMPARING)
    return SimpleNamespace(project=project, update=project.pytest("--update-goldens"), again=project.pytest())


@pytest.mark.parametrize("name", FAULTS)
def test_what_its_writer_cannot_replay_is_not_stored(name, written):
    test, (*_, verdict, message) = f"test_{name}", FAULTS[name]
    told = written.update[test]
    assert told.outcome == "failed"
    assert f"its own writer cannot replay this golden in a new process: it {verdict}. The fault is in" in told.text
    assert message in told.text
    assert "BROKEN PROMISE" not in told.text
    assert not list(written.project.goldens.glob(f"*{test}*"))
    assert "No golden of this test yet" in written.again[test].text


def test_a_comparators_mistake_is_not_called_one_of_the_export(written):
    told = written.update["test_comparator_that_says_yes"].text
    assert "returned True: expected None" in told
    assert "So no reader's result is known: nothing was stored." in told
    assert "A comparator of your own takes (expected, actual)" in told
    assert "The fault is in" not in told
    assert "Each call must fit" not in told


def test_a_golden_that_its_writer_replays_is_stored(written):
    assert written.update["test_fine"].outcome == written.again["test_fine"].outcome == "passed"
    assert (written.project.goldens / "test_a.test_fine").is_dir()


def test_a_crash_is_the_releases_fault_and_reported(written):
    assert written.update["test_crash"].outcome == "passed"
    assert (written.project.goldens / "test_a.test_crash").is_dir()
    assert "its own writer crashes when it replays it: stage read: died by signal 11 (SIGSEGV)" in written.update.text
    told = written.again["test_crash"]
    assert told.outcome == "failed"
    assert told.text.startswith("NOT REPLAYABLE: test_a.test_crash")
    assert "This is not a broken promise: the golden's own writer cannot replay it." in told.text
    assert "BROKEN PROMISE" not in written.again.text
