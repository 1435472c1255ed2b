"""A user's own comparator, by its import path: what it may return, and the error when it is missing."""

import contextlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from making import day, golden

from export_core.goldens import Comparison
from export_core.goldens.arrays import leaf_of
from export_core.matrix import Selection, make_plan
from export_core.numbers import CompareError
from export_core.numbers import user_code as module
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.user_code import UserCode
from export_core.releases import Windows, load_calendar

CHECKS = """
from logging import debug
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


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with comparators in our_checks.py, and a module that fails at its import."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "our_checks.py").write_text(CHECKS)
    (folder / "our_mistake.py").write_text("1 / 0")
    return folder


@pytest.fixture(scope="module")
def user_code(project):
    with contextlib.closing(UserCode(project)) as code:
        yield code


@pytest.fixture
def compared(user_code):
    def compared(name, expected=(1.0, 2.0), actual=(2.0, 1.0), code=user_code):
        wanted, found = ([leaf_of(np.array(side, np.float32))] for side in (expected, actual))
        return compare_leaves(wanted, found, Rules(Comparison(f"our_checks:{name}")), user_code=code)

    return compared


def test_a_users_comparator_decides_but_errors_are_still_measured(compared):
    found = compared("Checks.same_set")
    assert (found.ok, found.max_abs_error, found.max_ulp) == (True, 1.0, 1 << 23)
    assert str(found) == "max abs error 1, max rel error 1, max ulp 8388608"
    found = compared("Checks.same_set", actual=(3.0, 1.0))
    assert (found.ok, str(found)) == (False, "our_checks:Checks.same_set: another set")


def test_a_failed_assertion_becomes_the_difference(compared):
    assert compared("asserts", actual=(1.0, 2.0)).ok
    found = compared("asserts")
    assert not found.ok
    assert "Mismatched elements: 2 / 2 (100%)" in str(found)
    assert not compared("asserts_silently").ok
    assert str(compared("asserts_silently")).startswith("our_checks:asserts_silently: ")


def test_a_comparator_is_not_called_if_shapes_differ(compared):
    assert compared("breaks", actual=(1.0,)).problem == "output 0: expected float32[2], got float32[1]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("breaks", "compare='our_checks:breaks' raised IndexError: list index out of range. Nothing was compared."),
        ("says_yes", "compare='our_checks:says_yes' returned True: expected None when the outputs are right, or text"),
        ("says_nothing", "compare='our_checks:says_nothing' returned ' ': expected None"),
    ],
)
def test_a_failing_comparator_gives_an_error_with_the_reason(compared, name, message):
    with pytest.raises(CompareError) as raised:
        compared(name)
    assert str(raised.value).startswith(message)


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
        ("builtins:print", "compare='builtins:print': expected a function that compares outputs,"),
        ("logging:debug", "compare='logging:debug': expected a function that compares outputs,"),
        ("our_checks:debug", "compare='our_checks:debug': expected a function that compares outputs,"),
        ("our_checks:LIMIT", "compare='our_checks:LIMIT': expected a function (expected, actual), found int."),
    ],
)  # fmt: skip
def test_a_missing_comparator_is_an_error_with_the_folder(user_code, name, message):
    with pytest.raises(CompareError) as raised:
        user_code.check(name)
    assert str(raised.value).startswith(message)
    if "cannot import" in message:
        assert "through PYTHONPATH" in str(raised.value)


def test_a_plan_imports_comparators_from_the_working_folder(project, monkeypatch):
    def plan(name):
        one = golden(comparison=Comparison(name))
        with contextlib.closing(UserCode()) as code:
            return make_plan([one], load_calendar(), Windows(), Selection(readers="0.12.0.1"), day("2026-11-21"), code)

    monkeypatch.chdir(project)
    assert len(plan("our_checks:asserts").cells) == 1
    assert "our_checks" not in sys.modules, "in a process of its own"
    with pytest.raises(CompareError, match=r"our_checks \(.*our_checks.py\) has no gone\."):
        plan("our_checks:gone")


# --- comparators that misbehave ---------------------------------------------------------------------------------------

HOSTILE = {
    "sys.exit(0)": "SystemExit: 0",
    "sys.exit()": "SystemExit: ",
    "raise KeyboardInterrupt": "KeyboardInterrupt: ",
    "raise Odd": "Odd",
    "os._exit(0)": "the process that ran it ended with exit status 0.",
    "os.kill(os.getpid(), signal.SIGSEGV)": "the process that ran it died by signal 11 (SIGSEGV).",
    "time.sleep(9)": "the process that ran it did not answer within 2 s.",  # not for ever, lest this test does
    "os.closerange(3, 100)": "the process that ran it ended with exit status",
}
ODD = """
import os, signal, sys, time

