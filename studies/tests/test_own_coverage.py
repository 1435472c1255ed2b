"""All that the newest jax can put into an artifact has a case here, or a reason in tests/compat/not_covered.yaml."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from export_core.features.inspect.coverage import coverage
from export_core.goldens import GoldenStore
from export_core.releases import load_calendar
from export_core.releases.stable_targets import stable_targets
from tools import coverage_page


@pytest.fixture(scope="module")
def covered():
    return coverage(GoldenStore(coverage_page.ROOT / "golden").goldens())


@pytest.fixture(scope="module")
def installed(covered):
    """All that the installed jax can put into an artifact.

    The test is skipped if that jax is older than the newest writer.
    """
    newest = max((version for row in covered["formats"].values() for _, version in row.writers), key=Version)
    if Version(jaxlib := importlib.metadata.version("jaxlib")) < Version(newest):
        pytest.skip(f"jaxlib {jaxlib} is older than the newest writer, {newest}")
    script = Path(__file__).with_name("installed_jax.py")
    answer = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


@pytest.mark.parametrize("section", ["targets", "primitives", "dtypes", "effects", "formats"])
def test_what_jax_can_write_has_a_case_or_a_reason(section, installed, covered):
    missing = set(installed[section]) - set(covered[section]) - coverage_page.exemptions(section)
    assert not missing, f"write a case for each of these {section}, or give the reason in {coverage_page.NOT_COVERED}"


def test_each_stable_target_has_a_case_or_a_reason(covered):
    """JAX tests that each target of its list has a case; this test takes the lists of all releases."""
    listed = {target: version for version in load_calendar().versions() for target in stable_targets(version)}
    missing = {*listed} - {*covered["targets"]} - coverage_page.exemptions("targets")
    named = {target: f"on the list of jax {listed[target]}" for target in missing}
    assert not named, f"write a case for each of these targets, or give the reason in {coverage_page.NOT_COVERED}"
    assert len(listed) >= 147


@pytest.mark.parametrize("section", ["targets", "primitives", "effects"])
def test_names_listed_as_not_covered_have_no_case(section, covered):
    both = coverage_page.exemptions(section) & set(covered[section])
    assert not both, f"delete them from {coverage_page.NOT_COVERED}"


def test_the_page_and_its_data_are_those_of_the_goldens(covered):
    page, rows = (path.read_text(encoding="utf-8") for path in (coverage_page.PAGE, coverage_page.DATA))
    assert page == coverage_page.page(covered, page), "python -m tools.coverage_page"
    assert rows == coverage_page.data(covered), "python -m tools.coverage_page"
