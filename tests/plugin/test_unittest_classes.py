"""Marked tests in classes of unittest and absltest have `self.export_golden`, and are tests like others."""

from types import SimpleNamespace

import pytest
from projects import Projects

TESTS = """
import unittest
import jax, jax.numpy as jnp, numpy as np, pytest
from absl.testing import absltest, parameterized

X = np.arange(1.0, 5.0)

class TestPlain(unittest.TestCase):
    def setUp(self):
        self.factor = 3

    def tearDown(self):
        self.factor = None

    @pytest.mark.export_compat(vjp_order=1)  # the derivative is computed when the method has returned
    def test_marked(self):
        self.export_golden(jax.jit(lambda x: jnp.sin(x) * self.factor), X)

    def test_sibling(self):
        self.assertEqual(self.factor, 3)

    @pytest.mark.export_compat
    def test_subtests(self):
        for power in (2, 3):
            with self.subTest(power=power):
                self.export_golden(jax.jit(lambda x: x**power), X, name=f"power_{power}")

@pytest.mark.export_compat
class Functions(parameterized.TestCase):
    @parameterized.parameters(2, 3)
    def test_scaled(self, factor):
        self.export_golden(jax.jit(lambda x: x * factor), X)

    @parameterized.named_parameters(("of one", 1), ("of_two", 2))
    def test_raised(self, power):
        self.export_golden(jax.jit(lambda x: x**power), X)

class OneMethod(parameterized.TestCase):
    @parameterized.product(kind=["sin", "cos"])
    @pytest.mark.export_compat(atol=1e-6)
    def test_wave(self, kind):
        self.export_golden(jax.jit(getattr(jnp, kind)), X)
"""

FAILING = """
import unittest
import jax, jax.numpy as jnp, numpy as np, pytest
from absl.testing import parameterized

SIN, X = jax.jit(jnp.sin), np.ones(3)

@pytest.mark.export_compat
class TestMarked(unittest.TestCase):
    def test_fails_afterwards(self):
        self.export_golden(SIN, X)
        self.fail("failed afterwards")

    def test_skips_afterwards(self):
        self.export_golden(SIN, X)
        self.skipTest("skipped afterwards")

    def test_fails_in_subtest(self):
        self.export_golden(SIN, X)
        with self.subTest("first"):
            self.fail("failed in a subtest")

    def test_never(self):
        pass

    def test_not_jitted(self):
        self.export_golden(lambda x: x, X)

    @unittest.skip("always")
    def test_skipped(self): ...

@pytest.mark.export_compat
def test_fails_in_subtest_of_pytest(export_golden, subtests):
    export_golden(SIN, X)
    with subtests.test("first"):
        assert not "failed in a subtest of pytest"

class TestUnmarked(parameterized.TestCase):
    def test_unmarked(self):
        self.export_golden(SIN, X)

    @pytest.mark.export_compat
    @parameterized.parameters(1, 2)
    def test_marker_too_high(self, n):
        self.export_golden(SIN, X)
"""


@pytest.fixture(scope="module")
def classes(projects: Projects) -> SimpleNamespace:
    """Goldens of unittest classes, written and checked; and tests that fail, updated in a project of their own."""
    classes = SimpleNamespace(project=projects(test_classes=TESTS), failing=projects(test_failing=FAILING))
    classes.written = classes.project.pytest("--update-goldens")
    classes.checked = classes.project.pytest()
    classes.failed = classes.failing.pytest("--update-goldens")
    return classes


def test_marked_methods_write_goldens_and_check_them(classes):
    assert (classes.written.code, classes.checked.code) == (0, 0), classes.written.text + classes.checked.text
    assert "9 cases checked against 9 goldens: 9 kept" in classes.checked.text


def test_each_parameter_of_a_test_method_gives_a_separate_case(classes):
    names = {path.name.removeprefix("test_classes.") for path in classes.project.goldens.iterdir()}
    assert len(names) == 9
    assert {
        "TestPlain.test_marked",
        "TestPlain.test_subtests.power_2",
        "Functions.test_scaled0",
        "Functions.test_scaled1",
        "Functions.test_raised_of_two",
        "OneMethod.test_wave0",
    } <= names


def test_a_changed_function_fails_its_method(classes):
    changed = classes.project.copy(classes.project.folder.parent / "changed")
    path = changed.folder / "test_classes.py"
    path.write_text(path.read_text().replace("self.factor = 3", "self.factor = 3.5"))
    report = changed.pytest("-k", "test_marked")["test_marked"]
    assert report.outcome == "failed"
    assert "than its golden by jaxlib" in report.text
    assert "Traceback" not in report.text


@pytest.mark.parametrize(
    ("test", "outcome", "message"),
    [
        ("test_fails_afterwards", "failed", "failed afterwards"),
        ("test_skips_afterwards", "skipped", "skipped afterwards"),
        ("test_never", "failed", "never called export_golden"),
        ("test_not_jitted", "failed", "expected a jitted function first"),
        ("test_skipped", "skipped", "always"),
    ],
)
def test_failed_or_skipped_methods_write_nothing(classes, test, outcome, message):
    ending = classes.failed[test]
    assert (ending.outcome, message in ending.text) == (outcome, True), ending.text
    assert classes.failing.stored() == {}


def test_a_failed_subtest_writes_nothing(classes):
    assert "AssertionError: failed in a subtest" in classes.failed.text
    assert "failed in a subtest of pytest" in classes.failed.text
    assert classes.failing.stored() == {}


def test_goldens_of_a_failed_subtest_are_not_unused(classes):
    """The second call is not made, and pytest reports the test itself as passed."""
    failing = classes.project.copy(classes.project.folder.parent / "failing")
    path = failing.folder / "test_classes.py"
    path.write_text(path.read_text().replace("name=f", "name=self.fail() if power > 2 else f"))
    run = failing.pytest()
    assert run.code == 1
    assert "power_3" not in run.text.partition("export compatibility")[2].partition("short test summary")[0], run.text


@pytest.mark.parametrize("test", ["test_unmarked", "test_marker_too_high0"])
def test_a_missing_marker_is_explained(classes, test):
    section = classes.failed.text.partition(f"_ TestUnmarked.{test} _")[2].partition("_ Test")[0]
    assert "marked with @pytest.mark.export_compat" in section
    assert "the line above its def, below @parameterized" in section


GIVEN = """
import jax, jax.numpy as jnp, numpy as np, pytest
from hypothesis import given, strategies

@pytest.mark.export_compat
@given(strategies.floats())
def test_drawn(export_golden, x):
    export_golden(jax.jit(jnp.sin), x)
"""


def test_a_marked_test_with_given_of_hypothesis_is_refused(projects):
    report = projects(test_a=GIVEN).pytest("-p", "hypothesispytest")["test_drawn"]
    assert report.outcome == "error"
    assert "@pytest.mark.export_compat cannot be combined with hypothesis's @given" in report.text
    assert "one beside it without @given that passes fixed arguments" in report.text
