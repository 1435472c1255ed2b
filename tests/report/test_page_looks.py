"""The page and its pictures in Chromium: three sizes, both themes, on paper and for a screen reader."""

import functools
import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsing import expect
from comparing import compared
from example_runs import READERS, broken_run
from making import document, of_runtime, result, summarize, with_causes

from export_core.features.costs.exceeded import EXCEEDED, Exceeded
from export_core.features.costs.policy_key import Budget
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage
from export_core.report.page import html_page
from export_core.report.page_data import cell_link

pytestmark = pytest.mark.browser

SIZES = {"desktop": (1440, 1000), "tablet": (900, 1000), "phone": (390, 844)}
# Each size and each theme, for a check that takes seconds. No style depends on both.
LOOKS = (("desktop", "light"), ("tablet", "dark"), ("phone", "dark"))


def cell() -> str:
    """Return the address of a cell with wrong numbers."""
    return cell_link(next(result for result in broken_run()[0] if result.verdict is Verdict.NUMERICS).key)


def screenshot(page: Any) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(page.screenshot()))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_picture_of_the_first_screen_has_verdict_and_map(size, scheme, opened, save):
    page = opened(size=SIZES[size], color_scheme=scheme)
    if scheme == "light" or size == "desktop":
        save(f"page-{size}" if scheme == "light" else f"page-{size}-dark", screenshot(page))
    for selector in ("h1", ".chip >> nth=4", ".brief li:nth-child(3)", "#h-map"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] < SIZES[size][1], f"{selector} is on the first screen"
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0], "nothing is wider than the screen"


def test_a_picture_of_an_opened_cell_is_saved(opened, save):
    page = opened(cell())
    save("page-cell", screenshot(page))
    assert page.locator("#cell-generations").is_visible()


def test_an_opened_cell_fits_on_a_phone(opened):
    page = opened(cell(), size=SIZES["phone"])
    assert page.locator("dialog").evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
    assert page.locator("#cell-facts").evaluate("facts => facts.scrollWidth <= facts.clientWidth")


