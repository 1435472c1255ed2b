"""Fixtures of tests marked `browser`: Chromium, its contexts, the folder of pictures, and the opened page of a run.

A page handles some actions in a later event, so a test waits with `expect` for the effect of an action.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DESKTOP = (1440, 1000)


def expect(actual: Any, message: str | None = None) -> Any:
    """Return Playwright's assertions about a page or a locator: each waits until it holds."""
    from playwright.sync_api import expect

    return expect(actual, message)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The installed Chromium, or Playwright's own. Tests with the marker `browser` need one, and fail without it.

    The headless shell is the same engine without the windows, which would take as long as the pages of these tests.
    """
    from playwright.sync_api import expect, sync_playwright

    # As long as Playwright waits for anything else: on a busy machine, an event may come seconds later.
    expect.set_options(timeout=30_000)
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    installed = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        # The sandbox of a browser needs rights that root in a container lacks. One process renders all pages, one after
        # the other: starting a process for each takes a third of the time of a test.
        switches = ["--no-sandbox", "--renderer-process-limit=1"]
        launched = playwright.chromium.launch(executable_path=installed, args=switches)
        yield launched
        launched.close()


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, Any], None]:
    """The function that stores a picture in PAGE_IMAGES, with 256 colours so that it is small."""
    folder = Path(os.environ.get("PAGE_IMAGES", tmp_path))
    return lambda name, picture: picture.convert("RGB").quantize(256).save(folder / f"{name}.png", optimize=True)


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The function that writes the page of `broken_run`, or of a run with this many cells, and returns its path."""
    from example_runs import broken_run, large_run
    from making import document

    from export_core.report.page import html_page

    made: dict[int, Path] = {}

    def page(cells: int = 0) -> Path:
        if cells not in made:
            made[cells] = tmp_path_factory.mktemp("page") / f"report-{cells}.html"
            made[cells].write_text(
                html_page(document(*(large_run(cells) if cells else broken_run()))), encoding="utf-8"
            )
        return made[cells]

    return page


@pytest.fixture(scope="session")
def context_of(browser: Any) -> Iterator[Callable[..., Any]]:
    """The function that returns a browser context with these options; equal options give the same context.

    An empty page stays open in each context, and keeps its rendering process alive, which takes longer to start than a
    page to load. Pages can share a context, since none of them stores anything.
    """
    made: dict[str, Any] = {}

    def context(**options: Any) -> Any:
        key = str(sorted(options.items()))
        if key not in made:
            made[key] = browser.new_context(**options)
            made[key].new_page()
        return made[key]

    yield context
    for opened_context in made.values():
        opened_context.close()


@pytest.fixture
def opened(
    context_of: Callable[..., Any], page_of: Callable[[int], Path], tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """The function that opens a page, by default that of `broken_run`.

    The test fails on any error of the page's script, and on any request beside the page itself.
    """
    from export_core.report.page import html_page

    problems: list[str] = []
    pages = []

    def opening(
        address: str = "",
        *,
        file: Path | None = None,
        shown: Any = None,
        size: tuple[int, int] = DESKTOP,
        **options: Any,
    ) -> Any:
        if shown:
            file = tmp_path / "shown.html"
            file.write_text(html_page(shown), encoding="utf-8")
        page = context_of(viewport={"width": size[0], "height": size[1]}, **options).new_page()
        pages.append(page)
        location = (file or page_of(0)).as_uri()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda asked: asked.url.startswith(location) or problems.append(asked.url))
        page.goto(location + address)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready]")
        return page

    yield opening
    for page in pages:
        page.close()
    assert problems == []
