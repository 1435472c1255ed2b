"""The search for the edge of a failure, in a row of releases that begins with a good one and ends with the bad one.

An answer is True for a release that fails as the bad one does, False for one that does not, and None for one that says
nothing. Nothing is assumed of a row but its two ends: a failure may come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Answer = bool | None


class Edge(NamedTuple):
    """Positions in a row: the last that is good and the first that is bad. Those between them say nothing."""

    last_good: int
    first_bad: int


def edge_in(answers: Sequence[Answer]) -> Edge:
    """The edge that is nearest to the bad end, where every release was asked."""
    last_good = max(place for place, answer in enumerate(answers) if answer is False)
    first_bad = min(place for place, answer in enumerate(answers) if answer and place > last_good)
    return Edge(last_good, first_bad)


def find_edge(count: int, ask: Callable[[int], Answer]) -> Edge:
    """An edge in a row of so many releases, by binary search: the only one, where there is only one.

    `ask` is called once for a position, and for neither end.
    """
    good, bad = 0, count - 1
    silent: set[int] = set()
    while left := [place for place in range(good + 1, bad) if place not in silent]:
        middle = min(left, key=lambda place: abs(2 * place - good - bad))
        match ask(middle):
            case True:
                bad = middle
            case False:
                good = middle
            case None:
                silent.add(middle)
    return Edge(good, bad)
