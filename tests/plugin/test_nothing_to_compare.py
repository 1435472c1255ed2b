"""Goldens whose outputs show nothing, such as only NaN: refused unless the marker gives a reason.

Inputs that are made from types are chosen so that the outputs are numbers.
"""

import pytest
from projects import Project, Projects, Run
from warm_pytest import WHOLE_NOISE

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

LOG = jax.jit(lambda x: (jnp.log(x), jnp.sqrt(x)))
NEGATIVE, POSITIVE = np.full(3, -1, np.float32), np.ones(3, np.float32)

class Nothing:
    def test_nan(self, export_golden):
        export_golden(LOG, NEGATIVE)

    def test_complex_nan(self, export_golden):
        export_golden(jax.jit(lambda x: x * jnp.nan), np.ones(2, np.complex64))

    @pytest.mark.export_compat(vjp_order=1)
    def test_derivatives_of_nan(self, export_golden):
        export_golden(jax.jit(lambda x: jnp.where(x > 0, x, jnp.nan)), NEGATIVE)

    def test_no_outputs(self, export_golden):
        export_golden(jax.jit(lambda x: None), POSITIVE)

    def test_empty(self, export_golden):
        export_golden(jax.jit(lambda x: (x[:0], jnp.zeros((2, 0)))), POSITIVE)

@pytest.mark.export_compat
class TestNothing(Nothing):
    pass

@pytest.mark.export_compat(nothing_to_compare='log of a negative number stays NaN')
class TestReason(Nothing):
    pass

@pytest.mark.export_compat
class TestSomething:
    def test_one_number(self, export_golden):
        export_golden(LOG, np.array([-1.0, -1.0, 1.0]))

    def test_another_output(self, export_golden):
        export_golden(jax.jit(lambda x: (jnp.log(x), x.astype(int))), NEGATIVE)

    @pytest.mark.export_compat(symbolic_shapes="n")
    def test_another_call(self, export_golden):
        export_golden(LOG, NEGATIVE).also(POSITIVE[:2])
"""
NOTHING = {
    "test_nan": "all values of its outputs are NaN",
    "test_complex_nan": "all values of its outputs are NaN",
    "test_derivatives_of_nan": "all values of its outputs are NaN",
    "test_no_outputs": "the function has no outputs",
    "test_empty": "its outputs have no values",
}


@pytest.fixture(scope="module")
def update(projects: Projects) -> tuple[Project, Run]:
    project = projects(test_a=TESTS)
    return project, project.pytest("--update-goldens")


@pytest.mark.parametrize("name", NOTHING)
def test_goldens_without_any_number_to_compare_are_refused(update, name):
    report = update[1][f"TestNothing.{name}"]
    assert report.outcome == "failed"
    assert f"expected outputs that show what the function computes, but {NOTHING[name]}. " in report.text
    assert "nothing_to_compare='why'" in report.text


def test_the_error_for_a_missing_golden_says_if_it_would_be_refused(update):
    """Without the hint, the user learns only after running the advised command that the golden is refused."""
    report = update[0].pytest("-k", "TestNothing and test_nan")["TestNothing.test_nan"]
    assert "No golden of this test yet" in report.text
    assert "Before that: expected outputs that show what the function computes, but all values" in report.text
    assert "Before that" not in update[0].pytest("-k", "TestReason and test_nan").text


def test_one_number_in_any_output_or_call_lets_a_golden_be_stored(update):
    for name in ("test_one_number", "test_another_output", "test_another_call"):
        report = update[1][f"TestSomething.{name}"]
        assert report.outcome == "passed", report.text


def test_a_reason_lets_a_golden_without_numbers_be_stored(update):
    project, run = update
    assert [run[f"TestReason.{name}"].outcome for name in NOTHING] == ["passed"] * len(NOTHING), run.text
    for name in NOTHING:
        options = project.manifest(f"test_a.TestReason.{name}")["options"]
        assert options["nothing_to_compare"] == "log of a negative number stays NaN"
    assert "nothing_to_compare" not in project.manifest("test_a.TestSomething.test_one_number")["options"]
    project.write(test_a=TESTS.replace("nothing_to_compare='log of a negative number stays NaN'", ""))
    run = project.pytest("-k", "TestReason and test_nan")
    assert run.code == 0, f"what is stored is only replayed: {run.text}"


IN_DOMAIN = """
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
from export_core.export import produce

produce.RULES = ("",)
"""


def test_made_inputs_give_numbers_or_are_refused(projects):
    project = projects(noise=WHOLE_NOISE, test_a=IN_DOMAIN)
    written = project.pytest("--update-goldens")
    assert written.outcomes() == {"passed": ["test_a.test_cholesky"], "failed": ["test_a.test_undefined"]}, written.text
    assert project.manifest("test_a.test_cholesky")["inputs_rule"] == "positive definite"
    assert "Pass arrays for which the function is defined" in written["test_undefined"].text
    assert not (project.goldens / "test_a.test_undefined").exists()
    assert project.pytest("-k", "cholesky").code == 0


def test_goldens_with_inputs_made_by_an_older_plugin_are_checked(projects):
    """Older versions made inputs by one rule, even if the outputs were NaN."""
    reason = "export_compat(nothing_to_compare='an older version')"
    project = projects(conftest=OLDER, test_a=IN_DOMAIN.replace("export_compat", reason))
    assert project.pytest("--update-goldens").code == 0
    assert "inputs_rule" not in project.manifest("test_a.test_cholesky")
    project.write(conftest="", test_a=IN_DOMAIN)
    assert project.pytest().outcomes() == {"passed": ["test_a.test_cholesky", "test_a.test_undefined"]}
    project.write(test_a=IN_DOMAIN.replace("jnp.linalg.cholesky", "lambda x: jnp.linalg.cholesky(x) + 1"))
    assert project.pytest("-k", "cholesky").outcomes() == {"failed": ["test_a.test_cholesky"]}
