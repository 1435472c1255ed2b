"""The order in which cells run: those that decide the gate first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from export_core.matrix.cell import Cell
from export_core.readers.placement import Placement


def deciding_first(cells: Sequence[Cell], execution: Callable[[Cell], object]) -> list[list[Cell]]:
    """Cells in groups of one placement: those that decide the gate, of all placements, then the others of each.

    The gate's answer must not wait for cells that it does not depend on. A cell that runs the same as a deciding one of
    its placement, which `execution` names, is in that one's group: what runs the same is run once.
    """
    named = [(cell, (cell.placement, execution(cell))) for cell in cells]
    deciding = {name for cell, name in named if cell.decides}
    groups: dict[tuple[bool, Placement], list[Cell]] = {}
    for cell, name in sorted(named, key=lambda pair: pair[1] not in deciding):
        groups.setdefault((name in deciding, name[0]), []).append(cell)
    return list(groups.values())
