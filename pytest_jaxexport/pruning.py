"""What does a full run say of goldens and files that nothing uses, and what does `--prune-goldens` delete of them?"""

from __future__ import annotations

from pathlib import Path

from export_core.errors import ExportCompatError
from export_core.goldens import GoldenStore
from export_core.goldens.strays import clear, strays
from pytest_jaxexport.unused import Collected, Seen, unused


def unused_lines(goldens: Path, seen: Seen, collected: Collected, root: Path, *, delete: bool) -> list[str]:
    """Say what is unused, and delete it if asked to. Raises `GoldenError` where a golden cannot be read: then nothing is deleted."""
    store = GoldenStore(goldens)
    left = list(strays(goldens))
    found = unused(goldens, seen, collected, root)
    lines = []
    for golden in found:
        if delete:
            store.remove(golden)
        lines.append(f"{'deleted' if delete else 'unused'}: {golden.id}: {golden.manifest.test} exports it no more")
    cleared = clear(left) if delete else []
    lines += [f"{'deleted' if stray in cleared else 'of no golden'}: {stray}" for stray in left]
    if lines and not delete:
        lines.append("pytest --prune-goldens deletes what is unused, and what killed processes left")
    return lines


def unused_after(goldens: Path, seen: Seen, collected: Collected, root: Path) -> list[str]:
    """The same of a run that was not asked to delete: a golden that cannot be read is its own test's failure."""
    try:
        return unused_lines(goldens, seen, collected, root, delete=False)
    except ExportCompatError:
        return []
