"""Shards: the parts of a plan, which machines run without knowing of each other."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from export_core.matrix.cell import Cell
from export_core.matrix.errors import MatrixError
from export_core.matrix.plan import Plan
from export_core.policy.run_options import Shard


def part_of(plan: Plan, shard: Shard) -> Plan:
    """The plan of one shard: the same selection and day, its own cells in the order of the plan.

    Raises `MatrixError` where there are more shards than cells: a shard that runs nothing must not look like a success.
    """
    if shard.count > len(plan.cells):
        raise MatrixError(
            f"--shard {shard}: the plan has {len(plan.cells)} cells, too few for {shard.count} shards. Choose a "
            "smaller N."
        )
    return replace(plan, cells=split(plan.cells, shard.count)[shard.index - 1])


def split(cells: Sequence[Cell], count: int) -> list[tuple[Cell, ...]]:
    """Cut cells into `count` parts, none of them empty: the same for the same cells, on every machine.

    A reader on a platform stays in one part where there are at least as many of them as parts, and no part has an
    environment to build that another has: the largest go first, each to the part that has the fewest cells so far.
    Where there are fewer, each part has one reader, and those with most cells are cut into most pieces, of equal size
    but for one cell.
    """
    # Numbers and not cells: each part is put back into the order of the plan.
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, cell in enumerate(cells):
        groups.setdefault((cell.reader.jaxlib, cell.reader.jax, cell.platform), []).append(number)
    whole = list(groups.values())
    parts = _packed(whole, count) if len(whole) >= count else _cut(whole, count)
    return [tuple(cells[number] for number in sorted(part)) for part in parts]


def _packed(groups: Sequence[list[int]], count: int) -> list[list[int]]:
    """Whole groups in `count` parts: the largest first, each into the part with the fewest cells so far."""
    parts: list[list[int]] = [[] for _ in range(count)]
    # With its number, so that equal parts are taken in the same order on every machine.
    smallest = [(0, number) for number in range(count)]
    for group in sorted(groups, key=lambda group: (-len(group), group[0])):
        size, number = heapq.heappop(smallest)
        parts[number] += group
        heapq.heappush(smallest, (size + len(group), number))
    return parts


def _cut(groups: Sequence[list[int]], count: int) -> list[list[int]]:
    """Groups cut into `count` pieces in all: one more cut at a time, in the group with the largest pieces."""
    pieces = [1] * len(groups)
    largest = [(-float(len(group)), number) for number, group in enumerate(groups)]
    heapq.heapify(largest)
    for _ in range(count - len(groups)):
        _, number = heapq.heappop(largest)
        pieces[number] += 1
        heapq.heappush(largest, (-len(groups[number]) / pieces[number], number))
    return [
        group[len(group) * piece // total : len(group) * (piece + 1) // total]
        for group, total in zip(groups, pieces, strict=True)
        for piece in range(total)
    ]
