"""The calendar is brought up to date from a folder of wheels: what is known never changes silently."""

import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, make_wheel
from shipped import CALENDAR, LAST, SHIPPED, calendar_of, measured, shortened

from export_core.releases import JaxlibRelease, JaxRelease, ReleaseError
from export_core.releases.calendar import CalendarFile
from export_core.releases.project_releases import HEADER, release_line, with_entries
from export_core.releases.refresh import calendar_update, published_in_folder


def test_the_last_three_releases_come_back_line_by_line(wheels):
    short = shortened()
    update = calendar_update(calendar_of(short), published_in_folder(wheels), measured)
    assert len(update.changes) == 6
    assert with_entries(short, update.jaxlib, update.jax) == SHIPPED.read_text()


def test_what_is_not_measured_is_null_and_all_else_as_shipped(wheels):
    update = calendar_update(calendar_of(shortened()), published_in_folder(wheels))
    for version in LAST:
        shipped = CALENDAR.jaxlib[version]
        assert (update.jaxlib[version].built, update.jaxlib[version].python) == (shipped.built, shipped.python)
        assert update.jaxlib[version].stablehlo == (None, None, None)
        assert update.jax[version] == CALENDAR.jax[version]


def test_nothing_new_is_nothing_to_write(wheels):
    update = calendar_update(CALENDAR, published_in_folder(wheels))
    assert (update.jaxlib, update.jax, update.changes) == ({}, {}, ())


@pytest.mark.parametrize(
    ("package", "version", "stamp", "said"),
    [
        (
            "jaxlib",
            "0.12.0",
            "2026-10-17",
            r"jaxlib 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-17 in jaxlib-0",
        ),
        ("jax", "0.12.0", "2026-10-15", r"jax 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-15"),
    ],
)
def test_a_known_release_built_on_another_day_is_an_error(tmp_path, package, version, stamp, said):
    make_wheel(tmp_path, package, version, stamps=(stamp,), needs="jaxlib>=0.11.2" if package == "jax" else "")
    with pytest.raises(ReleaseError, match=f"{said}.*Nothing was written"):
        calendar_update(CALENDAR, published_in_folder(tmp_path))


def test_a_known_jax_with_another_oldest_jaxlib_is_an_error(tmp_path):
    make_wheel(tmp_path, "jax", "0.12.0", stamps=("2026-10-16",), needs="jaxlib>=0.12.0")
    with pytest.raises(ReleaseError, match=r"expected with the oldest jaxlib 0\.11\.2, .* found .* 0\.12\.0 in"):
        calendar_update(CALENDAR, published_in_folder(tmp_path))


def test_new_wheel_of_a_known_release_adds_its_cpython(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=("2026-10-16",), python="cp316")
    update = calendar_update(CALENDAR, published_in_folder(tmp_path))
    assert update.jaxlib["0.12.0"].python == ("3.12", "3.13", "3.14", "3.15", "3.16")
    assert update.jaxlib["0.12.0"].stablehlo == CALENDAR.jaxlib["0.12.0"].stablehlo
    assert update.changes == ("changed  jaxlib 0.12.0  wheels for CPython 3.16",)


@pytest.mark.parametrize(
    ("stamp", "note"),
    [("2026-11-30", ", with wheels built until 2026-11-30: its build date stays 2026-10-16"), ("2026-10-15", "")],
)
def test_a_new_wheel_of_a_known_release_does_not_change_its_day(tmp_path, stamp, note):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=(stamp,), python="cp316")
    update = calendar_update(CALENDAR, published_in_folder(tmp_path))
    assert update.jaxlib["0.12.0"].built == day("2026-10-16")
    assert update.changes == (f"changed  jaxlib 0.12.0  wheels for CPython 3.16{note}",)


def test_older_wheel_of_a_known_release_changes_nothing(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=("2026-10-15",), python="cp313")
    assert calendar_update(CALENDAR, published_in_folder(tmp_path)).changes == ()


def test_patch_release_is_listed_by_number_ordered_by_day(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.8.4", stamps=("2026-11-19",))
    make_wheel(tmp_path, "jax", "0.8.4", stamps=("2026-11-19",), needs="jaxlib>=0.8.2")
    update = calendar_update(CALENDAR, published_in_folder(tmp_path))
    text = with_entries(SHIPPED.read_text(), update.jaxlib, update.jax)
    versions = re.findall(r'^  "([^"]+)"', text, re.MULTILINE)
    assert versions[versions.index("0.8.4") - 1] == "0.8.3"
    calendar = calendar_of(text)
    assert calendar.newest() == "0.8.4"
    assert calendar.release("0.8.4").jax == "0.8.4"


def test_wheels_of_other_machines_do_not_date_a_release(tmp_path):
    made = make_wheel(tmp_path, "jaxlib", "0.12.1")
    made.rename(tmp_path / "jaxlib-0.12.1-cp312-cp312-macosx_11_0_arm64.whl")
    with pytest.raises(ReleaseError, match="expected wheels for x86-64 Linux"):
        published_in_folder(tmp_path)


VERSIONS = st.builds(
    lambda numbers, rest: ".".join(map(str, numbers)) + rest,
    st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.sampled_from(["", "rc1", ".dev20261120", ".post1"]),
)
DATES = st.dates(day("2019-01-01"), day("2040-12-31"))
YANKED = st.sampled_from([False, True, 'crashes: at "import"', "yanked: {no} #1, 𐀀"])
JAXLIBS = st.builds(
    JaxlibRelease,
    DATES,
    python=st.lists(st.sampled_from(["3.9", "3.12", "3.13"]), unique=True).map(tuple),
    stablehlo=st.tuples(*[st.one_of(st.none(), st.sampled_from(["1.2.3", "1.10.0"]))] * 3),
    yanked=YANKED,
)
JAXES = st.builds(JaxRelease, DATES, minimum_jaxlib=VERSIONS, yanked=YANKED)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(VERSIONS, JAXLIBS, max_size=4), st.dictionaries(VERSIONS, JAXES, max_size=4), st.data())
def test_a_line_is_read_as_it_was_written_wherever_it_comes_in(jaxlib, jax, data):
    """In two parts, so that lines come before, between and after others."""
    text = HEADER
    first = data.draw(st.sets(st.sampled_from(sorted(jaxlib)))) if jaxlib else set()
    for part in (first, set(jaxlib) - first):
        text = with_entries(text, {version: jaxlib[version] for version in part}, {})
    text = with_entries(text, {}, jax)
    file = msgspec.yaml.decode(text, type=CalendarFile | None) or CalendarFile()
    assert (dict(file.jaxlib), dict(file.jax)) == (jaxlib, jax)
    assert text.startswith(HEADER)
    assert with_entries(text, jaxlib, jax) == text


def test_the_shipped_calendar_is_in_the_form_that_refresh_writes():
    lines = SHIPPED.read_text().splitlines()
    for version, entry in (*CALENDAR.jaxlib.items(), *CALENDAR.jax.items()):
        assert release_line(version, entry) in lines
