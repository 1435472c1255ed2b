"""Build dates decide, not version numbers: properties of random calendars on random days."""

import datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from making import day, golden, make_wheel, rules

from export_core.goldens import Writer
from export_core.judge import judge
from export_core.matrix import Cell, Verdict
from export_core.matrix.result import new_result
from export_core.matrix.selection import choose_readers, known_releases
from export_core.policy.run_options import Selection
from export_core.readers.worker.protocol import Stage
from export_core.releases import (
    Calendar,
    JaxlibRelease,
    JaxRelease,
    Release,
    ReleaseError,
    Windows,
    load_calendar,
    promise,
)
from export_core.releases.calendar import date_in_version, version_key
from export_core.releases.wheels import read_wheel, with_wheels

DATES = st.dates(day("2023-01-01"), day("2028-12-31"))
NUMBERS = st.builds(
    lambda major, minor, patch, rest: f"{major}.{minor}.{patch}{rest}",
    st.integers(0, 1),
    st.integers(0, 12),
    st.integers(0, 3),
    st.sampled_from(["", "", ".1", "rc1", ".dev20260101", ".dev20260101+mine"]),
)
ENTRIES = st.tuples(DATES, st.booleans())  # The day a release was built, and whether it was withdrawn.


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    """Draw a calendar whose build dates do not follow the version numbers, with a jax for each jaxlib."""
    found = draw(st.dictionaries(NUMBERS, ENTRIES, min_size=1, max_size=12))
    return Calendar(
        {version: JaxlibRelease(built, yanked=yanked) for version, (built, yanked) in found.items()},
        {version: JaxRelease(built, version) for version, (built, _) in found.items()},
    )


@settings(max_examples=50)
@given(calendars(), DATES)
def test_as_of_a_day_knows_the_releases_built_by_then(calendar, when):
    then = calendar.as_of(when)
    versions = then.versions()
    assert set(versions) == {
        name for name, entry in calendar.jaxlib.items() if entry.built <= when and not entry.yanked
    }
    assert [then.built(version) for version in versions] == sorted(then.built(version) for version in versions)
    if versions:
        assert then.built(then.newest()) == max(then.built(version) for version in versions)
    else:
        with pytest.raises(ReleaseError, match=f"No jaxlib release is known on {when}. Choose a later --as-of"):
            then.newest()
    for version, entry in calendar.jaxlib.items():
        if entry.built > when:
            with pytest.raises(ReleaseError, match="is not in the release calendar as of"):
                then.built(version)
        else:
            assert then.built(version) == entry.built


# The day before, on and after each end of both windows, over leap days and ends of years.
@given(DATES, st.sampled_from([-22, -21, -1, 0, 1, 179, 180, 181]))
@example(day("2024-02-29"), 180)
@example(day("2024-02-29"), 181)
@example(day("2024-03-21"), -21)  # its window begins on a leap day
@example(day("2024-03-21"), -22)
@example(day("2023-09-02"), 180)  # its window ends on a leap day
@example(day("2023-09-02"), 181)
@example(day("2025-12-31"), 180)
def test_a_cell_has_direction_days_and_end_of_the_promise(built, away):
    made = golden(writer=Writer("9.9.8", "9.9.8", built, "3.12.0", "cpu"))
    reader = Release(jax="9.9.9", jaxlib="9.9.9", built=built + datetime.timedelta(days=away))
    judged = judge(new_result(Cell(made, reader, "cpu"), Stage.COMPARE, Verdict.PASS), made, rules())
    assert judged.direction == ("forward" if away < 0 else "backward" if away else "same")
    assert judged.days == abs(away)
    assert judged.promised == (-21 <= away <= 180)
    assert judged.judgement == ("kept" if judged.promised else "bonus")
    assert judged.promised_until == built + datetime.timedelta(days=-21 if away < 0 else 180)


