"""A user's own comparator, by its import path: what it may return, and the error when it is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from making import day, golden

from export_core.comparing.comparators import check_comparator
from export_core.comparing.compare import compare_leaves
from export_core.comparing.errors import CompareError
from export_core.goldens import Comparison
from export_core.goldens.arrays import leaf_of
from export_core.matrix import Selection, make_plan
from export_core.releases import Windows, load_calendar

CHECKS = """
import numpy as np

LIMIT = 3

class Checks:
    @staticmethod
    def same_set(expected, actual):
        assert isinstance(expected, list) and isinstance(actual[0], np.ndarray)
        return None if set(expected[0].tolist()) == set(actual[0].tolist()) else "another set"

def asserts(expected, actual):
    np.testing.assert_array_equal(expected[0], actual[0])

def asserts_silently(expected, actual):
    assert expected[0].tolist() == actual[0].tolist()

def breaks(expected, actual):
    return expected[1]

def says_yes(expected, actual):
    return True

def says_nothing(expected, actual):
    return " "
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with our_checks.py in it; nothing of it is left on sys.path afterwards."""
    (tmp_path / "our_checks.py").write_text(CHECKS)
    (tmp_path / "our_mistake.py").write_text("1 / 0")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module in ("our_checks", "our_mistake"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    check_comparator("our_checks:asserts", tmp_path)
    yield tmp_path
    sys.modules.pop("our_checks", None)


def compared(name, expected=(1.0, 2.0), actual=(2.0, 1.0)):
    wanted, found = ([leaf_of(np.array(side, np.float32))] for side in (expected, actual))
    return compare_leaves(wanted, found, Comparison(f"our_checks:{name}"))


def test_a_users_function_decides_and_errors_are_still_reported(project):
    found = compared("Checks.same_set")
    assert (found.ok, found.max_abs_error, found.max_ulp) == (True, 1.0, 1 << 23)
    assert str(found) == "max abs error 1, max rel error 1, max ulp 8388608"
    found = compared("Checks.same_set", actual=(3.0, 1.0))
    assert (found.ok, str(found)) == (False, "our_checks:Checks.same_set: another set")


def test_an_assertion_that_fails_is_what_is_wrong(project):
    assert compared("asserts", actual=(1.0, 2.0)).ok
    found = compared("asserts")
    assert not found.ok
    assert "Mismatched elements: 2 / 2 (100%)" in str(found)
    assert not compared("asserts_silently").ok
    assert str(compared("asserts_silently")).startswith("our_checks:asserts_silently: ")


def test_other_shapes_never_reach_it(project):
    assert compared("breaks", actual=(1.0,)).problem == "output 0: expected float32[2], got float32[1]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("breaks", "compare='our_checks:breaks' raised IndexError: list index out of range. Nothing was compared."),
        ("says_yes", "compare='our_checks:says_yes' returned True: expected None when the outputs are right, or text"),
        ("says_nothing", "compare='our_checks:says_nothing' returned ' ': expected None"),
    ],
)
def test_a_function_that_fails_or_returns_something_is_an_error(project, name, message):
    with pytest.raises(CompareError) as told:
        compared(name)
    assert str(told.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":close", "compare=':close': expected 'module:function', such as 'my_package.checks:close_enough'."),
        ("our_checks:", "compare='our_checks:': expected 'module:function'"),
        (
            "our_cheks:asserts",
            "compare='our_cheks:asserts': cannot import our_cheks: ModuleNotFoundError: No module named 'our_cheks'.",
        ),
        ("our_mistake:f", "compare='our_mistake:f': cannot import our_mistake: ZeroDivisionError: division by zero."),
        ("..our_checks:f", "compare='..our_checks:f': cannot import ..our_checks: TypeError"),
        ("our_checks:assert", "compare='our_checks:assert': our_checks ("),
        ("our_checks:Checks.other", "compare='our_checks:Checks.other': our_checks ("),
        ("our_checks:LIMIT", "compare='our_checks:LIMIT': expected a function (expected, actual), found int."),
    ],
)  # fmt: skip
def test_a_missing_function_is_an_error_with_the_searched_folder(project, name, message):
    with pytest.raises(CompareError) as told:
        check_comparator(name, project)
    assert str(told.value).startswith(message)


def test_a_plan_imports_from_the_working_folder_or_fails(project, monkeypatch):
    def plan(name):
        one = golden(comparison=Comparison(name))
        return make_plan([one], load_calendar(), Windows(), Selection(readers="0.12.0.1"), day("2026-11-21"))

    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(project)])
    del sys.modules["our_checks"]
    assert len(plan("our_checks:asserts").cells) == 1
    with pytest.raises(CompareError, match=r"our_checks \(.*our_checks.py\) has no gone\."):
        plan("our_checks:gone")
