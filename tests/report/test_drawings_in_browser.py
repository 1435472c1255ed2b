"""The pictures of a run and the pages around them, in Chromium at three sizes and in both themes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from comparing import compared
from example_runs import broken_run
from making import day, golden

from export_core.features.forecast.forecast import forecast
from export_core.features.forecast.forecast_text import forecast_page
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.releases import load_calendar
from export_core.report.page import html_page

pytestmark = pytest.mark.browser

SIZES = {"desktop": (1440, 1000), "tablet": (900, 1000), "phone": (390, 844)}


@pytest.fixture(scope="session")
def comparison(tmp_path_factory) -> Path:
    """The page of the example run, compared with a run in which no reader timed out or gave other numbers."""
    results, _ = broken_run()
    works = {"verdict": Verdict.PASS, "judgement": Judgement.KEPT, "message": "", "cause": ""}
    then = [
        msgspec.structs.replace(one, **works) if one.verdict in (Verdict.NUMERICS, Verdict.TIMEOUT) else one
        for one in results
    ]
    page = tmp_path_factory.mktemp("comparison") / "report.html"
    page.write_text(html_page(compared(then, results)), encoding="utf-8")
    return page


@pytest.fixture(scope="session")
def ahead(tmp_path_factory) -> Path:
    goldens = [golden("a", "0.9.2"), golden("a", "0.11.0"), golden("a", "0.12.0.1")]
    page = tmp_path_factory.mktemp("forecast") / "forecast.html"
    found = forecast(goldens, Policy(), load_calendar(), day("2026-11-21"), 200, ["0.11.0"])
    page.write_text(forecast_page(found), encoding="utf-8")
    return page


def assert_accessible(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_violation_in_a_comparison(size, scheme, opened, comparison):
    assert_accessible(opened(file=comparison, size=SIZES[size], color_scheme=scheme))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_violation_in_a_forecast(size, scheme, browser, ahead):
    page = browser.new_page(viewport=dict(zip(("width", "height"), SIZES[size], strict=True)), color_scheme=scheme)
    page.goto(ahead.as_uri())
    assert_accessible(page)
    page.close()


@pytest.mark.parametrize("size", SIZES)
def test_all_squares_are_large_enough_and_seen_at_once_but_on_a_phone(size, opened):
    page = opened(size=SIZES[size])
    boxes = page.evaluate(
        "[...document.querySelectorAll('.map a.square rect')].map(rect => rect.getBoundingClientRect())"
        ".filter(box => box.width).map(({left, right, width, height}) => ({left, right, width, height}))"
    )
    assert len(boxes) == 5 * 17
    assert all(box["left"] >= 0 and (box["right"] <= SIZES[size][0] or size == "phone") for box in boxes)
    assert min(min(box["width"], box["height"]) for box in boxes) >= 20


@pytest.mark.parametrize("size", SIZES)
def test_names_on_the_map_can_be_read(size, opened):
    page = opened(size=SIZES[size])
    heights = page.evaluate(
        "[...document.querySelectorAll('.map .writer, .map .reader')].filter(text => text.getClientRects().length)"
        ".map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a"
        " / Math.cos(Math.atan2(text.getScreenCTM().b, text.getScreenCTM().a)))"
    )
    assert len(heights) == 5 + 17
    assert min(heights) >= 9.5


def test_a_square_filters_the_table(opened):
    page = opened()
    page.click('.map a[aria-label^="written by 0.9.2, read by 0.9.1"]')
    assert page.locator("#count").inner_text().startswith("60 of 4,692")


def test_on_a_phone_the_map_is_scrolled_to_its_newest_reader(opened):
    page = opened(size=SIZES["phone"])
    page.locator('.map a[aria-label*="read by 0.12.0.1"]').first.scroll_into_view_if_needed()
    box = page.locator('.map a[aria-label*="read by 0.12.0.1"] rect').first.bounding_box()
    assert 0 <= box["x"] <= SIZES["phone"][0] - box["width"]


def test_the_two_maps_of_a_comparison_have_the_same_columns(opened, comparison):
    page = opened(file=comparison)
    then, now = (page.locator(".both svg").nth(number).bounding_box() for number in (0, 1))
    assert then["x"] == now["x"]
    assert then["y"] + then["height"] <= now["y"]
