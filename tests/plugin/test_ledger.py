"""Each call of `export_golden`, `also` and `refused` is checked or fails its test, even if it comes late or raises."""

from types import SimpleNamespace

import numpy as np
import pytest
from projects import Projects

TESTS = """
import asyncio, contextlib, os, threading, time, unittest
import jax, jax.numpy as jnp, numpy as np, pytest

pytestmark = pytest.mark.export_compat
X = np.arange(3, dtype=np.float32)
SIN = jax.jit(jnp.sin)
OTHER = jax.jit(jnp.cos)
SAVED = []

def caught(call, *args, **kwargs):
    with contextlib.suppress(BaseException):
        call(*args, **kwargs)

@pytest.fixture
def late(export_golden):
    yield
    export_golden(OTHER, X, name="late")

@pytest.fixture
def late_and_caught(export_golden):
    yield
    caught(export_golden, OTHER, X, name="late")

@pytest.fixture
def results():
    exported = []
    yield exported
    caught(exported[0].also, X + 1)

@pytest.fixture(scope="module")
def saved():
    recorders = []
    yield recorders
    caught(recorders[0], OTHER, X, name="late")

def test_in_a_fixture(export_golden, late):
    export_golden(SIN, X)

def test_in_a_fixture_that_catches(export_golden, late_and_caught):
    export_golden(SIN, X)

def test_in_a_finalizer(export_golden, request):
    request.addfinalizer(lambda: caught(export_golden, OTHER, X, name="late"))
    export_golden(SIN, X)

def test_taken_in_a_finalizer(request):
    request.getfixturevalue("export_golden")(SIN, X)
    request.addfinalizer(lambda: caught(request.getfixturevalue("export_golden"), OTHER, X, name="late"))

def test_also_in_a_fixture(export_golden, results):
    results.append(export_golden(SIN, X))

def test_refused_in_a_finalizer(export_golden, request):
    exported = export_golden(SIN, X)
    request.addfinalizer(lambda: caught(exported.refused, X[:2]))

def test_in_a_thread(export_golden, request):
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (ended.wait(), caught(export_golden, OTHER, X, name="late")))
    thread.start()
    request.addfinalizer(lambda: (ended.set(), thread.join()))
    export_golden(SIN, X)

def test_still_running(export_golden, request):
    began, ended = threading.Event(), threading.Event()
    slow = jax.jit(lambda x: (began.set(), ended.wait(), x)[2])
    thread = threading.Thread(target=lambda: caught(export_golden, slow, X, name="slow"))
    request.addfinalizer(lambda: (ended.set(), thread.join()))
    export_golden(SIN, X)
    thread.start()
    began.wait()

def test_twice(export_golden):
    export_golden(SIN, X)
    caught(export_golden, OTHER, X)

def test_wrong_name(export_golden):
    export_golden(SIN, X)
    caught(export_golden, OTHER, X, name=7)

def test_raised(export_golden):
    export_golden(SIN, X)
    caught(export_golden, jax.jit(lambda x: nowhere), X, name="other")

def test_also_raised(export_golden):
    exported = export_golden(SIN, X)
    caught(exported.also, X, X)

def test_refused_raised(export_golden):
    exported = export_golden(SIN, X)
    caught(exported.refused, X + 1)

class TestUnittest(unittest.TestCase):
    def test_tear_down(self):
        self.export_golden(SIN, X)

    def test_tear_down_that_catches(self):
        self.export_golden(SIN, X)

    def test_clean_up(self):
        self.addCleanup(lambda: caught(self.export_golden, OTHER, X, name="late"))
        self.export_golden(SIN, X)

    def tearDown(self):
        if self._testMethodName == "test_tear_down":
            self.export_golden(OTHER, X, name="late")
        elif self._testMethodName == "test_tear_down_that_catches":
            caught(self.export_golden, OTHER, X, name="late")

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_async_tear_down(self):
        self.export_golden(SIN, X)

    async def test_async_clean_up(self):
        async def late():
            caught(self.export_golden, OTHER, X, name="late")
        self.addAsyncCleanup(late)
        self.export_golden(SIN, X)

    async def asyncTearDown(self):
        if self._testMethodName == "test_async_tear_down":
            caught(self.export_golden, OTHER, X, name="late")

class TestPlainAsync(unittest.TestCase):
    def setUp(self):
        self.export_golden(SIN, X)

    @pytest.mark.filterwarnings("ignore")
    async def test_never_runs(self):
        raise AssertionError

class TestClass(unittest.TestCase):
    def test_tear_down_of_the_class(self):
        self.export_golden(SIN, X)
        SAVED.append(self.export_golden)

    @classmethod
    def tearDownClass(cls):
        caught(SAVED[0], OTHER, X, name="late")

def test_in_a_fixture_of_the_module(export_golden, saved):
    saved.append(export_golden)
    export_golden(SIN, X)
"""
LATE = "came after the test had ended: it is neither checked nor written. Call it inside the test"
NAMED = f"export_golden(name='late') at test_a.py:{{line}} {LATE}"
RAISED = "The test passed nevertheless"
MESSAGES = {
    "test_in_a_fixture": NAMED.format(line=18),
    "test_in_a_fixture_that_catches": LATE,
    "test_in_a_finalizer": LATE,
    "test_taken_in_a_finalizer": LATE,
    "test_also_in_a_fixture": f"also() at test_a.py:13 {LATE}",
    "test_refused_in_a_finalizer": f"refused() at test_a.py:13 {LATE}",
    "test_in_a_thread": LATE,
    "test_still_running": "was still running when the test ended. Wait for its thread inside the test.",
    "test_twice": "raised Failed: export_golden was called twice without name=",
    "test_wrong_name": "export_golden(name=7) at test_a.py:13 raised Failed: export_golden: name=7: expected text",
    "test_raised": "raised NameError: name 'nowhere' is not defined",
    "test_also_raised": RAISED,
    "test_refused_raised": "expected this call of the exported function to be refused, and it was not.",
    "test_tear_down": LATE,
    "test_tear_down_that_catches": LATE,
    "test_clean_up": LATE,
    "test_async_tear_down": LATE,
    "test_async_clean_up": LATE,
    "test_never_runs": "use unittest.IsolatedAsyncioTestCase, or a plain method",
    "test_tear_down_of_the_class": LATE,
    "test_in_a_fixture_of_the_module": LATE,
}


