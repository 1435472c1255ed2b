"""Annotations and SARIF: what GitHub shows at the lines of tests, within its limits."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from example_runs import broken_document, kept_run
from making import document, result, summarize
from rich_run import Element, assert_shown, rich_document, texts_in

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.report import annotations as annotating
from export_core.report import sarif
from export_core.report.annotations import MOST, annotation_commands
from export_core.report.document import Document
from export_core.report.sarif import sarif_file

CRASH = result(
    Verdict.CRASH, Judgement.BROKEN, case="test_a.test_f", stage=Stage.RUN, message="signal 11: 100%", signal=11,
    test="test_a.py::test_f",
)  # fmt: skip
GONE = result(
    Verdict.NOT_RUN, Judgement.INCOMPLETE, case="test_a.test_g", message="no environment", test="test_a.py::test_g"
)


STALE = document(
    [result()], msgspec.structs.replace(summarize([result()]), stale=["Entry 1 matches nothing."], exit_code=4)
)


def many(count: int) -> list[Result]:
    """Build results of this many tests, with one cause."""
    return [msgspec.structs.replace(CRASH, case=f"t.{n}", golden=f"t.{n}/g", test=f"t.py::{n}") for n in range(count)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_a.py").write_text("def test_f(): ...\n\n\ndef test_g(): ...\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- annotations ------------------------------------------------------------------------------------------------------


def annotations(results: list[Result], **changes: Any) -> list[tuple[str, dict[str, str], str]]:
    """Return the annotations as GitHub's runner reads them: level, properties and message."""
    text = annotation_commands(document(results, summarize(results, **changes)))
    read = []
    for line in text.splitlines():
        level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
        pairs = dict(pair.split("=", 1) for pair in properties.split(","))
        read.append((level, {name: unescaped(value) for name, value in pairs.items()}, unescaped(message)))
    return read


