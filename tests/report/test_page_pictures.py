"""Pictures on the page: where errors are, costs, windows, one golden in all readers, and banners."""

import re

import msgspec
import pytest
from browsing import expect
from making import day, document, of_runtime, result, summarize, with_causes
from rich_run import rich_document
from test_page import cells_of, data_of

from export_core.base.error_grid import ErrorGrid
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Cost, Stage
from export_core.report.page import html_page
from export_core.report.page_data import cell_link

LINE = ErrorGrid(1, 3, 1, 300, (1e-6, 0.5, None), (1e-4, 1e-4, 1e-4))
SQUARES = ErrorGrid(2, 2, 20, 40, (0.0, 1e-6, 0.5, None), (0.0, 1e-4, 1e-4, 1e-4))
LAPACK = "no: LAPACK calls crash in a fresh process (lapack-cold-process)"
WRONG = {"verdict": Verdict.NUMERICS, "judgement": Judgement.BROKEN, "message": "output 0: 1 of 300 elements differ"}


def wrong(grid=LINE, **changes):
    errors = {"max_abs_error": 0.5, "max_rel_error": 0.5, "max_noise_error": 40.0}
    return result(**WRONG, **errors, error_grid=grid, **changes)


def growing(*sizes, case="t.f"):
    readers = ("0.9.2", "0.10.2", "0.11.0", "0.12.0.1")
    pairs = zip(readers, sizes, strict=False)
    return [result(case=case, reader=reader, cost=Cost(temp_bytes=size)) for reader, size in pairs]


# --- where the errors are ---------------------------------------------------------------------------------------------


def test_a_cell_in_the_page_data_has_its_error_grid():
    first, second = cells_of(html_page(document([wrong(case="t.f"), result(case="t.g")])))
    assert first["grid"] == msgspec.to_builtins(LINE) | {"errors": list(LINE.errors), "allowed": list(LINE.allowed)}
    assert second["grid"] is None


def test_a_picture_shared_by_many_cells_is_stored_once():
    results = [wrong(case=f"t.{number}") for number in range(5)]
    assert len(data_of(html_page(document(results)))["tables"]["grid"]) == 2


def test_the_page_stores_error_grids_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("export_core.report.page_data.MOST_GRIDS", 2)
    grids = [ErrorGrid(1, 1, 1, 1, (float(number),), (0.0,)) for number in range(1, 6)]
    cells = cells_of(html_page(document([wrong(grid, case=f"t.{number}") for number, grid in enumerate(grids)])))
    assert [cell["grid"] is None for cell in cells] == [False, False, True, True, True]


@pytest.mark.browser
@pytest.mark.parametrize("grid", [LINE, SQUARES], ids=["line", "squares"])
def test_an_opened_cell_draws_where_the_errors_are(grid, opened):
    page = opened(cell_link(wrong().key), shown=document([wrong(grid)]))
    parts = page.locator("#cell-facts .chart rect.part")
    assert parts.count() == len(grid.errors)
    kinds = [parts.nth(number).get_attribute("class").removeprefix("part ") for number in range(parts.count())]
    assert kinds == (["within", "beyond", "infinite"] if grid is LINE else ["none", "within", "beyond", "infinite"])
    caption = page.locator("#cell-facts figcaption").inner_text()
    of = len(grid.errors)
    assert f"1 of {of} parts have an error that is not allowed; at most 5000 times what is allowed there" in caption
    assert "1 with NaN or infinity on one side only" in caption
    assert ("all others, 20, downwards" in caption) == (grid is SQUARES)
    title = parts.nth(kinds.index("beyond")).locator("title").text_content()
    assert title.endswith("error 0.5, allowed 0.0001")


@pytest.mark.browser
def test_errors_are_shown_first_in_units_of_noise(opened):
    message = "output 0: 1 of 3 elements differ\n  largest error in units of the noise at [1]: expected 1.0, got 1.5"
    shown = document([msgspec.structs.replace(wrong(), message=message)])
    text = opened(cell_link(wrong().key), shown=shown).locator(".numbers").inner_text()
    assert text.index("times the noise") < text.index("absolute") < text.index("relative")
    assert "judged in units of the noise that their writer measured. What an element is off by is absolute" in text


# --- costs and windows ------------------------------------------------------------------------------------------------


def test_the_page_draws_costs_and_windows():
    page = html_page(document([*growing(1e6, 1e6, 4e6, 4e6), *growing(1e6, 1e6, 1e6, 1e6, case="t.same")]))
    sections = re.findall(r'<section class="windows"><h2>(.*?)</h2>(.*?)</section>', page, re.S)
    assert [title for title, _ in sections] == [
        "What calls cost, from release to release",
        "When goldens leave the promise",
    ]
    costs = sections[0][1]
    assert "t.f/0.9.2-cpu" in costs
    assert "temp_bytes 1.0 MB -&gt; 4.0 MB (x4.00) in 0.11.0" in costs
    assert "t.same" not in costs
    assert costs.count("<circle") == 4
    assert re.findall(r'y="[\d.]+" text-anchor="\w+">(\d.\d MB)<', costs) == ["1.0 MB", "4.0 MB"]


