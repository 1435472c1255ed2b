"""Remarks in the summary on new goldens that show little, and the keyword `constant` that prevents them."""

import re

import pytest
from projects import Project, Projects, Run
from warm_pytest import WHOLE_NOISE

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)

def of_step(x, other):
    return {"out": jax.nn.relu(x), "step": jnp.int32(3)}

def of_one_class(x):
    return {"weights": jax.nn.softmax(x * 2.0**100), "hot": jax.nn.one_hot(x.argmax(1), 9)}

def of_state(x, state, unused):
    return {"out": x * state["scale"], "best": state["best"]}

BIG = np.array([3, 2**40, 5])
plus_big = lambda x: x + BIG

STATE = {"scale": X[0], "best": np.full(4, np.nan, np.float32), **{name: X[0] for name in "abcde"}}

@pytest.mark.export_compat
class TestAll:
    def test_dead(self, export_golden):
        export_golden(jax.jit(lambda x: jax.nn.relu(x - 100)), X)

    def test_unused(self, export_golden):
        export_golden(jax.jit(of_step), X, {"a": X})

    @pytest.mark.export_compat(constant=["result['step']", "args[1]"])
    def test_meant(self, export_golden):
        export_golden(jax.jit(of_step), X, {"a": X})

    def test_fine(self, export_golden):
        export_golden(jax.jit(lambda x: jax.nn.relu(x)), X)

    def test_rounded(self, export_golden):
        export_golden(jax.jit(jnp.exp), np.linspace(0, 1, 7))

    def test_rounded_too(self, export_golden):
        export_golden(jax.jit(lambda x, y: x * y), np.linspace(0, 1, 7), np.linspace(0, 1, 7))

    def test_cut(self, export_golden):
        export_golden(jax.jit(lambda x: plus_big(x)), np.arange(3, dtype=np.int32))

    def test_saturated(self, export_golden):
        export_golden(jax.jit(of_one_class), X)

    def test_state(self, export_golden):
        export_golden(jax.jit(of_state), X, STATE, {"a": X, "b": [X, X]})

    @pytest.mark.export_compat(vjp_order=1)
    def test_of_integers(self, export_golden):
        export_golden(jax.jit(lambda n, mask: jnp.where(mask, n, 0)), np.arange(4), np.array([1, 0, 1, 1], bool))

    def test_endless(self, export_golden):
        grow = lambda x: jax.lax.while_loop(lambda x: x < 50.0, lambda x: x * 1.5, x)
        export_golden(jax.jit(lambda x: (grow(x), x + 1)), np.float32(1.3))

@pytest.mark.export_compat(constant=["result['stop']"])
def test_unknown(export_golden):
    export_golden(jax.jit(of_step), X, X)
