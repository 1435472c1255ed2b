"""A run with two jaxlibs and two other runtimes as readers, in each medium."""

import hashlib
import io
import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree as Xml

import pytest
from example_runs import broken_run
from making import day, document, golden, judged_run, of_runtime, result, run_of
from msgspec.structs import replace as replaced
from rich.console import Console

from export_core.base.text import ranges
from export_core.features.compare_runs.trend import cost_lines, cost_steps
from export_core.judge import Judgement
from export_core.judge.causes import find_causes
from export_core.matrix import Selection, Verdict, make_plan
from export_core.policy import Policy
from export_core.readers.worker.protocol import Cost, Stage
from export_core.releases import Windows, load_calendar
from export_core.releases.names import title_of
from export_core.report.junit import junit_xml
from export_core.report.map_svg import map_svg
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.plan_report import github_jobs, print_plan_report
from export_core.report.run_tables import release_map
from export_core.report.terminal import print_report
from export_core.report.view import broken_cell, view
from export_core.report.wording import began_and_ended, promise_line, window_line
from export_core.run.run import Run

BROKEN = {"verdict": Verdict.ERROR, "judgement": Judgement.BROKEN, "stage": Stage.COMPILE, "message": "No such op."}
PROMISED = "tensorflow promises: It is promised in a test. (https://example.org/promise)"
NOTHING = "iree promises nothing: only a deployment target of the policy requires anything of it"


def made(name):
    """Build results of one case by two writers, read by both and by three releases of two other runtimes."""
    results = []
    for writer in ("0.11.0", "0.12.0.1"):
        plain = {"case": f"tests.test_a.{name}", "writer": writer}
        results += [result(**plain, reader=reader) for reader in ("0.11.0", "0.12.0.1")]
        for runtime, built, outcome in (
            ("iree==3.13.0", "2026-10-28", {"verdict": Verdict.PASS, "judgement": Judgement.BONUS, "promised": False}),
            ("tensorflow==2.20.0", "2026-08-13", {}),
            ("tensorflow==2.21.0", "2026-11-05", BROKEN),
        ):
            results.append(of_runtime(result(**plain, **outcome), runtime, built))
    return results


RESULTS = [*made("test_f"), *made("test_g")]


@pytest.fixture(autouse=True)
def _runtimes(two_runtimes):
    """The runtimes of this run are installed."""


def on_screen(width, **options):
    stream = io.StringIO()
    print_report(Console(width=width, file=stream), document(RESULTS), **options)
    return stream.getvalue()


# --- the map ----------------------------------------------------------------------------------------------------------


def test_the_map_has_jaxlib_first_and_then_each_runtime():
    drawn = release_map(run_of(RESULTS))
    assert [reader.term for reader in drawn.readers] == [
        *("0.11.0", "0.12.0.1", "iree==3.13.0"),
        *("tensorflow==2.20.0", "tensorflow==2.21.0"),
    ]
    picture = Xml.fromstring(map_svg(drawn, links=True))
    names = {element.text: element for element in picture.iter("text")}
    columns = [element.text for element in picture.iter("text") if element.get("class") == "reader"]
    assert columns == ["0.11.0", "0.12.0.1", "3.13.0", "2.20.0", "2.21.0"]
    positions = [float(names[text].get("x")) for text in ("iree", "tensorflow")]
    # Bands that go on beyond the map are clipped.
    bands = [one for one in picture if one.tag == "svg" or one.get("class") == "band"]
    assert len(bands) == len(drawn.rows)
    assert max(float(band.get("x")) + float(band.get("width")) for band in bands) < positions[0] < positions[1]


def test_a_square_of_a_runtime_is_labelled_and_linked():
    picture = Xml.fromstring(map_svg(release_map(run_of(RESULTS)), links=True))
    (square,) = [
        element
        for element in picture.iter("a")
        if element.get("aria-label").startswith("written by 0.11.0, read by tensorflow 2.21.0 on cpu: 2 broken")
    ]
    assert (
        unquote(square.get("href")) == "#filter=writer:0.11.0 reader:tensorflow==2.21.0 platform:cpu judgement:broken"
    )


