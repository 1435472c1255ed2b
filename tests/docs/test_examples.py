"""Each example is complete and small. tests/ci checks its workflow, and `nox -s examples` runs its commands."""

import re
from pathlib import Path

import pytest

from tools.printed import FENCE

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))
ONE_SCREEN = 100  # lines of Markdown, with what the commands print

each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)


@each
def test_an_example_has_readme_policy_tests_and_goldens(example):
    assert (example / "export_compat.yaml").is_file()
    assert list(example.glob("tests/test_*.py"))
    assert list(example.rglob("golden.yaml"))
    assert f"({example.name}/README.md)" in (ROOT / "examples" / "README.md").read_text()


@each
def test_a_readme_is_short_and_its_commands_are_run(example):
    text = (example / "README.md").read_text()
    assert len(text.splitlines()) <= ONE_SCREEN
    outside = FENCE.sub(lambda fence: "" if fence["language"] == "console" else fence[0], text)
    assert re.findall(r"^ *\$ .*", outside, re.MULTILINE) == []


@each
def test_links_of_a_readme_lead_to_files(example):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (example / "README.md").read_text())
    assert links
    assert [link for link in links if not (example / link).exists()] == []


def test_the_goldens_of_all_examples_are_small():
    files = [path for manifest in (ROOT / "examples").rglob("golden.yaml") for path in manifest.parent.iterdir()]
    assert 0 < sum(path.stat().st_size for path in files) < 1e6
