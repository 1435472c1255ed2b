"""A run as SARIF 2.1.0, for code scanning: a rule for each cause, and a result for each test that the cause affects.

Cells that are not promised, and known failures, are left out: an alert is for what somebody has to do.
"""

import datetime
import hashlib
from pathlib import PurePosixPath
from typing import Any

from export_core.base.json_text import safe_json
from export_core.base.text import plural, shortened, shown
from export_core.judge import Summary
from export_core.policy.load import FILE
from export_core.report.annotations import AffectedTest, SourceLine, affected_tests
from export_core.report.document import Document, Finding, issue_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 5_000
"""The results of a run that GitHub stores; it refuses a file with more than 25,000. Source: its SARIF limits."""
_LONGEST = 1_000  # Characters of a rule's description: GitHub's limit is 1,024.


def sarif_file(document: Document) -> bytes:
    """Return the report of a run as a SARIF file. The lines of tests are looked up in the current folder."""
    summary, tests = document.run.summary, affected_tests(document.findings)
    rules: dict[str, dict[str, Any]] = {}
    for finding in document.findings:
        if finding.kind.level and (name := _rule_id(finding)) not in rules:
            rules[name] = _rule(finding, summary)
    places = {name: number for number, name in enumerate(rules)}
    alerts = [_result(test, places, _place(test, summary)) for test in tests[:MOST]]
    tool = {"version": _text(summary.identity.tool)} if summary.identity.tool else {}
    run = {
        "tool": {"driver": {"name": "pytest-jaxexport", **tool, "rules": list(rules.values())}},
        "automationDetails": {"id": "jaxexport/"},
        "invocations": [_invocation(document, len(tests) - len(alerts))],
        "columnKind": "unicodeCodePoints",
        "results": alerts,
    }
    return safe_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + b"\n"


def _invocation(document: Document, left_out: int) -> dict[str, Any]:
    """Return SARIF's `invocation`: the exit code, the headline, and how many results are left out of the file."""
    summary, identity = document.run.summary, document.run.summary.identity
    times = {"startTimeUtc": identity.started, "endTimeUtc": identity.ended}
    note = (
        f"{plural(left_out, 'more affected test')} {'is' if left_out == 1 else 'are'} not in this file: "
        f"code scanning stores {MOST:,} results of a run."
    )
    return {
        "executionSuccessful": True,
        "exitCode": summary.exit_code,
        "exitCodeDescription": _text(" ".join(document.headline)),
        **{name: f"{time.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}" for name, time in times.items() if time},
        **({"toolExecutionNotifications": [{"message": {"text": note}}]} if left_out else {}),
    }


def _rule_id(finding: Finding) -> str:
    """Return the rule id of a finding: the id of its cause, the same in later runs, or else the finding's kind."""
    return _text(finding.cause.id) if finding.cause else finding.title.lower().replace(" ", "-")


def _rule(finding: Finding, summary: Summary) -> dict[str, Any]:
    cause = finding.cause
    issue = issue_of(cause, summary)
    title = issue.title if issue else AffectedTest(finding).title
    help_lines = [finding.sentence, *(f"{label}: {text}" for label, text in finding.details)]
    tags = [str(cause.verdict), str(cause.stage), cause.platform] if cause else []
    return {
        "id": _rule_id(finding),
        "shortDescription": {"text": _short(title)},
        "fullDescription": {"text": _short(finding.sentence)},
        "help": {"text": _text("\n".join(help_lines))},
        **({"helpUri": _text(issue.link)} if issue and issue.link else {}),
        "defaultConfiguration": {"level": finding.kind.level},
        "properties": {"tags": [_text(tag) for tag in ("jax.export", *tags)], "precision": "very-high"},
    }


def _result(test: AffectedTest, places: dict[str, int], place: SourceLine) -> dict[str, Any]:
    rule = _rule_id(test.finding)
    # By this GitHub recognizes an alert: it is the same in each run, whatever lines are added above the test.
    name = f"{rule}\0{test.results[0].case if test.results else ''}"
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32]
    return {
        "ruleId": rule,
        "ruleIndex": places[rule],
        "level": test.finding.kind.level,
        "message": {"text": _text(test.message)},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": place.uri}, "region": {"startLine": place.line}}}
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:1"},
        "occurrenceCount": max(len(test.results), 1),
    }


def _place(test: AffectedTest, summary: Summary) -> SourceLine:
    """Return the line that a SARIF result points to: of the test, or else of a golden's manifest or of the policy.

    GitHub refuses a result that points to no file.
    """
    if place := test.place:
        return place
    goldens = PurePosixPath(summary.identity.goldens or "golden")
    if goldens.is_absolute() or ".." in goldens.parts or not test.results:
        return SourceLine(FILE, 1)
    return SourceLine(_text(str(goldens / test.results[0].golden / "golden.yaml")), 1)


def _text(text: str) -> str:
    """Return a text escaped for a SARIF message, in which ``[a](b)`` would otherwise be a link."""
    return shown(text).replace("](", "]\N{ZERO WIDTH SPACE}(")


def _short(text: str) -> str:
    return shortened(_text(text).replace("\n", " "), _LONGEST)
