"""A release that its index withdrew is chosen by no word and advised by nothing, and where it is named it is known."""

import shutil
from pathlib import Path

import pytest

from export_core.policy import load_policy
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import calendar_entries, shipped_entries
from export_core.releases.errors import ReleaseError

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "golden" / "tests.compat.test_trees.test_nested"
WITHDRAWN = "jaxlib: {0.9.2: {built: 2026-03-18, python: ['3.12'], yanked: wrong numbers}}\n"


@pytest.fixture
def project(cwd: Path) -> Path:
    """A project with a golden and a target that runs 0.9.2, which the index has withdrawn since."""
    shutil.copytree(GOLDEN, cwd / "golden" / GOLDEN.name)
    (cwd / "export_releases.yaml").write_text(WITHDRAWN)
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    return cwd


def test_a_reader_withdrawn_by_the_shipped_calendar_is_known_by_name():
    assert "0.4.32" not in [entry.jaxlib for entry in shipped_entries()]
    assert find_reader("0.4.32", Terms(shipped_entries())).release.built == "2024-09-11"
    with pytest.raises(ReleaseError, match="not in the release calendar"):
        find_reader("0.4.99", Terms(shipped_entries()))


def test_a_reader_withdrawn_by_the_project_is_known_by_name(project):
    calendar = load_policy(project / "export_compat.yaml").calendar()
    terms = Terms(calendar_entries(calendar))
    assert "0.9.2" not in [entry.jaxlib for entry in terms.releases]
    assert str(find_reader("0.9.2", terms, calendar).release.built) == "2026-03-18"


@pytest.mark.parametrize(
    "words",
    [
        ("matrix", "--dry-run", "--readers", "0.4.32"),
        ("matrix", "--dry-run", "--readers", "deployed"),
        ("forecast", "--deployed", "0.9.2"),
        ("inspect", f"golden/{GOLDEN.name}/0.12.0.1-cpu", "--readers", "0.9.2"),
        ("inspect", f"golden/{GOLDEN.name}/0.12.0.1-cpu", "--readers", "0.4.32"),
        ("convert", f"golden/{GOLDEN.name}/0.12.0.1-cpu", "--for", "serving", "-o", "out", "--dry-run"),
    ],
    ids=" ".join,
)
def test_commands_answer_for_a_withdrawn_release_that_is_named(project, jaxexport, words):
    ended = jaxexport(*words)
    assert "not in the release calendar" not in ended.err
    assert "0.9.2" in ended.out or "0.4.32" in ended.out


def test_can_i_deploy_answers_for_a_target_on_a_withdrawn_release(project, jaxexport):
    ended = jaxexport("can-i-deploy", "--to", "serving", code=None)
    assert ended.code in (1, 3), ended.err
    assert "not in the release calendar" not in ended.err


def test_a_policy_that_dates_a_withdrawn_release_leaves_it_withdrawn(project, jaxexport):
    (project / "export_compat.yaml").write_text("releases: {jaxlib: {0.9.2: {built: 2026-03-18, python: ['3.12']}}}\n")
    calendar = load_policy(project / "export_compat.yaml").calendar()
    assert calendar.jaxlib["0.9.2"].yanked == "wrong numbers"
    assert "0.9.2" not in calendar.versions()
    assert "jaxlib 0.9.2 (built 2026-03-18) was withdrawn" in jaxexport("policy", "check").out


def test_the_promise_of_a_withdrawn_writer_says_why_it_is_unknown(project, jaxexport):
    out = " ".join(jaxexport("inspect", f"golden/{GOLDEN.name}/0.9.2-cpu").out.split())
    assert "promised unknown: no release of the calendar wrote it, or an index has withdrawn the one that did" in out
