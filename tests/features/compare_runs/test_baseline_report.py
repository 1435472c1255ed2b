"""The difference from a baseline, in sentences and on a page: both verdicts, both dates, what regressed first."""

import json
import re
from dataclasses import replace

import jsonschema
import msgspec
import pytest
from browsing import expect
from commands import finished
from comparing import compared, difference
from making import day, document, result

from export_core.features.compare_runs import comparison as compare_runs
from export_core.features.compare_runs.comparison import as_run_difference, baseline_report
from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Cost, Stage
from export_core.report.document import Finding
from export_core.report.page import html_page
from export_core.report.page_data import cell_link
from export_core.run.results import read_run
from tools.schemas import schema


def crash(case: str = "t.f", **changed):
    plain = {"judgement": Judgement.BROKEN, "stage": Stage.RUN, "message": "signal 11\nstack", "signal": 11}
    return result(Verdict.CRASH, case=case, **{**plain, **changed})


def findings(then: list[Result], now: list[Result], caveats=()) -> list[Finding]:
    return as_run_difference(difference(then, now, caveats)).findings


def test_a_regression_shows_verdicts_dates_and_command():
    (finding,) = findings([result(case="t.f")], [crash()])
    assert finding.title == "REGRESSED"
    assert finding.text.splitlines() == [
        "t.f, written by jax 0.9.2 with jaxlib 0.9.2 (built 2026-03-18) and read by jax 0.10.2 with jaxlib 0.10.2 "
        "(built 2026-06-17) on cpu.",
        "  then       kept: pass",
        "  now        broken: crash in stage run: signal 11",
        "  window     backward: reader built 91 days after the writer; promised to jaxlibs built until 2026-09-14 "
        "(180 days)",
        "  reproduce  jaxexport matrix --cases t.f --writers 0.9.2 --readers 0.10.2 --platforms cpu",
    ]


def test_similar_changes_are_one_finding():
    names = [f"t.{number}" for number in range(5)]
    outside = crash("t.k", promised=False, judgement=Judgement.OUTSIDE)
    first, second = findings([*(result(case=name) for name in names), outside], [*map(crash, names), crash("t.k")])
    assert (len(first.results), len(second.results)) == (5, 1)
    assert first.text.startswith("5 cells: t.0/0.9.2-cpu, t.1/0.9.2-cpu, t.2/0.9.2-cpu and 2 more in jaxlib 0.10.2.")


def test_the_worst_changes_come_first_and_unchanged_cells_are_omitted():
    same, gone, new, works, worked = (result(case=f"t.{name}") for name in "abcde")
    changes = findings(
        [same, gone, crash("t.d"), worked], [same, new, works, crash("t.e")], ["the baseline is incomplete"]
    )
    assert [each.title for each in changes] == ["CAVEAT", "REGRESSED", "fixed", "new", "gone"]
    assert "not in the baseline" in changes[3].text
    assert "not in this run" in changes[4].text


def test_a_finding_says_if_its_golden_has_changed():
    plain = difference([result(case="t.f")], [crash()])
    changed = replace(plain, cells=[replace(plain.cells[0], other_golden=True)])
    (finding,) = as_run_difference(changed).findings
    assert "  golden     not the same as in the baseline" in finding.text.splitlines()


def test_the_last_line_has_counts_and_the_exit_code():
    assert as_run_difference(difference([result(case="t.f")], [crash()])).line == (
        "Since the baseline (as of 2026-11-21, 1 cell): 1 regressed, 0 fixed, 0 new, 0 gone, 0 changed, 0 unchanged. "
        "Exit code 1 is that of the new run alone."
    )


def test_json_follows_its_schema_without_unchanged_cells():
    same, gone, worked = (result(case=f"t.{name}") for name in "abf")
    plain = json.loads(msgspec.json.encode(baseline_report(difference([same, gone, worked], [same, crash()]))))
    jsonschema.Draft202012Validator(schema("comparison")).validate(plain)
    assert [(each["change"], each["case"]) for each in plain["cells"]] == [("regressed", "t.f"), ("gone", "t.b")]
    regressed, gone = plain["cells"]
    assert (regressed["then"]["judgement"], regressed["now"]["verdict"], gone["now"]) == ("kept", "crash", None)
    assert plain["counts"]["unchanged"] == 1