@pytest.mark.parametrize("run", ["2024-06-02", "2030-01-01"])
def test_the_day_of_a_run_does_not_change_a_promise(run):
    made = golden(writer=Writer("9.9.8", "9.9.8", day("2024-01-01"), "3.12.0", "cpu"))
    cell = Cell(made, Release(jax="9.9.9", jaxlib="9.9.9", built=day("2024-06-01")), "cpu")
    judged = judge(new_result(cell, Stage.COMPARE, Verdict.PASS), cell.golden, rules(), as_of=day(run))
    assert (judged.direction, judged.days, judged.promised) == ("backward", 152, True)


def test_a_patch_release_of_an_old_version_is_promised_by_its_date():
    """0.8.3 was built eight days after 0.9.0, and is a younger reader of what 0.9.0 writes."""
    calendar = load_calendar()
    found = promise(calendar.built("0.9.0"), calendar.built("0.8.3"), Windows())
    assert (found.direction, found.days, found.promised) == ("backward", 8, True)
    back = promise(calendar.built("0.8.3"), calendar.built("0.9.0"), Windows())
    assert (back.direction, back.days, back.promised) == ("forward", 8, True)
    assert not promise(calendar.built("0.8.3"), calendar.built("0.9.0"), Windows(forward_days=7)).promised


@given(DATES, st.integers(1, 30), st.sampled_from(["", "+mine"]))
def test_only_a_nightly_has_its_build_date_in_its_version(date, minor, local):
    assert date_in_version(f"0.{minor}.0.dev{date:%Y%m%d}{local}") == date
    assert date_in_version(f"0.{minor}.0rc1{local}") is None
    assert date_in_version(f"0.{minor}.0{local}") is None
    assert date_in_version(f"0.{minor}.0.dev{date:%Y%j}") is None, "no day in it"


@given(st.integers(0, 30), st.integers(1, 9))
def test_pre_releases_pair_by_their_release_numbers(minor, candidate):
    night, rc, final = (f"0.{minor}.0{rest}" for rest in (".dev20260101", f"rc{candidate}", ""))
    assert version_key(night) < version_key(rc) < version_key(final)
    calendar = Calendar(
        {version: JaxlibRelease(day("2026-01-01")) for version in (night, rc, final, f"0.{minor}.1")},
        {rc: JaxRelease(day("2026-01-02"), f"0.{minor}.0")},
    )
    assert {calendar.release(version).jax for version in (night, rc, final)} == {rc}
    with pytest.raises(ReleaseError, match="No jax release goes with jaxlib"):
        calendar.release(f"0.{minor}.1")  # a jaxlib must not be newer than its jax


@pytest.mark.parametrize("version", ["0.13.0rc1", "0.13.0.dev20261120"])
def test_a_release_candidate_is_dated_by_its_time_stamps(tmp_path, version):
    made = [
        make_wheel(tmp_path, "jaxlib", version, stamps=("2026-11-10",)),
        make_wheel(tmp_path, "jax", version, stamps=("2026-11-10",), needs="jaxlib>=0.12.0"),
    ]
    calendar = with_wheels(load_calendar(), map(read_wheel, made)).as_of(day("2026-11-10"))
    assert calendar.newest() == version
    found = promise(calendar.built("0.12.0.1"), calendar.built(version), Windows())
    assert (found.direction, found.days, found.promised) == ("backward", 21, True)


@settings(max_examples=30)
@given(st.dates(day("2015-01-01"), load_calendar().built("0.4.18") - datetime.timedelta(days=1)))
def test_planning_before_the_first_release_is_an_error(when):
    with pytest.raises(ReleaseError, match=f"No jaxlib release is known on {when}"):
        choose_readers(Selection(), known_releases(Selection(), load_calendar()), Windows(), [day("2026-01-01")], when)


def test_a_withdrawn_jax_is_paired_only_as_a_last_resort():
    calendar = Calendar(
        {"0.1": JaxlibRelease(day("2026-01-01")), "0.3": JaxlibRelease(day("2026-01-03"))},
        {"0.2": JaxRelease(day("2026-01-01"), "0.1"), "0.3": JaxRelease(day("2026-01-03"), "0.1", yanked="broken")},
    )
    assert calendar.release("0.1").jax == "0.2"
    assert calendar.release("0.3").jax == "0.3"
