"""The tutorial, run from its first page to its last in one folder, and the pictures of its results.

`PAGE_IMAGES=docs/images nox -s browser -- -k tutorial` makes the pictures.
"""

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from export_core.judge import Judgement
from export_core.report.page_data import cell_link
from tools.printed import check, read
from tools.stored_results import read_results

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LAST = read(ROOT / "docs" / "tutorial" / "5-gate.md")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user who has followed the tutorial."""
    folder = tmp_path_factory.mktemp("tutorial")
    check(LAST, folder)
    return folder


def test_every_page_of_the_tutorial_prints_what_it_shows(played):
    assert [page.path for page in LAST.session] == sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md"))


def test_the_picture_of_the_map_is_current(played):
    if images := os.environ.get("PAGE_IMAGES"):
        shutil.copy(played / "map.svg", Path(images) / "tutorial-map.svg")
    assert (ROOT / "docs" / "images" / "tutorial-map.svg").read_text() == (played / "map.svg").read_text()


@pytest.fixture
def report(played: Path, browser: Any) -> Iterator[Any]:
    """The report of page 4, opened in a browser."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.goto((played / "report.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    yield page
    context.close()


def test_a_picture_shows_the_report_of_a_broken_run(report, save):
    from PIL import Image

    save("tutorial-page", Image.open(io.BytesIO(report.screenshot())))
    assert "1 of 12 promised cells" in report.locator("h1").inner_text()


def test_a_picture_shows_the_broken_cell(played, report, save):
    from PIL import Image

    # Page 4 lists it as a known failure after the report was made.
    key = next(result.key for result in read_results(played / ".jaxexport") if result.judgement is Judgement.KNOWN)
    report.evaluate("address => { location.hash = address }", cell_link(key))
    report.wait_for_selector("dialog[open]")
    save("tutorial-cell", Image.open(io.BytesIO(report.locator("dialog").screenshot())))
    assert "signal 11" in report.locator("dialog").inner_text()