def unescaped(text: str) -> str:
    for code, letter in (("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text


@pytest.mark.usefixtures("project")
def test_an_annotation_is_at_the_line_of_the_test():
    _, (level, properties, message), (other, gone, _) = annotations([CRASH, GONE])
    assert level == "error"
    assert properties == {"file": "test_a.py", "line": "1", "title": "BROKEN PROMISE: crash in stage run"}
    assert "message: signal 11: 100%\n" in message
    assert message.endswith(f"reproduce: {CRASH.reproduce}")
    assert (other, gone["line"]) == ("warning", "4")


def test_annotations_have_each_finding_that_has_a_level(monkeypatch):
    monkeypatch.setattr(annotating, "MOST", 100)
    text = annotation_commands(rich_document())

    def is_shown(element: Element) -> bool:
        if element.finding is None:
            return element.sort in ("headline", "counts")
        if element.sort == "detail" and element.label not in ("known as", "message", "to do", "reproduce"):
            return False
        return bool(element.finding.kind.level) and element.sort != "change"

    assert_shown(unescaped(text), is_shown)
    levels = {finding.title: finding.kind.level for finding in rich_document().findings if finding.kind.level}
    found = {
        unescaped(title).partition(": ")[0]: level for level, title in re.findall(r"::(\w+) .*?title=(.*?)::", text)
    }
    assert levels.items() <= found.items()


def test_a_test_not_found_here_is_annotated_without_a_line():
    assert annotations([CRASH])[1][1].keys() == {"title"}


def test_a_kept_run_has_no_annotation():
    assert annotation_commands(document(*kept_run())) == ""


def test_each_cause_is_annotated_before_any_cause_twice():
    titles = re.findall(r"title=(.*?)::", annotation_commands(broken_document()))
    assert titles[1:5] == [
        "BROKEN PROMISE%3A crash in stage run",
        "BROKEN PROMISE%3A timeout in stage compile",
        "BROKEN PROMISE%3A numerics in stage compare",
        "BROKEN PROMISE%3A crash in stage run",
    ]
    assert titles.count("BROKEN PROMISE%3A crash in stage run") == 3


def test_annotations_are_limited_and_the_rest_is_counted():
    causes = "abcdefghijklmnopqrstuvwxyz"
    read = annotations(
        [msgspec.structs.replace(each, message=name) for each, name in zip(many(26), causes, strict=True)]
    )
    assert len(read) == MOST
    assert read[0][2].endswith("Not annotated: 17 more affected tests. The report has all.")


# --- SARIF ------------------------------------------------------------------------------------------------------------


@functools.cache
def schema() -> jsonschema.Draft7Validator:
    """Return the official schema of SARIF; tests/report/data says where it is from."""
    text = (Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text()
    return jsonschema.Draft7Validator(json.loads(text), format_checker=jsonschema.FormatChecker())


def run_of(reported: Document) -> dict[str, Any]:
    read = json.loads(sarif_file(reported))
    schema().validate(read)
    (run,) = read["runs"]
    return run


def test_sarif_has_each_finding_that_has_a_level():
    run = run_of(rich_document())
    assert_shown(
        "\n".join(texts_in(run)),
        lambda element: (
            (bool(element.finding and element.finding.kind.level) and element.sort not in ("title", "change"))
            or element.sort in ("headline", "counts")
        ),
    )
    levels = [rule["defaultConfiguration"]["level"] for rule in run["tool"]["driver"]["rules"]]
    assert levels == ["error"] * 10 + ["warning"] * 6 + ["error"] + ["warning"] * 5
    assert [alert["level"] for alert in run["results"]].count("error") == 12


def test_sarif_has_a_rule_per_cause_and_a_result_per_test():
    run = run_of(broken_document())
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [name.split("-")[0] for name in ids] == ["lapack", "timeout", "numerics"]
    assert [(each["ruleId"], ids[each["ruleIndex"]]) for each in run["results"]][:4] == [
        (name, name) for name in (*ids, "lapack-cold-process")
    ]
    assert len(run["results"]) == 10
    assert sum(each["occurrenceCount"] for each in run["results"]) == 67
    assert run["tool"]["driver"]["rules"][0]["helpUri"] == "https://github.com/jax-ml/jax/issues/29610"


def test_an_alert_points_at_its_test_or_else_at_its_golden(project, monkeypatch):
    def locations() -> list[tuple[str, int]]:
        made = run_of(document([CRASH]))["results"][0]["locations"][0]["physicalLocation"]
        return [(made["artifactLocation"]["uri"], made["region"]["startLine"])]

    assert locations() == [("test_a.py", 1)]
    monkeypatch.chdir(project.parent)
    assert locations() == [("golden/test_a.test_f/0.9.2-cpu/golden.yaml", 1)]


@pytest.mark.usefixtures("project")
def test_other_alerts_do_not_change_a_fingerprint():
    before = run_of(document([CRASH]))["results"][0]["partialFingerprints"]
    after = run_of(document([CRASH, *many(3)]))["results"]
    assert before in [each["partialFingerprints"] for each in after]
    assert len({json.dumps(each["partialFingerprints"]) for each in after}) == 4


def test_cells_outside_the_window_give_no_alerts():
    known = msgspec.structs.replace(CRASH, judgement=Judgement.OUTSIDE, promised=False)
    assert run_of(document([known, result()]))["results"] == []


def test_an_alert_about_the_whole_run_points_at_the_policy():
    (alert,) = run_of(STALE)["results"]
    assert alert["ruleId"] == "stale-list"
    assert alert["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "export_compat.yaml"


def test_sarif_results_are_limited_and_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(sarif, "MOST", 20)
    run = run_of(document([*many(30), GONE]))
    assert len(run["results"]) == 20
    assert run["results"][1]["level"] == "warning", "the other finding comes before the second test of the first"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("11 more affected tests are not in this file")


def test_the_sarif_invocation_has_the_exit_code_and_the_headline():
    (invocation,) = run_of(broken_document())["invocations"]
    assert invocation["exitCode"] == 1
    assert invocation["exitCodeDescription"].startswith("BROKEN: 67 of 1,350 promised cells, 3 causes")