"""


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    """A project of tests, some of which have outputs that show nothing."""
    return projects(noise=WHOLE_NOISE, test_a=TESTS)


@pytest.fixture(scope="module")
def written(project: Project) -> Run:
    """The run that wrote their goldens."""
    return project.pytest("--update-goldens")


def remarks_on(run: Run, test: str) -> list[str]:
    """Return the remarks in the summary on the golden of a test."""
    lines = (line.strip().partition("-cpu: ") for line in run.text.splitlines())
    return [text for golden, _, text in lines if golden.startswith(f"test_a.TestAll.{test}/") and text]


def test_constant_outputs_and_unused_inputs_are_named(written):
    (dead,) = remarks_on(written, "test_dead")
    assert dead.startswith(
        "result: all 128 elements are 0, with other inputs too: choose inputs for which some are not"
    )
    step, unused = remarks_on(written, "test_unused")
    assert step == "result['step']: it is 3 with all of 16 other inputs too: choose inputs on which it depends"
    assert unused == "args[1]['a']: no output depends on this input: is it meant to be unused?"


def test_the_marker_for_constant_and_unused_leaves_is_printed(written):
    lines = [line.strip() for line in written.text.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("Where a leaf is meant to be constant"))
    assert lines[first].endswith("and leave out any other leaf:")
    meant = lines[first + 1 : first + 4]
    test = "test_a.py::TestAll::test_"
    assert meant[0] == f'{test}dead: export_compat(constant=["result"])'
    assert meant[1] == f"""{test}unused: export_compat(constant=["result['step']", "args[1]['a']"])"""
    assert "constant, unused, infinite or NaN" not in "".join(lines[first + 1 :])
    assert not any(f"{test}meant" in line for line in lines)


def test_one_line_names_the_goldens_whose_inputs_were_rounded(written):
    (line,) = [line for line in written.text.splitlines() if "float64" in line]
    goldens, _, text = line.partition(": ")
    assert re.fullmatch(r"  test_a\.TestAll\.test_rounded/\S+-cpu, test_a\.TestAll\.test_rounded_too/\S+-cpu", goldens)
    assert text.startswith("inputs were float64 and are stored as float32, since jax_enable_x64 is off: enable it")


def test_derivatives_without_numbers_are_named(written):
    remarks = remarks_on(written, "test_of_integers")
    assert [text for text in remarks if text.startswith("vjp1")] == [
        "vjp1: no number is compared, since derivatives by integers and booleans have none (float0): is it meant to be "
        "so?"
    ]


def test_a_constant_that_jax_cuts_to_32_bits_is_named(written):
    (line,) = remarks_on(written, "test_cut")
    assert line.startswith("BIG, which the function closes over, is int64 and holds 1099511627776, which int32 cannot")


def test_a_saturated_output_is_named_and_a_one_hot_output_is_not(written):
    (line,) = remarks_on(written, "test_saturated")
    assert line == (
        "result['weights']: all 128 elements are 0 or 1, the bounds of a softmax: "
        "choose smaller inputs, or a larger temperature"
    )


HANDED_THROUGH = (
    "result['best']: 4 of 4 elements are NaN, as args[1]['best'] is: give that numbers, or name this leaf in"
)
UNUSED = "no output depends on this input: is it meant to be unused?"


def test_an_output_that_equals_an_input_is_named(written):
    best, unused = remarks_on(written, "test_state")
    assert best.startswith(HANDED_THROUGH)
    assert unused == f"args[1]['a'], args[1]['b'], args[1]['c'] and 3 more (-v names all): {UNUSED}"


def test_the_v_option_repeats_remarks_with_all_leaves(project, written):
    again = project.pytest("--update-goldens", "-v", "-k", "state or meant")
    assert "2 goldens unchanged" in again.text
    best, unused = remarks_on(again, "test_state")
    assert best.startswith(HANDED_THROUGH)
    leaves = ", ".join(f"args[1]['{name}']" for name in "abcde")
    assert unused == f"{leaves}, args[2]: {UNUSED}"
    assert remarks_on(again, "test_meant") == []


def test_remarks_fail_no_test_and_a_good_golden_gets_none(project, written):
    assert remarks_on(written, "test_fine") == []
    assert written.outcomes()["failed"] == ["test_a.test_unknown"]
    assert "shows" not in str(project.manifest("test_a.TestAll.test_dead")["noise"])


def test_outputs_that_the_marker_calls_constant_get_no_remark(project, written):
    assert remarks_on(written, "test_meant") == []
    assert "constant" not in project.manifest("test_a.TestAll.test_meant")["options"]


def test_an_unknown_leaf_in_constant_is_an_error_with_all_leaves(written):
    text = written["test_unknown"].text
    assert "expected leaves of what is exported, found result['stop']" in text
    assert "The leaves are args[0], args[1], result['out'], result['step']." in text


def test_a_loop_that_changed_inputs_would_make_endless_is_stopped(project, written):
    noise = project.manifest("test_a.TestAll.test_endless")["noise"]
    assert (noise["moved"], noise.get("failed")) == (6, None)
    assert remarks_on(written, "test_endless") == []


def test_an_unchanged_golden_gets_no_remark_again(project, written):
    again = project.pytest("--update-goldens", "-k", "dead or unused or rounded")
    assert "4 goldens unchanged" in again.text
    assert "choose inputs" not in again.text
    assert "float64" not in again.text
    assert "choose inputs" not in project.pytest("-k", "dead").text