def test_long_names_and_paths_fit_on_a_phone(opened):
    """A path has no space at which its line could break: one that is wider than the screen widens everything."""
    case = "tests.compat.test_linear_algebra.test_a_decomposition_of_many_matrices_with_pivoting"
    facts = {"stage": Stage.COMPARE, "max_noise_error": 1e5, "max_abs_error": 1.0, "message": case}
    cell = result(Verdict.NUMERICS, Judgement.BROKEN, case=case, writer="0.9.2", reader="0.9.2", **facts)
    (cell,) = with_causes([cell])
    page = opened(cell_link(cell.key), shown=document([cell]), size=SIZES["phone"])
    assert f"git log -- golden/{case}/0.9.2-cpu" in page.locator(".brief").inner_text()
    width, _ = SIZES["phone"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("dialog").bounding_box()
    assert 0 <= box["x"] <= width - box["x"] - box["width"] + 1, "it is in the middle"


@pytest.mark.parametrize("noise", [33.25, 33.75, 33.35, 3.55e4, 0.000125])
def test_an_opened_cell_rounds_a_number_as_its_message_does(noise, opened):
    message = f"output 0: 1 of 2 elements differ (max {noise:.3g} times the noise)"
    facts = {"stage": Stage.COMPARE, "max_noise_error": noise, "max_abs_error": 1.0, "message": message}
    cell = result(Verdict.NUMERICS, Judgement.BROKEN, **facts)
    page = opened(cell_link(cell.key), shown=document([cell]))
    assert float(page.locator("dialog .numbers td").first.inner_text()) == float(f"{noise:.3g}")


@pytest.mark.parametrize("size", SIZES)
def test_all_readers_of_a_row_are_visible_at_once(size, opened):
    page = opened(size=SIZES[size])
    page.locator("#grid").scroll_into_view_if_needed()
    inside = page.locator("#grid").bounding_box()
    last = page.locator("[role=columnheader]").last.bounding_box()
    assert last["x"] + last["width"] <= inside["x"] + inside["width"] + 1


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
@pytest.mark.parametrize("address", ["", "a cell", "#filter=judgement%3Abroken&order=case"])
def test_axe_finds_no_violation(address, size, scheme, opened):
    assert_accessible(opened(cell() if address == "a cell" else address, size=SIZES[size], color_scheme=scheme))


@pytest.mark.parametrize("landscape", [False, True])
def test_a_picture_of_a_printed_page_has_every_row(landscape, opened, save):
    import pypdfium2

    page = opened()
    printed = pypdfium2.PdfDocument(page.pdf(format="A4", landscape=landscape, print_background=True))
    texts = [printed[number].get_textpage().get_text_bounded() for number in range(len(printed))]
    save("page-print-landscape" if landscape else "page-print", printed[0].render(scale=1.4).to_pil())
    with_table = [text for text in texts if "test_model_20" in text]
    assert all(set(READERS) <= set(text.split()) for text in with_table), "the head is on each page"
    whole = "\n".join(texts)
    assert sum(whole.count(f"test_model_{number} ") for number in (20, 59)) >= 6
    assert whole.count("crash!") >= 8
    assert "Fails since jaxlib 0.12.0.1" in whole, "what is folded on the screen"
    expect(page.locator("#paper table"), "and the screen is as before").to_have_count(0)


def contrast(page: Any, selector: str) -> list[float]:
    """Return the contrast between the text of each element and its background, from 1 to 21."""
    return page.eval_on_selector_all(
        selector,
        """all => all.map((element) => {
          const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
          const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
          const light = (colour) => parts(colour).slice(0, 3).map(linear)
            .reduce((sum, value, index) => sum + [0.2126, 0.7152, 0.0722][index] * value, 0);
          const solid = (one) => parts(getComputedStyle(one).backgroundColor)[3] !== 0 || !one.parentElement;
          let behind = element;
          while (!solid(behind)) behind = behind.parentElement;
          const [one, two] = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)];
          return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
        })""",
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("judgement", Judgement)
def test_the_text_of_each_judgement_has_enough_contrast(judgement, scheme, opened):
    was_run = judgement is not Judgement.INCOMPLETE  # else there is nothing to reproduce
    verdict = Verdict.CRASH if was_run else Verdict.NOT_RUN
    over = (Exceeded("max_temp_bytes", "temp_bytes", 1.0, 2.0, "export_compat.yaml:1"),)
    facts = EXCEEDED.put({}, over if judgement is Judgement.OVER_BUDGET else None)
    cell = result(Verdict.PASS if judgement.facts.works else verdict, judgement, message="died", facts=facts)
    made = summarize([cell], policy=Policy(budgets=(Budget(max_temp_bytes=1.0),)))
    page = opened(shown=document([cell], made), color_scheme=scheme)
    assert_accessible(page)
    words = (
        ":is(h1, h3, .title, small, .message, dt, dd, code, button, .actions a, .badge, .count, .cell, .chip, summary)"
    )
    assert min(contrast(page, words)) >= 4.5
    buttons = page.locator(".card button.copy, .finding button.copy")
    assert set(buttons.all_inner_texts()) == ({"Copy"} if judgement.facts.kind and was_run else set())
    assert page.locator(".card").count() == judgement.fails_run
    page.locator("#grid .cell").click()
    expect(page.locator("#cell h2")).to_be_visible()
    assert min(contrast(page, "#cell :is(h2, p, dt, dd, code, button:not(:disabled), .badge, a)")) >= 4.5


def test_a_page_with_dark_colours_prints_on_white(opened):
    page = opened(color_scheme="dark")
    background = "getComputedStyle(document.documentElement).getPropertyValue('--paper')"
    dark = page.evaluate(background)
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function(f"dark => {background} !== dark", arg=dark)


def test_the_page_shows_its_causes_without_javascript(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("h1").inner_text() == "BROKEN: 67 of 1,350 promised cells, 3 causes"
    assert page.locator(".card").count() == 3
    assert "no filters" not in page.locator("body").inner_text()
    assert not page.locator("#search").is_visible()
    assert page.locator("noscript").is_visible()


def test_a_page_of_25000_cells_has_fewer_than_3000_elements(opened, page_of):
    """The benchmark of the page opens one of 100,000."""
    page = opened(file=page_of(25_000))
    assert page.locator("#count").inner_text().startswith("28,152 of 28,152")
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert "384 cells" in page.locator(".brief").inner_text()
    page.fill("#query", "judgement:broken case:*cholesky*")
    expect(page.locator("#count")).to_have_text(re.compile("^48 of"))
    expect(page.locator("#grid .score").first).to_have_text("0/6")


def test_the_first_link_skips_to_the_table(opened):
    page = opened()
    page.keyboard.press("Tab")
    link = page.locator("a.skip")
    expect(link).to_be_focused()
    assert link.bounding_box()["x"] >= 0, "it is seen once it has the focus"
    page.keyboard.press("Enter")
    expect(page.locator("#table")).to_be_focused()
    top = round(page.locator("#table").bounding_box()["y"])  # it may lie between two pixels
    assert 0 <= top < SIZES["desktop"][1]


def test_headings_and_landmarks_lead_through_the_page(opened):
    page = opened()
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(({ tagName }) => tagName)")
    assert levels[0] == "H1"
    assert levels.count("H1") == 1
    for landmark in ("main", "search", "banner", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    assert page.get_by_role("heading").all_inner_texts()[-1] == "Every cell"
    assert page.get_by_role("grid", name="Every cell").count() == 1


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def comparison(tmp_path_factory) -> Path:
    """The page of the example run compared with a baseline, in which no reader timed out or gave other numbers."""
    results, _ = broken_run()
    works = {"verdict": Verdict.PASS, "judgement": Judgement.KEPT, "message": "", "cause": ""}
    then = [
        msgspec.structs.replace(one, **works) if one.verdict in (Verdict.NUMERICS, Verdict.TIMEOUT) else one
        for one in results
    ]
    page = tmp_path_factory.mktemp("comparison") / "report.html"
    page.write_text(html_page(compared(then, results)), encoding="utf-8")
    return page


@functools.cache
def text_of_other_runtimes() -> str:
    """Return the page of a run with readers of two runtimes that are not jaxlib: those of `two_runtimes`."""
    results, _ = broken_run()
    newest = [one for one in results if one.reader.jaxlib == "0.12.0.1"]
    others = (
        ("iree==3.13.0", "2026-08-10"),
        ("tensorflow==2.20.0", "2026-08-13"),
        ("tensorflow==2.21.0", "2026-11-05"),
    )
    made = [*results, *(of_runtime(one, runtime, built) for runtime, built in others for one in newest)]
    return html_page(document(with_causes(made)))


@pytest.fixture
def other_runtimes(tmp_path, two_runtimes) -> Path:
    """A file with the page of `text_of_other_runtimes`."""
    page = tmp_path / "report.html"
    page.write_text(text_of_other_runtimes(), encoding="utf-8")
    return page


@pytest.mark.parametrize("size", SIZES)
def test_map_squares_of_other_runtimes_are_on_the_right(size, opened, other_runtimes):
    page = opened(file=other_runtimes, size=SIZES[size])
    boxes = page.evaluate(
        "[...document.querySelectorAll('.map a.square')].map(square => [square.getAttribute('aria-label'),"
        " square.querySelector('rect').getBoundingClientRect()]).map(([label, {left, width}]) => [label, left, width])"
    )
    assert min(width for *_, width in boxes) >= 20
    edges = [[left for label, left, _ in boxes if f"read by {name}" in label] for name in ("0.", "iree", "tensorflow")]
    assert max(edges[0]) < min(edges[1]) <= max(edges[1]) < min(edges[2])
    assert_accessible(page)


def test_cells_of_a_runtime_can_be_filtered(opened, other_runtimes):
    page = opened("#filter=runtime%3Atensorflow", file=other_runtimes)
    assert page.locator("#count").inner_text().startswith("552 of 5,520")
    assert page.locator("[role=columnheader] b").all_inner_texts() == ["tensorflow 2.20.0", "tensorflow 2.21.0"]
    page.fill("#query", "reader:tensorflow==2.21.0 case:*test_eig")
    page.locator("#grid .cell").first.click()
    expect(page.locator("#cell-facts")).to_contain_text("tensorflow 2.21.0 (built 2026-11-05) on cpu")
    expect(page.locator("#cell-facts a[href='https://example.org/promise']")).to_have_count(1)
    expect(page.locator("#newer")).to_be_disabled()


def assert_accessible(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # What is in some of them is drawn when the event comes.
    page.evaluate("""() => Promise.all([...document.querySelectorAll("details:not([open])")].map((details) => {
        const opened = new Promise((done) => details.addEventListener("toggle", done, { once: true }));
        details.open = true;
        return opened.then(() => null);
    }))""")
    # The rule takes links that are off the screen for skip links: the squares left of a scrolled map are none.
    is_scrolled = page.evaluate("[...document.querySelectorAll('.map')].some(map => map.scrollLeft > 0)")
    # Else it collects each element of a rule that holds, too: some thousand of them.
    options = {"resultTypes": ["violations"], "rules": {"skip-link": {"enabled": not is_scrolled}}}
    found = Axe().run(page, options=options)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_axe_finds_no_violation_in_a_comparison(size, scheme, opened, comparison):
    assert_accessible(opened(file=comparison, size=SIZES[size], color_scheme=scheme))


@pytest.mark.parametrize("size", SIZES)
def test_map_squares_are_large_enough_and_visible_at_once(size, opened):
    page = opened(size=SIZES[size])
    boxes = page.evaluate(
        "[...document.querySelectorAll('.map a.square rect')].map(rect => rect.getBoundingClientRect())"
        ".filter(box => box.width).map(({left, right, width, height}) => ({left, right, width, height}))"
    )
    assert len(boxes) == 5 * 17
    assert all(size == "phone" or (box["left"] >= 0 and box["right"] <= SIZES[size][0]) for box in boxes)
    assert min(min(box["width"], box["height"]) for box in boxes) >= 20


@pytest.mark.parametrize("size", SIZES)
def test_names_on_the_map_are_large_enough(size, opened):
    page = opened(size=SIZES[size])
    heights = page.evaluate(
        "[...document.querySelectorAll('.map .writer, .map .reader')].filter(text => text.getClientRects().length)"
        ".map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a"
        " / Math.cos(Math.atan2(text.getScreenCTM().b, text.getScreenCTM().a)))"
    )
    assert len(heights) == 5 + 17
    assert min(heights) >= 9.5


def test_the_corner_of_the_table_explains_both_counts(opened):
    page = opened()
    words = page.locator(".corner span").all_inner_texts()
    assert words == ["of a reader: kept of promised", "of a row: cells that work"]
    swatch = page.locator(".of-map .swatch.outside:not(.is-own)")
    assert swatch.evaluate("one => getComputedStyle(one).borderColor") == "rgba(0, 0, 0, 0)", "as the square in the map"


def test_clicking_a_map_square_filters_the_table(opened):
    page = opened()
    page.click('.map a[aria-label^="written by 0.9.2, read by 0.10.0"]')
    expect(page.locator("#count")).to_have_text(re.compile("^60 of 4,692"))


def test_a_phone_shows_the_newest_reader_on_the_map(opened):
    page = opened(size=SIZES["phone"])
    box = page.locator('.map a[aria-label*="read by 0.12.0.1"] rect').first.bounding_box()
    assert 0 <= box["x"] <= SIZES["phone"][0] - box["width"]


def test_a_phone_counts_failing_columns_beyond_the_map(opened):
    page = opened(size=SIZES["phone"])
    left, right = page.locator(".beyond button").all()
    assert left.inner_text() == "← 8 columns with failures"
    assert not right.is_visible(), "the newest readers are shown first"
    left.click()
    expect(left).to_have_text("← 6 columns with failures")
    assert sum(is_on_phone(page, '.map a[aria-label*="read by 0.9.1"][data-fails]'))
    assert not opened().locator(".beyond button").first.is_visible(), "all columns are on the screen"
    assert_accessible(page)


def test_a_phone_shows_older_failures_if_the_newest_readers_pass(opened):
    cells = [result(case="t.a", reader=reader) for reader in READERS]
    cells.append(result(Verdict.CRASH, Judgement.BROKEN, case="t.b", reader=READERS[0], cause="c"))
    page = opened(shown=document(cells), size=SIZES["phone"])
    assert all(is_on_phone(page, ".map a[data-fails]"))
    assert all(is_on_phone(page, ".map .names .writer"))
    expect(page.locator(".beyond button").first).to_be_hidden()
    assert_accessible(page)


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        ([Judgement.KNOWN] * 2, "← 2 columns with known failures"),
        ([Judgement.BROKEN, Judgement.KNOWN], "← 1 column with failures, 1 with known ones"),
    ],
    ids=["known", "both"],
)
def test_a_phone_counts_columns_with_known_failures(failing, words, opened):
    broken = Judgement.BROKEN in failing
    cells = [result(case="t.a", reader=reader) for reader in READERS]
    if broken:  # a failure that is on the screen, with which the map begins
        cells.append(result(Verdict.CRASH, Judgement.BROKEN, case="t.c", reader=READERS[-1], cause="d"))
    for reader, judgement in zip(READERS, failing, strict=False):
        cells.append(result(Verdict.CRASH, judgement, case="t.b", reader=reader, cause="c"))
    page = opened(shown=document(cells), size=SIZES["phone"])
    left, right = page.locator(".beyond button").all()
    assert left.inner_text() == words
    assert not right.is_visible()
    assert_accessible(page)
    squares = f".map a[data-{'fails' if broken else 'known'}]"
    shown = sum(is_on_phone(page, squares))
    assert shown == broken
    left.click()
    expect(left).not_to_have_text(words)
    assert is_on_phone(page, squares)[0]


def is_on_phone(page: Any, selector: str) -> list[bool]:
    """Return whether each element, from its left edge to its right one, is on the screen of a phone."""
    boxes = page.locator(selector).evaluate_all("all => all.map(one => one.getBoundingClientRect())")
    return [box["left"] >= 0 and box["right"] <= SIZES["phone"][0] for box in boxes]


def test_names_and_dates_of_writers_are_visible_on_a_phone(opened):
    page = opened(size=SIZES["phone"])
    page.wait_for_function("document.querySelector('.map .names').hasAttribute('transform')")
    names = is_on_phone(page, ".names .writer, .names .date")
    assert len(names) == 5 * (1 + 1) + 2 + 5 * (1 + 2)  # of the map with its two titles, and of the windows
    assert all(names)
    assert all(is_on_phone(page, ".of-map li"))


def test_numbers_and_headings_are_not_cut_on_a_phone(opened):
    page = opened(cell(), size=SIZES["phone"])
    assert page.locator(".numbers").evaluate("one => one.scrollWidth <= one.clientWidth")
    assert all(is_on_phone(page, ".numbers :is(th, td)"))
    page.click("#close")
    expect(page.locator("#cell")).to_be_hidden()
    heading = page.locator(".heading [role=rowheader]").first
    expect(heading).to_contain_text("0.12.0.1 · built 2026-10-20 · 1,004 of")
    assert heading.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight + 1")
