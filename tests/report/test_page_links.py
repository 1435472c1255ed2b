"""Addresses in the page in Chromium: cells, causes and filters, which survive a reload and the back button."""

import functools
from typing import Any

import msgspec
import pytest
from example_runs import broken_run
from making import document

from export_core.judge import Result
from export_core.judge.gate import RunIdentity
from export_core.matrix import Verdict
from export_core.report.page import html_page
from export_core.report.page_data import cause_link, cell_link, filter_link

pytestmark = pytest.mark.browser


@functools.cache  # not while tests are collected, which most runs do without these
def numbers() -> Result:
    return next(result for result in broken_run()[0] if result.verdict is Verdict.NUMERICS)


def facts(page: Any) -> dict[str, str]:
    labels, values = (page.locator(f"#cell-facts > {tag}").all_inner_texts() for tag in ("dt", "dd"))
    return dict(zip(labels, values, strict=True))


def is_open(page: Any) -> bool:
    return page.locator("dialog[open]").count() == 1


def wait_until(page: Any, state: str) -> None:
    """Wait until the cell's dialog is `open` or `closed`: a page follows its address in an event, after the click."""
    page.wait_for_selector("dialog[open]" if state == "open" else "dialog:not([open])", state="attached")


def test_the_address_of_a_cell_opens_it(opened):
    page = opened(cell_link(numbers().key))
    assert page.locator("#cell-title").inner_text() == "test_model_9: ran with different numbers"
    shown = facts(page)
    assert shown["message"] == numbers().message
    assert shown["window"].startswith("backward: reader built 151 days after the writer; promised: 180 days")
    assert shown["reproduce"].startswith(numbers().reproduce)


def test_a_cell_shows_its_cost_and_its_times(opened):
    kept = next(one for one in broken_run()[0] if one.cost and one.case.endswith("model_9"))
    shown = facts(opened(cell_link(kept.key)))
    assert shown["cost"].startswith("temp_bytes 9.2 kB, argument_bytes 64 B, ")
    assert shown["times"].startswith("deserialize ")
    assert shown["times"].endswith(" ms, peak memory 180 MB")


def test_numbers_are_side_by_side(opened):
    tables = opened(cell_link(numbers().key)).locator(".numbers table")
    rows = [row.split() for row in tables.all_inner_texts()[0].splitlines()[-2:]]
    assert rows == [
        ["absolute", "relative", "times", "the", "noise", "allowed"],
        ["0.0231", "0.0117", "412", "8", "x", "noise"],
    ]
    assert "worst at [17]\t1.9712\t1.9943\t0.0231" in tables.all_inner_texts()[1]


def test_the_generations_of_a_case_are_side_by_side(opened):
    page = opened(cell_link(numbers().key))
    assert page.locator("#cell-generations tbody tr").count() == 5
    assert page.locator("#cell-generations .chosen").inner_text() == "numerics!"
    page.locator("#cell-generations tr", has_text="0.11.0").get_by_role("link").first.click()
    assert "written by 0.11.0 · read by 0.6.1" in page.locator("#cell-line").inner_text()


def test_a_click_opens_a_cell_and_back_closes_it(opened):
    page = opened(filter_link(verdict="timeout"))
    page.locator("#grid .broken").click()
    wait_until(page, "open")
    assert "cell=" in page.url
    page.go_back()
    wait_until(page, "closed")
    assert page.input_value("#query") == "verdict:timeout", "the filter is as it was"
    page.go_forward()
    wait_until(page, "open")
    page.reload()
    wait_until(page, "open")
    page.get_by_role("button", name="Close").click()
    wait_until(page, "closed")
    # The address changes in the dialog's close event, which comes after it has closed.
    page.wait_for_url(lambda address: "cell=" not in address)


def test_a_click_in_a_range_opens_the_reader_under_the_pointer(opened):
    page = opened(filter_link(cause="lapack-cold-process", judgement="broken", writer="0.6.2"))
    box = page.locator("#grid .cell").first.bounding_box()
    page.locator("#grid .cell").first.click(position={"x": box["width"] * 0.4, "y": 5})
    assert "read by 0.7.1 on cpu" in page.locator("#cell-line").inner_text()
    page.get_by_role("button", name="Newer reader").click()
    assert "read by 0.7.2 on cpu" in page.locator("#cell-line").inner_text()
    page.get_by_role("button", name="Older reader").click()
    page.get_by_role("button", name="Older reader").click()
    assert "read by 0.7.0 on cpu" in page.locator("#cell-line").inner_text()


def test_findings_and_cells_lead_to_each_other(opened):
    page = opened(cause_link("lapack-cold-process"))
    card = page.locator("[id='cause=lapack-cold-process=broken']")
    assert page.evaluate("document.activeElement.id") == "cause=lapack-cold-process=broken"
    card.get_by_role("link", name="Its 64 cells in the table").click()
    assert page.locator("#count").inner_text() == "64 of 4,692 cells"
    page.locator("#grid .cell").first.click()
    page.locator("#cell-facts a", has_text="LAPACK calls crash in a fresh process").click()
    wait_until(page, "closed")
    assert page.evaluate("document.activeElement.id") == "cause=lapack-cold-process=broken"
    card.get_by_role("link", name="One example").click()
    wait_until(page, "open")


def test_a_filter_in_the_address_survives_a_reload(opened):
    page = opened("#filter=judgement%3Abroken%20case%3A*cholesky*")
    for _ in range(2):
        assert page.locator("#count").inner_text() == "8 of 4,692 cells"
        page.reload()
        page.wait_for_selector("html[data-ready]")


def test_what_is_typed_is_in_the_address_soon_and_in_that_of_a_cell(opened):
    page = opened()
    page.fill("#query", "verdict:timeout")
    page.locator("#grid .cell").click()
    assert "#filter=verdict%3Atimeout&cell=" in page.url
    page.go_back()
    page.fill("#query", "verdict:crash")
    page.wait_for_url("**#filter=verdict%3Acrash")


@pytest.mark.parametrize("address", ["#cell=nothing", "#cell=%zz", "#cause=none", "#filter=%", "#&&=", "#table"])
def test_an_address_that_names_nothing_shows_the_page(address, opened):
    page = opened(address)
    assert not is_open(page)
    assert page.locator("#count").inner_text() == "4,692 of 4,692 cells"
    named = address in ("#cell=nothing", "#cause=none")
    assert ("This run has no" in page.locator("#status").inner_text()) is named


def test_commands_are_copied(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator(".card .copy").first.click()
    page.get_by_role("status").get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".card .command code").first.inner_text()


def test_a_cell_links_the_files_of_its_golden(opened, tmp_path):
    results, summary = broken_run()
    identity = RunIdentity(source_url="https://example.org/project/blob/abc", goldens="golden")
    file = tmp_path / "linked.html"
    file.write_text(html_page(document(results, msgspec.structs.replace(summary, identity=identity))), "utf-8")
    page = opened(cell_link(numbers().key), file=file)
    links = page.locator("#cell-facts dd a[href^=https]").evaluate_all("all => all.map(({ href }) => href)")
    assert links[0] == f"https://example.org/project/blob/abc/golden/{numbers().golden}/jaxpr.txt"


def test_the_address_of_a_filter_shows_the_table(opened):
    page = opened(filter_link(judgement="broken"))
    assert page.locator("#grid .cell").first.evaluate("cell => cell.getBoundingClientRect().top < innerHeight")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("scrollY") > 0
