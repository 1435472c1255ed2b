"""Goldens and files that nothing uses, listed after every full run and deleted by ``--prune-goldens``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from export_core.base.errors import ExportCompatError
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.upkeep import delete_leftovers, strays
from pytest_jaxexport.unused_goldens import CollectedTests, ReportedTests, find_unused, is_gone


@dataclass(frozen=True)
class PruningReport:
    """What is unused, a line each, and errors for the goldens that could not be deleted."""

    lines: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def report_unused(
    goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path, *, delete: bool
) -> PruningReport:
    """List what is unused, and with `delete` remove what no machine can need any more.

    Raises `GoldenError` where a golden cannot be read; nothing has been deleted then.
    """
    store = GoldenStore(goldens)
    # Before the store reads anything: it completes an update that was killed between two renames.
    stray_files = list(strays(goldens))
    lines, errors, deletable = [], [], False
    for golden in find_unused(goldens, reported, collected, root):
        name, test = golden.id, golden.manifest.test
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
        lines.append(f"{'deleted' if delete else 'unused'}: {name}: {test} no longer exports it")
    cleared = delete_leftovers(stray_files) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in stray_files]
    if (deletable or stray_files) and not delete:
        lines.append("pytest --prune-goldens deletes unused goldens and what killed processes left behind")
    return PruningReport(tuple(lines), tuple(errors))


def list_unused(goldens: Path, reported: ReportedTests, collected: CollectedTests, root: Path) -> PruningReport:
    """The report of a run that deletes nothing. A golden that cannot be read fails its own test, and nothing here."""
    try:
        return report_unused(goldens, reported, collected, root, delete=False)
    except ExportCompatError:
        return PruningReport()
