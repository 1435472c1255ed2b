"""The HTML page of a run: its text before a script runs, and the data that the script reads."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_runs import broken_run
from making import document, of_runtime, result, summarize, with_causes
from rich_run import Element, assert_shown, rich_document, texts_in

from export_core.judge import Judgement, Result
from export_core.judge.gate import RunIdentity
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.entries import WindowDays
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.report.page import MOST_FINDINGS, html_page
from export_core.report.page_data import cell_link, file_address, filter_link, term, web_address

NASTY = "\x1b[31mred\x1b[0m \x00 <script>alert('&')</script> ]]> \u2028 {{ 7*7 }}\r\nlast"


def failed(case: str, message: str, **changes: Any) -> Result:
    return result(Verdict.ERROR, Judgement.BROKEN, case=case, message=message, stage=Stage.LOWER, **changes)


def data_of(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def cells_of(page: str) -> list[dict[str, Any]]:
    """Return the cells, assembled from the page's data as its script does."""
    data = data_of(page)
    cells = []
    for row, golden in enumerate(data["rows"]["golden"]):
        for number in range(*data["rows"]["start"][row : row + 2]):
            columns = {name: values[number] for name, values in data["cells"].items()}
            timings = {name: values[number] for name, values in data["timings"].items() if values}
            own = {"seconds": columns.pop("seconds"), "timings": timings}
            cell = own | {name: data["tables"][name][position] for name, position in columns.items()}
            texts = (golden.partition("/")[0], golden.partition("/")[2].partition("-")[0], cell["reader"]["jaxlib"])
            command = "".join(piece if isinstance(piece, str) else texts[piece] for piece in cell["command"])
            cells.append({**cell, "golden": golden, "command": command})
    return cells


