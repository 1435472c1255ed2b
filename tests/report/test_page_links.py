"""The page in Chromium: its table, filters, ranges and order, its addresses, and the keyboard."""

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import expect
from example_runs import broken_run
from making import document, result, summarize, with_causes

from export_core.judge import Judgement, Result
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


def wait_until(page: Any, state: str) -> None:
    """Wait until the cell's dialog is `open` or `closed`, since the page follows its address after the click."""
    page.wait_for_selector("dialog[open]" if state == "open" else "dialog:not([open])", state="attached")


def in_url(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


NO_CELL = re.compile("^(?!.*cell=)")


@contextmanager
def one_step_back(page: Any) -> Iterator[None]:
    """Wait until the page has followed one step back in its history, and has moved the focus in a task after that."""
    page.evaluate("""() => {
        wentBack = new Promise((done) => addEventListener("popstate", () => setTimeout(done), { once: true }));
    }""")
    yield
    page.evaluate("wentBack")


def test_the_address_of_a_cell_opens_it(opened):
    page = opened(cell_link(numbers().key))
    assert page.locator("#cell-title").inner_text() == "test_model_9: ran with different numbers"
    shown = facts(page)
    assert shown["message"] == numbers().message
    assert shown["window"].startswith(
        "backward: reader built 151 days after the writer; promised to jaxlibs built until 2026-11-14"
    )
    assert shown["reproduce"].startswith(numbers().reproduce)


def test_an_opened_cell_shows_its_cost_and_times(opened):
    kept = next(one for one in broken_run()[0] if one.cost and one.case.endswith("model_9"))
    shown = facts(opened(cell_link(kept.key)))
    assert shown["cost"].startswith("temp_bytes 9.2 kB, argument_bytes 64 B, ")
    assert shown["times"].startswith("deserialize ")
    assert shown["times"].endswith(" ms, peak memory 180 MB")


def test_an_opened_cell_shows_numbers_side_by_side(opened):
    tables = opened(cell_link(numbers().key)).locator(".numbers table")
    rows = [row.split() for row in tables.all_inner_texts()[0].splitlines()[-2:]]
    assert rows == [
        ["times", "the", "noise", "absolute", "relative", "allowed"],
        ["412", "0.0231", "0.0117", "8", "x", "noise"],
    ]
    assert "largest error in units of the noise at [17]\t1.9712\t1.9943\t0.0231" in tables.all_inner_texts()[1]


def test_an_opened_cell_shows_all_generations_of_its_case(opened):
    page = opened(cell_link(numbers().key))
    assert page.locator("#cell-generations tbody tr").count() == 5
    assert page.locator("#cell-generations .chosen").inner_text() == "num!"
    page.locator("#cell-generations tr", has_text="0.11.0").get_by_role("link").first.click()
    expect(page.locator("#cell-line")).to_contain_text("written by 0.11.0 · read by 0.6.1")


def test_a_click_opens_a_cell_and_back_closes_it(opened):
    page = opened(filter_link(verdict="timeout"))
    page.locator("#grid .broken").click()
    wait_until(page, "open")
    expect(page).to_have_url(in_url("cell="))
    page.go_back()
    wait_until(page, "closed")
    expect(page.locator("#query"), "the filter is as it was").to_have_value("verdict:timeout")
    page.go_forward()
    wait_until(page, "open")
    page.reload()
    wait_until(page, "open")
    page.get_by_role("button", name="Close").click()
    wait_until(page, "closed")
    expect(page).to_have_url(NO_CELL)


def test_going_forward_right_after_back_reopens_the_cell(opened):
    """The dialog's close event, which comes in a later task, finds a cell in the address and an open dialog."""
    page = opened(filter_link(verdict="timeout"))
    page.locator("#grid .broken").click()
    wait_until(page, "open")
    page.evaluate("""() => new Promise((done) => {
        const withCell = location.hash;
        dialog.addEventListener("close", () => setTimeout(done));
        for (const hash of [withCell.replace(/&cell=.*/, ""), withCell]) {
            history.replaceState(history.state, "", hash);
            dispatchEvent(new PopStateEvent("popstate"));
        }
    })""")
    assert page.evaluate("dialog.open && location.hash.includes('cell=')")


def test_a_cell_clicked_right_after_closing_another_stays_open(opened):
    """The browser goes back in a task of its own, which must not undo what follows the dialog's close event."""
    page = opened(filter_link(verdict="crash"))
    page.locator("#grid .broken").first.click()
    wait_until(page, "open")
    with one_step_back(page):
        page.evaluate("""() => new Promise((done) => {
            const open = () => { document.querySelectorAll("#grid .broken")[3].click(); done(); };
            dialog.addEventListener("close", open, { once: true });
            at("close").click();
        })""")
    assert page.evaluate("dialog.open && location.hash.includes('cell=')")


def test_closing_a_cell_twice_goes_back_once(opened):
    page = opened()
    page.locator(".chip").nth(1).click()
    page.locator("#grid .broken").first.click()
    wait_until(page, "open")
    with one_step_back(page):
        page.evaluate("at('close').click(); at('close').click()")
    wait_until(page, "closed")
    expect(page.locator("#query")).to_have_value("judgement:broken")


def test_a_field_focused_while_going_back_keeps_the_focus(opened):
    page = opened(filter_link(verdict="timeout"))
    page.locator("#grid .broken").click()
    wait_until(page, "open")
    page.evaluate("addEventListener('popstate', () => field.focus())")
    with one_step_back(page):
        page.go_back()
    page.keyboard.type(" writer:0.9.2")
    expect(page.locator("#query")).to_have_value("verdict:timeout writer:0.9.2")


def test_a_click_by_script_or_voice_control_opens_a_cell(opened):
    """Voice control and scripts click at no place of the screen."""
    page = opened(filter_link(verdict="timeout"))
    page.locator("#grid .broken").evaluate("cell => cell.click()")
    wait_until(page, "open")


def test_a_click_in_a_range_opens_the_reader_under_the_pointer(opened):
    page = opened(filter_link(cause="lapack-cold-process", judgement="broken", writer="0.6.2"))
    line = page.locator("#cell-line")
    box = page.locator("#grid .cell").first.bounding_box()
    page.locator("#grid .cell").first.click(position={"x": box["width"] * 0.4, "y": 5})
    expect(line).to_contain_text("read by 0.7.1 on cpu")
    page.get_by_role("button", name="Newer reader").click()
    expect(line).to_contain_text("read by 0.7.2 on cpu")
    page.get_by_role("button", name="Older reader").click()
    page.get_by_role("button", name="Older reader").click()
    expect(line).to_contain_text("read by 0.7.0 on cpu")


def test_findings_and_cells_link_to_each_other(opened):
    page = opened(cause_link("lapack-cold-process"))
    card = page.locator("[id='cause=lapack-cold-process=broken']")
    expect(card).to_be_focused()
    card.get_by_role("link", name="Its 64 cells in the table").click()
    expect(count(page)).to_have_text("64 of 4,692 cells")
    page.locator("#grid .cell").first.click()
    page.locator("#cell-facts a", has_text="LAPACK calls crash in a fresh process").click()
    wait_until(page, "closed")
    expect(card).to_be_focused()
    card.get_by_role("link", name="One example").click()
    wait_until(page, "open")


def test_a_filter_in_the_address_survives_a_reload(opened):
    page = opened("#filter=judgement%3Abroken%20case%3A*cholesky*")
    for _ in range(2):
        expect(count(page)).to_have_text("8 of 4,692 cells")
        page.reload()
        page.wait_for_selector("html[data-ready]")


def test_a_typed_filter_is_added_to_the_address(opened):
    page = opened()
    page.fill("#query", "verdict:timeout")
    page.locator("#grid .cell").click()
    expect(page).to_have_url(in_url("#filter=verdict%3Atimeout&cell="))
    with one_step_back(page):
        page.go_back()
    page.fill("#query", "verdict:crash")
    page.wait_for_url("**#filter=verdict%3Acrash")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("#cell=nothing", "This page has no cell nothing. The address may be of another run."),
        ("#cell=%zz", "This page has no cell %zz. The address may be of another run."),
        ("#cause=none=broken", "This page has no cause none. The address may be of another run."),
        *((address, "") for address in ("#filter=%", "#&&=", "#table", "#cause=lapack-cold-process=known")),
    ],
)
def test_an_unknown_cell_or_cause_in_the_address_shows_all_cells(address, words, opened):
    page = opened(address)
    assert page.locator("dialog[open]").count() == 0
    expect(count(page)).to_have_text("4,692 of 4,692 cells")
    assert page.locator("#missing").inner_text() == words
    assert page.locator("#missing").is_visible() == bool(words)
    if words:
        assert page.evaluate("scrollY") == 0
        assert page.locator("#missing").bounding_box()["y"] < 100


