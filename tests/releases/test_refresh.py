"""`jaxexport releases refresh`: the calendar is updated from wheels, and known facts never change silently."""

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, make_wheel
from shipped import CALENDAR, LAST, SHIPPED, calendar_of, measured, shortened

from export_core.base.errors import ExportCompatError
from export_core.cli.app import jaxexport
from export_core.policy import Policy, PolicyError, find_policy
from export_core.policy.entries import ExtraReleases
from export_core.releases import JaxlibRelease, JaxRelease, ReleaseError
from export_core.releases.calendar import CalendarFile
from export_core.releases.project_releases import HEADER, release_line, with_entries
from export_core.releases.refresh import calendar_update, published_in_folder


def test_refreshing_restores_the_last_three_releases_exactly(wheels):
    short = shortened()
    update = calendar_update(calendar_of(short), published_in_folder(wheels), measured)
    assert len(update.changes) == 6
    assert with_entries(short, update.jaxlib, update.jax) == SHIPPED.read_text()


def test_unmeasured_stablehlo_versions_are_null(wheels):
    update = calendar_update(calendar_of(shortened()), published_in_folder(wheels))
    for version in LAST:
        shipped = CALENDAR.jaxlib[version]
        assert (update.jaxlib[version].built, update.jaxlib[version].python) == (shipped.built, shipped.python)
        assert update.jaxlib[version].stablehlo == (None, None, None)
        assert update.jax[version] == CALENDAR.jax[version]


def test_wheels_of_known_releases_leave_the_calendar_unchanged(wheels):
    update = calendar_update(CALENDAR, published_in_folder(wheels))
    assert (update.jaxlib, update.jax, update.changes) == ({}, {}, ())


@pytest.mark.parametrize(
    ("package", "stamp", "needs", "message"),
    [
        (
            "jaxlib",
            "2026-10-17",
            "",
            r"jaxlib 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-17 in jaxlib-0",
        ),
        ("jax", "2026-10-15", "jaxlib>=0.11.2", r"jax 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-15"),
        ("jax", "2026-10-16", "jaxlib>=0.12.0", r"expected with the oldest jaxlib 0\.11\.2, .* found .* 0\.12\.0 in"),
    ],
)
def test_a_wheel_must_not_contradict_a_known_release(tmp_path, package, stamp, needs, message):
    make_wheel(tmp_path, package, "0.12.0", stamps=(stamp,), needs=needs)
    with pytest.raises(ReleaseError, match=f"{message}.*Nothing was written"):
        calendar_update(CALENDAR, published_in_folder(tmp_path))


NEW = "changed  jaxlib 0.12.0  wheels for CPython 3.16"


@pytest.mark.parametrize(
    ("stamp", "python", "changes"),
    [
        ("2026-10-16", "cp316", (NEW,)),
        ("2026-10-15", "cp316", (NEW,)),
        ("2026-11-30", "cp316", (f"{NEW}, with wheels built until 2026-11-30: its build date stays 2026-10-16",)),
        ("2026-10-15", "cp313", ()),
    ],
)
def test_a_new_wheel_of_a_known_release_adds_only_its_python(tmp_path, stamp, python, changes):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=(stamp,), python=python)
    update = calendar_update(CALENDAR, published_in_folder(tmp_path))
    assert update.changes == changes
    known = CALENDAR.jaxlib["0.12.0"]
    added = msgspec.structs.replace(known, python=(*known.python, "3.16"))
    assert update.jaxlib == ({"0.12.0": added} if changes else {})


def test_a_patch_release_is_listed_by_number_and_ordered_by_date(tmp_path):
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
def test_any_written_calendar_line_is_read_back_equal(jaxlib, jax, data):
    """Lines are written in two parts, so that some come before, between and after others."""
    text = HEADER
    first = data.draw(st.sets(st.sampled_from(sorted(jaxlib)))) if jaxlib else set()
    for part in (first, set(jaxlib) - first):
        text = with_entries(text, {version: jaxlib[version] for version in part}, {})
    text = with_entries(text, {}, jax)
    file = msgspec.yaml.decode(text, type=CalendarFile | None) or CalendarFile()
    assert (dict(file.jaxlib), dict(file.jax)) == (jaxlib, jax)
    assert text.startswith(HEADER)
    assert with_entries(text, jaxlib, jax) == text


