"""Goldens that belong to no test any more: listed after every full run, deleted by ``--prune-goldens``.

A test without goldens may have been renamed: then an unused case has what it exports. Only a run of all tests can tell.
"""

import ast
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from export_core.base.errors import ExportCompatError
from export_core.base.untrusted import read_named
from export_core.goldens import Golden, GoldenError, GoldenStore, Manifest
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.goldens.upkeep import delete_leftovers, exporting_test, rename_case, strays
from pytest_jaxexport.collected import CollectedTests, ReportedTests, why_partial
from pytest_jaxexport.settings import Settings, read_settings

_NEWEST: pytest.StashKey[list[Golden]] = pytest.StashKey()

# Calls that give a module or a class names that are not in the text of its file.
_MAKING_NAMES = {
    "globals", "locals", "vars", "setattr", "__setattr__", "__dict__", "exec", "eval", "modules", "import_module",
    "_getframe", "currentframe", "stack",
}  # fmt: skip


def find_unused(goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path) -> list[Golden]:
    """Return the unused goldens: those of tests that do not exist here, or of calls that a test no longer makes here.

    A golden is not unused if this run exports its case, by whichever writer, or if it never had a test. Nor is it if
    its test was deselected, skipped or failed, or the test's file was not collected. Another machine may still need an
    unused golden: see `is_gone`.

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

    That is certain if its test file was collected completely, does not contain the test's name, and makes no tests
    when it is imported, which other machines may have. If the file does not exist, it is not certain: another project
    may have the file and share the goldens.
    """
    test = golden.manifest.test
    file = test.partition("::")[0]
    if file not in collected.files or is_named_in(root / file, test):
        return False
    # A present test that is not in the text either shows that a plugin, for one, makes tests of this file.
    present = [name for name in collected.tests if name.partition("::")[0] == file]
    return all(is_named_in(root / file, name) for name in present) and not makes_tests(root / file)


def makes_tests(path: Path) -> bool:
    """Return whether a test file may define tests whose names do not occur in its text.

    Examples are tests that a loop makes, or that ``import *`` imports.
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
    """Return whether a test file exists and contains the name of a test or of the test's class."""
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
    goldens: Path,
    reported: ReportedTests,
    collected: CollectedTests,
    root: Path,
    *,
    delete: bool,
    hint_at: Callable[[Manifest, Manifest], str] = lambda old, new: f"rename {old.case} to {new.case}",
) -> tuple[list[str], list[str], int]:
    """Return lines about unused goldens, the errors of deletions, and how many unused goldens are left.

    With `delete`, goldens that no machine can need any more are deleted, except those that this run suggests to rename.

    Args:
        goldens: the folder of goldens.
        reported: the tests that ran.
        collected: the tests that were collected.
        root: the folder of the project.
        delete: whether to delete goldens.
        hint_at: a function that returns the hint to rename an unused case to a used one, from a manifest of each.

    Raises:
        GoldenError: A golden cannot be read; nothing has been deleted then.
    """
    store = GoldenStore(goldens)
    # Before the store reads anything: it completes an update that was killed between two renames.
    stray_files = list(strays(goldens))
    lines, errors, deletable, left = [], [], False, 0
    is_left, without_file = "not deleted" if delete else "unused here", dict[str, None]()
    unused = find_unused(goldens, reported, collected, root)
    hints = {
        old.case: hint_at(old, new)
        for old, new in _renamed_before(store, unused, reported)
        if old.case not in reported.renamed
    }
    for golden in unused:
        name, test = golden.id, golden.manifest.test
        left += 1
        # A rename, which this run suggests, needs them.
        if golden.manifest.case in reported.renamed or golden.manifest.case in hints:
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
    lines += hints.values()
    cleared = delete_leftovers(stray_files) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in stray_files]
    if (deletable or stray_files) and not delete:
        lines.append("pytest --prune-goldens deletes unused goldens and what killed processes left behind")
    return lines, errors, left


def unused_or_error(
    config: pytest.Config, goldens: Path, reported: ReportedTests, collected: CollectedTests, *, delete: bool
) -> tuple[list[str], str, int]:
    """Return the lines of `report_unused` or a line with its error, why deletion failed, and how many are left.

    The second value is "" if no deletion has failed. The third is the number of unused goldens that are left.
    """
    try:
        lines, errors, left = report_unused(
            goldens, reported, collected, config.rootpath, delete=delete, hint_at=partial(_rename_hint, config=config)
        )
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
    """Return the unused case that may be the former name of a case, and what to do; ("", "") unless exactly one fits.

    `manifest` is the manifest of the case's missing golden, and `own` has all cases of its test. `agrees` returns
    whether the test exports what a golden contains.
    """
    candidates = [
        golden
        for golden in _newest_of_each_case(GoldenStore(settings.goldens), config)
        if _may_be_renamed(golden, manifest.test, own, config) and agrees(golden)
    ]
    if len(candidates) != 1:
        return "", ""
    old = candidates[0].manifest
    same = "jaxpr" if old.options.without_outputs else "outputs"
    command = _rename_command(old, manifest, settings)
    return old.case, f"Was it renamed? The unused case {old.case} has the same signature and {same}: {command}"


