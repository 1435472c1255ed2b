"""The cold replay of a golden before it is stored: if its own writer cannot replay it, its test fails."""

from types import SimpleNamespace

import pytest
from projects import Projects

ONES = 'np.ones(3, "float32")'
OTHER = 'also(np.ones(4, "float32"))'
REFUSED = 'refused_on=("cpu",), platforms=("cuda",), disabled_checks={"platform": "to see"}'
FAULTS = {  # the marker, the call, how its own writer's replay ends, and the message
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
def test_goldens_that_fail_their_replay_are_not_stored(name, written):
    test, (*_, verdict, message) = f"test_{name}", FAULTS[name]
    report = written.update[test]
    assert report.outcome == "failed"
    assert f"its own writer cannot replay this golden in a new process: it {verdict}. The fault is in" in report.text
    assert message in report.text
    assert "BROKEN PROMISE" not in report.text
    assert not list(written.project.goldens.glob(f"*{test}*"))
    assert "No golden of this test yet" in written.again[test].text


def test_a_comparator_error_does_not_blame_the_export(written):
    text = written.update["test_comparator_that_says_yes"].text
    assert "returned True: expected None" in text
    assert "So no reader's result is known: nothing was stored." in text
    assert "A comparator of your own takes (expected, actual)" in text
    assert "The fault is in" not in text
    assert "Each call must fit" not in text


def test_goldens_that_pass_their_replay_are_stored(written):
    assert written.update["test_fine"].outcome == written.again["test_fine"].outcome == "passed"
    assert (written.project.goldens / "test_a.test_fine").is_dir()


def test_a_crash_of_the_first_replay_is_reported(written):
    assert written.update["test_crash"].outcome == "passed"
    assert (written.project.goldens / "test_a.test_crash").is_dir()
    assert "its own writer crashes when it replays it: stage read: died by signal 11 (SIGSEGV)" in written.update.text
    report = written.again["test_crash"]
    assert report.outcome == "failed"
    assert report.text.startswith(
        "NOT REPLAYABLE: stage read: died by signal 11 (SIGSEGV)\ntest_a.test_crash, written by"
    )
    assert "This is not a broken promise: the golden's own writer cannot replay it." in report.text
    assert "BROKEN PROMISE" not in written.again.text


KEY, SYMBOLIC, FLAGS, BUG = (
    "give it its key as an argument",
    "`==` is False where it does not hold for every size",
    "XLA_FLAGS=",
    "report it to JAX",
)
EQUAL_SIZES = "lambda x, y: x.sum() + y.sum() if x.shape == y.shape else x.sum() - y.sum()"
FITTING = {  # the marker, the function, its arguments, and the only hint that fits it
    "other_key_each_time": (*("", "lambda x: x + jax.random.normal(jax.random.key(next(calls)), x.shape)", ONES, KEY),),
    "equal_sizes": ('symbolic_shapes=("a", "b")', EQUAL_SIZES, f"{ONES}, {ONES}", SYMBOLIC),
    "counter": ("", "lambda x: x + next(calls)", ONES, BUG),
}
NUMBERS_DIFFER = "import itertools\nimport jax, jax.numpy as jnp, numpy as np, pytest\n\ncalls = itertools.count()\n"
NUMBERS_DIFFER += "".join(
    TEST.format(name=name, marked=marked, call=f"export_golden(jax.jit({function}), {arguments})")
    for name, (marked, function, arguments, _) in FITTING.items()
)
NUMBERS_DIFFER += TEST.format(
    name="composite",
    marked='symbolic_shapes="b"',
    call=f'export_golden(jax.jit(jax.lax.composite(lambda x: x * x, name="own.square")), {ONES})',
)
FAST = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat()
def test_fast(export_golden):
    x = np.float32([1, np.nan, 3])
    export_golden(jax.jit(lambda x: jnp.where(jnp.isnan(x), 7, x)), x)
"""


@pytest.fixture(scope="module")
def differing(projects: Projects) -> SimpleNamespace:
    return SimpleNamespace(update=projects(test_a=NUMBERS_DIFFER).pytest("--update-goldens"))


@pytest.mark.parametrize("name", FITTING)
def test_a_golden_failing_its_replay_gets_only_the_hint_that_fits(name, differing):
    text = differing.update[f"test_{name}"].text
    assert "it ran with different numbers. The fault is in what was exported" in text
    *_, fitting = FITTING[name]
    assert [hint for hint in (KEY, SYMBOLIC, FLAGS, BUG) if hint in text] == [fitting]


def test_a_composite_of_a_symbolic_size_gets_advice(differing):
    """jax refuses to export it before 0.12.0, and from then on to call what it has exported."""
    text = differing.update["test_composite"].text
    assert "or call the function itself in the place of its composite." in text
    assert "decomposition has" in text
    assert "note: called from" not in text


def test_fast_math_of_this_process_is_named(projects):
    fast = "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false"
    text = projects(test_a=FAST).pytest("--update-goldens", environment={"XLA_FLAGS": fast})["test_fast"].text
    assert "Its outputs were computed with other flags than its replay: nothing was stored." in text
    assert f"XLA_FLAGS='{fast}' only in this process" in text
    assert "`environment: [XLA_FLAGS]`" in text
