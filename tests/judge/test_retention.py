"""Goldens that something still needs: they are retained, each with its reason."""

import datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import day, golden, writer

from export_core.judge.retention import deletion_day, live_readers, readers_in_use, retention_status, retirement_day
from export_core.policy import Policy
from export_core.policy.entries import CustomCallChange, Pin, Retention, WindowDays
from export_core.releases import ReleaseError, Windows, load_calendar, promise

CALENDAR = load_calendar()
VERSIONS = CALENDAR.versions()
TODAY = day("2026-11-21")


def reasons_of(goldens, policy: Policy | None = None, when=TODAY) -> dict[str, tuple[str, ...]]:
    """Return the reasons why each golden is retained, by the golden's id."""
    status = retention_status(goldens, policy or Policy(), CALENDAR, when)
    return {golden.id: tuple(reasons) for golden, reasons in status}


def test_each_golden_is_retained_with_its_reasons():
    goldens = [golden(jaxlib=version) for version in ("0.6.2", "0.9.2", "0.11.0", "0.12.0.1")]
    assert reasons_of(goldens) == {
        "tests.test_a.test_f/0.6.2-cpu": (),
        "tests.test_a.test_f/0.9.2-cpu": ("promised to run in the live readers 0.10.2, 0.11.0, 0.11.1",),
        "tests.test_a.test_f/0.11.0-cpu": (
            "a jaxlib built on 2026-11-21 must run it",
            "promised to run in the live readers 0.11.0, 0.11.1, 0.11.2, 0.12.0, 0.12.0.1",
        ),
        "tests.test_a.test_f/0.12.0.1-cpu": (
            "a jaxlib built on 2026-11-21 must run it",
            "promised to run in the live readers 0.12.0, 0.12.0.1",
            "the last of its case by a writer on cpu",
        ),
    }


def test_the_last_golden_of_a_case_and_platform_is_retained():
    on_cuda = golden("a", "0.6.1", writer=writer("0.6.1", "cuda"))
    goldens = [golden("a", "0.6.0"), golden("a", "0.6.2"), on_cuda, golden("b", "0.6.0")]
    last = "the last of its case by a writer on"
    assert list(reasons_of(goldens).values()) == [(), (f"{last} cpu",), (f"{last} cuda",), (f"{last} cpu",)]


def test_goldens_in_the_window_of_a_reader_in_use_are_retained():
    goldens = [golden(jaxlib=version) for version in ("0.6.2", "0.7.0", "0.12.0.1")]
    for policy, reason in (
        (Policy(retention=Retention(deployed=("0.7.0",))), "promised to run in the live reader 0.7.0"),
        # `jaxexport forecast` says of it that it has retired, whatever `readers` lists.
        (
            Policy(readers="window,newest,0.7.0-jax0.7.0"),
            "`readers` lists the retired reader 0.7.0, promised to run it",
        ),
    ):
        assert reasons_of(goldens, policy)["tests.test_a.test_f/0.6.2-cpu"] == (reason,)
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.7\.9 is not in the release calendar"):
        reasons_of(goldens, Policy(retention=Retention(deployed=("0.7.9",))))


def test_goldens_pinned_by_name_or_glob_are_retained_with_the_reason():
    goldens = [golden(case, version) for case in ("a[x]", "b") for version in ("0.6.2", "0.7.0", "0.12.0.1")]
    pins = (Pin(("a[[]x]/0.6.2-*", "b/0.7.0"), "in production"),)
    reasons_by_id = reasons_of(goldens, Policy(retention=Retention(pinned=pins)))
    pinned = [name for name, reasons in reasons_by_id.items() if "pinned: in production" in reasons]
    assert pinned == ["a[x]/0.6.2-cpu", "b/0.7.0-cpu"]
    assert reasons_by_id["b/0.6.2-cpu"] == ()


