"""The tests and sessions that security.yaml names exist, and security.md has each subject of security.yaml."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
SUBJECTS = yaml.safe_load((EXPLANATION / "security.yaml").read_text(encoding="utf-8"))
ROWS = [row for rows in SUBJECTS.values() for row in rows]


def test_every_test_named_for_a_security_rule_exists():
    names = {name for row in ROWS for name in row["tests"]}
    folders = (ROOT / "tests", ROOT / "studies" / "tests")
    files = {path.name: path.read_text() for folder in folders for path in folder.rglob("test_*.py")}
    tests = {name for text in files.values() for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)}
    sessions = {f"nox -s {name}" for name in re.findall(r"^def (\w+)", (ROOT / "noxfile.py").read_text(), re.M)}
    assert len(names) > 60
    assert names - tests - files.keys() - sessions == set()


def test_a_security_rule_without_a_test_is_marked_as_trusted():
    assert [row["what"] for row in ROWS if not row["tests"] and not row.get("trusted", "").startswith("yes")] == []


def test_the_security_page_has_each_subject_and_names_nox_sessions():
    page = (EXPLANATION / "security.md").read_text(encoding="utf-8")
    assert SUBJECTS.keys() - set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == set()
    assert set(re.findall(r"`nox -s (\w+)", page)) <= set(
        re.findall(r"^def (\w+)", (ROOT / "noxfile.py").read_text(), re.M)
    )
