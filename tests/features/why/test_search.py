"""The search for an edge in a row of releases, against trying all of them; and what changed at an edge."""

import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from making import release

from export_core.features.why.bisect.bisection import Edge, edge_in, find_edge
from export_core.features.why.bisect.criterion import Answer
from export_core.features.why.bisect.report import changes_between, commits_between
from export_core.releases import load_calendar

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


COMMITS = {"0.11.1": "a" * 40, "0.11.2": "b" * 40}


def environment_folder(tmp_path: Path, version: str, package: str = "jaxlib") -> Path:
    """What is looked at of an environment: the metadata of a package, and its version.py."""
    site = tmp_path / version / "lib" / "python3.12" / "site-packages"
    (site / f"{package}-{version}.dist-info").mkdir(parents=True)
    (site / package).mkdir()
    (site / package / "version.py").write_text(f"_git_hash: str | None = '{COMMITS[version]}'\n")
    return tmp_path / version


def test_a_jaxlib_links_the_commits_that_it_says_it_was_built_from(tmp_path):
    good, bad = release("0.11.1"), release("0.11.2")
    folders = {each: environment_folder(tmp_path, each.jaxlib) for each in (good, bad)}
    links = commits_between(good, bad, folders)
    assert [(link.name, link.link.removeprefix("https://github.com/jax-ml/jax/")) for link in links] == [
        ("jax", "compare/jax-v0.11.1...jax-v0.12.0.1"),
        ("jaxlib", f"compare/{'a' * 40}...{'b' * 40}"),
        ("XLA of jaxlib 0.11.1", f"tree/{'a' * 40}/third_party/xla"),
        ("XLA of jaxlib 0.11.2", f"tree/{'b' * 40}/third_party/xla"),
    ]
    assert commits_between(bad, good, folders) == links, "from the older to the younger"


def test_what_did_not_change_is_left_out():
    calendar = load_calendar()
    changes = changes_between(release("0.12.0"), release("0.12.0.1"), calendar)
    assert [change.name for change in changes] == ["jaxlib"]
    assert [link.name for link in commits_between(release("0.12.0"), release("0.12.0.1"), {})] == ["jaxlib"]
