"""A golden that shows nothing of its function is not written, unless its marker says why it is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Projects, Run

TESTS = """
import jax, jax.numpy as jnp, pytest

LOG = jax.jit(lambda x: (jnp.log(x), jnp.sqrt(x)))
NEGATIVE, POSITIVE = jnp.full(3, -1.0), jnp.ones(3)

{marker}
class TestNothing:
    def test_nan(self, export_golden):
        export_golden(LOG, NEGATIVE)

    def test_complex_nan(self, export_golden):
        export_golden(jax.jit(lambda x: x * jnp.nan), jnp.ones(2, jnp.complex64))

    @pytest.mark.export_compat(vjp_order=1)
    def test_derivatives_of_nan(self, export_golden):
        export_golden(jax.jit(lambda x: jnp.where(x > 0, x, jnp.nan)), NEGATIVE)

    def test_no_outputs(self, export_golden):
        export_golden(jax.jit(lambda x: None), POSITIVE)

    def test_empty(self, export_golden):
        export_golden(jax.jit(lambda x: (x[:0], jnp.zeros((2, 0)))), POSITIVE)

@pytest.mark.export_compat
class TestSomething:
    def test_one_number(self, export_golden):
        export_golden(LOG, jnp.array([-1.0, -1.0, 1.0]))

    def test_another_output(self, export_golden):
        export_golden(jax.jit(lambda x: (jnp.log(x), x.astype(int))), NEGATIVE)

    @pytest.mark.export_compat(symbolic_shapes="n")
    def test_another_call(self, export_golden):
        export_golden(LOG, NEGATIVE).also(jnp.ones(2))
"""
PLAIN = "@pytest.mark.export_compat"
REASON = "@pytest.mark.export_compat(nothing_to_compare='log of a negative number stays NaN')"
NOTHING = {
    "test_nan": "all values of its outputs are NaN",
    "test_complex_nan": "all values of its outputs are NaN",
    "test_derivatives_of_nan": "all values of its outputs are NaN",
    "test_no_outputs": "the function has no outputs",
    "test_empty": "its outputs have no values",
}


@pytest.fixture(scope="module")
def refused(projects: Projects) -> Run:
    """Goldens that are written without a reason."""
    return projects(test_a=TESTS.replace("{marker}", PLAIN)).pytest("--update-goldens")


@pytest.mark.parametrize("name", NOTHING)
def test_outputs_that_show_nothing_are_refused(refused: Run, name: str) -> None:
    told = refused[f"TestNothing.{name}"]
    assert told.outcome == "failed"
    assert f"expected outputs that show what the function computes, but {NOTHING[name]}. " in told.text
    assert "nothing_to_compare='why'" in told.text


def test_one_value_in_one_output_or_call_is_enough(refused: Run) -> None:
    assert {name.rpartition(".")[2] for name in refused.outcomes()["passed"]} == {
        "test_one_number",
        "test_another_output",
        "test_another_call",
    }


def test_a_reason_accepts_it_and_is_not_stored(projects: Projects) -> None:
    project = projects(test_a=TESTS.replace("{marker}", REASON))
    run = project.pytest("--update-goldens", "-k", "TestNothing")
    assert (run.code, len(run.outcomes()["passed"])) == (0, len(NOTHING)), run.text
    assert "stays NaN" not in b"".join(project.stored().values()).decode(errors="replace")
    project.write(test_a=TESTS.replace("{marker}", PLAIN))
    run = project.pytest("-k", "test_nan")
    assert run.code == 0, f"what is stored is only replayed: {run.text}"
