"""The page of a run in a real browser: filters, cells opened by mouse and keyboard, no request for anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from making import day, result, summarize

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.report.html import html_page
from export_core.worker.protocol import Stage

pytestmark = pytest.mark.browser

READERS = ("0.9.2", "0.10.0", "0.10.1", "0.10.2")


@pytest.fixture(scope="module")
def browser():
    """Chromium as installed here, else Playwright's own. Never skipped: the marker says that a browser is there."""
    from playwright.sync_api import sync_playwright

    installed = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        # The sandbox of a browser needs rights that root in a container has not.
        launched = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield launched
        launched.close()


def results(cases: int = 3) -> list[Result]:
    """Two writers by four readers for each case; one cell crashed, and one was refused."""
    one = [result(case="t.test", writer=writer, reader=reader) for writer in ("0.9.2", "0.10.0") for reader in READERS]
    made = [
        msgspec.structs.replace(each, case=f"t.test_{number}", golden=f"t.test_{number}/{each.writer.jaxlib}-cpu")
        for number in range(cases)
        for each in one
    ]
    made[5] = result(
        Verdict.CRASH, Judgement.BROKEN, case="t.test_0", writer="0.10.0", reader="0.10.0", stage=Stage.RUN, signal=11,
        message="died by <b>signal 11</b> (SIGSEGV)", stderr="\x1b[31mFatal\x1b[0m",
    )  # fmt: skip
    made[6] = result(
        Verdict.REFUSED,
        Judgement.OUTSIDE,
        case="t.test_0",
        writer="0.10.0",
        reader="0.10.1",
        promised=False,
        message="no",
    )
    return made


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of some results; fails on any error of its script and on any request beside the page itself."""
    errors, requests = [], []

    def opening(made, **options):
        summary = summarize(
            made, planned=len(made), policy=Policy(), as_of=day("2026-11-21"), selection={"whole": True}, seconds=1
        )
        file = Path(tmp_path / "report.html")
        file.write_text(html_page(made, summary), encoding="utf-8")
        page = browser.new_page(**options)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    yield opening
    assert errors == []
    assert len(requests) == 1


def visible(page) -> list[str]:
    return page.locator("#matrix td[class]:not(.off):visible").all_inner_texts()


def test_the_table_filters_by_judgement_verdict_and_text(opened):
    page = opened(results())
    assert page.evaluate("document.getElementById('shown').value") == "24 of 24 cells"
    page.select_option("#by-judgement", "broken")
    assert visible(page) == ["sig11!"]
    assert page.locator("#matrix tbody tr:visible").all_inner_texts()[0].startswith("0.10.0")
    page.select_option("#by-judgement", "")
    page.select_option("#by-verdict", "refused")
    assert visible(page) == ["[ref]"]
    page.select_option("#by-verdict", "")
    page.fill("#by-text", "SIGSEGV test_0")
    assert visible(page) == ["sig11!"]
    page.fill("#by-text", "nothing is called so")
    assert visible(page) == []
    assert page.evaluate("document.getElementById('shown').value") == "0 of 24 cells"


def test_a_click_shows_all_of_a_cell(opened):
    page = opened(results())
    page.locator("#matrix td.broken").click()
    dialog = page.locator("dialog[open]")
    assert dialog.locator("h2").inner_text() == "t.test_0 on cpu"
    told = dict(zip(dialog.locator("dt").all_inner_texts(), dialog.locator("dd").all_inner_texts(), strict=True))
    assert told["message"] == "died by <b>signal 11</b> (SIGSEGV)"
    assert told["stderr"] == "Fatal"
    assert told["window"].startswith("same: reader and writer were built on the same day")
    assert told["reproduce"].startswith("jaxexport matrix --cases t.test_0 --writers 0.10.0 --readers 0.10.0")
    dialog.get_by_role("button", name="close").click()
    assert page.locator("dialog[open]").count() == 0


def test_the_table_is_one_tab_stop_and_arrows_move_inside(opened):
    page = opened(results())
    page.locator("#by-text").focus()
    stops = []
    for _ in range(4):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert stops.count("kept") == 1
    page.locator("#matrix td.kept").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    focused = "document.activeElement.parentElement.cells[0].innerText + ' ' + document.activeElement.cellIndex"
    assert page.evaluate(focused) == "test_1 2"
    assert page.evaluate("document.activeElement.ariaLabel").startswith("kept, pass: t.test_1, written by jax 0.9.2")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate(focused) == "test_1 2", "and one is back where one was"


def test_headers_say_of_what_they_are_and_the_table_is_a_grid(opened):
    page = opened(results())
    scopes = page.eval_on_selector_all("#matrix th", "all => all.map(each => each.scope)")
    assert scopes.count("col") == 1 + len(READERS)
    assert scopes.count("rowgroup") == 2
    assert scopes.count("row") == 6
    assert page.get_by_role("grid").get_by_role("gridcell").count() == 24
    assert page.get_by_role("columnheader", name="0.10.1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_system(scheme, opened):
    page = opened(results(), color_scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]


def test_without_javascript_the_table_and_the_findings_are_there(browser, opened, tmp_path):
    opened(results())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert page.locator("#matrix td.broken").inner_text() == "sig11!"
    assert "NOT REPLAYABLE" in page.locator("details").first.inner_text()
    assert not page.locator("#filter").is_visible()
    context.close()


def test_a_page_of_25000_cells_opens_and_filters_while_one_waits(opened):
    page = opened(results(25_000 // 8))
    assert page.evaluate("document.getElementById('shown').value") == "25000 of 25000 cells"
    page.locator("#by-text").fill("sigsegv")
    assert page.evaluate("document.getElementById('shown').value") == "1 of 25000 cells"
