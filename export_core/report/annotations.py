"""A run as annotations of GitHub Actions: workflow commands, which its pages show at the line of a test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from export_core.base.escaping import shown
from export_core.base.phrases import plural
from export_core.report.affected_tests import SourceLine, affected_tests
from export_core.report.document import Document

MOST = 10
"""Annotations of one type that GitHub shows of a step; it drops the others."""
_MOST_OF_ONE = 3
"""Annotations of one finding: the page has all tests, and a place is better left for what has another cause."""
_LONGEST = 3000
"""Characters of a message: the runner cuts longer ones at 4,096."""


def annotation_commands(document: Document, folder: Path = Path()) -> str:
    """The headline of a run that is not green, then tests of each finding, as many as are shown; else nothing.

    The first tests of all findings come before the second of any; of one finding there are `_MOST_OF_ONE`.
    `folder` is that of the project: the lines of tests are looked up in its files.
    """
    if document.run.summary.exit_code == 0:
        return ""
    tests = affected_tests(document.findings)
    counts, of_one, lines = Counter(error=1), Counter[tuple[int, int]](), []
    for test in tests:
        of_one[test.finding.rank] += 1
        level = test.finding.kind.level
        if of_one[test.finding.rank] <= _MOST_OF_ONE and counts[level] < MOST:
            counts[level] += 1
            lines.append(_command(level, test.title, test.message, test.place(folder)))
    line, cells = document.headline
    left_out = len(tests) - len(lines)
    more = f"\nNot annotated: {plural(left_out, 'more affected test')}. The report has all." if left_out else ""
    return "\n".join((_command("error", line.partition(":")[0], f"{line}\n{cells}{more}"), *lines)) + "\n"


def _command(level: str, title: str, message: str, place: SourceLine | None = None) -> str:
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    written = ",".join(f"{name}={_property(value)}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {written}::{_data(message[:_LONGEST])}"


def _data(text: str) -> str:
    # The runner undoes this, and shows lines that may begin with "::" themselves: `shown` makes those harmless.
    return shown(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
