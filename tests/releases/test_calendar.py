"""Which releases exist on a day, and which go together."""

import datetime

import pytest
from jax._src.lib import check_jaxlib_version
from making import day
from packaging.version import Version

from export_core.matrix.selection import choose_readers, known_releases
from export_core.policy import ExtraReleases, Policy
from export_core.policy.run_options import Selection
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, ReleaseError, Windows, load_calendar
from export_core.releases.entries import calendar_entries

CALENDAR = load_calendar()
PAIRED = [version for version in CALENDAR.jaxlib if version != "0.4.13"]


def small(**jaxlib: str) -> Calendar:
    """A calendar of jaxlibs by day, each with the jax of its number that wants just it."""
    versions = {name.removeprefix("v").replace("_", "."): day(built) for name, built in jaxlib.items()}
    return Calendar(
        {version: JaxlibRelease(built) for version, built in versions.items()},
        {version: JaxRelease(built, version) for version, built in versions.items()},
    )


@pytest.mark.parametrize("jaxlib", PAIRED)
def test_jaxlib_is_paired_with_the_newest_matching_jax(jaxlib):
    own = Version(jaxlib)
    fitting = [
        (entry.built, Version(version), version)
        for version, entry in CALENDAR.jax.items()
        if Version(entry.minimum_jaxlib) <= own <= Version(version)
    ]
    assert CALENDAR.release(jaxlib).jax == max(fitting)[2]


@pytest.mark.parametrize(
    ("jaxlib", "jax"),
    [("0.12.0.1", "0.12.0.1"), ("0.11.2", "0.12.0.1"), ("0.10.1", "0.10.2"), ("0.9.2", "0.9.2"), ("0.8.3", "0.8.3")],
)
def test_pairs_that_people_have(jaxlib, jax):
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
def test_development_versions_pair_by_their_numbers_as_in_jax(jaxlib, jax):
    calendar = CALENDAR.extended(
        {jaxlib: JaxlibRelease(day("2026-11-20"))}, {jax: JaxRelease(day("2026-11-20"), "0.12.0")}
    )
    assert check_jaxlib_version(jax, jaxlib, "0.12.0") == (0, 13, 0)
    assert calendar.pair(jaxlib, jax).jax == calendar.release(jaxlib).jax == jax


@pytest.mark.parametrize(
    ("jaxlib", "jax"), [("0.13.0.dev20261120", "0.13.0.dev20261118"), ("0.13.0.dev20261118", "0.13.0.dev20261120")]
)
def test_nightlies_of_two_days_can_be_named_as_a_reader(jaxlib, jax):
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
def test_a_jaxlib_with_higher_numbers_is_refused_as_in_jax(jaxlib):
    calendar = CALENDAR.extended(
        {jaxlib: JaxlibRelease(day("2026-11-20"))}, {"0.13.0": JaxRelease(day("2026-11-20"), "0.12.0")}
    )
    with pytest.raises(RuntimeError, match="is newer than and incompatible with jax"):
        check_jaxlib_version("0.13.0", jaxlib, "0.12.0")
    with pytest.raises(ReleaseError, match="a jaxlib must not be newer than its jax"):
        calendar.pair(jaxlib, "0.13.0")


def test_every_jax_of_a_jaxlib_is_known_and_not_its_own_alone():
    (entry,) = (entry for entry in calendar_entries(CALENDAR) if entry.jaxlib == "0.11.2")
    assert entry.all_jax == ("0.11.2", "0.12.0", "0.12.0.1")


def test_jaxlib_without_a_jax_is_an_error_and_never_chosen():
    with pytest.raises(ReleaseError, match=r"No jax release goes with jaxlib 0\.4\.13"):
        CALENDAR.release("0.4.13")
    assert "0.4.13" not in CALENDAR.versions()


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("jaxlib", CALENDAR.jaxlib)
def test_every_jaxlib_of_a_day_has_its_jax_on_that_day(jaxlib, offset):
    then = CALENDAR.as_of(CALENDAR.built(jaxlib) + datetime.timedelta(days=offset))
    for version in then.versions():
        assert then.jax[then.release(version).jax].built <= then.day