def test_changing_the_address_to_an_unknown_cell_closes_the_open_cell(opened):
    page = opened(cell_link(numbers().key))
    page.evaluate("location.hash = '#cell=gone'")
    page.locator("#missing", has_text="This page has no cell gone.").wait_for()
    wait_until(page, "closed")
    page.evaluate(f"location.hash = {cell_link(numbers().key)!r}")
    wait_until(page, "open")
    expect(page.locator("#missing")).to_be_hidden()


def test_the_address_of_an_unlisted_cause_suggests_its_filter(opened):
    refused = result(Verdict.REFUSED, Judgement.OUTSIDE, reader="0.6.2", promised=False)
    cells = with_causes([result(), refused])
    page = opened(cause_link(cells[1].cause), shown=document(cells))
    term = f"cause:{cells[1].cause}"
    words = f"This page does not list the cause {cells[1].cause}. The filter {term} shows its cells."
    assert page.locator("#missing").inner_text() == words
    page.fill("#query", term)
    expect(count(page)).to_have_text("1 of 2 cells")


def test_the_copy_button_copies_the_command(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator(".card .copy").first.click()
    page.get_by_role("status").get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".card .command code").first.inner_text()


def test_a_cell_links_the_files_of_its_golden(opened):
    identity = RunIdentity(source_url="https://example.org/project/blob/abc", goldens="golden")
    linked = document([numbers()], summarize([numbers()], identity=identity))
    page = opened(cell_link(numbers().key), shown=linked)
    links = page.locator("#cell-facts dd a[href^=https]").evaluate_all("all => all.map(({ href }) => href)")
    assert links[0] == f"https://example.org/project/blob/abc/golden/{numbers().golden}/jaxpr.txt"


