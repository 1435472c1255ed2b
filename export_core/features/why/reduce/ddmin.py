"""Delta debugging: a smallest part of a list that is still interesting, by asking about few of its subsets.

The algorithm is ddmin. Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

First = Callable[[Sequence[tuple[T, ...]]], int | None]
"""The place of the first interesting one of several subsets; None where there is none."""


def minimize(items: Sequence[T], first: First[T]) -> tuple[T, ...]:
    """A subset of interesting items that is interesting, and is no longer so without any one of its items.

    Args:
        items: all of them, each once; known to be interesting together.
        first: called with subsets in the order in which they are preferred, none of them twice.

    Where every superset of an interesting set is interesting, no smaller subset of the result is.
    """
    asked: set[tuple[T, ...]] = {tuple(items)}

    def ask(subsets: Sequence[tuple[T, ...]]) -> tuple[T, ...] | None:
        new = [subset for subset in dict.fromkeys(subsets) if subset not in asked]
        place = first(new) if new else None
        # What comes behind the interesting one was not looked at.
        asked.update(new if place is None else new[: place + 1])
        return None if place is None else new[place]

    kept = tuple(items)
    if kept and ask([()]) == ():
        return ()
    parts = 2
    while len(kept) > 1:
        chunks = _chunks(kept, parts)
        complements = [tuple(item for other in chunks if other is not chunk for item in other) for chunk in chunks]
        smaller = ask([*chunks, *complements])
        if smaller is not None:
            parts = 2 if smaller in chunks else max(parts - 1, 2)
            kept = smaller
            parts = min(parts, len(kept))
        elif parts < len(kept):
            parts = min(2 * parts, len(kept))
        else:
            break
    return kept


def earliest(count: int, at_once: int, first: Callable[[Sequence[int]], int | None]) -> int:
    """The first of so many places that is interesting, where all behind an interesting one are: by binary search.

    The last one is known to be interesting. `first` is called with up to `at_once` places in ascending order, and
    returns the index of the first interesting one; where places behind it are not, the result is still interesting.
    """
    below, found = -1, count - 1
    while found - below > 1:
        inside = found - below - 1
        probes = min(at_once, inside)
        places = [below + 1 + inside * (number + 1) // (probes + 1) for number in range(probes)]
        places = sorted({min(place, found - 1) for place in places})
        index = first(places)
        if index is None:
            below = places[-1]
        else:
            found = places[index]
            below = places[index - 1] if index else below
    return found


def _chunks(items: tuple[T, ...], parts: int) -> list[tuple[T, ...]]:
    """The items in so many parts of nearly equal size, in order."""
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    return [items[start:end] for start, end in itertools.pairwise(bounds)]