def test_release_exists_from_the_day_it_was_built():
    assert CALENDAR.as_of(day("2026-10-20")).newest() == "0.12.0.1"
    assert CALENDAR.as_of(day("2026-10-19")).newest() == "0.12.0"


def test_as_of_hides_later_jax_as_well_as_later_jaxlib():
    assert CALENDAR.as_of(day("2026-10-16")).release("0.11.2").jax == "0.12.0"
    assert CALENDAR.as_of(day("2026-09-17")).release("0.11.2").jax == "0.11.2"
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.12\.0 is not in the release calendar as of 2026-09-17"):
        CALENDAR.as_of(day("2026-09-17")).release("0.12.0")


def test_day_before_the_first_release_is_an_error():
    with pytest.raises(ReleaseError, match="No jaxlib release is known on 2020-01-01"):
        CALENDAR.as_of(day("2020-01-01")).newest()
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.9\.2 is not in the release calendar as of 2020-01-01"):
        CALENDAR.as_of(day("2020-01-01")).built("0.9.2")


def test_versions_are_ordered_by_day_and_by_number_within_a_day():
    calendar = small(v0_10_0="2026-01-02", v0_9_9="2026-01-02", v0_9_8="2026-01-03")
    assert calendar.versions() == ["0.9.9", "0.10.0", "0.9.8"]
    assert calendar.newest() == "0.9.8"


def test_a_yanked_release_is_never_chosen_and_still_dated():
    assert CALENDAR.jaxlib["0.4.32"].yanked
    assert "0.4.32" not in CALENDAR.versions()
    assert CALENDAR.built("0.4.32") == day("2024-09-11")
    assert CALENDAR.as_of(day("2024-09-12")).newest() == "0.4.31"


@pytest.mark.parametrize(("asked", "meant"), [("0.9.3", "0.9.2"), ("0.12.1", "0.12.0"), ("0.10.2.0", "0.10.2")])
def test_an_unknown_release_is_an_error_with_the_nearest_names(asked, meant):
    with pytest.raises(ReleaseError, match=f"jaxlib {asked} is not in the release calendar") as told:
        CALENDAR.built(asked)
    assert "Did you mean" in str(told.value)
    assert meant in str(told.value)
    assert "The newest known is 0.12.0.1, built 2026-10-20" in str(told.value)


def test_the_policys_own_releases_extend_the_calendar():
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


def test_a_release_whose_name_is_no_version_is_an_error():
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
def test_a_release_gets_the_packages_of_its_time(jaxlib, packages):
    assert CALENDAR.extra_requirements(jaxlib) == packages


def test_requirement_rule_holds_up_to_its_day():
    assert CALENDAR.requirements
    for rule in CALENDAR.requirements:
        for jaxlib in CALENDAR.jaxlib:
            holds = rule.until is None or CALENDAR.built(jaxlib) <= rule.until
            assert holds == set(rule.add).issubset(CALENDAR.extra_requirements(jaxlib)), (jaxlib, rule)
        if rule.until is not None:
            assert rule.until in {entry.built for entry in CALENDAR.jaxlib.values()}, "the day of a release, as it says"


def test_pythons_are_those_that_wheels_exist_for():
    assert CALENDAR.pythons("0.12.0.1") == ("3.12", "3.13", "3.14", "3.15")
    assert all("3.12" in CALENDAR.pythons(version) for version in CALENDAR.versions()), "one CPython reads them all"


def test_a_jaxlib_goes_with_every_jax_whose_rules_allow_it():
    calendar = load_calendar()
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
def test_a_pair_that_jax_refuses_is_an_error_that_names_the_rule(jaxlib, jax, rule):
    with pytest.raises(ReleaseError, match=rule):
        load_calendar().pair(jaxlib, jax)


def test_every_pair_that_is_planned_by_default_keeps_the_rules():
    calendar = load_calendar()
    for version in calendar.versions():
        release = calendar.release(version)
        assert calendar.pair(release.jaxlib, release.jax) == release
