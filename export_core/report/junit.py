"""A run as JUnit XML, which CI systems show: a test case for each golden and reader, and one for the run as a whole.

JUnit has four outcomes only: passed, failure, error and skipped. A cell that neither passed nor broke a promise is
skipped, with its type and reason, so that it is never shown as passed. results.jsonl is the authority.

The file follows Jenkins' junit-10.xsd, the only schema of JUnit that a CI system checks files against. Test cases also
have a file and a line, which are not in the schema: pytest's own reports have them, and GitLab and others link to them.
Only suites have properties, since the schema allows none in a test case: its facts are in its text, which every viewer
shows.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from export_core.base.exit_code import ExitCode
from export_core.base.layout import labelled_lines
from export_core.base.xml_text import text_of
from export_core.judge import Judgement, Result
from export_core.judge.gate import broken_changes
from export_core.matrix.verdicts import NUMBERS_MOVED
from export_core.readers.cell import CellKey
from export_core.readers.placement import Mode
from export_core.report.annotations import source_line
from export_core.report.document import Document, Finding
from export_core.report.view import entry_text
from export_core.report.wording import cell_sentence, evidence, promise_line, reason_line, window_line
from export_core.run.run import Run


def junit_xml(document: Document) -> str:
    """Return a run as JUnit XML: a suite for each reader on each platform, and a suite for the run as a whole."""
    run, summary = document.run, document.run.summary
    # If a cell has several findings, the finding with a cause is first, and then the worst.
    about_cells = [finding for finding in document.findings if finding.cause or len(finding.results) == 1]
    about_cells.sort(key=lambda finding: finding.cause is None)
    by_cell: dict[CellKey, list[Finding]] = {}
    for finding in about_cells:
        for result in finding.results:
            by_cell.setdefault(result.key, []).append(finding)
    suites = []
    for (reader, platform), cells in run.by_reader.items():
        name = f"{reader.title}{f' with jax {reader.jax}' if reader.jax else ''} on {platform}"
        cases = [_cell(result, name, run, by_cell.get(result.key, [])) for result in cells.results]
        own: dict[str, object] = {"runtime": reader.runtime, "promise": promise_line(reader)}
        own = own if reader.runtime else {"jaxlib": reader.name, "jax": reader.jax}
        facts = {**own, "built": reader.built, "platform": platform}
        counts = {f"cells {judgement}": len(results) for judgement, results in cells.by_judgement.items()}
        suites.append(_suite(name, cases, facts | counts))
    is_shown = any(int(suite.attrib[name]) for suite in suites for name in ("failures", "errors"))
    names = ("project", "commit", "ci_url", "tool", "machine")
    of_the_run = {
        "headline": document.headline[0],
        "planned": summary.planned,
        "as of": summary.as_of,
        "exit code": summary.exit_code,
        "plan": summary.plan,
        **{f"cells {name}": count for name, count in summary.judgements.items()},
        **{name: text for name in names if (text := getattr(summary.identity, name))},
    }
    suites.append(_suite("jaxexport", [_run(document, is_shown=is_shown)], of_the_run))
    if started := summary.identity.started:
        for suite in suites:
            suite.set("timestamp", started.isoformat())
    root = Xml.Element("testsuites", name="jaxexport", time=f"{summary.seconds:.3f}")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.attrib[name]) for suite in suites)))
    root.extend(suites)
    Xml.indent(root, " ")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text_of(root)}\n"


def _suite(name: str, cases: Sequence[Xml.Element], properties: dict[str, object]) -> Xml.Element:
    outcomes = Counter(child.tag for case in cases for child in case)
    suite = Xml.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(outcomes["failure"]),
        errors=str(outcomes["error"]),
        skipped=str(outcomes["skipped"]),
        time=f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    )
    listed = Xml.SubElement(suite, "properties")
    for label, value in properties.items():
        Xml.SubElement(listed, "property", name=label, value=str(value))
    suite.extend(cases)
    return suite


def _cell(result: Result, reader: str, run: Run, findings: Sequence[Finding]) -> Xml.Element:
    """Return the JUnit test case of a cell. `findings` are its cause's finding, if any, then those about it alone."""
    name = f"{result.golden.rpartition('/')[2]} in {reader}"
    case = Xml.Element("testcase", classname=result.case, name=name, time=f"{result.seconds:.3f}")
    if place := source_line(result.test):
        case.set("file", place.file)
        case.set("line", str(place.line))
    facts = result.judgement.facts
    # The finding that says how the cell is judged; its test case says that in its own words.
    judged = next((one for one in findings if one.cause or one.kind is facts.kind), None)
    others = [f"\n{one.title}  {one.text}" for one in findings if one is not judged]
    # A cell that was only compiled is not reported as passed.
    if outcome := facts.junit or ("skipped" if result.mode is Mode.COMPILE else ""):
        # A cell that works and is still skipped was only compiled: its type says that, not its judgement.
        by_verdict = result.judgement is Judgement.BROKEN or not facts.junit
        kind = result.verdict if by_verdict else result.judgement
        is_moved = judged is not None and judged.kind is NUMBERS_MOVED
        what = NUMBERS_MOVED.title.lower() if is_moved else str(result.judgement)
        message = f"{what}: {reason_line(result)}"
        if listed := entry_text(result, run.policy, run.summary.as_of):
            message = f"known failure: {listed}"
        element = Xml.SubElement(case, outcome, type=f"jaxexport.{kind}", message=message)
        common = judged.advice if judged else []
        cause = judged.sentence if judged and len(judged.results) > 1 else ""
        pairs = [("test", result.test), *evidence(result, all_of_stderr=True), ("cause", cause), *common]
        element.text = "\n".join((cell_sentence(result), *labelled_lines(pairs), *others))
    else:
        judgement = f"{result.judgement}: {facts.meaning}"
        lines = labelled_lines([("test", result.test), ("judgement", judgement), ("window", window_line(result))])
        Xml.SubElement(case, "system-out").text = "\n".join((*lines, *others))
    return case


def _run(document: Document, *, is_shown: bool) -> Xml.Element:
    """Return the JUnit test case of the run as a whole.

    If the exit code is not 0, it fails only for what no cell's test case shows, so that failures are not counted twice:
    if the run fails for more than its cells, or if `is_shown` is false, since no test case of a cell fails.
    """
    case = Xml.Element("testcase", classname="jaxexport", name="the run as a whole", time="0.000")
    line, counts = document.headline
    # A finding about one cell is in the test case of that cell.
    of_the_run = [f"{finding.title}  {finding.text}" for finding in document.findings if len(finding.results) != 1]
    text = "\n\n".join((line, counts, *of_the_run))
    summary = document.run.summary
    beside_cells = summary.uncovered or summary.unplanned or summary.failed_on or summary.stale
    has_own = bool(beside_cells or broken_changes(summary) or not is_shown)
    outcome = ExitCode.of(summary.exit_code).facts.junit if has_own else ""
    shown_as = {"type": "jaxexport.run", "message": line} if outcome else {}
    Xml.SubElement(case, outcome or "system-out", shown_as).text = text
    return case
