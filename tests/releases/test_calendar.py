"""The calendar: which releases exist on a day, which go together, what a project adds, and suggestions."""

import datetime
from contextlib import nullcontext

import pytest
from jax._src.lib import check_jaxlib_version
from making import day, make_wheel
from packaging.version import Version

from export_core.base.platforms import similar_platform
from export_core.matrix.selection import MatrixError, choose_readers, known_releases
from export_core.policy import Policy, PolicyError, find_policy
from export_core.policy.entries import ExtraReleases
from export_core.policy.run_options import Selection
from export_core.readers.errors import PlacementError
from export_core.readers.placement import parse_platform
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, ReleaseError, Windows, load_calendar
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.project_releases import contradiction
from export_core.releases.runtimes import runtime_named

CALENDAR = load_calendar()


def small(**jaxlib: str) -> Calendar:
    """Build a calendar of jaxlibs by build date, each with a jax of its number that needs it."""
    versions = {name.removeprefix("v").replace("_", "."): day(built) for name, built in jaxlib.items()}
    return Calendar(
        {version: JaxlibRelease(built) for version, built in versions.items()},
        {version: JaxRelease(built, version) for version, built in versions.items()},
    )


def test_each_jaxlib_gets_the_newest_jax_that_allows_it():
    minimum = {version: (Version(entry.minimum_jaxlib), Version(version)) for version, entry in CALENDAR.jax.items()}
    for jaxlib in CALENDAR.jaxlib.keys() - {"0.4.13"}:
        fitting = [name for name, (oldest, newest) in minimum.items() if oldest <= Version(jaxlib) <= newest]
        release = CALENDAR.release(jaxlib)
        assert release.jax == max(fitting, key=lambda name: (CALENDAR.jax[name].built, Version(name)))
        assert CALENDAR.pair(jaxlib, release.jax) == release


@pytest.mark.parametrize(
    ("jaxlib", "jax"),
    [("0.12.0.1", "0.12.0.1"), ("0.11.2", "0.12.0.1"), ("0.10.1", "0.10.2"), ("0.9.2", "0.9.2"), ("0.8.3", "0.8.3")],
)
def test_known_jaxlibs_are_paired_with_known_jax_versions(jaxlib, jax):
    release = CALENDAR.release(jaxlib)
    assert (release.jax, release.built) == (jax, CALENDAR.built(jaxlib))


@pytest.mark.parametrize(
    ("jaxlib", "jax"),
    [
        ("0.13.0.dev20261120", "0.13.0.dev20261118"),
        ("0.13.0rc1", "0.13.0.dev20261118"),
        ("0.13.0", "0.13.0rc1"),
        ("0.13.0rc1", "0.13.0"),
    ],
)
def test_development_versions_pair_by_number_as_in_jax(jaxlib, jax):
    calendar = CALENDAR.extended(
        {jaxlib: JaxlibRelease(day("2026-11-20"))}, {jax: JaxRelease(day("2026-11-20"), "0.12.0")}
    )
    assert check_jaxlib_version(jax, jaxlib, "0.12.0") == (0, 13, 0)
    assert calendar.pair(jaxlib, jax).jax == calendar.release(jaxlib).jax == jax


@pytest.mark.parametrize(
    ("jaxlib", "jax"), [("0.13.0.dev20261120", "0.13.0.dev20261118"), ("0.13.0.dev20261118", "0.13.0.dev20261120")]
)
def test_a_reader_may_combine_nightlies_of_two_days(jaxlib, jax):
    selection = Selection(readers=f"{jaxlib}-jax{jax}", indexes=("https://nightlies.example/simple",))
    known = known_releases(selection, CALENDAR)
    (chosen,) = choose_readers(selection, known, Windows(), [], day("2026-11-22")).chosen
    assert (chosen.jaxlib, chosen.jax) == (jaxlib, jax)


def test_a_candidate_of_the_minimum_jaxlib_is_new_enough():
    calendar = CALENDAR.extended(
        {"0.13.0rc1": JaxlibRelease(day("2026-11-20"))}, {"0.13.0": JaxRelease(day("2026-11-25"), "0.13.0")}
    )
    assert calendar.pair("0.13.0rc1", "0.13.0").jax == "0.13.0"


@pytest.mark.parametrize("jaxlib", ["0.13.0.1rc1", "0.13.1.dev20261120"])
def test_a_jaxlib_newer_than_its_jax_is_refused_as_jax_refuses_it(jaxlib):
    calendar = CALENDAR.extended(
        {jaxlib: JaxlibRelease(day("2026-11-20"))}, {"0.13.0": JaxRelease(day("2026-11-20"), "0.12.0")}
    )
    with pytest.raises(RuntimeError, match="is newer than and incompatible with jax"):
        check_jaxlib_version("0.13.0", jaxlib, "0.12.0")
    with pytest.raises(ReleaseError, match="a jaxlib must not be newer than its jax"):
        calendar.pair(jaxlib, "0.13.0")