def test_the_first_costs_number_does_not_overlap_the_line_above():
    page = html_page(document(growing(4e6, 1e6)))
    (about,) = map(float, re.findall(r'y="([\d.]+)">temp_bytes 4.0 MB -', page))
    first, _ = map(float, re.findall(r'y="([\d.]+)" text-anchor="\w+">\d\.\d MB<', page))
    assert first - about > 14  # units; the letters are 11 high


def test_unchanged_costs_are_not_drawn():
    assert "What calls cost" not in html_page(document(growing(1e6, 1e6)))


@pytest.mark.browser
def test_an_opened_cell_charts_errors_and_costs_by_release(opened):
    cells = growing(1e6, 1e6, 4e6, 4e6)
    cells[2] = msgspec.structs.replace(cells[2], **WRONG, max_noise_error=40.0)
    page = opened(cell_link(cells[0].key), shown=document(cells))
    chart = page.locator("#cell-pictures figure .chart").first
    assert chart.locator("rect.state").count() == 4
    assert chart.locator("rect.state.broken").count() == 1
    label = chart.get_attribute("aria-label")
    assert "error, at most 40 times the noise" in label
    assert "temp bytes, 1 M to 4 M" in label


# --- a golden in all readers, with sources ----------------------------------------------------------------------------


def in_runtimes():
    plain = result(case="t.f", forecast="yes")
    crash = result(
        Verdict.CRASH, Judgement.BROKEN, case="t.f", reader="0.9.2", stage=Stage.RUN, forecast=LAPACK,
        upstream="lapack-cold-process",
    )  # fmt: skip
    iree = of_runtime(
        result(
            case="t.f", forecast="unknown: nobody measured stablehlo.sort", judgement=Judgement.BONUS, promised=False
        ),
        *("iree==3.13.0", "2026-10-28"),
    )
    return with_causes([crash, plain, iree])


def test_knowledge_entries_named_on_the_page_have_sources():
    data = data_of(html_page(document(in_runtimes())))
    assert [*data["entries"]] == ["lapack-cold-process"]
    assert data["entries"]["lapack-cold-process"]["title"] == "LAPACK calls crash in a fresh process"
    assert data["entries"]["lapack-cold-process"]["source"].startswith("https://")
    assert [*data["issues"].values()] == ["lapack-cold-process"]


@pytest.mark.browser
def test_an_opened_cell_compares_run_forecast_and_known_issues(opened):
    cells = in_runtimes()
    page = opened(cell_link(cells[1].key), shown=document(cells))
    lines = page.locator(".strip tbody tr")
    texts = [lines.nth(number).locator("td").all_inner_texts() for number in range(lines.count())]
    assert lines.locator("th").all_inner_texts() == ["ran", "forecast", "known as"]
    assert texts == [["†", "✓", "✓"], ["no 1", "yes", "? 2"], ["3", "", ""]]
    assert page.locator(".strip thead th span").all_inner_texts() == ["0.9.2", "0.10.2", "iree 3.13.0"]
    notes = page.locator(".notes li").all_inner_texts()
    assert notes[0].startswith("forecast no: LAPACK calls crash in a fresh process")
    assert "source: https://" in notes[0]
    assert notes[1].endswith("source: the bytes of the artifact")
    assert page.locator(".strip td.chosen").all_inner_texts() == ["✓", "yes", ""]


@pytest.mark.browser
def test_an_opened_cell_marks_a_wrong_forecast(opened):
    failed = result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, forecast="yes")
    page = opened(cell_link(failed.key), shown=document([failed]))
    assert page.locator(".strip tr:nth-child(2) td").inner_text() == "yes!"


# --- warnings on a green page, and a phone ----------------------------------------------------------------------------


def test_the_page_of_a_kept_run_has_a_banner_for_undecided_outputs():
    made = summarize([result()], undecided=["t.f/0.9.2-cpu: output 0", "t.g/0.9.2-cpu: output 1"])
    page = html_page(document([result()], made))
    header = page.partition("<main>")[0]
    assert '<span class="exit0">KEPT:</span>' in header
    assert "NOT DECIDED: 2 stored outputs would not show a wrong number" in header
    assert 'href="#cause=not-decided"' in header
    assert page.count('id="cause=not-decided"') == 1
    assert "NOT DECIDED" not in html_page(document([result()])).partition("<main>")[0]


