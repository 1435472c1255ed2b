"""The shipped releases of runtimes: their files, the measured facts, and the tool that rewrites them."""

import datetime

import msgspec
import pytest
from making import day
from packaging.version import Version

from export_core.artifact.bytecode.module import Module
from export_core.artifact.readers import needs, version_pair
from export_core.policy import Policy, validation
from export_core.policy.entries import ExtraReleases
from export_core.releases.runtimes import Runtime, RuntimeRelease, runtime_readers
from tools.runtime_releases import DIALECTS, SOURCES, VERSIONS, path_of, read_releases, write_artifacts, write_releases

RUNTIMES = pytest.mark.parametrize("name", SOURCES)


@RUNTIMES
def test_releases_of_a_runtime_are_in_order_and_plausible(name):
    releases = read_releases(name)
    versions = [Version(version) for version in releases]
    assert versions == sorted(versions)
    assert not any(version.is_prerelease for version in versions)
    for version, release in releases.items():
        assert day("2024-03-01") <= release.built <= datetime.date.today(), version
        assert "3.12" in release.python
        assert [*release.python] == sorted(release.python, key=Version)
        assert release.stablehlo is None or version_pair(release.stablehlo) >= (0, 17)
        assert {*release.dialects} <= {*DIALECTS}
        assert (release.convention is not None) == (name == "tensorflow")
        assert [text.partition("==")[0] for text in release.requires] == [*SOURCES[name].beside]


@RUNTIMES
def test_a_newer_release_of_a_runtime_has_no_older_stablehlo(name):
    read = [version_pair(release.stablehlo) for release in read_releases(name).values() if release.stablehlo]
    assert read == sorted(read)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("tensorflow", "2.18.1", ("2025-03-08", "1.7.3", 9, ())),
        ("tensorflow", "2.19.1", ("2025-08-11", "1.9.1", 9, ())),
        ("tensorflow", "2.20.0", ("2025-08-07", "1.12.1", 10, ("sdy", "chlo"))),
        ("tensorflow", "2.21.0", ("2026-03-05", "1.13.7", 10, ("sdy", "chlo"))),
        ("iree", "3.0.0", ("2024-11-18", "1.8", None, ())),
        ("iree", "3.13.0", ("2026-10-19", "1.20", None, ("chlo", "shape"))),
        ("litert", "2.3.0", ("2026-10-06", "1.20.0", None, ("chlo",))),
    ],
)
def test_releases_of_runtimes_have_the_documented_days_and_limits(name, version, expected):
    release = read_releases(name)[version]
    assert (str(release.built), release.stablehlo, release.convention, release.dialects) == expected


@pytest.mark.matrix  # needs the newest jaxlib, which writes all of these versions
def test_each_probe_artifact_needs_only_the_stablehlo_of_its_name(tmp_path):
    write_artifacts(tmp_path)
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        found = needs(Module(data, 0, len(data), path.name))
        expected = (path.stem, ()) if path.stem in VERSIONS else ("0.9", (path.stem,))
        assert (found.stablehlo, found.dialects) == expected


def test_adding_releases_preserves_comments_and_known_releases(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.runtime_releases.FOLDER", tmp_path)
    path_of("iree").write_text("# A comment.\n")
    releases = {
        "3.0.0": RuntimeRelease(day("2026-01-02")),
        "3.1.0": RuntimeRelease(day("2026-01-03"), ("3.12", "3.13"), "1.8", 9, ("sdy",), ("other==1",)),
    }
    write_releases("iree", releases)
    assert path_of("iree").read_text().splitlines() == [
        "# A comment.",
        '"3.0.0": {built: 2026-01-02, python: ["3.12"], stablehlo: null, convention: null, dialects: []}',
        '"3.1.0": {built: 2026-01-03, python: ["3.12", "3.13"], stablehlo: "1.8", convention: 9, dialects: ["sdy"], '
        'requires: ["other==1"]}',
    ]
    assert read_releases("iree") == releases


def test_a_release_with_an_unknown_field_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.runtime_releases.FOLDER", tmp_path)
    path_of("iree").write_text('"3.0.0": {built: 2026-01-02, stable: "1.8"}\n')
    with pytest.raises(msgspec.ValidationError, match="unknown field `stable`"):
        read_releases("iree")


def test_a_project_adds_a_release_that_this_package_lacks(monkeypatch):
    shipped = RuntimeRelease(day("2026-03-05"), stablehlo="1.13.7")
    runtime = Runtime(name="other", about="", worker="", requirements=(), check="", releases={"1.0": shipped})
    monkeypatch.setattr("export_core.releases.runtimes.known_runtimes", lambda: {"other": runtime})
    added = RuntimeRelease(day("2026-10-01"))
    policy = Policy(releases=ExtraReleases(runtimes={"other": {"1.0": added, "2.0": added}}))
    assert runtime.known(policy.calendar()) == {"1.0": shipped, "2.0": added}
    assert runtime.known(policy.calendar().as_of(day("2026-09-30"))) == {"1.0": shipped}
    assert [release.name for release in runtime_readers("other", policy.calendar())] == ["other==2.0"]
    found = dict(validation.problems(policy))
    assert [*found] == [("releases", "runtimes", "other", "1.0")]
    assert "Delete the line" in found["releases", "runtimes", "other", "1.0"]
    unknown = Policy(releases=ExtraReleases(runtimes={"othre": {"2.0": added}}))
    assert "Did you mean 'other'?" in dict(validation.problems(unknown))["releases", "runtimes", "othre"]


def test_a_policy_cannot_add_releases_to_savedmodel():
    policy = Policy(releases=ExtraReleases(runtimes={"savedmodel": {"9.0": RuntimeRelease(day("2026-10-01"))}}))
    message = dict(validation.problems(policy))["releases", "runtimes", "savedmodel"]
    assert message.endswith("savedmodel has the releases of tensorflow. Add them there.")