class Odd(BaseException):
    def __str__(self):
        raise SystemExit(0)

def do():
    {code}
"""
AT_IMPORT = f"{ODD}\ndo()\ndef f(expected, actual): pass"
AT_CALL = f"{ODD}\ndef f(expected, actual): do()"
FORGING = """
import os, sys
print('{"id": 1, "message": null}', flush=True)
os.write(1, b'{"id": 1, "message": null}' + bytes([10]))
assert sys.stdin.read() == ""
def f(expected, actual):
    print('{"id": 2, "message": null}')
    return "wrong"
def forks(expected, actual):
    os.fork()
"""


@pytest.fixture(scope="module")
def impatient(project):
    with contextlib.closing(UserCode(project, seconds=2.0)) as code:
        yield code


def test_the_error_for_a_slowly_starting_comparator_says_what_to_do(project, monkeypatch):
    monkeypatch.setattr(module, "START_SECONDS", 0.01)
    with contextlib.closing(UserCode(project, seconds=0.02)) as code, pytest.raises(CompareError) as raised:
        code.check("our_checks:asserts")
    assert "did not start: it did not answer within 0.02 s. `" in str(raised.value), "the longer of the two limits"
    assert "-X importtime -c 'import numpy'` shows what takes the time. A longer --timeout" in str(raised.value)


# Code that ends or blocks the process is noticed from outside, so that one such code at the import is enough.
@pytest.mark.parametrize(
    ("when", "code"), [*((AT_IMPORT, code) for code in [*HOSTILE][:5]), *((AT_CALL, code) for code in HOSTILE)]
)
def test_a_comparator_that_ends_or_blocks_its_process_is_an_error(project, impatient, when, code):
    name = f"our_hostile_{len(list(project.iterdir()))}"
    (project / f"{name}.py").write_text(when.format(code=code))
    one = [leaf_of(np.ones(2, np.float32))]
    with pytest.raises(CompareError) as raised:
        impatient.compare(f"{name}:f", one, one)
    assert str(raised.value).startswith(f"compare='{name}:f'")
    assert HOSTILE[code] in str(raised.value)
    assert impatient.compare("our_checks:asserts", one, one) is None, "the next one is compared"


def test_output_of_user_code_is_not_taken_for_an_answer(tmp_path):
    (tmp_path / "our_hostile.py").write_text(FORGING)
    one = [leaf_of(np.ones(2, np.float32))]
    with contextlib.closing(UserCode(tmp_path)) as user_code:
        assert user_code.compare("our_hostile:f", one, one) == "wrong"
        assert user_code.compare("our_hostile:forks", one, one) is None
        assert user_code.compare("our_hostile:f", one, one) == "wrong", "a fork answers nothing"


def test_one_comparator_process_serves_several_threads(compared):
    names = ["Checks.same_set", "asserts", "asserts_silently"] * 4
    with ThreadPoolExecutor(len(names)) as threads:
        assert [found.ok for found in threads.map(compared, names)] == [True, False, False] * 4


def test_closing_the_comparator_process_ends_a_hanging_comparison(tmp_path):
    (tmp_path / "our_hostile.py").write_text(AT_CALL.format(code="signal.pause()"))
    one = [leaf_of(np.ones(2, np.float32))]
    user_code = UserCode(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        compared = threads.submit(user_code.compare, "our_hostile:f", one, one)
        time.sleep(1)
        user_code.close()
        assert isinstance(compared.exception(timeout=20), CompareError)
    with pytest.raises(CompareError, match="the run was stopped"):
        user_code.check("our_hostile:f")


def test_a_comparator_sees_only_variables_of_the_policy(tmp_path, monkeypatch):
    (tmp_path / "our_spy.py").write_text(
        "import os\ndef f(expected, actual): return ' '.join({'CI_TOKEN', 'OURS'} & {*os.environ})"
    )
    monkeypatch.setenv("CI_TOKEN", "s3cret")
    monkeypatch.setenv("OURS", "1")
    with contextlib.closing(UserCode(tmp_path, variables=["OURS"])) as user_code:
        assert user_code.compare("our_spy:f", (), ()) == "OURS"
