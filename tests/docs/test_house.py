"""The map of the source code, and where a first change goes: each file that they name is there."""

import re
from pathlib import Path

import pytest

from export_core.features import FEATURES

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "docs" / "explanation" / "house.md"


@pytest.mark.parametrize("page", [HOUSE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_each_path_of_the_code_exists(page):
    names = re.findall(r"`(\w[\w./]+(?:\.py|\.css|\.yaml|\.md|/))`", page.read_text(encoding="utf-8"))
    assert len(names) > 15
    assert [name for name in names if not any((root / name).exists() for root in (ROOT, ROOT / "export_core"))] == []


def test_each_room_and_each_feature_is_on_the_map():
    text = HOUSE.read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "export_core").iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if not re.search(rf"^ {{4}}.*\b{room}/", text, re.MULTILINE)] == []
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*FEATURES]
