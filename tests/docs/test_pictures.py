"""The drawings of the docs equal what the code draws now. Screenshots: test_site.py, test_tutorial.py, tests/report."""

import html
import re
from pathlib import Path

import pytest

from export_core.goldens import GoldenStore
from export_core.report.map_svg import LOOKS
from export_core.report.svg import STYLE
from tools.doc_pictures import IMAGES, PICTURES

ROOT = Path(__file__).parents[2]
MAPS = ("map.svg", "tutorial-map.svg")


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawing_in_the_docs_is_what_its_tool_draws(name):
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name](), "python -m tools.doc_pictures"


def test_every_picture_is_on_a_page_of_the_docs():
    pages = [ROOT / "README.md", ROOT / "docs" / "conf.py", *ROOT.glob("docs/**/*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    stored = {path.name for path in IMAGES.iterdir()} - {path.name for path in IMAGES.glob("site*.png")}
    assert [name for name in sorted(stored) if f"images/{name}" not in text] == [], "git ignores those of the site"


def test_each_test_that_saves_a_screenshot_has_picture_in_its_name():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")]
    made = [name for text in texts for name in re.findall(r"def (test_\w+)\([^)]*\bsave\b[^)]*\)", text)]
    assert len(made) >= 6
    assert [name for name in made if "picture" not in name] == [], "CONTRIBUTING.md: -k 'picture or tutorial'"


@pytest.mark.parametrize("name", MAPS)
def test_a_picture_of_a_map_has_the_current_style_and_legend(name):
    picture = html.unescape((IMAGES / name).read_text(encoding="utf-8"))
    current = STYLE.read_text(encoding="utf-8") in picture
    assert current, f"{name} has other colours. Draw it again: see the chores of CONTRIBUTING.md about pictures."
    legend = re.findall(r'<text class="legend" x="[^"]*" y="([\d.]+)">([^<]*)', picture)
    last = max(float(y) for y, _ in legend)
    words = {text for y, text in legend if float(y) > last - 30}
    assert words <= {*LOOKS.values(), "promised", "read by its own writer"}, f"{name} has other words: draw it again"
    assert len(words) >= 4


def test_the_map_of_the_readme_has_all_writers():
    picture = (IMAGES / "map.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r'class="writer"[^>]*>([^<]*)', picture))
    goldens = GoldenStore(ROOT / "golden").goldens()
    assert drawn == {one.manifest.writer.jaxlib for one in goldens if "cpu" in one.manifest.replayed_on}