# --- report --baseline OLD --html -------------------------------------------------------------------------------------


KEPT, OTHER = result(case="t.a"), result(case="t.b", writer="0.10.1")
CRASH = msgspec.structs.replace(KEPT, verdict=Verdict.CRASH, judgement=Judgement.BROKEN, message="died")
CRASH_OTHER = msgspec.structs.replace(OTHER, verdict=Verdict.CRASH, judgement=Judgement.BROKEN, message="died")


def page(*runs: object) -> str:
    return html_page(compared(*runs))


def test_regressions_are_first_on_the_page():
    text = page([KEPT, CRASH_OTHER], [CRASH, OTHER], ["the baseline had another plan"])
    titles = re.findall(r'<b class="is-(\w+)">', text)
    assert titles == ["regressed", "fixed"]
    assert text.index("What changed") < text.index("Which jaxlib runs which goldens")
    assert "the baseline had another plan" in text
    assert "baseline</span> as of 2026-11-21" in text


def test_a_page_without_a_baseline_shows_no_changes():
    assert "What changed" not in html_page(document([KEPT]))


def test_a_cell_missing_from_the_new_run_is_not_linked():
    text = page([KEPT, OTHER], [CRASH])
    assert re.findall(r'<b class="is-(\w+)">', text) == ["regressed", "gone"]
    assert re.findall(r'<a href="([^"]*)">One of its cells</a>', text) == [cell_link(KEPT.key)]
    assert text.count(">All of them in the table</a>") == 1


def test_page_data_has_each_cells_earlier_judgement():
    data = re.search(r'id="data">(.*?)</script>', page([KEPT, OTHER], [CRASH, OTHER]))[1]
    histories = sorted(json.loads(data)["tables"]["history"])
    assert histories == [
        [["kept: pass", "broken: crash"], ["regressed"]],
        [["kept: pass", "kept: pass"], ["unchanged"]],
    ]


@pytest.mark.browser
def test_changed_cells_can_be_filtered(opened, tmp_path):
    file = tmp_path / "compared.html"
    file.write_text(page([KEPT, OTHER], [CRASH, OTHER]), "utf-8")
    shown = opened(file=file)
    shown.get_by_role("link", name="All of them in the table").first.click()
    expect(shown.locator("#count")).to_have_text("1 of 2 cells")
    shown.locator("#grid .cell").click()
    expect(shown.locator("#cell-facts")).to_contain_text("regressed; it was kept: pass")


@pytest.fixture
def third_run(tmp_path):
    """The last of three runs: t.f worked, crashed, and works again; t.new is only in this one."""
    runs = ([result(case="t.f")], [crash("t.f")], [result(case="t.f"), result(case="t.new")])
    for number, results in enumerate(runs):
        finished(tmp_path / f"run{number}", *results, as_of=day(f"2026-11-2{number}"))
    # The order of the baselines does not matter.
    earlier = tmp_path / "run1", tmp_path / "run0"
    return compare_runs.compared(read_run(tmp_path / "run2"), *earlier)


def test_the_newest_of_several_baselines_is_compared(third_run):
    assert third_run.runs == ["1: as of 2026-11-20", "2: as of 2026-11-21", "this run"]
    assert third_run.line.startswith("Since the baseline (as of 2026-11-21, 1 cell)")
    states_and_changes = {key.golden.partition("/")[0]: pair for key, pair in third_run.cells.items()}
    assert states_and_changes == {
        "t.f": (["kept: pass", "broken: crash", "kept: pass"], ["regressed", "unchanged", "fixed"]),
        "t.new": (["", "", "kept: pass"], ["", "new", "new"]),
    }