def test_releases_list_names_every_jax_that_a_jaxlib_goes_with():
    (entry,) = (entry for entry in calendar_entries(CALENDAR) if entry.jaxlib == "0.11.2")
    assert entry.all_jax == ("0.11.2", "0.12.0", "0.12.0.1")


def test_jaxlib_without_a_jax_is_an_error_and_never_chosen():
    with pytest.raises(ReleaseError, match=r"No jax release goes with jaxlib 0\.4\.13"):
        CALENDAR.release("0.4.13")
    assert "0.4.13" not in CALENDAR.versions()


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_as_of_a_day_every_jaxlib_has_a_jax_of_that_day(offset):
    for jaxlib in CALENDAR.jaxlib:
        then = CALENDAR.as_of(CALENDAR.built(jaxlib) + datetime.timedelta(days=offset))
        late = [name for name in then.versions() if then.jax[then.release(name).jax].built > then.day]
        assert late == [], (jaxlib, then.day)


def test_a_release_exists_from_the_day_it_was_built():
    assert CALENDAR.as_of(day("2026-10-20")).newest() == "0.12.0.1"
    assert CALENDAR.as_of(day("2026-10-19")).newest() == "0.12.0"


def test_as_of_hides_later_jax_as_well_as_later_jaxlib():
    assert CALENDAR.as_of(day("2026-10-16")).release("0.11.2").jax == "0.12.0"
    assert CALENDAR.as_of(day("2026-09-17")).release("0.11.2").jax == "0.11.2"
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.12\.0 is not in the release calendar as of 2026-09-17"):
        CALENDAR.as_of(day("2026-09-17")).release("0.12.0")
    with pytest.raises(ReleaseError, match=r"jax 0\.12\.0\.1 is not in the release calendar as of 2026-09-17"):
        CALENDAR.as_of(day("2026-09-17")).pair("0.11.2", "0.12.0.1")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda known: known.release("0.12.0"), "jaxlib 0.12.0 is not in the release calendar"),
        (lambda known: known.pair("0.11.2", "0.12.0"), "jax 0.12.0 is not in the release calendar"),
        (lambda known: runtime_named("pjrt").release("0.12.0", known), "pjrt 0.12.0 is not in the calendar of pjrt"),
    ],
)
def test_the_error_for_a_later_release_names_the_day_it_was_built(ask, message):
    with pytest.raises(ReleaseError) as refused:
        ask(CALENDAR.as_of(day("2026-10-01")).as_of(day("2026-09-17")))
    assert str(refused.value) == (
        f"{message} as of 2026-09-17: it was built on 2026-10-16. Choose that day or a later one with --as-of."
    )


def test_versions_are_ordered_by_day_then_by_number():
    calendar = small(v0_10_0="2026-01-02", v0_9_9="2026-01-02", v0_9_8="2026-01-03")
    assert calendar.versions() == ["0.9.9", "0.10.0", "0.9.8"]
    assert calendar.newest() == "0.9.8"


def test_a_yanked_release_is_never_chosen_and_still_dated():
    assert CALENDAR.jaxlib["0.4.32"].yanked
    assert "0.4.32" not in CALENDAR.versions()
    assert CALENDAR.built("0.4.32") == day("2024-09-11")
    assert CALENDAR.as_of(day("2024-09-12")).newest() == "0.4.31"


def test_releases_of_the_policy_extend_the_calendar():
    policy = Policy(
        releases=ExtraReleases(
            jaxlib={"0.13.0.dev20261118": JaxlibRelease(day("2026-11-18"))},
            jax={"0.13.0.dev20261118": JaxRelease(day("2026-11-18"), "0.12.0")},
        )
    )
    calendar = policy.calendar()
    assert calendar.newest() == "0.13.0.dev20261118"
    assert calendar.release("0.13.0.dev20261118").jax == "0.13.0.dev20261118"
    assert calendar.release("0.12.0.1").jax == "0.13.0.dev20261118", "the newest jax whose minimum allows it"
    assert calendar.release("0.9.2") == CALENDAR.release("0.9.2")
    assert "0.13.0.dev20261118" not in CALENDAR.jaxlib, "the shipped calendar is left alone"


def test_a_release_that_is_not_a_version_is_an_error():
    with pytest.raises(ReleaseError, match=r"Expected a version such as .* found 'nightly'"):
        Policy(releases=ExtraReleases(jaxlib={"nightly": JaxlibRelease(day("2026-11-18"))})).calendar()