@pytest.fixture(scope="module")
def late(projects: Projects) -> SimpleNamespace:
    project = projects(test_a=TESTS)
    return SimpleNamespace(project=project, run=project.pytest("--update-goldens"))


@pytest.mark.parametrize("test", MESSAGES)
def test_a_call_of_export_golden_outside_its_test_fails_the_test(late, test):
    report = late.run[test]
    assert report.outcome in ("failed", "error"), late.run.text
    assert MESSAGES[test] in report.text
    assert late.run.text.count("INTERNALERROR") == 0


def test_each_failure_of_a_call_is_in_the_summary_once(late):
    summary = late.run.text.partition("short test summary")[2]
    tests = MESSAGES.keys() - {"test_never_runs"}  # Python also warns of its coroutine
    assert {test: summary.count(f"::{test} ") for test in tests} == dict.fromkeys(tests, 1)


def test_a_late_call_of_export_golden_writes_no_golden(late):
    assert {name.rpartition(".")[2] for name in late.run.tests} == MESSAGES.keys()
    assert [path.name for path in late.project.goldens.glob("*.late")] == []


AFTER = """
import jax, jax.numpy as jnp, numpy as np, pytest

SAVED = []

@pytest.fixture(scope="session", autouse=True)
def last():
    yield
    try:
        SAVED[0](jax.jit(jnp.cos), np.ones(3, np.float32), name="late")
    except BaseException:
        pass

@pytest.mark.export_compat
def test_marked(export_golden):
    SAVED.append(export_golden)
    export_golden(jax.jit(jnp.sin), np.ones(3, np.float32))

def test_unmarked():
    pass
"""


@pytest.mark.parametrize("words", [[], ["-n", "1"]])
def test_a_call_of_export_golden_after_the_teardown_fails_the_run(projects, words):
    run = projects(test_a=AFTER).pytest("--update-goldens", *words)
    assert set(run.outcomes()) == {"passed"}
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert f"ERROR: test_a.py::test_marked: export_golden(name='late') at test_a.py:10 {LATE}" in run.text


ASYNC = """
import asyncio, unittest
import jax, jax.numpy as jnp, numpy as np, pytest
from absl.testing import parameterized

X = np.ones(3, np.float32)

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.factor = 3.0

    @pytest.mark.export_compat(vjp_order=1)
    async def test_method(self):
        await asyncio.sleep(0)
        self.export_golden(jax.jit(lambda x: x * self.factor), X)

    @pytest.mark.export_compat
    async def test_fails(self):
        self.export_golden(jax.jit(jnp.sin), X)
        await asyncio.sleep(0)
        self.fail("failed afterwards")

    @pytest.mark.export_compat
    async def test_skips(self):
        self.export_golden(jax.jit(jnp.sin), X)
        self.skipTest("skipped afterwards")

class TestInjected(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def inject(self, export_golden):
        self.injected = export_golden

    @pytest.mark.export_compat
    def test_injected(self):
        self.injected(jax.jit(jnp.sin), X)
"""


