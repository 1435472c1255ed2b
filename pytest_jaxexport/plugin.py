"""The pytest plugin, loaded through the pytest11 entry point: wiring only.

Nothing heavy is imported before a marked test runs.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jaxexport import marker, options
from pytest_jaxexport.collected import (
    CollectedTests,
    CollectionListener,
    ReportedTests,
    selected_words,
    why_partial,
)
from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.reviewing import has_terminal
from pytest_jaxexport.stash import (
    FAILED,
    FLAGS,
    LEDGER,
    MARKED,
    NEXT,
    RECORDER,
    RUNNING,
    SETTINGS,
    STARTED_WITH,
    UNHEARD,
)

if TYPE_CHECKING:
    from export_core.policy import Policy
    from pytest_jaxexport.events import Event
    from pytest_jaxexport.recorder import Recorder

_ATTACHED = "_jaxexport"  # The attribute of a test's report that carries our data, as text: what xdist can send.
_REFUSED = "jaxexport_refused"
_COLLECTED = "jaxexport_collected"
_DOING = {
    "": "goldens:",
    options.DRY_RUN: "goldens that would be written in",
    options.REVIEW: "reviewing goldens in",
}
"""What the header says of the folder of goldens, by the value of --update-goldens."""
_UNHEARD = "jaxexport_unheard"
_REPORTER = "jaxexport-reporter"
UNITTEST_HINT = (
    f"export_golden exists in tests that are marked with @pytest.mark.{marker.NAME}, on the method or on its class. "
    "With absl's parameterized the marker of a method is the line above its def, below @parameterized: absl drops it "
    "elsewhere. Without pytest (absltest.main, python -m unittest) it does not exist."
)
"""Why a test of a `unittest.TestCase` has no `self.export_golden`."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options of the plugin. Raise `pytest.UsageError` for an unknown value of --update-goldens."""
    options.add_options(parser)
    if config := pluginmanager.get_plugin("pytestconfig"):
        options.check_updates(config.invocation_params.args)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the plugin's reporter, and set the number of devices before jax uses any."""
    # Nothing but `pytest --markers` shows the keywords, and only that loads those of features.
    shown = marker.all_keywords() if config.getoption("markers", False) else marker.KEYWORDS
    config.addinivalue_line("markers", marker.signature(shown))
    config.stash[STARTED_WITH] = dict(os.environ)
    config.stash[UNHEARD] = []
    options.request_devices(config)
    listener = CollectionListener(config)
    config.pluginmanager.register(listener, "jaxexport-collection")
    # A worker of xdist: its controller has the reporter, which sees the reports of all workers.
    if hasattr(config, "workerinput"):
        return
    if config.getoption("prune_goldens") and (reason := why_partial(config)):
        raise options.usage_error(
            f"--prune-goldens: expected a run of all tests, since only that shows which goldens are unused: {reason}."
        )
    _require_answers(config)
    config.pluginmanager.register(GoldensReporter(listener.collected, config.stash[UNHEARD]), _REPORTER)
    if config.getoption("update_goldens"):
        from pytest_jaxexport.termination import TerminationListener  # a run that writes nothing needs no handler

        config.pluginmanager.register(TerminationListener(), "jaxexport-termination")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the header's line about goldens, if the run writes goldens or the project has some; else None."""
    try:
        folder = _goldens_folder(config)
    except pytest.UsageError:
        return None  # a marked test that needs the folder raises this again, at collection
    updating = str(config.getoption("update_goldens"))
    if not updating and next(folder.glob("*/*/golden.yaml"), None) is None:
        return None
    return f"jaxexport: {version('pytest-jaxexport')}, {_DOING.get(updating, 'updating goldens in')} {folder}"


# Around all others: tests which -k or -m deselects are checked too, and so are markers that a project's hook adds.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Read every marker, and the settings if any test is marked. A wrong setting ends the run before any test.

    A wrong marker is reported later, in the setup of its test, so that one run reports all wrong markers.
    """
    collected = list(items)
    result = yield
    try:
        for item in dict.fromkeys([*collected, *items]):
            if item.get_closest_marker(marker.NAME) is None:
                continue
            with contextlib.suppress(marker.MarkerError):
                _marked(item)
    except pytest.UsageError as error:
        if not hasattr(config, "workerinput"):
            raise
        # Raised in a worker of xdist, this would be an internal error of its controller, so it travels as text.
        config.workeroutput[_REFUSED] = str(error)  # type: ignore[attr-defined]
        items.clear()
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record the settings of jax after collection, since any test file may have set some when it was imported."""
    config = session.config
    if SETTINGS in config.stash and "jax" in sys.modules and not config.getoption("collectonly"):
        from export_core.export.produce import current_flags  # it imports jax, which a test file has imported

        config.stash[FLAGS] = current_flags()


