"""A plan is cut the same way everywhere: nothing lost, nothing twice, no environment built twice without need."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import day, golden, release

from export_core.matrix import Cell, MatrixError, Plan, Selection
from export_core.matrix.plan import part_of, split
from export_core.policy.run_options import OptionError, Shard, parse_shard
from export_core.releases import load_calendar

READERS = ("0.6.2", "0.7.1", "0.8.1", "0.9.2", "0.10.2", "0.12.0.1")


READER = functools.cache(release)
GOLDEN = functools.cache(golden)


def cells(sizes) -> list[Cell]:
    return [
        Cell(GOLDEN(f"t.c{number}"), READER(reader), platform)
        for (reader, platform), size in sizes.items()
        for number in range(size)
    ]


sizes = st.dictionaries(
    st.tuples(st.sampled_from(READERS), st.sampled_from(["cpu", "tpu"])), st.integers(1, 9), min_size=1
)


@given(sizes, st.data())
def test_every_cell_is_in_exactly_one_part_and_no_part_is_empty(sizes, data):
    every = cells(sizes)
    count = data.draw(st.integers(1, len(every)))
    parts = split(every, count)
    assert len(parts) == count
    assert all(parts)
    assert sorted(cell.key for part in parts for cell in part) == sorted(cell.key for cell in every)
    order = {cell.key: number for number, cell in enumerate(every)}
    assert all([order[cell.key] for cell in part] == sorted(order[cell.key] for cell in part) for part in parts)


@given(sizes, st.data())
def test_a_reader_is_split_only_if_shards_outnumber_readers(sizes, data):
    every = cells(sizes)
    count = data.draw(st.integers(1, len(every)))
    readers = [{(cell.reader.jaxlib, cell.platform) for cell in part} for part in split(every, count)]
    if count <= len(sizes):
        assert sum(map(len, readers)) == len(sizes)
    else:
        assert all(len(some) == 1 for some in readers)


@given(sizes, st.data())
def test_no_shard_could_give_a_whole_reader_to_another(sizes, data):
    every = cells(sizes)
    parts = split(every, data.draw(st.integers(1, len(sizes))))
    loads = sorted(map(len, parts))
    assert loads[-1] - loads[0] <= max(sizes.values())


def test_unequal_readers_are_split_into_almost_equal_shards():
    every = cells({("0.9.2", "cpu"): 30, ("0.10.2", "cpu"): 10, ("0.12.0.1", "cpu"): 3})
    assert sorted(map(len, split(every, 9))) == [3, 5, 5, 5, 5, 5, 5, 5, 5]


def test_the_cut_is_the_same_on_every_machine():
    every = cells({("0.9.2", "cpu"): 3, ("0.10.2", "cpu"): 3, ("0.12.0.1", "cpu"): 2})
    assert [[cell.reader.jaxlib for cell in part] for part in split(every, 2)] == [
        ["0.9.2"] * 3 + ["0.12.0.1"] * 2,
        ["0.10.2"] * 3,
    ]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/2", ""])
def test_what_is_no_shard_is_refused_with_an_example(text):
    with pytest.raises(OptionError, match="--shard: expected I/N with I from 1 to N, such as 3/16, found"):
        parse_shard(text)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_shard_is_written_as_it_is_read(index, more):
    assert str(parse_shard(f"{index}/{index + more}")) == f"{index}/{index + more}"


def test_more_shards_than_cells_are_refused():
    plan = Plan(tuple(cells({("0.9.2", "cpu"): 2})), day("2026-11-21"), load_calendar(), Selection())
    assert len(part_of(plan, Shard(2, 2)).cells) == 1
    with pytest.raises(MatrixError, match="--shard 1/3: the plan has 2 cells, too few for 3 shards"):
        part_of(plan, Shard(1, 3))