def test_the_page_shows_everything_but_tables():
    page = html_page(rich_document())
    body = page.partition("</style>")[2].partition("<script")[0]
    text = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?code>", "`", body)))

    def is_shown(element: Element) -> bool:
        # A card has the parts of the sentence: what happened, to how many cells, in which releases.
        is_card = bool(element.finding and element.finding.results and element.finding.kind.exit_code)
        in_parts = is_card and (element.sort == "sentence" or element.label == "known as")
        return element.sort not in ("table", "looks like") and not in_parts

    assert_shown("\n".join((text, *texts_in(data_of(page)))), is_shown, labels=False)
    for judgement in Judgement:
        assert f'<a class="chip" href="{filter_link(judgement=judgement)}">' in page
    (owed,) = (cell for cell in cells_of(page) if cell["state"]["judgement"] == "owed")
    assert owed["more"]["deployed"] == "serving"


def test_the_page_data_has_every_cell_of_the_run(page):
    results, _ = broken_run()
    cells = cells_of(page)
    by_key = {(one["golden"], one["reader"]["jaxlib"]): one for one in cells}
    assert len(cells) == len(by_key) == len(results)
    for one in results:
        cell = by_key[one.golden, one.reader.jaxlib]
        assert (cell["message"], cell["command"]) == (one.message, one.reproduce)
        assert (cell["state"]["judgement"], cell["state"]["verdict"]) == (one.judgement, one.verdict)


def test_a_row_has_the_full_and_the_short_name_of_its_case():
    results = [failed("tests.a.test_f", ""), failed("tests.b.test_f", "")]
    cases = data_of(html_page(document(results)))["tables"]["case"]
    assert cases == [{"case": f"tests.{name}.test_f", "name": f"{name}.test_f"} for name in "ab"]


def test_cells_have_their_costs_and_times():
    cost = Cost(temp_bytes=168_984_580, flops=5040.0, instructions=131)
    timings = Timings(compile=0.0815, run=0.00123456, runs=(0.002, 0.001, 0.009), peak_bytes=170_000_000)
    results = [failed("a", "", cost=cost, timings=timings), failed("b", "")]
    first, second = cells_of(html_page(document(results)))
    assert first["figures"] == "temp_bytes 169.0 MB, flops 5,040, instructions 131"
    assert first["timings"] == {"compile": 82, "run": 1.23, "runs": 2, "peak_bytes": 170}
    assert (second["figures"], {*second["timings"].values()}) == ("", {None})


def test_wrong_numbers_are_shown_with_the_expected_numbers(page):
    *errors, elements = next(
        cell["numbers"].values() for cell in cells_of(page) if cell["state"]["verdict"] == "numerics"
    )
    assert errors == [0.0231, 0.0117, 412.0]
    assert elements[0] == ["largest error in units of the noise at [17]", "1.9712", "1.9943", "0.0231"]


def test_the_first_screen_names_causes_readers_and_first_releases(page):
    first = page.partition("<main>")[0].partition("</style>")[2]
    text = " ".join(re.sub(r"<[^>]*>", " ", first).split())
    readers = "lapack-cold-process in 0.6.2 to 0.9.2, timeout in 0.12.0.1, numerics in 0.12.0 to 0.12.0.1"
    assert f"BROKEN: 67 of 1,350 promised cells, 3 causes Readers affected, by cause: {readers}." in text
    assert "2 cells Different numbers in test_model_9 written by 0.10.1 · read by 0.12.0, 0.12.0.1 · since 0.12" in text
    where = "8 cases · written by 0.6.2, 0.9.2 · read by 0.6.2 to 0.9.2 · fixed in 0.10.0"
    assert f"64 cells LAPACK calls crash in a fresh process {where}" in text


def test_the_maps_legend_uses_the_same_words_as_the_counts(page):
    legend = page.partition('<ul class="legend of-map"')[2].partition("</ul>")[0]
    texts = re.findall("</span>(.*?)</li>", legend)
    assert texts[:3] == ["kept", "broken", "bonus: works, not promised"]
    assert "outside: fails, not promised" in texts


@pytest.mark.parametrize(
    ("policy", "runtime", "basis"),
    [
        ({}, "", "Promised by JAX, to jaxlibs built at most 180 days after the writer or 21 days before it."),
        (
            {"backward": 3650},
            "",
            "Promised by this project's policy, to jaxlibs built at most 3,650 days after the writer or 21 days before "
            "it. JAX itself promises 180 and 21 days.",
        ),
        (
            {},
            "tensorflow==2.21.0",
            "21 days before it. A cell of another runtime names its own promise.",
        ),
    ],
    ids=["JAX's windows", "windows of the policy", "another runtime"],
)
def test_the_page_says_whose_promise_it_judges_by(policy, runtime, basis):
    cells = [result(), *([of_runtime(result(), runtime, "2026-03-05")] if runtime else [])]
    made = summarize(cells, policy=Policy(windows=WindowDays(**policy)))
    page = unescape(html_page(document(cells, made)))
    assert page.count(basis) == page.count("Promised by") == 1


def test_the_page_of_a_run_without_failures_says_so():
    page = html_page(document([result()]))
    assert '<span class="exit0">KEPT:</span>' in page
    assert "No cell fails the run</h2>" in page


def test_the_page_of_a_run_that_fail_on_fails_does_not_say_that_no_cell_does():
    cell = result(case="tests.test_a.test_g", verdict=Verdict.ERROR, judgement=Judgement.OUTSIDE, promised=False)
    page = html_page(document([result(), cell], summarize([result(), cell], policy=Policy(fail_on=["outside"]))))
    assert "FAIL ON" in page
    assert "No promised or owed cell fails the run</h2>" in page


def test_the_page_runs_and_loads_nothing_from_results():
    results = [failed("t.nasty[<b>|`]", NASTY, stderr=NASTY, reproduce=NASTY)]
    page = html_page(document(results))
    assert page.count("<script") == page.count("</script>") == 2
    assert "<script>alert" not in page
    assert "{{ 7*7 }}" in page
    assert not re.search(r"\ssrc\s*=|url\(|@import|<link|\sstyle=", page)
    assert "default-src 'none'" in page
    assert cells_of(page)[0]["stderr"].startswith("red � <script>")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//evil", "http://[", "x"])
def test_only_web_addresses_are_followed(url):
    assert web_address(url) == ""
    identity = RunIdentity(project="p", commit="abc", source_url=url, ci_url=url, goldens="golden")
    page = html_page(document([result()], summarize([result()], identity=identity)))
    assert not re.search(r'href="(?!#|https?:)', page)
    assert data_of(page)["files"] == ""


def test_files_of_goldens_are_linked_at_the_commit(tmp_path):
    assert file_address("https://host/p/blob/abc", "golden", None) == "https://host/p/blob/abc/golden/"
    assert file_address("https://host/p/blob/abc", "/tmp/golden", tmp_path) == "", "not in the project"


