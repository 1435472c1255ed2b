"""`report --baseline OLD --html`: what regressed and what works again first, and the maps of both runs."""

import json
import re
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from comparing import compared, difference
from making import document, result, summarize

from export_core.features.compare_runs.comparison import both_maps
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.report.page import html_page
from export_core.report.page_data import cell_link
from export_core.report.run_tables import release_map, same_rows
from export_core.run.run import Run

KEPT, OTHER = result(case="t.a"), result(case="t.b", writer="0.10.1")
CRASH = msgspec.structs.replace(KEPT, verdict=Verdict.CRASH, judgement=Judgement.BROKEN, message="died")
CRASH_OTHER = msgspec.structs.replace(OTHER, verdict=Verdict.CRASH, judgement=Judgement.BROKEN, message="died")


def page(*runs: object) -> str:
    return html_page(compared(*runs))


def squares(picture: str, kind: str) -> list[str]:
    return [
        element.get("class", "")
        for element in Xml.fromstring(picture).iter(kind)
        if "aria-label" in element.attrib or (element.find("title") is not None and element.find("rect") is not None)
    ]


def test_what_regressed_is_before_everything_else():
    text = page([KEPT, CRASH_OTHER], [CRASH, OTHER], ["the baseline had another plan"])
    titles = re.findall(r'<b class="is-(\w+)">', text)
    assert titles == ["regressed", "fixed"]
    assert text.index("What changed") < text.index("Which jaxlib runs which goldens")
    assert "the baseline had another plan" in text
    assert "baseline</span> as of 2026-11-21" in text


def test_a_page_without_a_baseline_compares_nothing():
    assert "What changed" not in html_page(document([KEPT]))


def test_squares_in_which_nothing_changed_are_pale():
    (_, then), (_, now) = both_maps(difference([KEPT, OTHER], [CRASH, OTHER]))
    assert sorted(squares(then, "g")) == ["square is-kept", "square is-kept is-pale"]
    assert sorted(squares(now, "a")) == ["square is-broken", "square is-kept is-pale"]


def test_new_and_gone_cells_make_no_square_pale():
    (_, then), (_, now) = both_maps(difference([KEPT], [KEPT, OTHER]))
    assert squares(then, "g") == ["square is-kept"]
    assert squares(now, "a") == ["square is-kept"] * 2


def test_both_maps_have_the_writers_of_both_runs():
    one, other = (release_map(Run(run, summarize(run))) for run in ([KEPT], [OTHER]))
    both = [[row.writer.name for row in drawn.rows] for drawn in same_rows(one, other)]
    assert both == [["0.10.1", "0.9.2"]] * 2


def test_a_cell_that_is_gone_has_no_link():
    text = page([KEPT, OTHER], [CRASH])
    assert re.findall(r'<b class="is-(\w+)">', text) == ["regressed", "gone"]
    assert re.findall(r'<a href="([^"]*)">One of its cells</a>', text) == [cell_link(KEPT.key)]
    assert text.count(">All of them in the table</a>") == 1


def test_the_table_has_what_each_cell_was():
    data = re.search(r'id="data">(.*?)</script>', page([KEPT, OTHER], [CRASH, OTHER]))[1]
    assert json.loads(data)["tables"]["change"] == [["regressed", "kept, pass"], ["unchanged", "kept, pass"]]
    choices = re.search(r'data-key="change">(.*?)</select>', page([KEPT, OTHER], [CRASH]))[1]
    assert re.findall(r'value="(\w+)"', choices) == ["regressed"], "what is gone is not in this run"


@pytest.mark.browser
def test_changed_cells_can_be_filtered(opened, tmp_path):
    file = tmp_path / "compared.html"
    file.write_text(page([KEPT, OTHER], [CRASH, OTHER]), "utf-8")
    shown = opened(file=file)
    shown.get_by_role("link", name="All of them in the table").first.click()
    assert shown.locator("#count").inner_text() == "1 of 2 cells"
    shown.locator("#grid .cell").click()
    assert "regressed; it was kept, pass" in shown.locator("#cell-facts").inner_text()