def test_a_map_without_jaxlib_has_columns_and_no_axis():
    picture = Xml.fromstring(map_svg(release_map(run_of([one for one in RESULTS if one.reader.runtime]))))
    classes = {element.get("class") for element in picture.iter()}
    assert not classes & {"band", "today", "grid", "month"}
    assert [element.text for element in picture.iter("text") if element.get("class") == "reader"] == [
        *("3.13.0", "2.20.0", "2.21.0")
    ]


def test_a_map_of_many_runtimes_has_room_for_all():
    many = [
        of_runtime(one, f"tensorflow==2.{minor}.0", "2026-03-05") for one in made("test_f")[:1] for minor in range(40)
    ]
    picture = Xml.fromstring(map_svg(release_map(run_of([*RESULTS, *many]))))
    width = float(picture.get("viewBox").split()[2])
    assert width > 900
    assert picture.get("class") == "drawing release-map wide"
    squares = [element for element in picture.iter("g") if element.get("class", "").startswith("square")]
    assert all(float(one.find("rect").get("x")) + 24 <= width for one in squares if one.find("title") is not None)


def test_a_map_of_jaxlib_alone_is_drawn_as_recorded():
    drawn = map_svg(release_map(Run(*broken_run())), links=True)
    assert (
        hashlib.sha256(drawn.encode()).hexdigest() == "d0f3b6ba5d93f05b8dc3debfd540e5c6c0720c504d0484cbc39fa2184b3f3035"
    )


# --- terminal and Markdown --------------------------------------------------------------------------------------------


def test_the_terminal_names_the_readers_of_each_runtime():
    text = on_screen(200)
    assert "0.11.0, 0.12.0.1, tensorflow 2.20.0: ok; tensorflow 2.21.0: 2 broken" in text
    assert "2 ok" in text
    assert "only reader affected tensorflow 2.21.0" in text
    assert "==" not in text.replace("--readers tensorflow==2.21.0", "")


def test_the_full_report_names_the_runtime_of_each_reader():
    row = next(line for line in on_screen(200, full=True).splitlines() if line.startswith("  test_f: "))
    assert row == "  test_f: ok 0.11.0, 0.12.0.1; [ok] iree 3.13.0; ok tensorflow 2.20.0; err! tensorflow 2.21.0"


def test_the_same_message_in_two_runtimes_is_two_causes():
    """One message in jaxlib and in tensorflow is two causes, since their releases are not ordered."""
    results = [one if one.reader.runtime else replaced(one, **BROKEN) for one in RESULTS]
    causes = run_of(results).summary.causes
    assert [cause.readers for cause in causes] == [("0.11.0", "0.12.0.1"), ("tensorflow==2.21.0",)]


def test_a_change_in_a_runtime_is_dated_by_releases_of_that_runtime():
    """Only a tensorflow release that was not run counts as a gap between two of them; a jaxlib does not."""
    numerics = {"verdict": Verdict.NUMERICS, "judgement": Judgement.BROKEN}
    releases = [("2.19.1", "2026-04-30"), ("2.20.0", "2026-08-13"), ("2.21.0", "2026-11-05")]
    cells = [of_runtime(result(writer="0.11.0"), f"tensorflow=={version}", built) for version, built in releases]
    cells[2] = replaced(cells[2], **numerics)
    (whole,) = find_causes([result(writer="0.11.0"), *cells], load_calendar())[1]
    (with_gap,) = find_causes([result(writer="0.11.0"), cells[0], cells[2]], load_calendar())[1]
    assert whole.change == (
        "Numbers changed in tensorflow 2.21.0 (built 2026-11-05), after tensorflow 2.20.0 (built 2026-08-13)"
    )
    assert (whole.since, whole.before) == ("tensorflow==2.21.0", "")
    assert with_gap.before == "tensorflow==2.19.1"
    assert began_and_ended(with_gap) == [("began between", "tensorflow 2.19.1 and tensorflow 2.21.0")]


