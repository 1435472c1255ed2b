"""The time left: nothing before the first cells, then a range that narrows and holds, and that never stands still."""

import json
from collections import Counter
from pathlib import Path

import pytest

from export_core.report.progress import TimeLeft
from tools.time_left import Clock, problems, shown

RECORDED = {"main-job-present": 0, "main-job-missing": 0, "present": 0, "missing": 12}
"""Real runs on two cores, of the main job (8,157 cells in 18 readers) and of 330 cells in 6 readers, with environments
that were present or missing. And how many half seconds may break the rule: other work ran beside the short run with
missing ones."""


def steady(readers: int = 4, cells: int = 50, seconds: float = 1.0, building: float = 20.0):
    """A run that is what it seems: each environment takes as long, and then each cell."""
    names = [str(number) for number in range(readers)]
    built = [(building * (number + 1), name) for number, name in enumerate(names)]
    ended = [name for name in names for _ in range(cells)]
    start = built[-1][0]
    return [*built, *((start + seconds * (number + 1), name, True, 2.0) for number, name in enumerate(ended))]


@pytest.mark.parametrize(("environments", "most"), RECORDED.items())
def test_after_a_fifth_of_a_real_run_the_time_left_is_true(environments, most):
    file = Path(__file__).parent / "data" / f"time-left-{environments}.json"
    assert len(problems(json.loads(file.read_text()))) <= most


@pytest.mark.parametrize("run", [steady(), steady(building=0.1), steady(seconds=0.2)])
def test_a_steady_run_shows_what_is_left(run):
    assert problems(run) == []


def test_nothing_is_shown_before_the_first_cells_and_then_a_range_that_narrows():
    texts = [moment.text for moment in shown(steady())]
    assert texts[: 2 * 80] == [""] * 160
    assert [text for text in texts[2 * 84 :] if not text] == []
    moments = [moment for moment in shown(steady(building=0.1, cells=500)) if moment.text]
    first, last = moments[0].text.split(" to "), moments[-20].text.split(" to ")
    assert seconds_of(first[1]) / seconds_of(first[0]) > 2
    assert seconds_of(last[1]) / seconds_of(last[0]) < 1.6


def seconds_of(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def test_environments_that_are_missing_count():
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


def test_cells_of_an_earlier_run_say_nothing_about_the_speed():
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


def test_cells_that_are_not_promised_may_cost_less():
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


def test_while_nothing_ends_the_range_moves():
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


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda run: [(0.0, "a", True, 1.0), *run, (900.0, "0", True, 1.0)], "s are left"),
        (lambda run: [*[event for event in run if event[0] < 4], (90.0, "0", True, 1.0)], "shows nothing"),
    ],
    ids=["a cell that takes ten minutes", "one cell"],
)
def test_a_run_whose_time_left_is_wrong_is_found(spoiled, said):
    assert any(said in problem for problem in problems(spoiled(steady(building=0.5))))
