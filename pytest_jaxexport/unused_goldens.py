"""Goldens that belong to no test any more: listed after every full run, deleted by ``--prune-goldens``.

A test without goldens may have been renamed: then an unused case has what it exports. Only a run of all tests can tell.
"""

import ast
import os
import re
import shlex
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from export_core.base.errors import ExportCompatError
from export_core.base.untrusted import read_named
from export_core.goldens import Golden, GoldenError, GoldenStore, Manifest
from export_core.goldens.upkeep import delete_leftovers, exporting_test, strays
from pytest_jaxexport.collected import CollectedTests, ReportedTests, why_partial
from pytest_jaxexport.settings import Settings

_NEWEST: pytest.StashKey[list[Golden]] = pytest.StashKey()

# Calls that give a module or a class names that are not in the text of its file.
_MAKING_NAMES = {
    "globals", "locals", "vars", "setattr", "__setattr__", "__dict__", "exec", "eval", "modules", "import_module",
    "_getframe", "currentframe", "stack",
}  # fmt: skip


def find_unused(goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path) -> list[Golden]:
    """Return the goldens of tests that do not exist here, and of calls that a test no longer makes here.

    Not returned are goldens of a case that this run exports, by whichever writer; goldens whose test was deselected,
    skipped or failed, or whose file was not collected; and goldens that never had a test. Another machine may still
    need an unused golden: see `is_gone`.

    Raises `GoldenError` for a golden that cannot be read.
    """
    store = GoldenStore(goldens)
    unused: list[Golden] = []
    for case in store.cases() if goldens.is_dir() else ():
        if case not in reported.cases:
            generations = store.generations(case)
            if generations and _is_unused(generations, reported, collected, root):
                unused += generations
    return unused


def is_gone(golden: Golden, collected: CollectedTests, root: Path) -> bool:
    """Return whether no machine can export an unused golden any more.

    This is so if its test file was collected whole, does not name its test, and does not make tests when it is
    imported: such tests may exist on other machines or with other releases. If the file does not exist, the answer is
    no, since another project may have it and share the goldens.
    """
    test = golden.manifest.test
    file = test.partition("::")[0]
    if file not in collected.files or is_named_in(root / file, test):
        return False
    # A present test that is not in the text either shows that a plugin, for one, makes tests of this file.
    present = [name for name in collected.tests if name.partition("::")[0] == file]
    return all(is_named_in(root / file, name) for name in present) and not makes_tests(root / file)


def makes_tests(path: Path) -> bool:
    """Return whether a test file may define tests whose names are not in its text.

    Examples are tests that a loop makes, or that are imported by ``*``.
    """
    try:
        nodes = list(ast.walk(ast.parse(read_named(path))))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return True
    names = {getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes}
    if not names.isdisjoint(_MAKING_NAMES):
        return True
    # A function that gets the module's name can add to it; type(name, bases, members) makes a class.
    return any(
        (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        or (isinstance(node, ast.Call) and any(getattr(value, "id", "") == "__name__" for value in node.args))
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type" and len(node.args) > 1)
        for node in nodes
    )


def is_named_in(path: Path, test: str) -> bool:
    """Return whether a test file exists and its text has the name of a test, or of the test's class."""
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
    """Return a line for each unused golden, the errors of deletions, and how many unused goldens are left.

    With `delete`, goldens that no machine can need any more are deleted, but for those that the run suggests to rename.
    Raises `GoldenError` if a golden cannot be read; nothing has been deleted then.
    """
    store = GoldenStore(goldens)
    # Before the store reads anything: it completes an update that was killed between two renames.
    stray_files = list(strays(goldens))
    lines, errors, deletable, left = [], [], False, 0
    is_left, without_file = "not deleted" if delete else "unused here", dict[str, None]()
    for golden in find_unused(goldens, reported, collected, root):
        name, test = golden.id, golden.manifest.test
        left += 1
        # The same run tells its user to rename them, which needs them.
        if golden.manifest.case in reported.renamed:
            renamed = "not deleted" if delete else "unused"
            lines.append(f"{renamed}: {name}: its test may have been renamed: rename the case, or delete its folder")
            continue
        if not (root / (file := test.partition("::")[0])).exists():
            lines.append(f"{is_left}: {name}: {file} is not there")
            without_file[os.path.relpath(golden.folder.parent)] = None
            continue
        if not is_gone(golden, collected, root):
            lines.append(
                f"{is_left}: {name}: {test} does not export it here; delete its folder if no other machine does"
            )
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
    if without_file:
        lines.append(
            "--prune-goldens leaves goldens whose test file is not there: another project may have the file, and share "
            f"the goldens. If none does: {shlex.join(['rm', '-r', *without_file])}"
        )
    cleared = delete_leftovers(stray_files) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in stray_files]
    if (deletable or stray_files) and not delete:
        lines.append("pytest --prune-goldens deletes unused goldens and what killed processes left behind")
    return lines, errors, left


def unused_or_error(
    config: pytest.Config, goldens: Path, reported: ReportedTests, collected: CollectedTests, *, delete: bool
) -> tuple[list[str], str, int]:
    """Return the lines of `report_unused`, or a line with its error.

    The second value says why not all unused goldens were deleted; the third is how many are left.
    """
    try:
        lines, errors, left = report_unused(goldens, reported, collected, config.rootpath, delete=delete)
    except ExportCompatError as error:
        # A golden that cannot be read fails its own test, if it has one.
        return [f"unused goldens are not listed: {error}"], f"{error} Nothing was deleted." if delete else "", 0
    return lines, " ".join(errors), left


def rename_hint(
    manifest: Manifest,
    own: Collection[str],
    agrees: Callable[[Golden], bool],
    settings: Settings,
    config: pytest.Config,
) -> tuple[str, str]:
    """Return the unused case from which a test may have been renamed, and what to do; empty unless just one case fits.

    `manifest` is that of the missing golden, `own` has the cases of its test, and `agrees` returns whether the test
    exports what a golden has.
    """
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
    """Return the newest golden of each case.

    They are read once in a run, since many tests may lack goldens.
    """
    if _NEWEST not in config.stash:
        config.stash[_NEWEST] = newest = []
        for folder in sorted(store.root.iterdir()) if store.root.is_dir() else []:
            try:
                newest += store.generations(folder.name)[-1:]
            except ExportCompatError:  # a damaged golden fails its own test
                continue
    return config.stash[_NEWEST]


def _may_be_renamed(golden: Golden, test: str, own: Collection[str], config: pytest.Config) -> bool:
    """Return whether no test seems to export a golden any more, as far as can be told before the run has ended."""
    old = golden.manifest.test
    if old == test:  # a call was renamed
        return golden.manifest.case not in own
    collected = config.pluginmanager.get_plugin("jaxexport-collection").collected  # type: ignore[union-attr]
    if not old or old in collected.tests:
        return False
    file = config.rootpath / old.partition("::")[0]
    # A parameter may have got another name, which only a run of all tests shows.
    return not is_named_in(file, old) or (old.partition("::")[0] in collected.files and not why_partial(config))
