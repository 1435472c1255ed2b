"""The time left of a run: no text before the first cells, then a range that narrows, is true and keeps moving."""

import json
from collections import Counter
from pathlib import Path

import pytest

from export_core.report.progress import TimeLeft
from tools.time_left import Clock, problems, shown

RECORDED = {"main-job-present": 0, "main-job-missing": 0, "present": 0, "missing": 12}
"""Real runs on two cores, each with the number of half seconds in which its time left may be wrong.

The main job has 8,157 cells in 18 readers, the other one 330 cells in 6 readers. Environments were present or missing.
Other work ran beside the short run with missing environments."""


def steady(readers: int = 4, cells: int = 50, seconds: float = 1.0, building: float = 20.0):
    """Build the events of a run in which all environments take equally long, and so do all cells."""
    names = [str(number) for number in range(readers)]
    built = [(building * (number + 1), name) for number, name in enumerate(names)]
    ended = [name for name in names for _ in range(cells)]
    start = built[-1][0]
    return [*built, *((start + seconds * (number + 1), name, True, 2.0) for number, name in enumerate(ended))]


@pytest.mark.parametrize(("environments", "most"), RECORDED.items())
def test_the_time_left_is_right_after_a_fifth_of_a_real_run(environments, most):
    file = Path(__file__).parent / "data" / f"time-left-{environments}.json"
    assert len(problems(json.loads(file.read_text()))) <= most


@pytest.mark.parametrize("run", [steady(), steady(building=0.1), steady(seconds=0.2)])
def test_the_time_left_of_a_steady_run_is_right(run):
    assert problems(run) == []


def test_the_time_left_is_empty_at_first_and_then_narrows():
    texts = [moment.text for moment in shown(steady())]
    assert texts[: 2 * 80] == [""] * 160
    assert [text for text in texts[2 * 84 : -1] if not text] == []
    moments = [moment for moment in shown(steady(building=0.1, cells=500)) if moment.text]
    first, last = moments[0].text.split(" to "), moments[-20].text.split(" to ")
    assert seconds_of(first[1]) / seconds_of(first[0]) > 2
    assert seconds_of(last[1]) / seconds_of(last[0]) < 1.6


def test_no_time_is_left_after_the_last_cell():
    clock = Clock()
    left = TimeLeft(Counter({("new", True): 10}), clock)
    left.environment("new")
    texts = []
    for clock.now in range(1, 11):
        left.cell("new", True, 1.0)
        texts.append(f"{left:left }")
    assert texts[-2].startswith("left 0:00:0")
    assert texts[-1] == ""


def seconds_of(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def test_missing_environments_add_to_the_time_left():
    clock = Clock()
    left = TimeLeft(Counter({("new", True): 10, ("newest", True): 10}), clock)
    clock.now = 60
    left.environment("new")
    for clock.now in range(61, 66):
        left.cell("new", True, 1.0)
    low, high = left.range()
    assert 20 < low < 5 + 10 + 60 / 4 < high, "the cells that are left, and a part of the time that an environment took"
    left.environment("newest")
    assert left.range()[1] < 15


def test_cells_of_an_earlier_run_do_not_set_the_speed():
    clock = Clock()
    left = TimeLeft(Counter({("new", True): 1_100}), clock)
    clock.now = 1
    for _ in range(1_000):
        left.cell("new", True, 1.0)
    assert left.range() is None
    clock.now = 2
    left.environment("new")
    for clock.now in range(3, 53):
        left.cell("new", True, 1.0)
    low, high = left.range()
    assert low < 50 < high


def test_the_speed_of_unpromised_cells_is_measured_apart():
    clock = Clock()
    left = TimeLeft(Counter({("old", True): 100, ("old", False): 1_000}), clock)
    left.environment("old")
    for clock.now in range(1, 101):
        left.cell("old", True, 1.0)
    guessed = left.range()
    for number in range(1, 101):
        clock.now = 100 + number / 20
        left.cell("old", False, 0.05)
    low, high = left.range()
    assert guessed[0] > 300
    assert low < 90 < high < 130, "45 s, and each of the first five counts as a promised one"


def test_the_time_left_changes_while_no_cell_ends():
    clock = Clock()
    left = TimeLeft(Counter({("new", True): 20}), clock)
    left.environment("new")
    for clock.now in range(1, 20):
        left.cell("new", True, 1.0)
    texts = []
    for clock.now in range(20, 80):
        texts.append(str(left))
    assert max(texts.count(text) for text in texts) <= 2
    assert (f"{left:left }", f"{TimeLeft(Counter(), clock):left }") == (f"left {texts[-1]}", ""), "as the bar shows it"
    assert left.range()[1] > 60, "the longer a cell takes, the longer it may still take"


def test_long_cells_that_end_together_do_not_shorten_the_estimate():
    clock = Clock()
    left = TimeLeft(Counter({("old", True): 80, ("new", True): 100}), clock)
    left.environment("old")
    for number in range(80):  # on 40 cores
        clock.now = 120.0 + number / 10
        left.cell("old", True, 120.0 if number < 40 else 1.0)
    low, _ = left.range()
    assert low > 100, "100 cells of a minute, 40 at a time; the 40 long ones ended within four seconds"


def test_no_time_left_is_shown_while_few_cells_dominate_the_mean():
    clock = Clock()
    left = TimeLeft(Counter({("old", True): 12, ("new", True): 2_000}), clock)
    left.environment("old")
    texts = []
    for clock.now, cost in ((121.0, 120.0), (121.2, 120.0), *((121.2 + number, 0.3) for number in range(1, 11))):
        left.cell("old", True, cost)
        texts.append(str(left))
    assert set(texts) == {""}, "two of twelve cells took nearly all of the time"
    for number in range(1, 1_000):
        clock.now = 132 + number / 5
        left.cell("new", True, 1.3)
    assert str(left)


@pytest.mark.parametrize(
    ("spoiled", "expected"),
    [
        (lambda run: [(0.0, "a", True, 1.0), *run, (900.0, "0", True, 1.0)], "s left, found"),
        (
            lambda run: [*[event for event in run if event[0] < 4], (90.0, "0", True, 1.0)],
            "expected a time left, found none",
        ),
    ],
    ids=["a cell that takes ten minutes", "one cell"],
)
def test_the_check_of_the_time_left_finds_a_wrong_estimate(spoiled, expected):
    assert any(expected in problem for problem in problems(spoiled(steady(building=0.5))))