def test_markdown_has_separate_columns_for_each_runtime():
    text = markdown_text(document(RESULTS))
    assert "| | 0.11.0, 0.12.0.1 | iree 3.13.0 | tensorflow 2.20.0 | tensorflow 2.21.0 |" in text
    assert "| 0.11.0, 0.12.0.1 | tensorflow 2.21.0 |" in text


def test_ranges_of_readers_stay_within_one_runtime():
    names = ["0.11.0", "0.12.0.1", "iree==3.13.0", "tensorflow==2.19.1", "tensorflow==2.20.0", "tensorflow==2.21.0"]
    assert ranges(names, names) == "0.11.0, 0.12.0.1, iree 3.13.0, tensorflow 2.19.1 to 2.21.0"
    assert title_of(ranges(names[1:], names)) == "jaxlib 0.12.0.1, iree 3.13.0, tensorflow 2.19.1 to 2.21.0"


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_names_the_promise_of_each_runtime():
    page = html_page(document(RESULTS))
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    readers = {reader["jaxlib"]: reader for reader in data["tables"]["reader"]}
    runtimes = {"0.11.0": "jaxlib", "0.12.0.1": "jaxlib", "iree==3.13.0": "iree"}
    runtimes |= {"tensorflow==2.20.0": "tensorflow", "tensorflow==2.21.0": "tensorflow"}
    assert {name: reader["runtime"] for name, reader in readers.items()} == runtimes
    assert readers["0.11.0"]["promise"] == ""
    assert readers["iree==3.13.0"]["promise"] == NOTHING
    assert readers["tensorflow==2.21.0"]["promise"] == PROMISED
    assert '<option value="iree">iree</option>' in page


# --- JUnit, SARIF, plan -----------------------------------------------------------------------------------------------


def test_junit_has_a_suite_and_the_promise_of_each_reader():
    suites = {suite.get("name"): suite for suite in Xml.fromstring(junit_xml(document(RESULTS)).encode())}
    assert [*suites] == [
        *("jaxlib 0.11.0 with jax 0.11.0 on cpu", "jaxlib 0.12.0.1 with jax 0.12.0.1 on cpu"),
        *("iree 3.13.0 on cpu", "tensorflow 2.20.0 on cpu", "tensorflow 2.21.0 on cpu", "jaxexport"),
    ]
    (failure, *_) = suites["tensorflow 2.21.0 on cpu"].iter("failure")
    assert PROMISED in failure.text
    (works, *_) = suites["iree 3.13.0 on cpu"].iter("system-out")
    properties = {one.get("name"): one.get("value") for one in suites["iree 3.13.0 on cpu"].iter("property")}
    facts = {"runtime": "iree==3.13.0", "promise": NOTHING, "built": "2026-10-28", "platform": "cpu"}
    assert properties == {**facts, "cells bonus": "4"}
    assert "the writer; nothing is promised" in works.text


def test_a_finding_names_the_runtime_and_its_promise():
    (failing,) = (finding for finding in document(RESULTS).findings if finding.results)
    assert "read by tensorflow 2.21.0" in failing.sentence
    assert dict(failing.details)["promise"] == PROMISED
    assert "report it to tensorflow;" in dict(failing.details)["to do"]