@pytest.mark.parametrize("folder", [".", "out/pages", "..", None])
def test_a_cell_links_the_files_from_the_folder_of_its_page(folder, opened, tmp_path, monkeypatch):
    """The golden has no jaxpr.txt, like any golden from a file. A file without a link is shown by its path."""
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    golden = work / "golden" / numbers().golden
    golden.mkdir(parents=True)
    for name in ("golden.yaml", "module.mlir"):
        (golden / name).write_text(name)
    shown = document([numbers()], summarize([numbers()], identity=RunIdentity(goldens="golden")))
    written = replace(shown, folder=folder and Path(folder))
    (file := work / (folder or ".") / "page.html").parent.mkdir(parents=True, exist_ok=True)
    file.write_text(html_page(written), encoding="utf-8")
    page = opened(cell_link(numbers().key), file=file.resolve())
    assert facts(page)["files"] == f"golden/{numbers().golden}: module.mlir, golden.yaml"
    links = page.locator("#cell-facts dd a:not([href^='#'])").evaluate_all("all => all.map(({ href }) => href)")
    files = [golden / "module.mlir", golden / "golden.yaml"]
    assert links == ([file.resolve().as_uri() for file in files] if folder else [])


def test_the_address_of_a_filter_shows_the_table(opened):
    page = opened(filter_link(judgement="broken"))
    assert page.locator("#grid .cell").first.evaluate("cell => cell.getBoundingClientRect().top < innerHeight")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.wait_for_function("scrollY > 0")


# --- the table --------------------------------------------------------------------------------------------------------


def count(page: Any) -> Any:
    return page.locator("#count")


def marks(page: Any) -> Any:
    return page.locator("#grid .cell")


def readers(page: Any) -> Any:
    return page.locator("#grid [role=columnheader] b")


@pytest.mark.parametrize(
    ("query", "cells"),
    [
        ("judgement:broken", 67),
        ("verdict:crash,timeout judgement:broken", 65),
        ("verdict:numerics", 2),
        ("writer:0.9.2 reader:0.10.2", 60),
        ("reader:0.10.2-jax0.10.2", 276),
        ("case:*cholesky* judgement:broken", 8),
        ('case:"tests.models.test_model_9" -writer:0.6.2', 68),
        ("call:lapack* judgement:broken", 64),
        ("cause:lapack-cold-process judgement:broken", 64),
        ("promised:yes", 1350),
        ("platform:cpu stage:compile", 1),
        ("signal SIGSEGV cholesky promised:yes", 8),
        ("-judgement:kept -judgement:bonus judgement:broken,kept", 67),
        ("KeyError: convention", 144),
        ("nothing-is-called-so", 0),
        ('"', 4692),
        ("case:( judgement:[", 0),
    ],
)
def test_each_filter_selects_the_expected_cells(query, cells, opened):
    page = opened()
    page.fill("#query", query)
    expect(count(page)).to_have_text(f"{cells:,} of 4,692 cells")


