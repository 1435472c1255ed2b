"""The promise depends on two build dates and nothing else."""

import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from export_core.releases import Direction, ReleaseError, Windows, parse_day, promise

DAYS = st.dates(datetime.date(2020, 1, 1), datetime.date(2040, 12, 31))
LENGTHS = st.integers(0, 400)


@given(DAYS, LENGTHS, LENGTHS)
def test_the_last_day_of_the_backward_window_is_promised(writer, backward, forward):
    windows = Windows(backward, forward)
    last = writer + datetime.timedelta(days=backward)
    assert promise(writer, last, windows).promised
    assert promise(writer, last, windows).until == last
    assert not promise(writer, last + datetime.timedelta(days=1), windows).promised


@given(DAYS, LENGTHS, LENGTHS)
def test_the_first_day_of_the_forward_window_is_promised(writer, backward, forward):
    windows = Windows(backward, forward)
    first = writer - datetime.timedelta(days=forward)
    assert promise(writer, first, windows).promised
    before = promise(writer, first - datetime.timedelta(days=1), windows)
    assert (before.promised, before.direction, before.until) == (False, Direction.FORWARD, first)


@given(DAYS, DAYS, LENGTHS, LENGTHS)
def test_a_promise_depends_only_on_the_days_between_builds(writer, reader, backward, forward):
    found = promise(writer, reader, Windows(backward, forward))
    assert found.days == abs((reader - writer).days)
    assert found.promised == (found.days <= (forward if reader < writer else backward))
    expected = {-1: Direction.FORWARD, 0: Direction.SAME, 1: Direction.BACKWARD}
    assert found.direction is expected[(reader > writer) - (reader < writer)]


@given(DAYS, DAYS, LENGTHS, LENGTHS)
@example(datetime.date(2026, 10, 25), datetime.date(2026, 10, 24), 180, 21)
@example(datetime.date(2026, 10, 25), datetime.date(2026, 10, 25), 180, 21)
@example(datetime.date(2026, 10, 25), datetime.date(2026, 10, 26), 180, 21)
def test_with_both_windows_off_nothing_is_promised(writer, reader, backward, forward):
    found, promised = promise(writer, reader, None), promise(writer, reader, Windows(backward, forward))
    assert (found.promised, found.until) == (False, writer)
    assert (found.direction, found.days) == (promised.direction, promised.days)


@given(DAYS)
def test_windows_of_zero_days_still_promise_builds_of_the_same_day(built):
    found = promise(built, built, Windows(0, 0))
    assert (found.promised, found.direction, found.days) == (True, Direction.SAME, 0)


@given(DAYS, DAYS)
def test_swapping_writer_and_reader_reverses_the_direction(one, other):
    turned = {
        Direction.FORWARD: Direction.BACKWARD,
        Direction.BACKWARD: Direction.FORWARD,
        Direction.SAME: Direction.SAME,
    }
    assert promise(one, other, Windows()).direction is turned[promise(other, one, Windows()).direction]


def test_the_default_windows_are_those_of_jax():
    assert (Windows().backward_days, Windows().forward_days) == (180, 21)


@given(DAYS)
def test_a_day_survives_a_round_trip_through_text(date):
    assert parse_day(str(date)) == date


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-02-29", "25.10.2026", "2026-10-25T00:00", "2026-10"]
)
def test_a_string_that_is_not_a_date_is_an_error_with_an_example(text):
    with pytest.raises(ReleaseError, match=r"--as-of: expected a date such as 2026-10-25, found"):
        parse_day(text)


@pytest.mark.parametrize("backward", [-1, "180", 36_501, 10**9, 1.5, True])
def test_windows_that_are_not_whole_numbers_of_days_are_refused(backward):
    day = datetime.date(2026, 10, 25)
    for name, windows in {"backward_days": Windows(backward, 21), "forward_days": Windows(180, backward)}.items():
        with pytest.raises(ReleaseError, match=f"promise: windows: {name}: expected a whole number of days .*, found"):
            promise(day, day, windows)


def test_a_window_may_be_as_long_as_a_century():
    built, last = datetime.date(2026, 10, 25), datetime.date(2126, 10, 1)
    assert promise(built, last, Windows(36_500, 36_500)) == (Direction.BACKWARD, 36_500, True, last)


@pytest.mark.parametrize("built", [datetime.datetime(2026, 10, 25, 12), "2026-10-25", None])
def test_a_build_date_must_be_a_date_without_a_time(built):
    day = datetime.date(2026, 10, 25)
    for name, dates in {"writer_built": (built, day), "reader_built": (day, built)}.items():
        with pytest.raises(ReleaseError, match=f"promise: {name}: expected the build date of a jaxlib"):
            promise(*dates, Windows())
