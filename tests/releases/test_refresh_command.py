"""`jaxexport releases refresh`, and the file of releases that a project has."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from making import day, make_wheel
from shipped import CALENDAR, SHIPPED, shortened

from export_core.cli.app import jaxexport
from export_core.policy import ExtraReleases, Policy, PolicyError, find_policy
from export_core.releases import JaxlibRelease, ReleaseError
from export_core.releases.project_releases import HEADER, read_releases, with_entries


def run(*words: str | Path):
    return CliRunner().invoke(jaxexport, ["releases", *map(str, words)])


def test_refresh_adds_missing_releases_that_the_policy_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dist"
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
    calendar = find_policy(tmp_path).calendar()
    assert (calendar.newest(), calendar.release("0.12.1").jax) == ("0.12.1", "0.12.1")
    assert calendar.release("0.12.0").jax == "0.12.1"
    again = run("refresh", "--wheels", folder)
    assert again.output.splitlines()[-1] == "nothing new: the newest jaxlib is 0.12.1, built 2026-11-19"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist", "export_releases.yaml"]


def test_a_refused_refresh_leaves_every_file_as_it_was(tmp_path, monkeypatch, wheels):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text(shortened().replace("built: 2026-08-17, minimum", "built: 2026-08-18, minimum"))
    before = (tmp_path / "cal.yaml").read_bytes()
    make_wheel(wheels, "jax", "0.11.1", stamps=("2026-08-17",), needs="jaxlib>=0.11.1")
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert (tmp_path / "cal.yaml").read_bytes() == before


def test_a_calendar_in_another_form_is_not_written_into(tmp_path, monkeypatch, wheels):
    """Block style reads well and has no line for a release: it would get a second one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text('jax: {}\njaxlib:\n    "0.11.0":\n        built: 2026-07-16\n')
    before = (tmp_path / "cal.yaml").read_bytes()
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert "expected one release a line, as `jaxexport releases refresh` writes them" in str(done.exception)
    assert (tmp_path / "cal.yaml").read_bytes() == before


def test_shipped_release_comes_before_the_projects_own_line(tmp_path):
    entry = JaxlibRelease(day("2026-10-16"), ("3.12", "3.16"), yanked="crashes")
    (tmp_path / "export_releases.yaml").write_text(with_entries(HEADER, {"0.12.0": entry}, {}))
    found = find_policy(tmp_path).calendar().jaxlib["0.12.0"]
    assert found.stablehlo == CALENDAR.jaxlib["0.12.0"].stablehlo
    assert (found.yanked, found.python) == ("crashes", ("3.12", "3.13", "3.14", "3.15", "3.16"))


def test_two_files_with_two_dates_of_a_release_are_an_error(tmp_path):
    (tmp_path / "export_releases.yaml").write_text(
        with_entries(HEADER, {"0.13.0": JaxlibRelease(day("2026-11-20"))}, {})
    )
    (tmp_path / "export_compat.yaml").write_text("releases: {jaxlib: {0.13.0: {built: 2026-11-21}}}")
    said = r"export_compat.yaml:1: releases.jaxlib.0.13.0.built: expected 2026-11-20, as in .*, found 2026-11-21"
    with pytest.raises(PolicyError, match=said):
        find_policy(tmp_path)
    assert Policy(releases=ExtraReleases()).calendar() == CALENDAR


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jaxlib: []", "export_releases.yaml: `jaxlib`: expected a table, found a list. Correct it, or delete"),
        (
            'jax: {}\njaxlib:\n  "0.13.0": {built: soon}',
            "export_releases.yaml:3: jaxlib 0.13.0: `built`: expected a date such as 2026-10-25",
        ),
        ("jaxlib:\n  0.13.0: {}", "export_releases.yaml:2: jaxlib 0.13.0: expected the key `built`, found none."),
        ("jax:\n  0.13.0: {built: 2026-11-20}", "yaml:2: jax 0.13.0: expected the key `minimum_jaxlib`"),
        ("jaxlib: {0.13.0: {built: 2026-11-20, bulit: 1}}", "jaxlib 0.13.0: `bulit`: unknown key. Correct it"),
        ("jaxlibs: {}", "export_releases.yaml: `jaxlibs`: unknown key. Correct it"),
        ("jaxlib: {nightly: {built: 2026-11-20}}", "found 'nightly'"),
    ],
)
def test_a_file_of_releases_that_is_none_is_an_error(tmp_path, text, said):
    (tmp_path / "export_releases.yaml").write_text(text)
    with pytest.raises(ReleaseError, match=said):
        read_releases(tmp_path / "export_releases.yaml")


@pytest.mark.matrix
def test_index_gives_the_last_three_releases_as_shipped(tmp_path, monkeypatch):
    """The real thing: the ends of 21 published wheels, and three installed releases that say their formats."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text(shortened())
    done = run("refresh", "--measure", "--into", "cal.yaml")
    assert done.exit_code == 0, done.exception
    now = (tmp_path / "cal.yaml").read_text().splitlines()
    # What was published after the shipped calendar was made comes too.
    assert [line for line in SHIPPED.read_text().splitlines() if line not in now] == []
    read, whole = (int(text.replace(",", "")) for text in re.findall(r"([\d,]+) of ([\d,]+) bytes", done.output)[0])
    assert read < whole / 100
