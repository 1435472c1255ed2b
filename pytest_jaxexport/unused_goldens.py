"""Goldens that belong to no test any more: listed after every full run, deleted by ``--prune-goldens``.

A test without goldens may have been renamed: then an unused case has what it exports.
Only a run of all tests can tell. Every run of pytest loads this file, which therefore loads nothing of export_core.
"""

from __future__ import annotations

import argparse
import ast
import glob
import os
import re
import shlex
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jaxexport.marker import full_name, relative_file

if TYPE_CHECKING:
    from export_core.goldens import Golden, GoldenStore, Manifest
    from pytest_jaxexport.settings import Settings

_NEWEST: pytest.StashKey[list[Golden]] = pytest.StashKey()

# Options of pytest that leave tests out, by their names in its configuration.
_NARROWING = {
    "lf": "--lf",
    "stepwise": "--stepwise",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "collectonly": "--collect-only",
}


# What gives a module or a class names that the text of its file does not have.
_MAKING_NAMES = {
    "globals", "locals", "vars", "setattr", "__setattr__", "__dict__", "exec", "eval", "modules", "import_module",
    "_getframe", "currentframe", "stack",
}  # fmt: skip


@dataclass(eq=False, repr=False)
class CollectedTests:
    """What pytest collected, here or in xdist's workers: whole test files, and tests, deselected ones too."""

    files: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    broken: bool = False

    def add(self, files: set[str], tests: set[str], broken: bool) -> None:
        """Add what a worker of xdist has sent: the `vars` of its own."""
        self.files |= files
        self.tests |= tests
        self.broken |= broken


class CollectionListener:
    """A plugin that notes what is collected, registered in every process that collects."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.collected = CollectedTests()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Note the file of a module that was collected whole. One that was skipped or broke hides its tests."""
        report: Any = yield
        if isinstance(collector, pytest.Module) and report.passed:
            self.collected.files.add(relative_file(collector.path, self._config.rootpath))
        self.collected.broken |= report.failed
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note every test that exists, here rather than after deselection, which not every plugin announces."""
        self.collected.tests.add(full_name(item))


@dataclass(eq=False, repr=False)
class ReportedTests:
    """What the reports of marked tests say: which ran, passed or failed, what they exported, on which platforms.

    `renamed` are the unused cases that a test without goldens may have had before. `unmarked` are the node ids of tests
    that passed without a marker.
    """

    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    cases: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)

    def add(self, report: pytest.TestReport, attached: Mapping[str, Any]) -> None:
        """Add the report of a marked test, with what the plugin attached to it."""
        self.tests.add(attached["test"])
        self.cases |= set(attached["cases"])
        self.renamed |= set(attached["renamed"])
        self.platforms |= {event["writer"].rpartition("-")[2] for event in attached["events"]}
        if report.when == "call" and report.passed:
            self.passed.add(attached["test"])
        if report.failed:  # or a subtest of it, after which pytest reports the test itself as passed
            self.failed.add(attached["test"])
        self.passed -= self.failed


def why_partial(config: pytest.Config) -> str:
    """Why this run is not one of all tests; empty where it is. Options in the ini file's addopts hold for every run."""
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


def find_unused(goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path) -> list[Golden]:
    """The goldens of tests that do not exist here, and of calls that a test does not make here.

    Not among them: a golden by another writer or for another platform, if this run exports its case; one whose test was
    deselected, skipped or failed, or whose file was not collected; and one that never had a test. Another machine may
    still use a golden that is unused here, see `is_gone`. Raises `GoldenError` for a golden that cannot be read.
    """
    from export_core.goldens import GoldenStore

    store = GoldenStore(goldens)
    unused: list[Golden] = []
    for case in store.cases():
        if case not in reported.cases:
            generations = store.generations(case)
            if generations and _is_unused(generations, reported, collected, root):
                unused += generations
    return unused


def is_gone(golden: Golden, collected: CollectedTests, root: Path) -> bool:
    """Whether no machine can export an unused golden any more.

    Its test file was collected whole, does not name its test, and makes no tests when it is imported. Which tests and
    calls exist may depend on the machine and on the installed releases. A file that does not exist here may belong to
    another project that shares the goldens.
    """
    test = golden.manifest.test
    file = test.partition("::")[0]
    if file not in collected.files or is_named_in(root / file, test):
        return False
    # A test that is not named there either shows that something else makes tests of this file, such as a plugin.
    present = [name for name in collected.tests if name.partition("::")[0] == file]
    return all(is_named_in(root / file, name) for name in present) and not makes_tests(root / file)


def makes_tests(path: Path) -> bool:
    """Whether a test file may define names that its text does not have: tests made in a loop, or imported by ``*``."""
    from export_core.base.untrusted import read_named

    try:
        nodes = list(ast.walk(ast.parse(read_named(path))))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return True
    names = {getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes}
    if not names.isdisjoint(_MAKING_NAMES):
        return True
    # A function that is told the module's name can add to it; type(name, bases, members) makes a class.
    return any(
        (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        or (isinstance(node, ast.Call) and any(getattr(value, "id", "") == "__name__" for value in node.args))
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and len(node.args) > 1)
        for node in nodes
    )


