"""A run as annotations of GitHub Actions, and the lines of tests to which they and SARIF point.

Annotations are workflow commands, which GitHub's pages show at the line of a test.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from export_core.base.text import plural, shown
from export_core.base.untrusted import read_regular
from export_core.judge import Result
from export_core.matrix.result import Cells
from export_core.report.document import Document, Finding
from export_core.report.wording import evidence, reason_line

MOST = 10  # The annotations of one type that GitHub shows for a step; it drops the others.
_MOST_OF_ONE = 3
"""The most annotations for one finding: so findings with other causes have room. The HTML page has all tests."""
_LONGEST = 3000  # Characters of a message: the runner cuts longer ones at 4,096.


def annotation_commands(document: Document) -> str:
    """Return the GitHub workflow commands that annotate a run: its headline, then the tests that its findings affect.

    The first test of every finding comes before the second test of any, with at most `_MOST_OF_ONE` tests for a
    finding. Return "" for a run that is kept and current.
    """
    if not (exit_code := document.run.summary.exit_code) and not document.doubt:
        return ""
    tests = affected_tests(document.findings)
    counts, of_one, lines = Counter(error=1), Counter[int](), []
    for test in tests:
        of_one[id(test.finding)] += 1  # not the rank, which findings share
        level = test.finding.kind.level
        if of_one[id(test.finding)] <= _MOST_OF_ONE and counts[level] < MOST:
            counts[level] += 1
            lines.append(_command(level, test.title, test.message, test.place))
    line, cells = document.headline
    left_out = len(tests) - len(lines)
    more = f"\nNot annotated: {plural(left_out, 'more affected test')}. The report has all." if left_out else ""
    title, _, rest = line.removesuffix(".").partition("; ")
    rest = f"{rest[:1].upper()}{rest[1:]}.\n" if rest else ""
    return "\n".join((_command("error" if exit_code else "warning", title, f"{rest}{cells}{more}"), *lines)) + "\n"


def _command(level: str, title: str, message: str, place: SourceLine | None = None) -> str:
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    written = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in {**properties, "title": title}.items()
    )
    return f"::{level} {written}::{_data(message[:_LONGEST])}"


def _data(text: str) -> str:
    # The runner undoes this, and shows lines that may begin with "::" themselves: `shown` makes those harmless.
    return shown(text).replace("%", "%25").replace("\n", "%0A")


@dataclass(frozen=True)
class AffectedTest:
    """A test that a finding affects: the finding, and its cells that belong to the test, the example cell first.

    A finding about the run as a whole has no cells.
    """

    finding: Finding
    results: tuple[Result, ...] = ()

    @property
    def title(self) -> str:
        """The title of the finding, followed by the verdict and the stage of its cells if these have a common cause."""
        cause = self.finding.cause
        return f"{self.finding.title}: {cause.verdict} in stage {cause.stage}" if cause else self.finding.title

    @property
    def message(self) -> str:
        """The text of the annotation: the finding, advice, and an example cell's message with its command."""
        lines = [self.finding.sentence]
        if len(self.results) < len(self.finding.results):
            lines.append(f"{plural(len(self.results), 'cell')} of them: {self.results[0].case}.")
        lines += [f"{label}: {text}" for label, text in self.finding.advice]
        if self.results:
            example = self.results[0]
            lines.insert(1, f"message: {reason_line(example)}")
            lines[2:2] = [f"looks like: {example.looks_like}"] if example.looks_like else []
            lines += [f"reproduce: {command}"] if (command := dict(evidence(example))["reproduce"]) else []
        return "\n".join(lines)

    @property
    def place(self) -> SourceLine | None:
        """The line at which the test begins in the current folder's project; None if the file is not there."""
        return source_line(self.results[0].test) if self.results else None


def affected_tests(findings: Iterable[Finding]) -> list[AffectedTest]:
    """Return the tests that findings affect: first one test of each finding, then a second one of each, and so on.

    So a format with room for only some tests still shows every finding. Findings that nobody has to look at are left
    out.
    """
    by_finding = []
    for finding in findings:
        if finding.kind.level:
            example = finding.cause and finding.cause.example
            tests = [
                sorted(results, key=lambda result: result.key != example)
                for results in Cells(finding.results).by_test.values()
            ]
            tests.sort(key=lambda results: results[0].key != example)
            by_finding.append([AffectedTest(finding, tuple(results)) for results in tests] or [AffectedTest(finding)])
    return [test for tests in itertools.zip_longest(*by_finding) for test in tests if test]


@dataclass(frozen=True)
class SourceLine:
    """A line of a file. `file` is relative to the root of the repository, with ``/`` between its parts."""

    file: str
    line: int

    @property
    def uri(self) -> str:
        """The path of the file as a relative URI, with special characters escaped."""
        return quote(self.file)


def source_line(test: str, folder: Path = Path()) -> SourceLine | None:
    """Return the line of source code where a test begins, such as ``tests/test_a.py::TestA::test_f[x]``.

    Return None if `folder` has no such file: results may come from elsewhere, and their text is not trusted. If the
    function is not found, for example because a base class has it, the line is that of its class, or else line 1.
    """
    path, _, names = test.partition("::")
    name = PurePosixPath(path)
    if name.is_absolute() or ".." in name.parts or name.suffix != ".py" or "\\" in path:
        return None
    folder = folder.resolve()
    lines = _lines(folder / name)
    if lines is None:
        return None
    # Not the parameters, which may hold anything.
    parts = names.partition("[")[0].split("::")
    while parts and "::".join(parts) not in lines:
        parts.pop()
    # CI systems name files from the root of the repository.
    root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
    return SourceLine((folder.relative_to(root) / name).as_posix(), lines.get("::".join(parts), 1))


@functools.cache
def _lines(path: Path) -> dict[str, int] | None:
    """Return the line of each class and function in a Python file, by qualified name such as ``TestA::test_f``.

    Return None if the file cannot be read, and an empty dict if it does not parse.
    """
    try:
        data = read_regular(path)
    except (OSError, ValueError):
        return None
    try:
        return dict(_defined(ast.parse(data).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _defined(body: Iterable[ast.stmt], within: str = "") -> Iterator[tuple[str, int]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{within}{statement.name}", statement.lineno
            if isinstance(statement, ast.ClassDef):
                yield from _defined(statement.body, f"{within}{statement.name}::")
