"""A project adds releases and changes none: what the calendar, or a release's own number, contradicts is an error."""

import pytest
from making import day, make_wheel

from export_core.matrix.selection import MatrixError, known_releases
from export_core.policy import ExtraReleases, Policy, PolicyError, find_policy
from export_core.policy.run_options import Selection
from export_core.releases import JaxlibRelease, JaxRelease, ReleaseError, load_calendar
from export_core.releases.project_releases import contradiction

CALENDAR = load_calendar()


@pytest.mark.parametrize(
    ("version", "built", "problem"),
    [
        ("0.12.0.1", "2025-10-20", "expected built: 2026-10-20, as in the calendar of this package, found 2025-10-20"),
        ("0.12.0.1.0", "2025-10-20", "expected the number 0.12.0.1, by which the calendar"),
        ("v0.9.2", "2025-10-20", "expected the number 0.9.2, by which"),
        ("0.13.0.dev20261120", "2026-11-18", "expected built: 2026-11-20, as its number says, found 2026-11-18"),
        ("0.13.0", "2025-11-20", "expected built: 2026-10-20 or later, since 0.12.0.1 was built then"),
        ("0.12.0.1", "2026-10-20", ""),
        ("0.13.0", "2026-11-20", ""),
        ("0.13.0.dev20261120", "2026-11-21", ""),
        ("0.8.4", "2026-11-01", ""),
        ("0.12.1+ours", "2026-09-01", ""),
        ("0.13.0rc1", "2026-10-01", ""),
    ],
)
def test_what_contradicts_a_projects_date(version, built, problem):
    found = contradiction(CALENDAR.jaxlib, version, JaxlibRelease(day(built)))
    assert (found[: len(problem)] == problem) if problem else found == ""


@pytest.mark.parametrize(
    ("jax", "minimum", "problem"),
    [
        ("0.13.0", "0.13.1", "expected minimum_jaxlib: 0.13.0 or lower, since no jax works with a newer jaxlib"),
        ("0.13.0", "0.13.0rc1", "expected minimum_jaxlib: a released version"),
        ("0.13.0.dev20261120", "0.13.0.dev20261101", "expected minimum_jaxlib: a released version"),
        ("0.12.0.1", "0.12.1", "expected minimum_jaxlib: 0.12.0.1 or lower"),  # also of a jax that is shipped
        ("0.13.0.dev20261120", "0.13.0", ""),
        ("0.13.0", "0.12.0", ""),
    ],
)
def test_a_minimum_jaxlib_is_released_and_not_newer_than_its_jax(jax, minimum, problem):
    built = CALENDAR.jax[jax].built if jax in CALENDAR.jax else day("2026-11-20")
    message = contradiction(CALENDAR.jax, jax, JaxRelease(built, minimum))
    assert message.startswith(problem) if problem else message == ""


def test_policy_check_refuses_a_minimum_jaxlib_newer_than_its_jax(tmp_path):
    text = "releases:\n  jax:\n    0.13.0: {built: 2026-11-20, minimum_jaxlib: 0.13.1}\n"
    (tmp_path / "export_compat.yaml").write_text(text)
    with pytest.raises(PolicyError, match=r"export_compat.yaml:3: releases.jax.0.13.0: expected minimum_jaxlib"):
        find_policy(tmp_path)


@pytest.mark.parametrize(
    ("jaxlib", "minimum", "ok"),
    [
        ("", "0.12.3", False),
        ("0.12.3: {built: 2026-11-15}", "0.12.3", True),
        ("", "0.12.0.0", True),
        ("", "0.4.1", True),
    ],
)
def test_a_minimum_jaxlib_is_one_that_somebody_has_released(tmp_path, jaxlib, minimum, ok):
    text = f"releases:\n  jax:\n    0.13.0: {{built: 2026-11-20, minimum_jaxlib: {minimum}}}\n  jaxlib: {{{jaxlib}}}\n"
    (tmp_path / "export_compat.yaml").write_text(text)
    if ok:
        assert find_policy(tmp_path)
    else:
        with pytest.raises(PolicyError, match=r"expected minimum_jaxlib: a jaxlib of the calendar.*found 0\.12\.3"):
            find_policy(tmp_path)


