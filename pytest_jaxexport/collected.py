"""The tests that a run of pytest collected and their reports, and why it may not be a run of all tests.

Every run of pytest loads this file.
"""

from __future__ import annotations

import argparse
import glob
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_jaxexport.marker import full_name, relative_file

# Options of pytest that leave tests out, by their names in its configuration.
_NARROWING = {
    "lf": "--lf",
    "stepwise": "--stepwise",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "collectonly": "--collect-only",
}


@dataclass(eq=False, repr=False)
class CollectedTests:
    """The test files and tests that pytest collected, here or in xdist's workers.

    `files` are the test files that were collected completely. `tests` are all tests, deselected ones included. `broken`
    is whether something could not be collected.
    """

    files: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    broken: bool = False

    def add(self, files: set[str], tests: set[str], broken: bool) -> None:
        """Add the files and tests that a worker of xdist has collected, from its own `CollectedTests`."""
        self.files |= files
        self.tests |= tests
        self.broken |= broken


class CollectionListener:
    """A plugin of pytest that records the collected files and tests, in every process that collects."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.collected = CollectedTests()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Record the file of a test module that was collected completely.

        A module that was skipped or could not be imported is not recorded, since its tests are not known.
        """
        report: Any = yield
        if isinstance(collector, pytest.Module) and report.passed:
            self.collected.files.add(relative_file(collector.path, self._config.rootpath))
        self.collected.broken |= report.failed
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Record every collected test, also one that is deselected later, which not every plugin reports."""
        self.collected.tests.add(full_name(item))


@dataclass(eq=False, repr=False)
class ReportedTests:
    """The facts in the reports of marked tests: which ran, passed or failed, and their cases and platforms.

    `renamed` are unused cases that may be former names of these tests' cases without goldens. `unmarked` are the node
    ids of tests that passed without a marker.
    """

    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    cases: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)

    def add(self, report: pytest.TestReport, attached: Mapping[str, Any]) -> None:
        """Add the report of a marked test. `attached` is the data that the plugin has attached to the report."""
        self.tests.add(attached["test"])
        self.cases |= set(attached["cases"])
        self.renamed |= set(attached["renamed"])
        self.platforms |= {event["writer"].rpartition("-")[2] for event in attached["events"]}
        if report.when == "call" and report.passed:
            self.passed.add(attached["test"])
        if report.failed:  # or a subtest of it, after which pytest reports the test itself as passed
            self.failed.add(attached["test"])
        self.passed -= self.failed


def selected_words(config: pytest.Config) -> list[str]:
    """Return the words of the command line that select tests: -k, -m and paths."""
    given = [(option, config.getoption(name)) for option, name in (("-k", "keyword"), ("-m", "markexpr"))]
    words = [word for option, expression in given if expression for word in (option, expression)]
    return words + (list(config.args) if config.args_source is config.ArgsSource.ARGS else [])


def why_partial(config: pytest.Config) -> str:
    """Return in words which option or path selects only some of the project's tests; "" if all are selected.

    Options in the ini file's `addopts` do not count, since every run has them.
    """
    always_given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    always_given.add_argument("-k", dest="keyword", default="")
    always_given.add_argument("-m", dest="markexpr", default="")
    addopts, _ = always_given.parse_known_args([str(word) for word in config.getini("addopts")])
    # An expression from addopts, such as -m "not slow", is in every run of this project, and selects nothing less.
    for option in ("keyword", "markexpr"):
        if (expression := config.getoption(option)) != getattr(addopts, option):
            return f"-{option[0]} {shlex.quote(expression)} selects only some of the tests"
    for option, name in _NARROWING.items():
        if config.getoption(option, None):
            return f"{name} selects only some of the tests"
    patterns = [str(config.rootpath / str(path)) for path in config.getini("testpaths")]
    all_paths = [Path(path) for pattern in patterns for path in glob.glob(pattern)]  # noqa: PTH207 - as pytest does
    given = [config.invocation_params.dir / argument for argument in config.args if "::" not in argument]
    for path in all_paths or [config.rootpath]:
        if not any(path.resolve().is_relative_to(argument.resolve()) for argument in given):
            return f"it runs {shlex.join(config.args)}, not all of {path}"
    return ""