def test_the_shipped_calendar_is_what_refresh_would_write():
    lines = SHIPPED.read_text().splitlines()
    for version, entry in (*CALENDAR.jaxlib.items(), *CALENDAR.jax.items()):
        assert release_line(version, entry) in lines


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: str | Path):
    return CliRunner().invoke(jaxexport, ["releases", *map(str, words)])


def test_refresh_writes_missing_releases_into_export_releases_yaml(cwd):
    folder = cwd / "dist"
    folder.mkdir()
    make_wheel(folder, "jaxlib", "0.12.1", stamps=("2026-11-19",))
    make_wheel(folder, "jax", "0.12.1", stamps=("2026-11-20",), needs="jaxlib>=0.12.0")
    done = run("refresh", "--wheels", folder)
    assert done.output.splitlines() == [
        f"{folder}: read 2 wheels",
        "new  jaxlib 0.12.1  built 2026-11-19",
        "new  jax 0.12.1  built 2026-11-20",
        "wrote 2 releases into export_releases.yaml",
    ]
    calendar = find_policy(cwd).calendar()
    assert (calendar.newest(), calendar.release("0.12.1").jax) == ("0.12.1", "0.12.1")
    assert calendar.release("0.12.0").jax == "0.12.1"
    again = run("refresh", "--wheels", folder)
    known = len(calendar.versions())
    newest = "the newest is 0.12.1, built 2026-11-19"
    assert again.output == f"{folder}: nothing new: {known} jaxlib releases known, {newest}\n"
    assert sorted(path.name for path in cwd.iterdir()) == ["dist", "export_releases.yaml"]


def test_a_refused_refresh_changes_no_file(cwd, wheels):
    (cwd / "cal.yaml").write_text(shortened().replace("built: 2026-08-17, minimum", "built: 2026-08-18, minimum"))
    before = (cwd / "cal.yaml").read_bytes()
    make_wheel(wheels, "jax", "0.11.1", stamps=("2026-08-17",), needs="jaxlib>=0.11.1")
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert (cwd / "cal.yaml").read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        'jax: {}\njaxlib:\n    "0.11.0":\n        built: 2026-07-16\n',
        'jax: {}\njaxlib:\n  "0.11.0": {built: 2026-07-16}\n',
    ],
    ids=["block", "flow"],
)
def test_refresh_refuses_a_file_unless_each_release_has_one_line(cwd, wheels, text):
    """A release on several lines, or without a line of its own, would be in such a file twice."""
    (cwd / "cal.yaml").write_text(text)
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert "expected one release a line, as `jaxexport releases refresh` writes them" in str(done.exception)
    assert (cwd / "cal.yaml").read_text() == text


def test_comments_between_releases_stay_in_place():
    text = 'jaxlib:\n  "0.12.0": {built: 2026-10-16}\n  # of mine\n  "0.13.0": {built: 2026-11-20}\n\n# of jax\njax:\n'
    new = {"0.13.0": JaxlibRelease(day("2026-11-21")), "0.12.1": JaxlibRelease(day("2026-11-19"))}
    assert [line.split(",")[0] for line in with_entries(text, new, {}).splitlines()] == [
        *("jaxlib:", '  "0.12.0": {built: 2026-10-16}', "  # of mine", '  "0.12.1": {built: 2026-11-19'),
        *('  "0.13.0": {built: 2026-11-21', "", "# of jax", "jax:"),
    ]


def test_the_jaxlib_section_is_put_before_the_jax_section():
    text = with_entries("jax:\n", {"0.12.1": JaxlibRelease(day("2026-11-19"))}, {})
    assert [line.split(" {")[0] for line in text.splitlines()] == ["jaxlib:", '  "0.12.1":', "jax:"]