def test_no_release_of_the_calendar_contradicts_those_before_it():
    for kind in (CALENDAR.jaxlib, CALENDAR.jax):
        by_date = sorted(kind, key=lambda version: kind[version].built)
        for number, version in enumerate(by_date):
            before = {name: kind[name] for name in by_date[:number]}
            assert contradiction(before, version, kind[version]) == "", version


@pytest.mark.parametrize("package", ["jaxlib", "jax"])
def test_a_policy_cannot_date_a_shipped_release_again(package, tmp_path):
    facts = "{built: 2025-10-20}" if package == "jaxlib" else "{built: 2025-10-20, minimum_jaxlib: 0.12.0}"
    (tmp_path / "export_compat.yaml").write_text(f"goldens: golden\nreleases:\n  {package}:\n    0.12.0.1: {facts}\n")
    said = rf"export_compat.yaml:4: releases.{package}.0.12.0.1: expected built: 2026-10-20, .* found 2025-10-20"
    with pytest.raises(PolicyError, match=said):
        find_policy(tmp_path)


def test_a_policy_cannot_withdraw_a_shipped_release(tmp_path):
    text = "releases: {jaxlib: {0.12.0.1: {built: 2026-10-20, yanked: it breaks us}}}\n"
    (tmp_path / "export_compat.yaml").write_text(text)
    with pytest.raises(PolicyError, match=r"export_compat.yaml:1: .*yanked: expected False, as in the calendar"):
        find_policy(tmp_path)


def test_a_line_with_the_calendars_own_facts_changes_nothing(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("releases: {jaxlib: {0.12.0.1: {built: 2026-10-20}}}\n")
    assert find_policy(tmp_path).calendar() == CALENDAR


def test_a_line_of_the_releases_file_is_named_by_its_number(tmp_path):
    file = tmp_path / "export_releases.yaml"
    file.write_text('# ours\njaxlib:\n  "0.13.0": {built: 2026-11-20}\n  "0.12.0.1": {built: 2025-10-20}\n')
    with pytest.raises(ReleaseError, match=r"export_releases.yaml:4: jaxlib 0.12.0.1: expected built: 2026-10-20"):
        find_policy(tmp_path)


def test_a_policy_that_no_file_was_read_for_is_checked_too():
    policy = Policy(releases=ExtraReleases({"0.12.0.1": JaxlibRelease(day("2025-10-20"))}))
    with pytest.raises(ReleaseError, match=r"releases.jaxlib.0.12.0.1: expected built: 2026-10-20"):
        policy.calendar()


@pytest.mark.parametrize(
    ("version", "stamp", "dated", "refused"),
    [
        ("0.9.2", "2026-03-18", None, False),
        ("0.9.2", "2020-03-18", None, True),
        ("0.13.0", "2026-11-20", "2026-11-20", False),
        ("0.13.0", "2026-11-21", "2026-11-20", False),
        ("0.13.0", "2026-11-20", "2026-11-01", True),
        ("0.13.0", "2026-11-20", None, False),
    ],
)
def test_a_wheel_in_a_folder_dates_its_release(version, stamp, dated, refused, tmp_path):
    make_wheel(tmp_path, "jaxlib", version, stamps=(stamp,))
    calendar = CALENDAR.extended({version: JaxlibRelease(day(dated))}, {}) if dated else CALENDAR
    selection = Selection(wheels=(str(tmp_path),))
    if refused:
        with pytest.raises(MatrixError, match=f"this wheel was built on {stamp}, and jaxlib {version} of the release"):
            known_releases(selection, calendar)
    else:
        known = known_releases(selection, calendar).calendar.built(version)
        assert known == (day(dated) if dated else CALENDAR.jaxlib[version].built if version == "0.9.2" else day(stamp))