def test_readers_without_cells_are_hidden_and_equal_marks_merge(opened):
    page = opened("#filter=cause%3Alapack-cold-process%20judgement%3Abroken%20writer%3A0.6.2")
    expect(readers(page)).to_have_text(["0.6.2", "0.7.0", "0.7.1", "0.7.2", "0.8.0", "0.8.1"])
    expect(marks(page), "one range a golden").to_have_text(["crash!"] * 8)
    assert (
        page.locator("#grid .cell").first.get_attribute("aria-label")
        == "broken, crash: 0.6.2 to 0.8.1, 6 readers; test_cholesky written by 0.6.2"
    )


def test_each_column_counts_kept_of_promised_cells(opened):
    scores = opened().locator("#grid [role=columnheader] .score").all_inner_texts()
    assert scores[-2:] == ["179/180", "178/180"]
    assert scores[0] == "–", "nothing is promised there"


def test_columns_and_rows_count_what_the_filter_shows(opened):
    page = opened()
    score = page.locator("#grid [role=columnheader] .score").last
    size = page.locator("#grid-body [role=rowheader] small").first
    heading = page.locator("#grid-body .heading").first
    expect(score).to_have_text("178/180")
    page.fill("#query", "writer:0.12.0.1 case:test_model_1*")
    expect(score).to_have_text("12/12")
    page.fill("#query", "-judgement:kept -judgement:bonus")
    expect(score).to_have_text("0/2")
    expect(size).to_have_text("0/9")
    expect(heading).to_contain_text(" · 0 of ")
    page.fill("#query", "")
    expect(score).to_have_text("178/180")


def test_rows_are_ordered_by_case_severity_or_reader(opened):
    page = opened()
    first_row = page.locator("#grid-body [role=row]").filter(has=page.locator(".cell")).first
    page.select_option("#order", "case")
    expect(first_row.locator("[role=rowheader] span")).to_have_text("written by 0.12.0.1")
    expect(first_row.locator("[role=rowheader] small")).to_have_text("8/17")
    page.select_option("#order", "worst")
    expect(first_row).to_contain_text("crash!")
    page.locator("[role=columnheader]", has_text="0.12.0.1").click()
    expect(first_row.locator("[role=rowheader] span")).to_have_text("test_model_10 0.11.0")
    expect(page.locator("[aria-sort=descending]")).to_have_count(1)


def test_clicking_a_rows_name_filters_the_table_by_its_case(opened):
    page = opened()
    page.locator("[role=rowheader]", has_text="test_model_10").first.click()
    expect(count(page)).to_have_text("85 of 4,692 cells")
    expect(page.locator("#grid-body .heading")).to_have_text(["test_model_10 · 52 of 85 cells work"])
    expect(page).to_have_url(in_url("#case=tests.models.test_model_10"))


def test_choosing_a_judgement_writes_the_filter(opened):
    page = opened()
    page.fill("#query", "cholesky")
    page.select_option("select[data-key=judgement]", "broken")
    expect(page.locator("#query")).to_have_value("cholesky judgement:broken")
    page.select_option("select[data-key=judgement]", "")
    expect(page.locator("#query")).to_have_value("cholesky")
    page.get_by_role("button", name="Clear").click()
    expect(count(page)).to_have_text("4,692 of 4,692 cells")