def test_a_plan_has_jaxlib_first_then_each_runtime_by_build_date():
    asked = Selection(readers="tensorflow>=2.20,0.12.0.1,iree,0.11.0")
    plan = make_plan([golden("t.a", "0.11.0")], load_calendar(), Windows(), asked, day("2026-11-21"))
    stream = io.StringIO()
    print_plan_report(Console(width=200, file=stream), plan, Windows())
    lines = stream.getvalue().splitlines()
    assert [line.split(" on cpu")[0] for line in lines[:5]] == [
        "t.a/0.11.0-cpu  in 0.11.0 with jax 0.11.0",
        "t.a/0.11.0-cpu  in 0.12.0.1 with jax 0.12.0.1",
        *(f"t.a/0.11.0-cpu  in {name}" for name in ("iree 3.13.0", "tensorflow 2.20.0", "tensorflow 2.21.0")),
    ]
    assert "readers by build date: 0.11.0, 0.12.0.1, iree==3.13.0, tensorflow==2.20.0, tensorflow==2.21.0" in lines
    assert [job["name"] for job in github_jobs(plan, [])["include"]] == [
        *("jaxlib 0.11.0 on cpu", "jaxlib 0.12.0.1 on cpu", "iree 3.13.0 on cpu"),
        *("tensorflow 2.20.0 on cpu", "tensorflow 2.21.0 on cpu"),
    ]


def test_the_promise_of_a_runtime_not_installed_is_unknown(monkeypatch):
    strange = of_runtime(result(), "strange==1.0", "2026-11-05")
    assert promise_line(strange.reader) == "strange is not installed here: what it promises is not known"
    assert "outside the window: promised to releases of strange built" in window_line(replaced(strange, promised=False))


def test_the_window_line_says_that_a_promise_excludes_a_refusal():
    plain = result(Verdict.REFUSED, Judgement.OUTSIDE, writer="0.11.0", promised=False)
    assert window_line(of_runtime(plain, "tensorflow==2.20.0", "2026-08-13")) == (
        "backward: reader built 28 days after the writer; promised to releases of tensorflow built until 2027-01-12 "
        "(180 days), but the promise excludes this refusal"
    )


def test_a_cost_line_names_a_runtimes_releases_in_words():
    cells = [
        of_runtime(result(cost=Cost(temp_bytes=size)), f"tensorflow=={version}", built)
        for version, built, size in (("2.20.0", "2026-08-13", 1000), ("2.21.0", "2026-11-05", 3000))
    ]
    assert "tensorflow 2.20.0 -> tensorflow 2.21.0" in "\n".join(cost_lines(cost_steps(cells)))


# --- wrong numbers where nothing is promised --------------------------------------------------------------------------


def other_numbers(*versions, **changes):
    """Report one golden that jaxlib reads right, and these releases of iree with other numbers."""
    changes = {"stage": Stage.COMPARE, "message": "output 0: far", "max_abs_error": 0.5, **changes}
    plain = result(Verdict.NUMERICS, Judgement.BROKEN, promised=False, **changes)
    cells = [of_runtime(plain, f"iree=={version}", "2026-10-28") for version in versions]
    return document([result(), *cells])


def test_wrong_numbers_of_a_runtime_break_no_promise():
    report = other_numbers("3.13.0")
    (finding,) = (one for one in report.findings if one.results)
    assert (finding.title, report.run.summary.exit_code) == ("OTHER NUMBERS", 1)
    assert "ran with different numbers; iree promises nothing." in finding.sentence
    assert "breaks the promise" not in finding.text
    assert finding.brief.endswith(
        "Of iree, only iree 3.13.0 (built 2026-10-28) ran it: whether another release agrees is not known."
    )
    assert dict(finding.details)["to do"].startswith("This runtime promises nothing, and a silently wrong number")
    assert "jaxexport explain --case tests.test_a.test_f" in dict(finding.details)["to do"]
    assert report.headline[0].startswith("BROKEN: 1 cell with other numbers in runtimes that promise nothing")
    assert broken_cell(finding.results[0]).title == "OTHER NUMBERS"