def is_named_in(path: Path, test: str) -> bool:
    """Whether a test file exists and names a test, or the class that it is in."""
    from export_core.base.untrusted import read_named

    try:
        text = read_named(path).decode(errors="replace")
    except OSError:
        return False
    # Without the parameters, which are made when the file is imported and may depend on the machine.
    names = [name.partition("[")[0] for name in test.split("::")[1:]]
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def _is_unused(generations: list[Golden], reported: ReportedTests, collected: CollectedTests, root: Path) -> bool:
    test = generations[-1].manifest.test
    file = test.partition("::")[0]
    # `jaxexport goldens add` made it from an artifact alone.
    if not test:
        return False
    if test in reported.tests:
        # The test ran and did not export this case. But a call for other machines only has no golden of our platforms.
        platforms = {golden.manifest.writer.platform for golden in generations}
        return test in reported.passed and not platforms.isdisjoint(reported.platforms)
    if test in collected.tests:
        return test in reported.unmarked  # its marker was removed: it ran, and exports nothing any more
    return file in collected.files or not (root / file).exists()


def report_unused(
    goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path, *, delete: bool
) -> tuple[list[str], list[str], int]:
    """What is unused, a line each; errors for goldens that could not be deleted; and how many unused ones are left.

    With `delete`, what no machine can need any more is removed. Raises `GoldenError` where a golden cannot be read;
    nothing has been deleted then.
    """
    from export_core.goldens import GoldenError, GoldenStore
    from export_core.goldens.upkeep import delete_leftovers, strays

    store = GoldenStore(goldens)
    # Before the store reads anything: it completes an update that was killed between two renames.
    stray_files = list(strays(goldens))
    lines, errors, deletable, left = [], [], False, 0
    for golden in find_unused(goldens, reported, collected, root):
        name, test = golden.id, golden.manifest.test
        left += 1
        if not is_gone(golden, collected, root):
            lines.append(
                f"unused here: {name}: {test} does not export it here; delete its folder if no other machine does"
            )
            continue
        # The same run tells its user to rename them, which needs them.
        if delete and golden.manifest.case in reported.renamed:
            lines.append(f"not deleted: {name}: its test may have been renamed: rename the case, or delete its folder")
            continue
        deletable = True
        if delete:
            try:
                store.remove(golden)
            except GoldenError as error:
                errors.append(str(error))
                continue
            left -= 1
        lines.append(f"{'deleted' if delete else 'unused'}: {name}: {test} no longer exports it")
    cleared = delete_leftovers(stray_files) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in stray_files]
    if (deletable or stray_files) and not delete:
        lines.append("pytest --prune-goldens deletes unused goldens and what killed processes left behind")
    return lines, errors, left


def rename_hint(
    manifest: Manifest,
    own: Collection[str],
    agrees: Callable[[Golden], bool],
    settings: Settings,
    config: pytest.Config,
) -> tuple[str, str]:
    """The unused case that a test may have had before, and what to do; both empty unless exactly one can be this one.

    `manifest` is that of the missing golden, `own` are the cases of its test, and `agrees` compares what the test
    exports with a golden.
    """
    from export_core.goldens import GoldenStore
    from export_core.goldens.upkeep import exporting_test

    candidates = [
        golden
        for golden in _newest_of_each_case(GoldenStore(settings.goldens), config)
        if _may_be_renamed(golden, manifest.test, own, config) and agrees(golden)
    ]
    if len(candidates) != 1:
        return "", ""
    old = candidates[0].manifest
    words = ["jaxexport", "goldens", "rename", old.case, manifest.case]
    if exporting_test(old, manifest.case) != manifest.test:
        words += ["--test", manifest.test]
    folder = Path(os.path.relpath(settings.goldens, settings.directory)).as_posix()
    if folder != Path(settings.policy.goldens).as_posix():
        words += ["--goldens", folder]
    same = "jaxpr" if old.options.without_outputs else "outputs"
    text = f"Was it renamed? The unused case {old.case} has the same signature and {same}: {shlex.join(words)}"
    return old.case, text


def _newest_of_each_case(store: GoldenStore, config: pytest.Config) -> list[Golden]:
    """Read once in a run: many tests may be without goldens."""
    from export_core.base.errors import ExportCompatError

    if _NEWEST not in config.stash:
        config.stash[_NEWEST] = newest = []
        for folder in sorted(store.root.iterdir()) if store.root.is_dir() else []:
            try:
                newest += store.generations(folder.name)[-1:]
            except ExportCompatError:  # a damaged golden fails its own test
                continue
    return config.stash[_NEWEST]


def _may_be_renamed(golden: Golden, test: str, own: Collection[str], config: pytest.Config) -> bool:
    """Whether no test exports a golden any more, as far as this run can tell before it has ended."""
    old = golden.manifest.test
    if old == test:  # a call was renamed
        return golden.manifest.case not in own
    collected = config.pluginmanager.get_plugin("jaxexport-collection").collected  # type: ignore[union-attr]
    if not old or old in collected.tests:
        return False
    file = config.rootpath / old.partition("::")[0]
    # A parameter may have got another name, which only a run of all tests shows.
    return not is_named_in(file, old) or (old.partition("::")[0] in collected.files and not why_partial(config))