def test_a_golden_is_retained_until_its_call_target_may_be_deleted():
    calling = [golden("a", "0.6.2", custom_calls=("old",)), golden("a", "0.12.0.1", custom_calls=("new",))]
    declared = CustomCallChange("old", "new", day("2026-07-01"), day("2026-07-16"), "r", "o", "i")
    for release, when, stays in (
        (day("2026-07-16"), day("2027-01-12"), ("calls old, which readers must run until the end of 2027-01-12",)),
        (day("2026-07-16"), day("2027-01-13"), ()),
        (None, day("2027-06-01"), ("calls old, which readers must run because no release is declared",)),
    ):
        change = msgspec.structs.replace(declared, release=release)
        assert reasons_of(calling, Policy(custom_call_changes=(change,)), when)["a/0.6.2-cpu"] == stays


@pytest.mark.parametrize(
    ("reader", "written", "retires"),
    [
        ("2026-07-16", ["2026-07-16"], "2027-01-13"),  # with its own release
        ("2026-07-16", ["2026-02-01"], "2027-01-13"),  # its own release comes later than the golden's
        ("2026-07-16", ["2026-08-06"], "2027-02-03"),  # a golden of the forward window comes later still
        ("2026-07-16", ["2026-08-07", "2026-01-16"], None),  # it is promised neither
    ],
)
def test_a_reader_retires_once_no_new_release_must_run_its_goldens(reader, written, retires):
    retired = retirement_day(day(reader), [day(date) for date in written], Windows())
    assert retired == (day(retires) if retires else None)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=6, unique=True),
    st.dates(day("2024-06-01"), day("2027-12-31")),
    st.integers(0, 250),
    st.integers(0, 40),
)
def test_goldens_that_a_promised_reader_needs_are_retained(writers, when, backward, forward):
    goldens = [golden(jaxlib=version) for version in writers]
    policy = Policy(windows=WindowDays(backward, forward))
    windows = policy.window_lengths()
    built = sorted(one.manifest.writer.built for one in goldens)
    live = live_readers(built, CALENDAR, windows, when, ())
    for written, reasons in retention_status(goldens, policy, CALENDAR, when):
        wrote = written.manifest.writer.built
        later = [when + datetime.timedelta(days=days) for days in (0, 1, 30, 181)]
        needed = wrote > when or any(promise(wrote, reader, windows).promised for reader in later)
        needed |= any(promise(wrote, CALENDAR.built(reader), windows).promised for reader in live)
        assert bool(reasons) == (needed or wrote == built[-1])


@pytest.mark.parametrize("readers", ["window,0.7.0", "0.7.0-jax0.7.1", " 0.7.0 ,newest,,mine.whl"])
def test_readers_in_use_are_those_that_the_policy_names(readers):
    assert readers_in_use(Policy(readers=readers), TODAY) == ("0.7.0",)


def test_goldens_and_readers_are_needed_to_the_last_day_of_the_window():
    one, built = [golden(jaxlib="0.9.2")], CALENDAR.built("0.9.2")
    last = built + datetime.timedelta(days=180)
    for when, needed in ((last, True), (last + datetime.timedelta(days=1), False)):
        (reasons,) = reasons_of(one, when=when).values()
        assert (f"a jaxlib built on {when} must run it" in reasons) is needed
        # 0.9.2 itself may retire on the day on which no new release has to run what it wrote.
        assert ("0.9.2" in live_readers([built], CALENDAR, Windows(), when, ())) is needed


def test_a_golden_written_today_or_later_is_needed():
    built = CALENDAR.built("0.9.2")
    before = built - datetime.timedelta(days=1)
    for when, reason in (
        (built, f"a jaxlib built on {built} must run it"),
        (before, f"written by a jaxlib built on {built}, after {before}"),
    ):
        (reasons,) = reasons_of([golden(jaxlib="0.9.2")], when=when).values()
        assert reason in reasons


def test_a_call_target_is_needed_while_a_promised_golden_calls_it():
    change = CustomCallChange("old", "new", day("2026-02-04"), day("2026-02-28"), "r", "o", "i")
    goldens = [golden("a", version, custom_calls=("old",)) for version in ("0.9.2", "0.10.2", "0.9.1")]
    assert deletion_day(change, goldens, Windows()) == CALENDAR.built("0.10.2") + datetime.timedelta(days=181)
