"""The built site: each of its links has a target, and its pages work from a folder without a network.

`PAGE_IMAGES=docs/images nox -s browser -- -k picture` makes pictures of the site too, which git ignores.
"""

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from browsing import expect

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "docs" / "_build" / "html"
DESKTOP = {"width": 1280, "height": 900}
GUIDES = sorted(page.stem for page in ROOT.glob("docs/how-to/*.md") if page.stem != "index")
PICTURES = {"site": "index", "site-how-to": "how-to/index"}
PICTURES |= {f"site-how-to-{guide}": f"how-to/{guide}" for guide in GUIDES}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A warning is no error here, unlike in `nox -s docs`.

    If that session has built the site, Sphinx only builds in a copy what has changed since, as that session does.
    """
    folder = tmp_path_factory.mktemp("site") / "html"
    if BUILT.exists():
        shutil.copytree(BUILT, folder)
    subprocess.run([sys.executable, "-m", "sphinx", "-Q", ROOT / "docs", folder], check=True)
    return folder


class Anchors(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value or "")
            elif name in ("id", "name"):
                self.anchors.add(value or "")


def dead_links(site: Path) -> Iterator[str]:
    """Yield each link within the site whose file or anchor does not exist.

    `#name=value` in a link of a page to itself is the state of its script and no anchor: tests/report follows it.
    """
    pages = {path: Anchors(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert pages, site
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            is_state = target == path and "=" in anchor
            is_named = target not in pages or anchor in pages[target].anchors
            if not target.is_file() or (anchor and not is_state and not is_named):
                yield f"{path.relative_to(site)}: {link}"


def test_every_link_within_the_site_leads_somewhere(site):
    assert list(dead_links(site)) == []


def test_the_page_of_the_atlas_is_opened_and_not_downloaded(site):
    text = (site / "atlas" / "index.html").read_text(encoding="utf-8")
    assert '<a class="external reference" href="page.html">' in text
    assert (site / "atlas" / "page.html").read_bytes() == (ROOT / "docs" / "atlas" / "page.html").read_bytes()


@pytest.mark.parametrize("link", ["gone.html", "#gone", "other.html#gone", "other.html#filter=gone", "img/gone.png"])
def test_the_check_of_links_finds_a_link_that_leads_nowhere(link, tmp_path):
    (tmp_path / "page.html").write_text(f'<a href="{link}"></a><a href="other.html#here"></a><a href="#filter=a"></a>')
    (tmp_path / "other.html").write_text('<p id="here"></p><a href="https://example.org/gone"></a>')
    assert list(dead_links(tmp_path)) == [f"page.html: {link}"]


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """A function that opens a page of the site; a script's error or a network request fails the test."""
    problems: list[str] = []
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")

    def opening(path: Path, query: str = "") -> Any:
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or problems.append(asked.url))
        page.goto(path.as_uri() + query)
        return page

    yield opening
    context.close()
    # Search shows an excerpt of each page that it finds, and reads it with fetch(), which no file: address allows.
    assert set(problems) <= {"Failed to fetch"}


def test_search_finds_a_page_without_a_network(site, opened):
    page = opened(site / "search.html", "?q=backfill")
    expect(page.locator("ul.search")).to_contain_text("Goldens of an older release")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_a_site_page_is_made(name, site, opened, save):
    from PIL import Image

    page = opened(site / f"{PICTURES[name]}.html")
    for image in page.locator("article img").all():
        assert image.evaluate("image => image.complete && image.naturalWidth > 0")
    assert page.locator("h1").bounding_box()["y"] < DESKTOP["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"], "nothing is wider than the screen"
    save(name, Image.open(io.BytesIO(page.screenshot())))