@pytest.mark.parametrize(
    ("jaxlib", "packages"),
    [
        ("0.12.0.1", ("flatbuffers",)),
        ("0.6.2", ("flatbuffers",)),
        ("0.6.1", ("flatbuffers", "absl-py")),
        ("0.5.0", ("flatbuffers", "absl-py")),
        ("0.4.38", ("flatbuffers", "absl-py", "numpy<2", "scipy<1.13", "ml_dtypes<0.5")),
        ("0.4.18", ("flatbuffers", "absl-py", "numpy<2", "scipy<1.13", "ml_dtypes<0.5")),
    ],
)
def test_an_old_release_is_installed_with_the_packages_of_its_time(jaxlib, packages):
    assert CALENDAR.extra_requirements(jaxlib) == packages


def test_a_rule_that_adds_packages_holds_for_releases_until_its_day():
    assert CALENDAR.requirements
    for rule in CALENDAR.requirements:
        for jaxlib in CALENDAR.jaxlib:
            holds = rule.until is None or CALENDAR.built(jaxlib) <= rule.until
            assert holds == set(rule.add).issubset(CALENDAR.extra_requirements(jaxlib)), (jaxlib, rule)
        if rule.until is not None:
            assert rule.until in {entry.built for entry in CALENDAR.jaxlib.values()}, "the day of a release, as it says"


def test_pythons_of_a_release_are_those_of_its_wheels():
    assert CALENDAR.pythons("0.12.0.1") == ("3.12", "3.13", "3.14", "3.15")
    assert all("3.12" in CALENDAR.pythons(version) for version in CALENDAR.versions()), "one CPython reads them all"


def test_a_jaxlib_goes_with_every_jax_whose_rules_allow_it():
    calendar = CALENDAR
    assert calendar.pair("0.11.2", "0.12.0.1") == calendar.release("0.11.2")
    older = calendar.pair("0.11.2", "0.11.2")
    assert (older.jaxlib, older.jax, older.built) == ("0.11.2", "0.11.2", calendar.built("0.11.2"))
    assert older.pair == "0.11.2-jax0.11.2"


@pytest.mark.parametrize(
    ("jaxlib", "jax", "rule"),
    [
        ("0.11.1", "0.12.0.1", r"jax 0\.12\.0\.1 needs jaxlib 0\.11\.2 or newer, and refuses an older one"),
        ("0.12.0.1", "0.12.0", r"a jaxlib must not be newer than its jax, .* Expected jax 0\.12\.0\.1 or newer"),
        ("0.11.2", "0.12.3", r"jax 0\.12\.3 is not in the release calendar\. Did you mean"),
        ("0.99", "0.12.0.1", r"jaxlib 0\.99 is not in the release calendar"),
    ],
)
def test_a_pair_that_jax_refuses_names_the_broken_rule(jaxlib, jax, rule):
    with pytest.raises(ReleaseError, match=rule):
        load_calendar().pair(jaxlib, jax)


# --- a project's releases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "built", "problem"),
    [
        ("0.12.0.1", "2025-10-20", "expected built: 2026-10-20, as in the calendar of this package, found 2025-10-20"),
        ("0.12.0.1.0", "2025-10-20", "expected the version 0.12.0.1, as the calendar"),
        ("v0.9.2", "2025-10-20", "expected the version 0.9.2, as"),
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
def test_a_projects_release_must_not_contradict_the_calendar(version, built, problem):
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


DATED = "0.12.0.1: expected built: 2026-10-20, .* found 2025-10-20"


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("jax", "0.13.0: {built: 2026-11-20, minimum_jaxlib: 0.13.1}", "0.13.0: expected minimum_jaxlib"),
        ("jaxlib", "0.12.0.1: {built: 2025-10-20}", DATED),
        ("jax", "0.12.0.1: {built: 2025-10-20, minimum_jaxlib: 0.12.0}", DATED),
        ("jaxlib", "0.12.0.1: {built: 2026-10-20, yanked: why}", ".*yanked: expected False, as in the calendar"),
    ],
    ids=["minimum newer than its jax", "date of a jaxlib", "date of a jax", "withdrawn"],
)
def test_a_policy_contradicting_the_calendar_is_refused(load, kind, entry, message):
    with pytest.raises(PolicyError, match=rf"export_compat.yaml:3: releases\.{kind}\.{message}"):
        load(f"releases:\n  {kind}:\n    {entry}\n")


