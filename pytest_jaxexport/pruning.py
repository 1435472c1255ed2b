"""What does a full run say of goldens and files that nothing uses, and what does `--prune-goldens` delete of them?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from export_core.errors import ExportCompatError
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.strays import delete_leftovers, strays
from pytest_jaxexport.unused import Collected, Seen, is_gone, unused


@dataclass(frozen=True)
class Told:
    """Lines of what is unused; `refused` are goldens that the disk did not let go of, a sentence each."""

    lines: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def look_for_unused(goldens: Path, seen: Seen, collected: Collected, root: Path, *, delete: bool) -> Told:
    """Say what is unused, and delete what is surely gone if asked to.

    Raises `GoldenError` where a golden cannot be read: then nothing is deleted.
    """
    store = GoldenStore(goldens)
    left = list(strays(goldens))
    lines, refused, deletable = [], [], False
    for golden in unused(goldens, seen, collected, root):
        told = f"{golden.id}: {golden.manifest.test}"
        if not is_gone(golden, collected, root):
            lines.append(f"unused here: {told} does not export it here; delete its folder if no other machine does")
            continue
        deletable = True
        if delete:
            try:
                store.remove(golden)
            except GoldenError as error:
                refused.append(str(error))
                continue
        lines.append(f"{'deleted' if delete else 'unused'}: {told} exports it no more")
    cleared = delete_leftovers(left) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in left]
    if (deletable or left) and not delete:
        lines.append("pytest --prune-goldens deletes what is unused, and what killed processes left")
    return Told(tuple(lines), tuple(refused))


def unused_after(goldens: Path, seen: Seen, collected: Collected, root: Path) -> Told:
    """The same of a run that was not asked to delete: a golden that cannot be read is its own test's failure."""
    try:
        return look_for_unused(goldens, seen, collected, root, delete=False)
    except ExportCompatError:
        return Told()