def test_a_projects_entry_adds_facts_to_a_shipped_release(tmp_path):
    entry = JaxlibRelease(day("2026-10-16"), ("3.12", "3.16"), yanked="crashes")
    (tmp_path / "export_releases.yaml").write_text(with_entries(HEADER, {"0.12.0": entry}, {}))
    found = find_policy(tmp_path).calendar().jaxlib["0.12.0"]
    assert found.stablehlo == CALENDAR.jaxlib["0.12.0"].stablehlo
    assert (found.yanked, found.python) == ("crashes", ("3.12", "3.13", "3.14", "3.15", "3.16"))


def test_two_dates_of_a_release_in_two_files_are_an_error(tmp_path):
    (tmp_path / "export_releases.yaml").write_text(
        with_entries(HEADER, {"0.13.0": JaxlibRelease(day("2026-11-20"))}, {})
    )
    (tmp_path / "export_compat.yaml").write_text("releases: {jaxlib: {0.13.0: {built: 2026-11-21}}}")
    message = r"export_compat.yaml:1: releases.jaxlib.0.13.0.built: expected 2026-11-20, as in .*, found 2026-11-21"
    with pytest.raises(PolicyError, match=message):
        find_policy(tmp_path)
    assert Policy(releases=ExtraReleases()).calendar() == CALENDAR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jaxlib: []", "export_releases.yaml:1: releases.jaxlib: expected a table, found"),
        ('jax: {}\njaxlib:\n  "0.13.0": {built: soon}', "yaml:3: releases.jaxlib.0.13.0.built: expected a date"),
        ("jaxlib:\n  0.13.0: {}", "yaml:2: releases.jaxlib.0.13.0: lacks the key `built`."),
        ("jax:\n  0.13.0: {built: 2026-11-20}", "yaml:2: releases.jax.0.13.0: lacks the key `minimum_jaxlib`"),
        ("jaxlib: {0.13.0: {built: 2026-11-20, bulit: 1}}", "yaml:1: releases.jaxlib.0.13.0.bulit: unknown key"),
        ("jaxlibs: {}", "export_releases.yaml:1: releases.jaxlibs: unknown key. Did you mean `jaxlib`"),
        ("jaxlib: {nightly: {built: 2026-11-20}}", "found 'nightly'"),
        ("runtimes: {}\njax: {0.13.0: {built: 2026-11-20, minimum_jaxlib: 0.12.9}}", "expected minimum_jaxlib"),
        ("runtimes: {iree: {}}", "yaml:1: releases.runtimes: expected only releases of jaxlib and jax"),
        ("", "export_releases.yaml: expected a file of releases, found an empty one"),
    ],
)
def test_a_malformed_export_releases_yaml_is_an_error(cwd, text, message):
    (cwd / "export_releases.yaml").write_text(text)
    with pytest.raises(ExportCompatError, match=message):
        find_policy(cwd)
    assert message in str(run("refresh", "--wheels", cwd).exception)


@pytest.mark.parametrize("text", ["jaxlib: []", "jaxlibs: {}", "["])
def test_a_malformed_calendar_is_an_error(tmp_path, text):
    (tmp_path / "cal.yaml").write_text(text)
    done = run("refresh", "--wheels", tmp_path, "--into", tmp_path / "cal.yaml")
    assert str(done.exception).startswith(f"{tmp_path}/cal.yaml: expected a calendar of releases: ")


def test_refresh_uses_no_network_if_uv_must_not(cwd, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "true")
    message = str(run("refresh", "--index", "http://127.0.0.1:9/simple/").exception)
    assert "expected a network, found UV_OFFLINE, which forbids its use. Unset it, or name a folder with" in message


@pytest.mark.matrix
def test_a_real_index_gives_the_last_three_shipped_releases(cwd):
    """Only the ends of 21 published wheels are downloaded. Three installed releases tell their formats."""
    (cwd / "cal.yaml").write_text(shortened())
    done = run("refresh", "--measure", "--into", "cal.yaml")
    assert done.exit_code == 0, done.exception
    now = (cwd / "cal.yaml").read_text().splitlines()
    # What was published after the shipped calendar was made comes too.
    assert [line for line in SHIPPED.read_text().splitlines() if line not in now] == []
