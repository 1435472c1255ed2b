"""The pytest11 entry point: wiring only. Nothing heavy is imported before a marked test runs."""

from __future__ import annotations

import json
from collections.abc import Generator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jaxexport import marker, settings

if TYPE_CHECKING:
    from pytest_jaxexport.recorder import Recorder
    from pytest_jaxexport.replayer import Replayer

MARKED: pytest.StashKey[marker.Marked] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
REPLAYER: pytest.StashKey[Replayer] = pytest.StashKey()
SETTINGS: pytest.StashKey[settings.Settings] = pytest.StashKey()
_ON_REPORT = "_jaxexport"
_REFUSED = "jaxexport_refused"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    settings.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker with its whole signature, and get devices before anything uses one."""
    config.addinivalue_line("markers", marker.SIGNATURE)
    settings.give_devices(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Teller(), "jaxexport-teller")


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line, when goldens are asked for or there."""
    try:
        folder = settings.goldens_folder(config)
    except pytest.UsageError:
        return None  # said at collection, where a marked test needs it
    updating = config.getoption("update_goldens")
    if not updating and next(folder.glob("*/*/golden.yaml"), None) is None:
        return None
    return f"jaxexport: {version('pytest-jaxexport')}, {'updating goldens in' if updating else 'goldens:'} {folder}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Read every marker, and the settings where there is one, so that a wrong value ends the run before any test."""
    try:
        for item in items:
            if (marked := marker.read_marker(item)) is not None:
                item.stash[MARKED] = marked
                if SETTINGS not in config.stash:
                    config.stash[SETTINGS] = settings.read_settings(config)
    except pytest.UsageError as error:
        if not hasattr(config, "workerinput"):
            raise
        # An error raised here in xdist's worker is an internal error of its controller, so that is told in words.
        config.workeroutput[_REFUSED] = str(error)  # type: ignore[attr-defined]
        items.clear()


@pytest.fixture
def export_golden(request: pytest.FixtureRequest) -> Recorder:
    """Export a jitted function with example arguments and hold it against its goldens.

    ``export_golden(jax.jit(f), *args, **kwargs)``; several calls in one test take ``name=``. With `--update-goldens` the golden of
    this jaxlib is written once the test has passed.
    """
    item = request.node
    if item.stash.get(MARKED, None) is None:
        pytest.fail(f"{item.nodeid} uses export_golden: mark it with @pytest.mark.{marker.NAME}.", pytrace=False)
    recorder = _recorder(item)
    item.stash[RECORDER] = recorder
    return recorder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """After a marked test has passed: it must have called `export_golden`, and what it staged is written."""
    result = yield
    if item.stash.get(MARKED, None) is not None:
        recorder = item.stash.get(RECORDER, None)
        if recorder is None or not recorder.called:
            pytest.fail(
                f"{item.nodeid} is marked with {marker.NAME} and never called export_golden: take the fixture and call "
                "export_golden(jax.jit(f), *args), or take the marker off.",
                pytrace=False,
            )
        recorder.finish()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Put what happened to goldens on a marked test's report, as text, so that it travels from xdist's workers too."""
    report = yield
    if item.stash.get(MARKED, None) is not None:
        recorder = item.stash.get(RECORDER, None)
        setattr(report, _ON_REPORT, json.dumps(recorder.events if recorder and call.when == "call" else []))
    return report


class Teller:
    """Gathers what the reports carry, and tells it at the end. On xdist's controller it hears all workers."""

    def __init__(self) -> None:
        self.marked = False
        self.events: list[dict[str, Any]] = []
        self.refused = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the events off a marked test's report."""
        if (told := getattr(report, _ON_REPORT, None)) is not None:
            self.marked = True
            self.events += json.loads(told)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of xdist refused at collection; all of them collect the same."""
        self.refused = getattr(node, "workeroutput", {}).get(_REFUSED, self.refused)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that refused a marker, or was to update and wrote nothing, must not look like a success."""
        if self.refused or (self._wrote_nothing(session.config) and exitstatus == pytest.ExitCode.OK):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """A few lines, when there is something to tell."""
        if self.refused:
            terminalreporter.write_line(f"ERROR: {self.refused}", red=True)
        elif self._wrote_nothing(config):
            why = "no marked test came to write one" if self.marked else "no selected test is marked"
            terminalreporter.write_line(
                f"--update-goldens: {why} (@pytest.mark.{marker.NAME}); nothing was written.", red=True
            )
        elif self.events:
            from pytest_jaxexport.summary import summary_lines

            terminalreporter.write_sep("=", "export compatibility")  # section() leaves a blank line after the title
            for line in summary_lines(self.events):
                terminalreporter.write_line(line)

    def _wrote_nothing(self, config: pytest.Config) -> bool:
        return bool(config.getoption("update_goldens")) and not config.getoption("collectonly") and not self.events


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker that replayed goldens."""
    if (replayer := config.stash.get(REPLAYER, None)) is not None:
        replayer.close()


def _recorder(item: pytest.Item) -> Recorder:
    from pytest_jaxexport.recorder import Recorder
    from pytest_jaxexport.replayer import Replayer

    config = item.config
    if REPLAYER not in config.stash:
        config.stash[REPLAYER] = Replayer(config.stash[SETTINGS].policy, config.stash[SETTINGS].dump_ir)
    return Recorder(item, item.stash[MARKED], config.stash[SETTINGS], config.stash[REPLAYER])
