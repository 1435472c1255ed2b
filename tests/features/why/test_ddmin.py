"""Delta debugging against brute force: the rest is interesting, and no smaller part of it is."""

import itertools
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from export_core.features.why.reduce.passes import minimize

ITEMS = 8
SUBSETS = st.frozensets(st.integers(0, ITEMS - 1))


def first_by(is_interesting: Callable[[frozenset[int]], bool], asked: list[tuple[int, ...]]):
    """Return a function that finds the first interesting subset, and records each question."""

    def first(subsets: Sequence[tuple[int, ...]]) -> int | None:
        for place, subset in enumerate(subsets):
            asked.append(subset)
            if is_interesting(frozenset(subset)):
                return place
        return None

    return first


@given(st.lists(SUBSETS, min_size=1, max_size=3))
def test_the_smallest_subset_is_found_for_a_monotonic_predicate(needed):
    def is_interesting(subset):
        return any(part <= subset for part in needed)

    asked: list[tuple[int, ...]] = []
    left = minimize(range(ITEMS), first_by(is_interesting, asked))
    assert is_interesting(frozenset(left))
    smaller = (part for size in range(len(left)) for part in itertools.combinations(left, size))
    assert not any(is_interesting(frozenset(part)) for part in smaller)
    assert len(set(asked)) == len(asked)
    assert list(left) == sorted(left)


@given(st.sets(SUBSETS))
def test_no_single_item_of_the_result_can_be_removed(interesting):
    interesting = {*interesting, frozenset(range(ITEMS))}
    left = minimize(range(ITEMS), first_by(interesting.__contains__, []))
    assert frozenset(left) in interesting
    assert not any(frozenset(left) - {item} in interesting for item in left)


def test_minimizing_an_empty_list_runs_no_test():
    assert minimize((), first_by(lambda subset: False, [])) == ()


def test_one_item_of_a_thousand_is_found_in_25_tries():
    asked: list[tuple[int, ...]] = []
    assert minimize(range(1000), first_by(lambda subset: 617 in subset, asked)) == (617,)
    assert len(asked) <= 25