def _rename_command(old: Manifest, new: Manifest, settings: Settings) -> str:
    """Return the shell command that renames the goldens of the case `old` to the case `new`."""
    words = ["jaxexport", "goldens", "rename", old.case, new.case]
    if exporting_test(old, new.case) != new.test:
        words += ["--test", new.test]
    folder = Path(os.path.relpath(settings.goldens, settings.directory)).as_posix()
    if folder != Path(settings.policy.goldens).as_posix():
        words += ["--goldens", folder]
    return shlex.join(words)


def _rename_hint(old: Manifest, new: Manifest, config: pytest.Config) -> str:
    """Return advice to rename an unused case to the case of `new`, which the renamed test may have written since."""
    settings = read_settings(config)
    text = (
        f"Was {old.test} renamed to {new.test}? Then the goldens of {old.case} by other writers belong to {new.case}: "
        f"{_rename_command(old, new, settings)}"
    )
    try:
        rename_case(GoldenStore(settings.goldens), old.case, new.case, new.test, dry_run=True)
    except GoldenError:
        folder = os.path.relpath(settings.goldens / new.case, settings.directory)
        return f"{text}, after deleting {Path(folder).as_posix()}, which pytest --update-goldens wrote again"
    return text


def _renamed_before(
    store: GoldenStore, unused: Iterable[Golden], reported: ReportedTests
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield pairs of an unused case and the used case that it may have been renamed to, as newest manifests.

    The used case has the same signature and inputs, and the same outputs where both have goldens by one writer, but
    lacks a writer of the unused case. Perhaps nobody can make the golden by that writer again. An unused case is left
    out unless it fits exactly one used case.
    """
    by_case: dict[str, list[Golden]] = {}
    for golden in unused:
        by_case.setdefault(golden.manifest.case, []).append(golden)
    used = [store.generations(case) for case in sorted(reported.cases) if by_case]
    for generations in by_case.values():
        fitting = [others for others in used if others and _may_be_same(generations, others)]
        if len(fitting) == 1:
            yield generations[-1].manifest, fitting[0][-1].manifest


def _may_be_same(unused: Sequence[Golden], used: Sequence[Golden]) -> bool:
    """Return whether a used case may be a renamed unused case that lacks the goldens by some of its writers."""
    old, new = ({golden.manifest.writer.id: golden.manifest for golden in goldens} for goldens in (unused, used))
    if old.keys() <= new.keys():
        return False
    one, other = unused[-1].manifest, used[-1].manifest
    alike = (one.signature, one.files.get(INPUTS)) == (other.signature, other.files.get(INPUTS))
    return alike and all(_outputs(old[writer]) == _outputs(new[writer]) for writer in old.keys() & new.keys())


def _outputs(manifest: Manifest) -> str:
    """Return the digest of a golden's outputs, or of its artifact if it has no outputs."""
    return manifest.files.get(OUTPUTS) or manifest.files[ARTIFACT]


def _newest_of_each_case(store: GoldenStore, config: pytest.Config) -> list[Golden]:
    """Return the newest golden of each case in a store, read once in a run, since many tests may lack goldens."""
    if _NEWEST not in config.stash:
        config.stash[_NEWEST] = newest = []
        for folder in sorted(store.root.iterdir()) if store.root.is_dir() else []:
            try:
                newest += store.generations(folder.name)[-1:]
            except ExportCompatError:  # a damaged golden fails its own test
                continue
    return config.stash[_NEWEST]


def _may_be_renamed(golden: Golden, test: str, own: Collection[str], config: pytest.Config) -> bool:
    """Return whether a golden's test or call seems to be gone, as far as this is known before the run has ended."""
    old = golden.manifest.test
    if old == test:  # a call was renamed
        return golden.manifest.case not in own
    collected = config.pluginmanager.get_plugin("jaxexport-collection").collected  # type: ignore[union-attr]
    if not old or old in collected.tests:
        return False
    file = config.rootpath / old.partition("::")[0]
    # A parameter may have got another name, which only a run of all tests shows.
    return not is_named_in(file, old) or (old.partition("::")[0] in collected.files and not why_partial(config))