@pytest.fixture
def export_golden(request: pytest.FixtureRequest) -> Recorder:
    """Export a jitted function with example arguments and check it against its goldens.

    ``export_golden(jax.jit(f), *args, **kwargs)``; several calls in one test each need a ``name=``. With
    `--update-goldens` the golden of this jaxlib is written once the test has passed. Tests in classes of unittest have
    it as ``self.export_golden``.
    """
    item = request.node
    if _marked_now(item) is None:
        from export_core.base.text import close_match

        similar = close_match(marker.NAME, {mark.name for mark in item.iter_markers()})
        found = f" Its mark {similar!r} has a similar name." if similar else ""
        problem = f"uses export_golden without the marker: mark it with @pytest.mark.{marker.NAME}.{found}"
        pytest.fail(problem, pytrace=False)
    return _recorder(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Record which test is next, so that its goldens can be replayed while this test runs."""
    item.config.stash[NEXT] = nextitem


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give the test a new ledger, since pytest-rerunfailures may run it again; fail a test with a wrong marker.

    A test that is to be skipped fails for a wrong marker too.
    """
    item.stash[LEDGER] = Ledger(item, item.config.stash[UNHEARD])
    item.stash[FAILED] = False
    if RECORDER in item.stash:
        del item.stash[RECORDER]
    _marked_now(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check or write the goldens of a marked test that has passed; fail it if it has not called `export_golden`."""
    ledger, is_unittest = item.stash[LEDGER], _is_unittest(item)
    if is_unittest and _marked_now(item) is not None:
        _attach(item)
    try:
        result = yield
        if _marked_now(item) is not None:  # a fixture, or the test itself, may have added the marker
            if not is_unittest:
                _finish(item)
            elif not item.stash[FAILED]:
                _require_checked(item)
    except KeyboardInterrupt:
        reporter = item.config.pluginmanager.get_plugin(_REPORTER)
        if reporter and (recorder := item.stash.get(RECORDER, None)):
            reporter.events += recorder.events  # an interrupted test has no report that could carry them
            reporter.interrupted = f"{item.nodeid} was interrupted" + (f" while {recorder.step}" * bool(recorder.step))
        raise
    finally:
        ledger.end()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Close the ledger of the test after all fixtures and finalizers.

    A call of `export_golden` in these fails the test, even if its error is caught.
    """
    ledger = item.stash[LEDGER]
    ledger.end()
    try:
        result = yield
    finally:
        ledger.close()
        if RUNNING in item.config.stash:
            item.config.stash[RUNNING].end()
    if not item.stash[FAILED]:  # where no report has shown the failure
        ledger.require_in_time()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Attach the events about goldens to the report of a marked test, as JSON text that xdist's workers can send."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, AttributeError) and error.name == "export_golden":
        report.sections.append((f"no {error.name}", UNITTEST_HINT))
    if item.get_closest_marker(marker.NAME) is not None:
        item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
        recorder = item.stash.get(RECORDER, None)
        # A test has three reports; what it exported must be counted once.
        called = recorder if call.when == "call" else None
        attached = {
            "test": marker.full_name(item),
            "cases": called.cases if called else [],
            "events": called.events if called else [],
            "renamed": called.renamed if called else [],
        }
        setattr(report, _ATTACHED, json.dumps(attached))
    return report


def _require_answers(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for an --update-goldens that excludes another option, or needs a missing terminal."""
    update = config.getoption("update_goldens")
    option = f"--update-goldens={update}"
    if update in (options.DRY_RUN, options.REVIEW) and config.getoption("prune_goldens"):
        raise options.usage_error(f"{option} cannot be combined with --prune-goldens, which deletes goldens.")
    if update != options.REVIEW:
        return
    instead = (
        f"--update-goldens={options.DRY_RUN} shows what would be written, and pytest --update-goldens TEST writes it."
    )
    if config.getoption("dist", "no") != "no":
        raise options.usage_error(f"{option} cannot be combined with -n: workers of xdist cannot ask. {instead}")
    if not has_terminal():
        raise options.usage_error(f"{option} asks at a terminal, and this run has none. {instead}")


class GoldensReporter:
    """A plugin of pytest that collects the data attached to reports, also by xdist's workers, and writes a summary."""

    def __init__(self, collected: CollectedTests, unheard: list[str]) -> None:
        self.unheard = unheard
        self.events: list[Event] = []
        self.refused = ""
        self.reported = ReportedTests()
        self.ran: set[str] = set()
        self.interrupted = ""
        self.collected = collected
        self.unused: list[str] = []
        self.not_pruned = ""
        self.fails_unused = False
        self.lost_worker = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Print, before any test runs, the selected tests in which an earlier run died, since they may end this run."""
        config = session.config
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter and SETTINGS in config.stash and not config.getoption("collectonly"):
            for line in lines_of_deaths({item.nodeid for item in session.items}, config.rootpath):
                reporter.write_line(line, yellow=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the data that the plugin has attached to the report of a marked test."""
        self.ran.add(report.nodeid)
        if (text := getattr(report, _ATTACHED, None)) is not None:
            attached = json.loads(text)
            self.events += attached["events"]
            self.reported.add(report, attached)
        elif report.when == "call" and report.passed:
            self.reported.unmarked.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that collection has failed, if this report says so; workers of xdist send such reports too."""
        self.collected.broken |= report.failed

    # Optional: the hook is xdist's, and without xdist pytest refuses a hook that it does not know.
    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect what a worker of xdist sends at its end: refused settings, late calls, and the collected tests.

        A worker that sends nothing has crashed.
        """
        # A worker that crashed has no workeroutput: xdist sets it when a worker finishes.
        output = getattr(node, "workeroutput", {})
        self.refused = output.get(_REFUSED, self.refused)
        self.unheard += output.get(_UNHEARD, [])
        if _COLLECTED in output:
            self.collected.add(**output[_COLLECTED])
        else:
            self.lost_worker = self.collected.broken = True  # it crashed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """List or delete unused goldens, and set the exit code of a run that must fail.

        A run fails if a setting was refused, if goldens could not be written or deleted as an option asks, or if a call
        came after its test. Unused goldens fail it if the policy says so.
        """
        if self.refused or (self._wrote_nothing(session.config) and exitstatus == pytest.ExitCode.OK):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif self.unheard and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._look_for_unused(session, exitstatus)
        # An exit code that already reports a failure stays: that is the more important one.
        if self.not_pruned and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif self.fails_unused and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        # Whoever started this pytest cannot tell from an exit code of 0 whether pytest or a test chose it.
        if ended := os.environ.get("JAXEXPORT_SESSION_ENDED"):
            written = sum(event.get("written") in ("new", "replaced") for event in self.events)
            with contextlib.suppress(OSError):  # the backfill was killed, and its folder is gone
                Path(ended).write_text(str(written))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
    ) -> None:
        """Write the summary about goldens to the terminal, if there is anything to report."""
        # The controller of xdist collects nothing, and learns here of all that died.
        for line in lines_of_deaths(self.ran, config.rootpath) if self.lost_worker or self.reported.tests else ():
            terminalreporter.write_line(f"ERROR: {line}", red=True)
        if self.interrupted:
            terminalreporter.write_line(self.interrupted)
        for late in self.unheard:
            terminalreporter.write_line(f"ERROR: {late}", red=True)
        if self.refused:
            terminalreporter.write_line(f"ERROR: {self.refused}", red=True)
        elif config.getoption("update_goldens") and exitstatus == pytest.ExitCode.INTERRUPTED and not self.events:
            terminalreporter.write_line("--update-goldens: interrupted before a golden was written.", red=True)
        elif self._wrote_nothing(config) and exitstatus != pytest.ExitCode.USAGE_ERROR:  # reported by pytest itself
            reason = "no marked test wrote a golden" if self.reported.tests else "no selected test is marked"
            terminalreporter.write_line(
                f"--update-goldens: {reason} (@pytest.mark.{marker.NAME}); nothing was written.", red=True
            )
        elif self.events or self.unused:
            from pytest_jaxexport.summary import shown_lines, updating  # YAML and msgspec: 36 ms

            terminalreporter.write_sep("=", "export compatibility")  # section() would add a blank line after the title
            verbose, repeated = config.getoption("verbose") > 0, options.repeated_options(config)
            selected = selected_words(config)
            lines = shown_lines(self.events, self.unused, verbose=verbose, repeated=repeated, selected=selected)
            for line in lines:
                terminalreporter.write_line(line)
            if config.getoption("update_goldens") == options.DRY_RUN:
                terminalreporter.write_line(
                    f"dry run: nothing was written; {updating(repeated, tests=selected)} writes it"
                )
            elif config.getoption("update_goldens") and exitstatus == pytest.ExitCode.INTERRUPTED:
                command = updating(repeated, "=missing", selected)
                terminalreporter.write_line(f"interrupted: {command} writes what is missing")
        if self.not_pruned:
            terminalreporter.write_line(f"--prune-goldens: {self.not_pruned}", red=True)

    def _look_for_unused(self, session: pytest.Session, exitstatus: int) -> None:
        config = session.config
        delete = bool(config.getoption("prune_goldens"))
        reason = self._why_incomplete(session, exitstatus)
        partial = "" if delete else why_partial(config)
        fails = False
        if not reason and not partial:
            with contextlib.suppress(pytest.UsageError):  # a run with a marked test has reported it
                policy = _policy(config)
                fails = policy is not None and policy.unused_goldens == "fail"
        # Where no test is marked any more, only a project that asks for it pays for looking.
        if not reason and not self.reported.tests and (delete or partial or not fails):
            reason = "no test that ran is marked"
        if reason or partial:
            self.not_pruned = f"{reason}; nothing was deleted." if delete else ""
            return
        from pytest_jaxexport.unused_goldens import unused_or_error  # NumPy: 120 ms

        self.unused, self.not_pruned, left = unused_or_error(
            config, _goldens_folder(config), self.reported, self.collected, delete=delete
        )
        if left and fails:
            self.unused.append("unused_goldens is fail: this run fails, since no test exports these goldens")
            self.fails_unused = True

    def _why_incomplete(self, session: pytest.Session, exitstatus: int) -> str:
        """Return why not all tests were collected and run: a refusal, an early end, an error; "" if all were."""
        if self.refused or exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
            return "the run was refused"
        if session.shouldstop or session.shouldfail or exitstatus == pytest.ExitCode.INTERRUPTED:
            return "the run ended before all tests had run"
        if self.collected.broken:
            return "not every test file could be collected, or a worker crashed"
        return ""

    def _wrote_nothing(self, config: pytest.Config) -> bool:
        return bool(config.getoption("update_goldens")) and not config.getoption("collectonly") and not self.events


def lines_of_deaths(tests: set[str], root: Path) -> list[str]:
    """Return a line for each test in which a pytest process has died, among these tests, given by node ids."""
    from pytest_jaxexport.dead_processes import deaths_in, line_about  # 4 ms, after a marked test

    return [line_about(death) for death in deaths_in(tests, root)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send xdist's controller the files and tests that this worker collected, and errors about late calls.

    In a process that is not a worker of xdist, this does nothing.
    """
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput[_UNHEARD] = session.config.stash[UNHEARD]  # type: ignore[attr-defined]
        listener = session.config.pluginmanager.get_plugin("jaxexport-collection")
        session.config.workeroutput[_COLLECTED] = vars(listener.collected)  # type: ignore[attr-defined,union-attr]


def _goldens_folder(config: pytest.Config) -> Path:
    """Return the folder of goldens, from the options, the policy, or the default.

    Raises `pytest.UsageError` if the policy is needed and cannot be read.
    """
    if folder := options.named_goldens(config):
        return folder
    policy = _policy(config)
    return config.rootpath / (policy.goldens if policy else "golden")


def _policy(config: pytest.Config) -> Policy | None:
    """Return the policy of the project; None if it has none, which takes no time for imports.

    Raises `pytest.UsageError` for a wrong policy.
    """
    if not options.has_policy(config):
        return None
    from pytest_jaxexport.settings import read_policy  # YAML and msgspec: 90 ms

    return read_policy(config)


def _marked(item: pytest.Item) -> marker.Marked | None:
    """Return the keywords in the markers of a test, or None if it has no marker.

    For the first marked test, the settings of the run are read too. Markers are read again if hooks, fixtures or the
    test itself have added some. Raises `pytest.UsageError` for a wrong setting, and `MarkerError` for a wrong marker.
    """
    markers = list(item.iter_markers(marker.NAME))
    if not markers:
        return None
    from pytest_jaxexport.settings import read_marker, read_settings  # YAML and msgspec: 90 ms

    if SETTINGS not in item.config.stash:
        item.config.stash[SETTINGS] = read_settings(item.config)
    if MARKED not in item.stash or [*map(id, item.stash[MARKED][0])] != [*map(id, markers)]:
        item.stash[MARKED] = markers, read_marker(item)
    return item.stash[MARKED][1]


def _marked_now(item: pytest.Item) -> marker.Marked | None:
    """Return the keywords in the markers of a running test, or None; fail the test for a wrong marker or setting."""
    __tracebackhide__ = True
    try:
        return _marked(item)
    except (marker.MarkerError, pytest.UsageError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _finish(item: pytest.Item) -> None:
    """Check or write the exports of a marked test that has passed; fail the test if it has none."""
    __tracebackhide__ = True
    ledger = item.stash[LEDGER]
    ledger.end()
    if item.stash[FAILED]:
        return
    if not ledger.called:
        request = "" if RECORDER in item.stash else "request the fixture (in unittest, take self.export_golden) and "
        pytest.fail(
            f"never called export_golden, though it is marked with {marker.NAME}: {request}call "
            "export_golden(jax.jit(f), *args), or remove the marker.",
            pytrace=False,
        )
    item.stash[RECORDER].finish()
    ledger.checked = True


def _require_checked(item: pytest.Item) -> None:
    """Fail a unittest test whose exports were not checked, or that called `export_golden` in its clean-up.

    If setUp or the test method failed or skipped, pytest reports that instead.
    """
    __tracebackhide__ = True
    item.stash[LEDGER].require_in_time()
    if not item.stash[LEDGER].checked:
        pytest.fail(
            "nothing was checked, since the method of this test never ran to its end. unittest.TestCase does not run "
            "methods that are `async def`, and those of other frameworks may return before they are done: use "
            "unittest.IsolatedAsyncioTestCase, or a plain method.",
            pytrace=False,
        )


def _recorder(item: pytest.Item) -> Recorder:
    """Return the value of `export_golden` for this test, which is made at the first request.

    In a unittest test, a fixture of the class may request it before the test method does.
    """
    if RECORDER not in item.stash:
        from pytest_jaxexport.recording import new_recorder  # jax and all that a marked test needs: 1 s

        marked = _marked_now(item)
        assert marked is not None
        item.stash[RECORDER] = new_recorder(item, item.stash[LEDGER], marked)
    return item.stash[RECORDER]


def _is_unittest(item: pytest.Item) -> bool:
    """Return whether a test is a method of a `unittest.TestCase`, and so cannot request fixtures."""
    unittest = sys.modules.get("unittest")  # a class of it cannot be collected before it is imported
    return unittest is not None and isinstance(getattr(item, "instance", None), unittest.TestCase)


def _attach(item: Any) -> None:
    """Set `self.export_golden` of a unittest test, and wrap its method so that exports are checked at its end.

    The check has to be inside the method: unittest catches the errors of a method, and code outside cannot fail it.
    """
    method = item.obj
    item.instance.export_golden = _recorder(item)

    @functools.wraps(method)
    def checked(*args: Any) -> Any:
        __tracebackhide__ = True
        try:
            result = method(*args)
            _finish(item)
            return result
        finally:
            item.stash[LEDGER].end()

    @functools.wraps(method)
    async def checked_async(*args: Any) -> Any:
        __tracebackhide__ = True
        try:
            result = await method(*args)
            _finish(item)
            return result
        finally:
            item.stash[LEDGER].end()

    if not inspect.iscoroutinefunction(method):
        item.obj = checked
        return
    item.obj = checked_async
    setattr(item.instance, item.name, checked_async)  # pytest leaves such a method to its class, which takes its own
