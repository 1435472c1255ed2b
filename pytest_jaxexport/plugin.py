"""The pytest11 entry point: wiring only. Nothing heavy is imported before a marked test runs."""

from __future__ import annotations

import json
from collections.abc import Generator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jaxexport import marker, settings
from pytest_jaxexport.places import whole_name
from pytest_jaxexport.unused import Collected, Collector, Seen, narrowed

if TYPE_CHECKING:
    from pytest_jaxexport.recorder import Recorder
    from pytest_jaxexport.replayer import Replayer

MARKED: pytest.StashKey[marker.Marked] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
REPLAYER: pytest.StashKey[Replayer] = pytest.StashKey()
SETTINGS: pytest.StashKey[settings.Settings] = pytest.StashKey()
_ON_REPORT = "_jaxexport"
_REFUSED = "jaxexport_refused"
_COLLECTED = "jaxexport_collected"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    settings.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker with its whole signature, and get devices before anything uses one."""
    config.addinivalue_line("markers", marker.SIGNATURE)
    settings.give_devices(config)
    collector = Collector(config)
    config.pluginmanager.register(collector, "jaxexport-collector")
    if hasattr(config, "workerinput"):
        return
    if config.getoption("prune_goldens") and (why := narrowed(config)):
        raise pytest.UsageError(
            f"--prune-goldens: expected a run of all tests, which alone shows what is unused: {why}."
        )
    config.pluginmanager.register(Teller(collector.collected), "jaxexport-teller")


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
        ended = recorder if call.when == "call" else None
        told = {
            "test": whole_name(item),
            "cases": ended.cases if ended else [],
            "events": ended.events if ended else [],
        }
        setattr(report, _ON_REPORT, json.dumps(told))
    return report


class Teller:
    """Gathers what the reports carry, and tells it at the end. On xdist's controller it hears all workers."""

    def __init__(self, collected: Collected) -> None:
        self.events: list[dict[str, Any]] = []
        self.refused = ""
        self.seen = Seen()
        self.collected = collected
        self.unused: tuple[str, ...] = ()
        self.not_pruned = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the events off a marked test's report."""
        if (text := getattr(report, _ON_REPORT, None)) is not None:
            told = json.loads(text)
            self.events += told["events"]
            self.seen.add(report, told)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take what broke at collection, in xdist's workers too."""
        self.collected.broken |= report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of xdist refused at collection, and what it collected; all of them collect the same."""
        output = getattr(node, "workeroutput", {})
        self.refused = output.get(_REFUSED, self.refused)
        if _COLLECTED in output:
            self.collected.add(output[_COLLECTED])
        else:
            self.collected.broken = True  # it crashed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that refused a marker, or was to update and wrote nothing, must not look like a success."""
        if self.refused or (self._wrote_nothing(session.config) and exitstatus == pytest.ExitCode.OK):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        self._look_for_unused(session, exitstatus)
        if self.not_pruned and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """A few lines, when there is something to tell."""
        if self.refused:
            terminalreporter.write_line(f"ERROR: {self.refused}", red=True)
        elif self._wrote_nothing(config):
            why = "no marked test came to write one" if self.seen.tests else "no selected test is marked"
            terminalreporter.write_line(
                f"--update-goldens: {why} (@pytest.mark.{marker.NAME}); nothing was written.", red=True
            )
        elif self.events or self.unused:
            from pytest_jaxexport.summary import summary_lines

            terminalreporter.write_sep("=", "export compatibility")  # section() leaves a blank line after the title
            for line in (*summary_lines(self.events), *self.unused):
                terminalreporter.write_line(line)
        if self.not_pruned:
            terminalreporter.write_line(f"--prune-goldens: {self.not_pruned}", red=True)

    def _look_for_unused(self, session: pytest.Session, exitstatus: int) -> None:
        config = session.config
        delete = bool(config.getoption("prune_goldens"))
        why = self._not_whole(session, exitstatus)
        if why or (not delete and narrowed(config)):
            self.not_pruned = f"{why}; nothing was deleted." if delete else ""
            return
        from export_core.errors import ExportCompatError
        from pytest_jaxexport.pruning import look_for_unused, unused_after

        told = (settings.goldens_folder(config), self.seen, self.collected, config.rootpath)
        try:
            found = look_for_unused(*told, delete=True) if delete else unused_after(*told)
        except ExportCompatError as error:
            self.not_pruned = f"{error} Nothing was deleted."
            return
        self.unused, self.not_pruned = found.lines, " ".join(found.refused)

    def _not_whole(self, session: pytest.Session, exitstatus: int) -> str:
        """Why a run that was asked for all tests has not seen them all."""
        if self.refused or exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
            return "the run was refused"
        if session.shouldstop or session.shouldfail or exitstatus == pytest.ExitCode.INTERRUPTED:
            return "the run was ended before all tests had run"
        if self.collected.broken:
            return "not every test file could be collected, or a worker crashed"
        return "" if self.seen.tests else "no test that ran is marked"

    def _wrote_nothing(self, config: pytest.Config) -> bool:
        return bool(config.getoption("update_goldens")) and not config.getoption("collectonly") and not self.events


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what this worker of xdist collected."""
    if hasattr(session.config, "workerinput"):
        collector = session.config.pluginmanager.get_plugin("jaxexport-collector")
        session.config.workeroutput[_COLLECTED] = collector.collected.plain()  # type: ignore[attr-defined,union-attr]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker that replayed goldens."""
    if (replayer := config.stash.get(REPLAYER, None)) is not None:
        replayer.close()


def _recorder(item: pytest.Item) -> Recorder:
    from pytest_jaxexport.recorder import Recorder
    from pytest_jaxexport.replayer import Replayer

    config = item.config
    if REPLAYER not in config.stash:
        config.stash[REPLAYER] = Replayer(config.stash[SETTINGS])
    return Recorder(item, item.stash[MARKED], config.stash[SETTINGS], config.stash[REPLAYER])
