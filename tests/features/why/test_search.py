"""The search for an edge in a row of releases, against trying all of them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from export_core.features.why.bisect.bisection import Edge, edge_in, find_edge
from export_core.features.why.bisect.criterion import Answer

ANSWERS = st.sampled_from([True, False, None])
ROWS = st.lists(ANSWERS, max_size=60).map(lambda inner: [False, *inner, True])
"""Histories of any kind between a good end and a bad one."""


def is_edge(row: list[Answer], edge: Edge) -> bool:
    """Whether one side is good, the other one bad, and nothing between them says anything."""
    between = row[edge.last_good + 1 : edge.first_bad]
    return row[edge.last_good] is False and row[edge.first_bad] is True and set(between) <= {None}


@given(ROWS)
def test_all_releases_give_the_edge_next_to_the_bad_end(row):
    edge = edge_in(row)
    assert is_edge(row, edge)
    assert False not in row[edge.first_bad :]


@given(ROWS)
def test_a_search_ends_at_an_edge_and_asks_nothing_twice(row):
    asked: list[int] = []

    def ask(place: int) -> Answer:
        asked.append(place)
        return row[place]

    edge = find_edge(len(row), ask)
    assert is_edge(row, edge)
    assert len(asked) == len(set(asked))
    assert not {0, len(row) - 1} & {*asked}


@given(st.integers(1, 200), st.integers(1, 200))
def test_where_a_failure_stays_the_search_finds_what_trying_all_finds(good, bad):
    row: list[Answer] = [False] * good + [True] * bad
    asked: list[int] = []
    edge = find_edge(len(row), lambda place: asked.append(place) or row[place])
    assert edge == edge_in(row) == Edge(good - 1, good)
    assert len(asked) <= math.ceil(math.log2(len(row)))


@given(st.lists(ANSWERS.filter(lambda answer: answer is not True), max_size=20), st.integers(1, 20))
def test_releases_without_an_answer_are_gone_around(before, bad):
    row = [False, *before, *[True] * bad]
    assert find_edge(len(row), row.__getitem__) == edge_in(row)