def test_only_rows_in_view_are_in_the_document(opened):
    page = opened()
    assert page.locator("#grid-body [role=row]").count() < 80
    assert page.locator("#grid").get_attribute("aria-rowcount") == "282", "276 goldens, 5 writers, and the head"
    page.locator("#grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.wait_for_selector("[role=row][aria-rowindex='282']")
    assert page.locator("#grid-body [role=row]").count() < 80


FOCUSED_ROW = "#grid [role=row]:has(:focus)"


def expect_focus(page: Any, name: str, label: str = "") -> None:
    """Wait until the focus is in the row with this name: on a cell whose label begins so, or on the name itself."""
    expect(page.locator(FOCUSED_ROW).locator("[role=rowheader] > span").first).to_have_text(name)
    element = page.locator("#grid :focus")
    if label:
        expect(element).to_have_attribute("aria-label", re.compile("^" + re.escape(label)))
    else:
        expect(element).to_have_attribute("role", "rowheader")


def test_the_table_is_one_tab_stop_and_arrows_move_inside(opened):
    page = opened("#filter=writer%3A0.6.2")
    page.locator(".grammar summary").focus()
    page.keyboard.press("Tab")
    expect_focus(page, "test_cholesky", "outside, crash: 0.6.1")
    page.keyboard.press("ArrowRight")
    expect_focus(page, "test_cholesky", "broken, crash: 0.6.2 to 0.8.1, 6 readers; test_cholesky written by 0.6.2")
    page.keyboard.press("ArrowDown")
    expect_focus(page, "test_eig", "broken")
    page.keyboard.press("Home")
    expect_focus(page, "test_eig")
    page.keyboard.press("End")
    expect_focus(page, "test_eig", "outside, error: 0.11.1 to 0.12.0.1")
    for _ in range(6):
        page.keyboard.press("PageDown")
    expect(page.locator(FOCUSED_ROW), "the last row").to_have_attribute("aria-rowindex", str(36 + 2))
    page.keyboard.press("Tab")
    expect(page.locator("#grid :focus")).to_have_count(0)


def test_enter_opens_and_escape_returns_to_the_cell(opened):
    page = opened("#filter=writer%3A0.6.2")
    page.locator("#grid .broken").first.focus()
    page.keyboard.press("Enter")
    wait_until(page, "open")
    page.keyboard.press("Escape")
    wait_until(page, "closed")
    expect_focus(page, "test_cholesky", "broken")


def test_enter_leads_from_a_map_square_to_its_rows(opened):
    page = opened()
    square = page.locator('.map a[aria-label^="written by 0.9.2, read by 0.9.1"]')
    square.focus()
    page.keyboard.press("Enter")
    expect(count(page), "those that its number counts").to_have_text("8 of 4,692 cells")
    expect_focus(page, "test_cholesky", "broken, crash: 0.9.1; test_cholesky written by 0.9.2")
    page.keyboard.press("Tab")
    expect(page.locator(":is(#grid, .map) :focus")).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    expect_focus(page, "test_cholesky", "broken")
    page.keyboard.press("Escape")
    expect(square).to_be_focused()


@pytest.mark.parametrize("address", ["", "#table"])
def test_escape_returns_to_the_table_after_the_skip_link(address, opened):
    page = opened(address)
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#table")).to_be_focused()
    for _ in range(40):
        before = page.evaluate_handle("document.activeElement")
        page.keyboard.press("Tab")
        page.wait_for_function("before => document.activeElement !== before", arg=before)
        if page.evaluate("document.activeElement.closest('#grid-body') !== null"):
            break
    row = page.locator(FOCUSED_ROW)
    first = int(row.get_attribute("aria-rowindex"))
    page.keyboard.press("ArrowDown")
    expect(row).to_have_attribute("aria-rowindex", str(first + 1))
    label = page.locator("#grid :focus").get_attribute("aria-label")
    page.keyboard.press("Enter")
    wait_until(page, "open")
    with one_step_back(page):
        page.keyboard.press("Escape")
    wait_until(page, "closed")
    expect(page).to_have_url(NO_CELL)
    expect(row).to_have_attribute("aria-rowindex", str(first + 1))
    expect(page.locator("#grid :focus")).to_have_attribute("aria-label", label)
    page.keyboard.press("ArrowDown")
    expect(row).to_have_attribute("aria-rowindex", str(first + 2))


def test_escape_returns_to_the_link_that_opened_a_cell(opened):
    page = opened()
    example = page.locator(".card .actions a", has_text="One example").first
    example.focus()
    page.keyboard.press("Enter")
    wait_until(page, "open")
    with one_step_back(page):
        page.keyboard.press("Escape")
    wait_until(page, "closed")
    expect(page).to_have_url(NO_CELL)
    expect(example).to_be_focused()


@pytest.mark.parametrize(
    ("address", "cells"),
    [
        ("#case=tests.models.test_model_9", 85),
        ("#reader=0.12.0.1", 276),
        ("#case=tests.models.test_eig&reader=0.6.1", 5),
    ],
)
def test_addresses_of_a_case_and_a_reader_filter_the_table(address, cells, opened):
    page = opened(address)
    expect(count(page)).to_have_text(f"{cells:,} of 4,692 cells")
    page.locator("#grid .cell").first.click()
    page.locator("#cell-facts a", has_text="jaxlib").click()
    wait_until(page, "closed")
    expect(page).to_have_url(in_url("#reader="))
    page.get_by_role("button", name="Clear").click()
    expect(count(page)).to_have_text("4,692 of 4,692 cells")


def test_clicking_a_count_filters_the_table(opened):
    page = opened()
    chips = page.locator(".chip")
    assert chips.all_inner_texts() == ["4,692 cells", "67 broken", "1,283 kept", "1,446 bonus", "1,896 outside"]
    chips.nth(1).click()
    expect(count(page)).to_have_text("67 of 4,692 cells")
    expect(page.locator(".chip[aria-current]")).to_have_text(["67 broken"], use_inner_text=True)


def test_names_of_cases_are_not_cut_on_a_desktop(opened):
    name = "tests.models.test_a_case_with_a_name_that_says_all_of_what_it_does_and_has_parameters_too"
    cells = [result(case=case, reader=reader) for case in ("t.b", name) for reader in ("0.10.1", "0.10.2")]
    names = opened(shown=document(cells)).locator("#grid-body [role=rowheader]:has(small) span")
    assert names.count() == 2
    assert names.evaluate_all("all => all.every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)")


def test_the_skip_link_leads_to_the_filter(opened):
    page = opened()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the table")
    page.keyboard.press("Enter")
    expect(page.locator("#table")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#query")).to_be_focused()


def test_the_map_is_one_tab_stop_and_squares_filter_the_table(opened):
    page = opened()
    squares = page.locator(".map a.square")
    assert squares.evaluate_all("all => all.filter(({ tabIndex }) => tabIndex === 0).length") == 1
    squares.first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".map a:focus")).to_have_attribute("aria-label", re.compile("^written by 0.9.2, read by 0.6.2"))
    page.keyboard.press("Enter")
    expect(page.locator("#query")).to_have_value(re.compile("^writer:0.9.2"))
    expect(count(page)).to_have_text("60 of 4,692 cells")
    expect(page.locator("#grid-body :focus")).to_have_count(1)


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_marks_fit_into_their_table_cells(width, opened):
    page = opened("#filter=judgement%3Abroken%2Coutside", size=(width, 900))
    cells = page.locator("#grid .cell")
    assert cells.count() > 10
    assert (
        cells.evaluate_all("all => all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length") == 0
    )


