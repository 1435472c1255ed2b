"""Which goldens belong to no test any more? Known after a full run only; `--prune-goldens` deletes them."""

from __future__ import annotations

import argparse
import glob
import re
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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


@dataclass(eq=False, repr=False)
class Collected:
    """What was collected, in this process or in a worker of xdist: whole test files, and tests, also those that a conftest left out."""

    files: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    broken: bool = False

    def plain(self) -> dict[str, Any]:
        """As a worker sends it."""
        return {"files": sorted(self.files), "tests": sorted(self.tests), "broken": self.broken}

    def add(self, plain: Mapping[str, Any]) -> None:
        """Take what a worker has sent."""
        self.files |= set(plain["files"])
        self.tests |= set(plain["tests"])
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

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Keep the tests that exist, marked or yet to be marked by a conftest. Not every one that leaves tests out says so."""
        self.collected.tests.add(whole_name(item))


@dataclass(eq=False, repr=False)
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
    """The goldens of tests that are not here, and of calls that a test does not make here.

    A golden by another writer or for another platform of a case that is exported is not looked at, nor one whose test was left out,
    skipped or failed, whose file was not collected, or which never had a test. Another machine may use what is unused here: see
    `is_gone`. Raises `GoldenError` for a golden that cannot be read.
    """
    from export_core.goldens import GoldenStore

    store = GoldenStore(goldens)
    cases = [path.name for path in sorted(goldens.iterdir()) if path.is_dir()] if goldens.is_dir() else []
    found: list[Golden] = []
    for case in cases:
        if not case.startswith(".") and case not in seen.cases:
            generations = store.generations(case)
            if generations and _is_unused(generations, seen, collected, root):
                found += generations
    return found


def is_gone(golden: Golden, collected: Collected, root: Path) -> bool:
    """Whether no machine can export an unused golden any more: its test file is here, was collected, and names its test nowhere.

    Which tests and calls there are may depend on the machine and on the releases installed. A file that is not here may be another
    project's that shares the goldens.
    """
    file, *names = golden.manifest.test.split("::")
    if file not in collected.files:
        return False
    text = (root / file).read_text(encoding="utf-8", errors="replace")
    return not any(re.search(rf"\b{re.escape(name.partition('[')[0])}\b", text) for name in names)


def _is_unused(generations: list[Golden], seen: Seen, collected: Collected, root: Path) -> bool:
    test = generations[-1].manifest.test
    file = test.partition("::")[0]
    if not test:
        return False
    if test in seen.tests:
        # It ran and did not export this. A call that it makes on other machines only has goldens of their platforms only.
        return test in seen.passed and any(golden.manifest.writer.platform in seen.platforms for golden in generations)
    if test in collected.tests:
        return False
    return file in collected.files or not (root / file).exists()