@pytest.mark.parametrize(
    ("folder", "address"),
    [(".", "tests/a%20b/"), ("out/pages", "../../tests/a%20b/"), ("tests", "a%20b/"), ("..", "{}/tests/a%20b/")],
)
def test_files_of_goldens_are_linked_from_the_pages_folder(folder, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tests/a b").mkdir(parents=True)
    assert file_address("", "tests/a b", Path(folder)) == address.format(tmp_path.name)


def test_golden_files_outside_the_working_folder_are_not_linked(tmp_path, monkeypatch):
    (tmp_path / "golden").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert file_address("", "golden", Path()) == "", "not in this working folder"
    assert file_address("", "../golden", Path()) == file_address("", str(tmp_path / "golden"), Path()) == ""
    Path("golden").mkdir()
    assert file_address("", "golden", None) == "", "a page on standard output is anywhere"
    assert file_address("", "golden", Path()) == "golden/"


def test_addresses_of_cells_and_filters_are_escaped():
    assert filter_link(judgement="broken", case="a b") == "#filter=judgement%3Abroken%20case%3A%22a%20b%22"
    assert term("case", "t.f[*]") == 'case:"t.f[*]"', "taken letter by letter"
    key = result(case="t.f").key
    assert cell_link(key) == "#cell=t.f%2F0.9.2-cpu%200.10.2-jax0.10.2%20cpu"


def test_causes_beyond_the_listed_ones_are_counted():
    many = [failed(f"t.f{n}", chr(0x4E00 + n)) for n in range(45)]
    page = html_page(document(many))
    assert page.count('<article id="cause=') == MOST_FINDINGS
    assert "5 more cards are not shown here. The table has every cell." in page
    assert len(cells_of(page)) == 45


@pytest.mark.parametrize(
    ("causes", "text"), [(5, ">and 1 more</a>"), (MOST_FINDINGS + 1, "<p>1 more card is not shown here.")]
)
def test_one_more_cause_is_counted_in_the_singular(causes, text):
    assert text in html_page(document([failed(f"t.f{n}", chr(0x4E00 + n)) for n in range(causes)]))


def test_a_cause_with_two_judgements_is_counted_once():
    facts = {"message": "signal 11", "stage": Stage.RUN}
    owed = result(Verdict.CRASH, Judgement.OWED, reader="0.8.1", promised=False, deployed=("edge",), **facts)
    cells = with_causes([result(Verdict.CRASH, Judgement.BROKEN, **facts), owed])
    page = html_page(document(cells, summarize(cells)))
    assert page.count('<article id="cause=') == 2
    assert ">1 cause of cells that fail the run</h2>" in page
    assert "<h1>" in page
    assert "2 cells, 1 cause</h1>" in page


def test_the_page_says_the_order_of_its_cards():
    wrong = result(Verdict.NUMERICS, Judgement.BROKEN, case="t.wrong", stage=Stage.COMPARE)
    owed = [failed(f"t.f{number}", "refused") for number in range(3)]
    owed = [msgspec.structs.replace(one, judgement=Judgement.OWED, deployed=("edge",)) for one in owed]
    page = html_page(document(with_causes([*owed, wrong])))
    assert re.findall('<b class="count ([a-z]+)', page) == ["broken", "owed"], "different numbers before what is owed"
    assert "in the order of the judgements; for each, different numbers come last, otherwise the largest" in page


def test_a_cause_in_one_reader_names_that_reader_once():
    page = html_page(document([failed("t.f", "message")]))
    assert "read by " in page
    assert "oldest reader affected" not in page


def test_the_page_stores_a_repeated_text_few_times(page):
    assert page.count("died by signal 11 (SIGSEGV)") < 10


def test_ids_on_the_page_are_unique(page):
    ids = re.findall(r'\sid="([^"]*)"', page.partition('id="data"')[0])
    assert len(ids) == len(set(ids))
    assert "cause=lapack-cold-process=outside" in ids


def test_a_causes_card_names_the_first_failing_or_fixing_release(page):
    cards = re.findall('<article id="cause=.*?</article>', page, re.S)
    facts = [re.findall(r"<dt>(since|fixed in|first seen in)</dt><dd>(.*?)</dd>", card) for card in cards[:3]]
    assert facts == [[("fixed in", "0.10.0")], [("since", "0.12.0.1")], [("since", "0.12.0")]]
    assert "<dt></dt>" not in "".join(cards)


def test_a_causes_card_names_the_next_reader_that_works():
    crash = result(Verdict.CRASH, Judgement.BROKEN, case="t.a", stage=Stage.RUN, message="died")
    results = with_causes([crash, result(case="t.a", reader="0.12.0")])
    (card,) = re.findall('<article id="cause=.*?</article>', html_page(document(results)), re.S)
    assert "<dt>works in</dt><dd>0.12.0</dd>" in card
