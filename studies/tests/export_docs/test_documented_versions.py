"""The statements of JAX's document on versions: what jax and jaxlib contain, and which versions fit together."""

from __future__ import annotations

import datetime
import importlib.metadata

import jax
import pytest
from jax._src.lib import check_jaxlib_version, jaxlib_extension_version
from jaxlib import xla_client
from packaging.requirements import Requirement
from packaging.version import Version

from export_core.releases import JaxRelease, Windows, load_calendar, promise

CALENDAR = load_calendar()

# Section "Why are jax and jaxlib separate packages?".


def _suffixes(package):
    return {path.suffix for path in importlib.metadata.files(package) or ()}


def test_jax_is_pure_python_and_jaxlib_has_libraries():
    compiled = {".so", ".pyd", ".dylib"}
    assert not compiled & _suffixes("jax")
    assert compiled & _suffixes("jaxlib")


def test_jaxlib_has_xla_and_the_bindings_of_stablehlo():
    names = {str(path) for path in importlib.metadata.files("jaxlib") or ()}
    assert {"jaxlib/xla_client.py", "jaxlib/mlir/dialects/stablehlo.py", "jaxlib/mlir/ir.py"} <= names


# Section "How are jax and jaxlib versioned?".


def test_jax_refuses_a_jaxlib_that_is_newer_than_itself():
    with pytest.raises(RuntimeError, match="is newer than and incompatible with jax version"):
        check_jaxlib_version(jax_version="0.9.1", jaxlib_version="0.9.2", minimum_jaxlib_version="0.9.1")


def test_jax_refuses_a_jaxlib_below_its_minimum():
    with pytest.raises(RuntimeError, match="of jax requires version >="):
        check_jaxlib_version(jax_version="0.9.2", jaxlib_version="0.9.0", minimum_jaxlib_version="0.9.1")


def test_an_older_jaxlib_above_the_minimum_is_accepted():
    assert check_jaxlib_version(jax_version="0.9.2", jaxlib_version="0.9.1", minimum_jaxlib_version="0.9.1")


def test_versions_are_compared_number_by_number():
    assert check_jaxlib_version(jax_version="0.10.0", jaxlib_version="0.9.2", minimum_jaxlib_version="0.9.1")
    with_minimum = CALENDAR.extended({}, {"0.10.0": JaxRelease(CALENDAR.jax["0.10.0"].built, "0.9.1")})
    assert with_minimum.pair("0.9.2", "0.10.0").pair == "0.9.2-jax0.10.0"
    # Three numbers in the document; 0.9.0.1 and 0.12.0.1 have four.
    assert check_jaxlib_version(jax_version="0.9.0.1", jaxlib_version="0.9.0.1", minimum_jaxlib_version="0.9.0")
    assert all(str(Version(version)) == version for version in (*CALENDAR.jax, *CALENDAR.jaxlib))


def test_development_versions_are_checked_by_their_numbers():
    assert check_jaxlib_version("0.13.0.dev20261101", "0.13.0.dev20261120", "0.12.0")
    with pytest.raises(RuntimeError, match="is newer than and incompatible with jax version"):
        check_jaxlib_version("0.12.0", "0.13.0.dev20261120", "0.11.2")


def test_every_minimum_jaxlib_is_older_and_released():
    for version, release in CALENDAR.jax.items():
        minimum = Version(release.minimum_jaxlib)
        assert minimum <= Version(version)
        # The calendar begins later than the minimum of the five oldest jax in it.
        assert release.minimum_jaxlib in CALENDAR.jaxlib or minimum < Version("0.4.18"), version


def test_the_minimum_jaxlib_never_falls():
    minimums = [Version(CALENDAR.jax[version].minimum_jaxlib) for version in sorted(CALENDAR.jax, key=Version)]
    assert minimums == sorted(minimums)


def test_some_jax_releases_have_no_jaxlib():
    assert {"0.4.37", "0.5.2"} <= CALENDAR.jax.keys() - CALENDAR.jaxlib.keys()


def test_every_jaxlib_has_its_jax_within_two_days():
    # The calendar has no jax 0.4.13, which had no jax.export.
    for jaxlib in CALENDAR.jaxlib.keys() - {"0.4.13"}:
        assert 0 <= (CALENDAR.jax[jaxlib].built - CALENDAR.built(jaxlib)).days <= 2, jaxlib


def test_a_jax_release_may_accept_only_one_jaxlib():
    # At least two in the document: the last release and the next.
    def fitting(jax_version):
        minimum = Version(CALENDAR.jax[jax_version].minimum_jaxlib)
        return [each for each in CALENDAR.jaxlib if minimum <= Version(each) <= Version(jax_version)]

    assert (fitting("0.9.2"), fitting("0.11.2")) == (["0.9.2"], ["0.11.2"])
    assert fitting("0.12.0.1") == ["0.11.2", "0.12.0", "0.12.0.1"]


def test_jax_requires_a_range_of_jaxlib():
    # The document: checked when jax is imported, and not by the requirements of the package.
    (needed,) = [
        each.specifier
        for each in map(Requirement, importlib.metadata.requires("jax") or ())
        if each.name == "jaxlib" and each.marker is None
    ]
    assert {each.operator for each in needed} == {"<=", ">="}
    assert jax.__version__ in needed


def test_extras_name_the_jaxlib_of_an_accelerator():
    extras = {
        name
        for each in map(Requirement, importlib.metadata.requires("jax") or ())
        for name in ("cuda", "tpu")
        if each.name == "jaxlib" and each.marker is not None and each.marker.evaluate({"extra": name})
    }
    assert extras == {"cuda", "tpu"}


# Section "How do we make changes across the jax and jaxlib boundary between releases?".


def test_a_golden_records_the_jaxlib_extension_version(export_marked):
    assert jaxlib_extension_version == xla_client._version
    assert export_marked(jax.jit(lambda x: x), 1.0).manifest.writer.jaxlib_extension_version == jaxlib_extension_version
    assert jaxlib_extension_version > 420  # that of 0.9.2


# The note of May 2024, "Compatibility windows for exported artifacts".


@pytest.mark.parametrize("day", [datetime.date(2025, 6, 1), datetime.date(2026, 11, 22)])
def test_the_newest_release_has_the_longest_promise(day):
    then = CALENDAR.as_of(day)
    until = {
        version: promise(then.built(version), day, Windows()).until
        for version in then.jaxlib
        if then.built(version) < day
    }
    newest = max(until, key=then.built)
    assert all(last < until[newest] for version, last in until.items() if version != newest)
