"""A marked test, as all that its `export_golden` does sees it: its settings, stored goldens, steps, events, failure."""

import functools
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from export_core.base.errors import ExportCompatError
from export_core.base.text import shown
from export_core.export.produce import ProducedGolden
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.manifest import Manifest
from export_core.goldens.restoring import rewriting, with_test
from export_core.goldens.store import ARTIFACT
from export_core.matrix.comparisons import under_policy
from export_core.numbers.compare import GoldenOutputs
from pytest_jaxexport.changes import Changes, changes_since
from pytest_jaxexport.comparing import marked_now
from pytest_jaxexport.events import AnyEvent, Event
from pytest_jaxexport.long_steps import shown_in_log
from pytest_jaxexport.marker import Marked, full_name
from pytest_jaxexport.replayer import Replayer
from pytest_jaxexport.settings import Settings
from pytest_jaxexport.summary import run_words
from pytest_jaxexport.unused_goldens import rename_hint


class RecordedTest:
    """One marked test that uses `export_golden`, with what the terminal summary shows of it.

    Args:
        item: the test.
        marked: the keywords of its markers.
        settings: the settings of the run.
        replayer: what replays goldens in new processes. A second process has none.
    """

    def __init__(self, item: pytest.Item, marked: Marked, settings: Settings, replayer: Replayer) -> None:
        self.item = item
        self.marked = marked
        self.settings = settings
        self.replayer = replayer
        self.store = GoldenStore(settings.goldens)
        self.marked_now = partial(marked_now, marked=marked, settings=settings)
        """The function that returns a golden with the comparison that the marker and the policy ask for now."""
        self.events: list[Event] = []
        """What happened to its goldens: plain data for the terminal summary."""
        self.cases: list[str] = []
        """The cases that it exported."""
        self.renamed: list[str] = []
        """Unused cases that may be those of this test under an earlier name."""
        self.step = ""
        """The step that runs, or ran when the test was interrupted."""

    @property
    def is_verbose(self) -> bool:
        """Whether pytest runs with `-v`."""
        return self.item.config.get_verbosity() > 0

    def own_golden(self, case: str) -> Golden | None:
        """Return the stored golden of a case by this run's writer, or None."""
        return next(filter(self.replayer.is_own, self.generations(case)), None)

    def generations(self, case: str) -> list[Golden]:
        """Return the stored goldens of a case: only those that can be read, if this run writes again what cannot.

        Goldens by other writers may be damaged too, which the next run that checks them reports.
        """
        store = self.store
        return store.readable(case) if self.settings.update == "all" else store.generations(case)

    def stored(self, produced: ProducedGolden) -> Golden | None:
        """Return the stored golden by this run's writer if it has the same artifact, else None."""
        own = self.own_golden(produced.case.id)
        return own if own and own.manifest.files.get(ARTIFACT) == produced.manifest.files[ARTIFACT] else None

    def rename_hint(self, produced: ProducedGolden) -> str:
        """Return which unused case may be a new case of this test under an earlier name; empty if there is none.

        The case is added to `renamed`.
        """
        agrees = partial(self._agrees, produced)
        with self.progress(f"looking for goldens that {shown(produced.case.id)} may have had by another name"):
            case, hint = rename_hint(produced.manifest, self.cases, agrees, self.settings, self.item.config)
        self.renamed += [case] if case else []
        return hint

    def _agrees(self, produced: ProducedGolden, golden: Golden) -> bool:
        """Return whether the test exports what this golden, of another case, has."""
        if golden.manifest.signature != produced.manifest.signature:  # before its artifact is read
            return False
        try:
            golden.verify()
            # With another writer's golden without outputs, only the signature could be compared.
            own = golden.manifest.writer.id == produced.manifest.writer.id
            return (own or not golden.manifest.options.without_outputs) and not any(self.changes(produced, golden)[:2])
        except ExportCompatError:
            return False

    def changes(self, produced: ProducedGolden, reference: Golden) -> Changes:
        """Return how what the test exports differs from a stored golden, by the rules of this run."""
        return changes_since(produced, self.wanted(reference, produced))

    def wanted(self, reference: Golden, produced: ProducedGolden) -> GoldenOutputs:
        """Return a stored golden with the rules by which this run compares numbers with it."""
        policy = self.settings.policy
        (compared,) = under_policy([self.marked_now(reference)], policy)
        platform = produced.manifest.writer.platform
        return GoldenOutputs(compared, platform, policy.tolerances, self.replayer.user_code)

    def about(self, manifest: Manifest, unmeasured: int = 0) -> AnyEvent:
        """Return the facts that every event about a case of this test has."""
        return {
            "case": manifest.case,
            "test": self.name,
            "writer": manifest.writer.id,
            "unmeasured": unmeasured,
            "measure": self.measure_command if unmeasured else "",
        }

    @property
    def measure_command(self) -> str:
        """The command that measures the noise of goldens that have none."""
        return shlex.join(self.replayer.noise_command)

    @property
    def remedy(self) -> str:
        """The command that writes this test's goldens."""
        return self.command("--update-goldens")

    def command(self, *options: str) -> str:
        """Return the command that runs this test, for the folder where pytest was called."""
        return shlex.join([*run_words(), *options, *self.settings.repeated, self.name])

    @functools.cached_property
    def name(self) -> str:
        """This test as a command line names it in the folder where pytest was called."""
        path, _, names = full_name(self.item).partition("::")
        config = self.item.config
        here = Path(os.path.relpath(config.rootpath / path, config.invocation_params.dir)).as_posix()
        return f"{here}::{names}"

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Record which step runs, and show it: it stays recorded if Ctrl-C or a SIGTERM ends it."""
        self.step = text
        try:
            with self._shown(text):
                yield
        except Exception:
            self.step = ""
            raise
        self.step = ""

    @contextmanager
    def _shown(self, text: str) -> Iterator[None]:
        """Show a line below pytest's own output while the block runs, if the output is a terminal.

        A log has a line only if the block takes long. Nothing is shown under -q, or by a worker of xdist, which cannot
        print.
        """
        config = self.item.config
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        can_erase = reporter and reporter.isatty and config.get_terminal_writer().hasmarkup
        if not reporter or config.get_verbosity() < 0:
            yield
            return
        if not can_erase:
            with shown_in_log(config, text):
                yield
            return
        capture = config.pluginmanager.get_plugin("capturemanager")

        def write(text: str) -> None:
            # Not by the reporter: it counts what it writes, to know where the percentage of a line goes.
            with capture.global_and_fixture_disabled() if capture else nullcontext():
                sys.stdout.write(text)
                sys.stdout.flush()

        columns = shutil.get_terminal_size().columns
        column = config.get_terminal_writer().width_of_current_line % columns
        write(f"\n{text[: columns - 1]}")
        try:
            yield
        finally:
            write(f"\r\x1b[K\x1b[A\x1b[{column}C" if column else "\r\x1b[K\x1b[A")

    def fail(self, text: str) -> NoReturn:
        """Fail the test with this text, whose commands become those for this test."""
        __tracebackhide__ = True
        test = full_name(self.item)
        for case in dict.fromkeys(self.cases):
            text = with_test(text, case, test)
        for general in (rewriting(test), rewriting()):
            text = text.replace(f"`{general}`", f"`{self.remedy}`")
        updating, words = "-- --update-goldens", [*self.settings.repeated, self.name]
        text = text.replace(f"{updating} {shlex.quote(test)}`", f"{updating} {shlex.join(words)}`")
        # pytest says of which test it speaks, and its last lines have room for few words.
        lines = (line.removeprefix(f"{test}: ") for line in text.split("\n"))
        # The text contains that of the error behind it.
        raise pytest.fail.Exception(shown("\n".join(lines)), pytrace=False) from None