@pytest.mark.browser
def test_the_page_compares_any_two_of_several_runs(opened, third_run, tmp_path):
    file = tmp_path / "history.html"
    run = third_run.run
    file.write_text(html_page(document(run.results, run.summary, third_run)), "utf-8")
    page = opened("#filter=change%3Afixed", file=file)
    count, changes = page.locator("#count"), page.locator("select[data-key=change] option")
    assert count.inner_text() == "1 of 2 cells"
    assert changes.all_inner_texts() == ["all", "fixed (1)", "new (1)"]
    page.select_option("#then", "0")
    page.select_option("#now", "1")
    page.wait_for_url("**runs=0-1*")
    expect(changes).to_have_text(["all", "regressed (1)"])
    page.select_option("select[data-key=change]", "regressed")
    expect(count).to_have_text("1 of 2 cells")
    expect(page.locator("#grid .history")).to_have_attribute(
        "aria-label", "1: as of 2026-11-20: kept; 2: as of 2026-11-21: broken; this run: kept"
    )
    page.locator("#grid .cell").click()
    facts = page.locator("#cell-facts")
    expect(facts).to_contain_text("regressed; it was kept: pass")
    history = "this run: kept: pass\n2: as of 2026-11-21: broken: crash\n1: as of 2026-11-20: kept: pass"
    assert history in facts.inner_text()
    page.go_back()
    expect(page.locator("#cell")).to_be_hidden()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(count, "the address has the two runs").to_have_text("1 of 2 cells")


def test_report_accepts_several_baselines(tmp_path, third_run, jaxexport):
    options = [word for number in (0, 1) for word in ("--baseline", str(tmp_path / f"run{number}"))]
    page = jaxexport("report", str(tmp_path / "run2"), *options, "--html", "-").out
    assert '<option value="0">1: as of 2026-11-20</option>' in page


@pytest.mark.browser
def test_the_labels_of_two_runs_in_a_chart_do_not_overlap(opened):
    page = opened(shown=compared([result(message="then")], [result(message="now")]))
    expect(page.locator("#over-time summary")).to_have_text("1 case: no cell moved")
    page.locator("#over-time summary").click()
    names = page.locator("#over-time .chart > text.date")
    expect(names.first).to_be_visible()
    boxes = names.evaluate_all("all => all.map(one => one.getBoundingClientRect())")
    first, last = (box for box in boxes if box["y"] == boxes[0]["y"])
    assert first["right"] < last["left"]


@pytest.mark.browser
def test_the_page_draws_cases_that_changed_over_several_runs(opened, tmp_path):
    noises = (0.5, 3.0, 0.5)
    for number, noise in enumerate(noises):
        cells = [
            result(case="t.f", max_noise_error=noise, cost=Cost(temp_bytes=1000 * (number + 1))),
            result(case="t.same", max_noise_error=0.5),
            *([result(case="t.new")] if number == 2 else []),
        ]
        finished(tmp_path / f"run{number}", *cells, as_of=day(f"2026-11-2{number}"))
    difference = compare_runs.compared(read_run(tmp_path / "run2"), tmp_path / "run0", tmp_path / "run1")
    page = opened(shown=document(difference.run.results, difference.run.summary, difference))
    moved = page.locator("#over-time > article")
    assert moved.locator("h4").all_inner_texts() == ["f"]
    label = moved.locator(".chart").get_attribute("aria-label")
    assert "1 of 1 cells moved" in label
    assert "error, at most 3 times the noise" in label
    assert "temp bytes, 1 k to 3 k" in label
    assert moved.locator("rect.state.kept").count() == 3
    expect(page.locator("#over-time summary")).to_have_text("2 other cases")
    page.locator("#over-time summary").click()
    expect(page.locator("#over-time details h4")).to_have_text(["new", "same"])
    words = page.locator("#over-time details figcaption").all_inner_texts()
    assert [text.partition(";")[0] for text in words] == [
        "0 of 1 cells moved, 1 not in every run",
        "0 of 1 cells moved",
    ]
    page.goto(page.url.partition("#")[0] + cell_link(result(case="t.f").key))
    expect(page.locator("#cell-pictures")).to_contain_text("From run to run")