def test_redrawing_the_table_keeps_the_focus(opened):
    page = opened()
    page.locator("[role=columnheader]", has_text="0.12.0.1").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[role=columnheader]:focus b")).to_have_text("0.12.0.1")
    page.locator("#grid-body [role=rowheader][tabindex]").first.focus()
    page.keyboard.press("Enter")
    expect_focus(page, "written by 0.12.0.1")
    page.keyboard.press("Control+End")
    page.wait_for_function("view.current.item === 5 && view.current.column === 16")
    page.keyboard.press("Control+Home")
    expect_focus(page, "written by 0.12.0.1")


def test_a_filter_that_selects_nothing_says_which_part_is_unknown(opened):
    page = opened()
    for query, answer in [
        ("foo:bar", 'There is no filter "foo:", so it is looked for as a word. Filters: judgement,'),
        ("reader:0.12", 'No cell has reader "0.12"; there is 0.12.0.1, 0.12.0,'),
        ("stage:here", 'No cell has stage "here".'),
    ]:
        page.fill("#query", query)
        expect(page.locator("#empty")).to_contain_text(answer)
    page.fill("#query", "judgement:broken verdict:crash writer:0.6.2")
    expect(marks(page)).to_have_text(["crash!"] * 8)


def test_an_opened_cell_shows_its_known_issue_and_remedy(opened):
    page = opened("#filter=cause%3Alapack-cold-process%20judgement%3Abroken")
    page.locator("#grid .cell").first.click()
    facts = page.locator("#cell-facts")
    expect(facts).to_contain_text("LAPACK calls crash in a fresh process")
    expect(facts).to_contain_text("Works in jaxlib 0.10.0")
    expect(facts).to_contain_text("Upgrade the reader to jaxlib 0.10.0 or later")


def test_the_table_marks_a_known_failure_with_k(opened):
    cells = [result(Verdict.CRASH, Judgement.KNOWN, reader=reader, cause="c") for reader in ("0.10.1", "0.10.2")]
    expect(marks(opened(shown=document(cells)))).to_have_text(["crash k"])