def test_wrong_numbers_in_a_runtime_are_one_cause_for_all_writers():
    cells = [
        of_runtime(
            result(Verdict.NUMERICS, Judgement.BROKEN, case=case, writer=writer, promised=False),
            "iree==3.13.0",
            "2026-10-28",
        )
        for case in ("t.f", "t.g")
        for writer in ("0.9.2", "0.10.2")
    ]
    report = document([*(result(case=case) for case in ("t.f", "t.g")), *cells])
    causes = report.run.summary.causes
    assert [(cause.cases, cause.writers, cause.cells) for cause in causes] == [
        ((case,), ("0.9.2", "0.10.2"), 2) for case in ("t.f", "t.g")
    ]
    assert {cause.change for cause in causes} == {
        "Of iree, only iree 3.13.0 (built 2026-10-28) ran it: whether another release agrees is not known"
    }


def test_a_known_issue_names_the_release_it_began_in(tmp_path):
    issues = tmp_path / "issues.yaml"
    issues.write_text(
        "- {id: iree-pow, title: Powers of negative bases are NaN, consumer: iree, since: 3.13.0, outcome: numerics, "
        "todo: Multiply., concerns: {operations: [stablehlo.power]}, study: docs/explanation/runtimes.md}"
    )
    plain = result(Verdict.NUMERICS, Judgement.BROKEN, promised=False, stage=Stage.COMPARE, upstream="iree-pow")
    run = judged_run([of_runtime(plain, "iree==3.13.0", "2026-10-28")], Policy(known_issues=str(issues)))
    (finding,) = (one for one in view(run).findings if one.results)
    details = dict(finding.details)
    assert finding.title == "OTHER NUMBERS"
    assert details["known as"] == (
        "iree-pow since iree 3.13.0: Powers of negative bases are NaN, docs/explanation/runtimes.md"
    )
    assert details["to do"] == "Multiply."


def test_a_shipped_issue_names_no_file_that_a_user_lacks():
    name = "iree-sine-of-large-angles"
    plain = result(Verdict.NUMERICS, Judgement.BROKEN, promised=False, stage=Stage.COMPARE, upstream=name)
    report = view(judged_run([of_runtime(plain, "iree==3.13.0", "2026-10-28")], Policy()))
    (finding,) = (one for one in report.findings if one.results)
    assert dict(finding.details)["known as"] == (
        f"{name}: Sine, cosine and tangent of large angles are wrong, `jaxexport policy show --known`"
    )
    assert "docs/explanation" not in html_page(report)


def test_a_finding_counts_the_releases_with_other_numbers():
    (finding,) = (one for one in other_numbers("3.9.0", "3.13.0").findings if one.results)
    assert finding.sentence.endswith("None of the 2 releases of iree that ran it agrees with the writer.")


def test_rounding_in_a_runtime_is_titled_numbers_moved():
    (finding,) = (
        one for one in other_numbers("3.13.0", looks_like="rounding: errors of both signs").findings if one.results
    )
    assert finding.title == "NUMBERS MOVED"


@pytest.mark.parametrize(
    ("differs", "is_garbage"),
    [
        ({"max_abs_error": None}, True),  # one side is not finite
        ({"looks_like": "the elements that differ are zero"}, True),
        ({"looks_like": "beyond the range: up to 3e+12, where at most 4.5 was expected"}, True),
        ({"looks_like": "as if computed in bfloat16: errors of about 2^-9 of each value"}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("runtime", [True, False])
def test_no_policy_rule_is_suggested_for_nan_zeros_or_huge_numbers(differs, is_garbage, runtime):
    if runtime:
        report = other_numbers("3.13.0", **differs)
    else:
        wrong = {"stage": Stage.COMPARE, "message": "output 0: far", "max_abs_error": 0.5, **differs}
        report = document([result(), result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.11.0", **wrong)])
    (finding,) = (one for one in report.findings if one.results)
    to_do = dict(finding.details)["to do"]
    assert ("allow them with a rule" in to_do) is not is_garbage
    assert ("No rule allows such numbers" in to_do) is is_garbage