def test_the_page_of_a_kept_run_has_a_banner_for_uncovered_goldens():
    left_out = "3 goldens have no cell on the platforms asked for (exported for cuda): this run does not test them."
    more = "5 goldens were exported for cuda too, which this run does not test."
    for text, link in ((left_out, ""), (f"{left_out} {more}", ' <a href="#cause=not-covered">More</a>')):
        page = html_page(document([result()], summarize([result()], without_cells=text)))
        header = page.partition("<main>")[0]
        assert '<span class="exit0">KEPT:</span>' in header
        assert f'<p class="note"><b>NOT COVERED: {left_out}</b>{link}</p>' in header
        assert page.count('id="cause=not-covered"') == 1
    assert "NOT COVERED" not in html_page(document([result()]))


@pytest.mark.parametrize("size", [(1440, 1000), (390, 844)])
@pytest.mark.browser
def test_the_first_screen_says_which_cells_are_missing(size, opened):
    failed = [result(Verdict.ERROR, Judgement.BROKEN, case=f"t.{name}", message=name * 9) for name in "abcdef"]
    missing = result(
        Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.g", stage=Stage.ENVIRONMENT, message="no space left on device"
    )
    page = opened(shown=document([*failed, missing]), size=size)
    note = page.locator(".note:visible")
    assert note.inner_text().startswith("t.g was not run in stage environment: written by 0.9.2, read by 0.10.2.")
    box = note.bounding_box()
    assert box["y"] + box["height"] < size[1]
    note.locator("a").click()
    expect(page.locator(":focus")).to_contain_text("no space left on device")


@pytest.mark.browser
def test_the_banner_link_opens_the_list_of_undecided_outputs(opened):
    made = summarize([result()], undecided=["t.f/0.9.2-cpu: output 0"])
    page = opened(shown=document([result()], made))
    page.locator(".note a").click()
    expect(page.get_by_text("t.f/0.9.2-cpu: output 0")).to_be_visible()


@pytest.mark.browser
def test_the_newest_readers_are_first_on_a_phone(opened):
    cells = in_runtimes()
    names = {}
    for size in ((1440, 1000), (390, 844)):
        page = opened(cell_link(cells[1].key), shown=document(cells), size=size)
        strip = page.locator(".strip thead th span").all_inner_texts()
        page.locator("#close").click()
        expect(page.locator("#cell")).to_be_hidden()
        names[size[0]] = page.locator("[role=columnheader] b").all_inner_texts()
        assert strip == names[size[0]]
    assert names == {1440: ["0.9.2", "0.10.2", "iree 3.13.0"], 390: ["0.10.2", "0.9.2", "iree 3.13.0"]}


@pytest.mark.browser
def test_the_map_on_a_phone_is_scrolled_to_today(opened):
    page = opened(size=(390, 844))
    room = page.locator(".map")
    assert room.evaluate("map => map.scrollWidth > map.clientWidth && map.scrollLeft > 0")
    line = page.locator(".map line.today").bounding_box()
    assert 0 < line["x"] < 390


@pytest.mark.browser
@pytest.mark.parametrize("readers", [("0.9.2",), ("0.9.2", "0.10.2")])
def test_the_map_on_a_phone_begins_with_a_square(readers, opened):
    """The newest reader of a small run may have been built so long ago that today's end of the map is empty."""
    cells = [result(case=f"t.{reader}", writer=readers[0], reader=reader) for reader in readers]
    made = summarize(cells, as_of=day("2026-11-30"))
    page = opened(shown=document(cells, made), size=(390, 844))
    edge = page.locator(".map .names .paper").bounding_box()
    squares = [square.bounding_box() for square in page.locator(".map a.square").all()]
    shown = [box for box in squares if edge["x"] + edge["width"] <= box["x"] and box["x"] + box["width"] <= 390]
    assert max(box["x"] for box in squares) in [box["x"] for box in shown]


@pytest.mark.browser
def test_a_phone_scrolls_drawings_to_today_and_newest_costs(opened):
    page = opened(shown=document(growing(1_000_000, 1_000_000, 3_000_000, 3_000_000)), size=(390, 844))
    windows = page.locator(".scroll:has(svg.windows)")
    names, today = (windows.locator(what).bounding_box() for what in (".names .paper", "line.today"))
    assert names["x"] + names["width"] < today["x"] < 300
    ends = "room => room.scrollWidth > room.clientWidth && room.scrollLeft + room.clientWidth >= room.scrollWidth - 1"
    assert page.locator(".scroll:has(svg.costs)").evaluate(ends)


@pytest.mark.browser
def test_a_finding_that_is_only_a_sentence_is_not_folded(opened):
    """A release manager looks for the deployment targets, whose only finding has a sentence for each."""
    row = opened(shown=rich_document()).locator("p.finding", has_text="deployment targets")
    expect(row).to_contain_text("deployment targets serving (jaxlib 0.8.1, cpu): 0 of 1 cell works; 1 owed.")