RERUN = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.ones(3, np.float32)
ATTEMPTS = []

@pytest.mark.export_compat
def test_second_never_calls(request):
    ATTEMPTS.append(1)
    if len(ATTEMPTS) == 1:
        request.getfixturevalue("export_golden")(jax.jit(jnp.sin), X)
        raise AssertionError
"""
AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):  # as pytest-rerunfailures does
    runtestprotocol(item, nextitem=nextitem, log=False)
    item._initrequest()
    runtestprotocol(item, nextitem=nextitem)
    return True
"""


def test_a_rerun_of_a_test_that_calls_no_export_golden_fails(projects):
    run = projects(test_a=RERUN, conftest=AGAIN).pytest("--update-goldens")
    assert "never called export_golden" in run["test_second_never_calls"].text


def test_a_marked_async_method_runs_and_is_checked(projects):
    project = projects(test_a=ASYNC)
    written = project.pytest("--update-goldens")
    assert written.outcomes() == {
        "passed": ["test_a.TestAsync.test_method", "test_a.TestInjected.test_injected"],
        "failed": ["test_a.TestAsync.test_fails"],
        "skipped": ["test_a.TestAsync.test_skips"],
    }
    assert {path.name for path in project.goldens.iterdir()} == {
        "test_a.TestAsync.test_method",
        "test_a.TestInjected.test_injected",
    }
    project.write(
        test_a=ASYNC.replace("3.0", "4.0").replace("self.injected(jax.jit(jnp.sin)", "self.injected(jax.jit(jnp.cos)")
    )
    changed = project.pytest("-k", "method or injected")
    for test in ("test_method", "test_injected"):
        assert "than its golden by jaxlib" in changed[test].text


MARKED_ELSEWHERE = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.fixture
def marks(request):
    request.applymarker(pytest.mark.export_compat(@KEYWORDS@))

def test_by_a_hook(export_golden):
    export_golden(jax.jit(jnp.sin), np.ones(3, np.float32))

def test_by_a_hook_and_never():
    pass

def test_by_a_fixture(marks, export_golden):
    export_golden(jax.jit(jnp.sin), np.ones(3, np.float32))

def test_by_a_fixture_and_never(marks):
    pass
"""
HOOK = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "hook" in item.name:
            item.add_marker(pytest.mark.export_compat(@KEYWORDS@))
"""


def test_export_compat_markers_added_by_hooks_or_fixtures_take_effect(projects):
    project = projects(test_a=MARKED_ELSEWHERE.replace("@KEYWORDS@", ""), conftest=HOOK.replace("@KEYWORDS@", ""))
    run = project.pytest("--update-goldens")
    assert run.outcomes() == {
        "passed": ["test_a.test_by_a_hook", "test_a.test_by_a_fixture"],
        "failed": ["test_a.test_by_a_hook_and_never", "test_a.test_by_a_fixture_and_never"],
    }
    assert len(list(project.goldens.iterdir())) == 2


def test_wrong_markers_added_by_hooks_or_fixtures_are_refused(projects):
    project = projects(test_a=MARKED_ELSEWHERE.replace("@KEYWORDS@", "rtl=1"))
    run = project.pytest()
    assert "has no keyword 'rtl'" in run["test_by_a_fixture"].text
    project.write(conftest=HOOK.replace("@KEYWORDS@", "rtl=1"))
    run = project.pytest("-k", "hook")
    assert {test.outcome for test in run.tests.values()} == {"error"}


X64 = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.arange(3, dtype=np.float64) / 7

@pytest.mark.export_compat(vjp_order=1)
def test_x64(export_golden):
    rows = X
    with jax.enable_x64(True):
        exported = export_golden(jax.jit(lambda x: jnp.sin(x) * 2), X + OFFSET)
        exported.also(rows)
        exported.refused(X.astype(np.float32))
    rows += 1  # also() has taken the values that it had before
"""


def test_further_calls_run_under_the_jax_settings_they_were_added_in(projects):
    project = projects(test_a=X64.replace("OFFSET", "0"))
    run = project.pytest("--update-goldens")
    assert run.code == 0, run.text
    (golden,) = project.goldens.glob("*/*")
    for name in ("call1", "vjp1"):
        with np.load(golden / f"{name}.outputs.npz") as outputs:
            assert {outputs[key].dtype for key in outputs.files} == {np.dtype("float64")}
    assert project.pytest().code == 0
    # Other inputs now: the function is run on those of the golden once more, after its test.
    project.write(test_a=X64.replace("OFFSET", "1"))
    assert project.pytest().code == 0
