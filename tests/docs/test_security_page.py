"""The tests and sessions that docs/explanation/security.md names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_of_the_page_exists():
    page = (ROOT / "docs" / "explanation" / "security.md").read_text()
    names = set(re.findall(r"`(test_\w+(?:\.py)?)`", page))
    folders = (ROOT / "tests", ROOT / "studies" / "tests")
    files = {path.name: path.read_text() for folder in folders for path in folder.rglob("test_*.py")}
    tests = {name for text in files.values() for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)}
    assert len(names) > 60
    assert names - tests - files.keys() == set()
    assert set(re.findall(r"`nox -s (\w+)`", page)) <= set(
        re.findall(r"^def (\w+)", (ROOT / "noxfile.py").read_text(), re.M)
    )
