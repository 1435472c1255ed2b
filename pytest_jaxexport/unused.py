"""Which goldens belong to no test any more? Known after a full run only; `--prune-goldens` deletes them."""

from __future__ import annotations

import argparse
import glob
import shlex
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jaxexport import marker
from pytest_jaxexport.places import file_of, whole_name

if TYPE_CHECKING:
    from export_core.goldens import Golden

_NARROWING = {
    "lf": "--lf",
    "stepwise": "--stepwise",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "collectonly": "--collect-only",
}


@dataclass
class Collected:
    """What was collected, in this process or in a worker of xdist: whole test files, and the marked tests that were left out again."""

    files: set[str] = field(default_factory=set)
    deselected: set[str] = field(default_factory=set)
    broken: bool = False

    def plain(self) -> dict[str, Any]:
        """As a worker sends it."""
        return {"files": sorted(self.files), "deselected": sorted(self.deselected), "broken": self.broken}

    def add(self, plain: Mapping[str, Any]) -> None:
        """Take what a worker has sent."""
        self.files |= set(plain["files"])
        self.deselected |= set(plain["deselected"])
        self.broken |= plain["broken"]


class Collector:
    """Listens while tests are collected, in every process that does."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.collected = Collected()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Keep the file of a module that was collected to its end. One that was skipped or broke tells nothing of its tests."""
        report: Any = yield
        if isinstance(collector, pytest.Module) and report.passed:
            self.collected.files.add(file_of(collector.path, self._config))
        self.collected.broken |= report.failed
        return report

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Keep the marked tests that exist and do not run."""
        marked = [item for item in items if item.get_closest_marker(marker.NAME) is not None]
        self.collected.deselected |= {whole_name(item) for item in marked}


@dataclass
class Seen:
    """What the reports of the tests said: which marked tests ran, which passed, what they exported, and the platforms they exported on."""

    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    cases: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)

    def add(self, report: pytest.TestReport, told: Mapping[str, Any]) -> None:
        """Take one report of a marked test."""
        self.tests.add(told["test"])
        self.cases |= set(told["cases"])
        self.platforms |= {event["writer"].rpartition("-")[2] for event in told["events"]}
        if report.when == "call" and report.passed:
            self.passed.add(told["test"])


def narrowed(config: pytest.Config) -> str:
    """Why a run that was asked for so is none of all tests; empty where it is. What addopts of the ini file say is every run's."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("-k", dest="keyword", default="")
    own.add_argument("-m", dest="markexpr", default="")
    always, _ = own.parse_known_args([str(word) for word in config.getini("addopts")])
    for option in ("keyword", "markexpr"):
        if (said := config.getoption(option)) != getattr(always, option):
            return f"-{option[0]} {shlex.quote(said)} chooses some of the tests"
    for option, name in _NARROWING.items():
        if config.getoption(option, None):
            return f"{name} chooses some of the tests"
    patterns = [str(config.rootpath / str(path)) for path in config.getini("testpaths")]
    wanted = [Path(path) for pattern in patterns for path in glob.glob(pattern)] or [config.rootpath]  # noqa: PTH207 - as pytest does
    given = [config.invocation_params.dir / argument for argument in config.args if "::" not in argument]
    for path in wanted:
        if not any(path.resolve().is_relative_to(each.resolve()) for each in given):
            return f"it runs {shlex.join(config.args)}, and not all of {path}"
    return ""


def unused(goldens: Path, seen: Seen, collected: Collected, root: Path) -> list[Golden]:
    """The goldens of tests that are gone, and of calls that a test makes no more.

    A golden by another writer or for another platform of a case that is exported is not looked at. One stays where its test was left
    out, skipped or failed, where its file was not collected, and where it never had a test. Raises `GoldenError` for a golden that
    cannot be read.
    """
    from export_core.goldens import GoldenStore

    store = GoldenStore(goldens)
    cases = [path.name for path in sorted(goldens.iterdir()) if path.is_dir()] if goldens.is_dir() else []
    found: list[Golden] = []
    for case in cases:
        if not case.startswith(".") and case not in seen.cases:
            generations = store.generations(case)
            if generations and _is_gone(generations, seen, collected, root):
                found += generations
    return found


def _is_gone(generations: list[Golden], seen: Seen, collected: Collected, root: Path) -> bool:
    test = generations[-1].manifest.test
    file = test.partition("::")[0]
    if not test or test in collected.deselected:
        return False
    if test in seen.tests:
        # It ran and did not export this. A call that it makes on other machines only has goldens of their platforms only.
        return test in seen.passed and any(golden.manifest.writer.platform in seen.platforms for golden in generations)
    return file in collected.files or not (root / file).exists()