@pytest.mark.parametrize(
    ("jaxlib", "minimum", "ok"),
    [
        ("", "0.12.3", False),
        ("0.12.3: {built: 2026-11-15}", "0.12.3", True),
        ("", "0.12.0.0", True),
        ("", "0.4.1", True),
    ],
)
def test_a_minimum_jaxlib_must_be_released(load, jaxlib, minimum, ok):
    text = f"releases:\n  jax:\n    0.13.0: {{built: 2026-11-20, minimum_jaxlib: {minimum}}}\n  jaxlib: {{{jaxlib}}}\n"
    message = r"expected minimum_jaxlib: a jaxlib of the calendar.*found 0\.12\.3"
    with nullcontext() if ok else pytest.raises(PolicyError, match=message):
        load(text)


def test_the_shipped_calendar_does_not_contradict_itself():
    for kind in (CALENDAR.jaxlib, CALENDAR.jax):
        by_date = sorted(kind, key=lambda version: kind[version].built)
        for number, version in enumerate(by_date):
            before = {name: kind[name] for name in by_date[:number]}
            assert contradiction(before, version, kind[version]) == "", version


def test_a_policy_repeating_a_release_leaves_the_calendar_unchanged(load):
    assert load("releases: {jaxlib: {0.12.0.1: {built: 2026-10-20}}}\n").calendar() == CALENDAR


def test_an_error_in_export_releases_yaml_has_its_line(tmp_path):
    file = tmp_path / "export_releases.yaml"
    file.write_text('# ours\njaxlib:\n  "0.13.0": {built: 2026-11-20}\n  "0.12.0.1": {built: 2025-10-20}\n')
    with pytest.raises(PolicyError, match=r"export_releases.yaml:4: releases.jaxlib.0.12.0.1: expected built: 2026-10"):
        find_policy(tmp_path)


def test_a_policy_made_in_python_is_checked_too():
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
def test_a_local_wheel_must_agree_with_the_calendars_build_date(version, stamp, dated, refused, tmp_path):
    make_wheel(tmp_path, "jaxlib", version, stamps=(stamp,))
    calendar = CALENDAR.extended({version: JaxlibRelease(day(dated))}, {}) if dated else CALENDAR
    selection = Selection(wheels=(str(tmp_path),))
    if refused:
        with pytest.raises(MatrixError, match=f"this wheel was built on {stamp}, but the release calendar has"):
            known_releases(selection, calendar)
    else:
        known = known_releases(selection, calendar).calendar.built(version)
        assert known == (day(dated) if dated else CALENDAR.jaxlib[version].built if version == "0.9.2" else day(stamp))


# --- suggestions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0.13", ""),
        ("0.99.0", ""),
        ("0.12", " Did you mean '0.12.0'?"),
        ("0.9.3", " Did you mean '0.9.2'?"),
        ("0.12.1", " Did you mean '0.12.0.1'?"),
        ("0.10.2.0", " Did you mean '0.10.2'?"),
        ("0.8.9", " Did you mean '0.8."),
        ("0.4.19.1", " Did you mean '0.4."),
    ],
)
def test_only_an_installable_similar_release_is_suggested(text, hint):
    with pytest.raises(ReleaseError, match=f"jaxlib {text} is not in the release calendar") as refused:
        CALENDAR.built(text)
    assert "The newest known is 0.12.0.1, built 2026-10-20" in str(refused.value)
    assert ("Did you mean" in str(refused.value)) == bool(hint)
    assert hint in str(refused.value)
    if hint:
        named = str(refused.value).partition("Did you mean '")[2].partition("'")[0]
        assert named in CALENDAR.versions(), "it can be installed, with a jax"


@pytest.mark.parametrize("text", ["0.4.1", "0.3.25", "0.4.13.1"])
def test_the_error_for_a_too_old_release_says_where_the_calendar_begins(text):
    with pytest.raises(ReleaseError) as refused:
        CALENDAR.as_of(CALENDAR.built("0.9.2")).built(text)
    assert str(refused.value) == (
        f"jaxlib {text} is not in the release calendar as of 2026-03-18. The calendar begins with 0.4.18, built "
        "2023-10-06: `jaxexport releases list` shows it."
    )


@pytest.mark.parametrize("name", ["gpu", "GPU"])
def test_the_error_for_platform_gpu_suggests_cuda_and_rocm(name):
    assert similar_platform(name) == " Did you mean 'cuda' or 'rocm'?"
    with pytest.raises(PlacementError, match=r"found 'gpu'\. Did you mean 'cuda' or 'rocm'\?"):
        parse_platform("gpu")


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_version_is_quoted_in_the_error(text):
    with pytest.raises(ReleaseError, match=f"expected a jaxlib, such as 0.12.0, found '{text}'"):
        load_calendar().built(text)
