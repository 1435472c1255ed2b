"""Known failures for the broken cells of a run, as YAML. What only a person can know is left to be filled in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from export_core.base.escaping import printable, shown
from export_core.judge import Judgement, Result, Summary
from export_core.judge.known import Scope, scope_of
from export_core.matrix import Verdict
from export_core.policy.known_issues import KnownIssue
from export_core.report.errors import ReportError
from export_core.report.yaml_text import yaml_text

_TODO = (
    ("reason", "TODO why it fails"),
    ("owner", "TODO who is responsible for it"),
    ("issue", "TODO the issue that tracks it"),
)


@dataclass(frozen=True)
class _Failure:
    """How a cell failed: what an entry must say of all its cells."""

    verdict: str
    stage: str
    message: str
    upstream: str


def proposal(results: Sequence[Result], summary: Summary) -> str:
    """The entries as YAML; empty where nothing is broken or owed. Reason, owner, issue and expiry are left open.

    Raises `ReportError` for a part of a run: cells that it did not see may fail in another way, or not at all.
    """
    if missing := _missing_part(summary):
        raise ReportError(f"--propose: expected a whole run whose cells all ran, found {missing}.")
    broken = [result for result in results if result.judgement.is_breach]
    # A scope has no jax: two readers with one jaxlib are one cell to an entry.
    others = {
        scope_of(result)
        for result in results
        if (result.promised or result.deployed) and not result.judgement.is_breach
    }
    built = {release.jaxlib: release.built for result in broken for release in (result.writer, result.reader)}
    issues = {issue.id: issue for issue in summary.known_issues}
    entries = [
        _entry(failure, scopes, others, summary.as_of, built, issues.get(failure.upstream))
        for failure, scopes in _grouped(broken)
    ]
    return "known_failures:\n" + "".join(entries) if entries else ""


def _missing_part(summary: Summary) -> str:
    """Why a run is not a whole one; empty where it is."""
    if summary.shard:
        return f"shard {summary.shard.index} of {summary.shard.count}: merge the shards first"
    if not summary.selection["whole"]:
        return (
            "some of its cells: run the matrix without --cases, --writers, --touching, and with --readers window or all"
        )
    not_run = summary.judgements.get(Judgement.INCOMPLETE, 0)
    if summary.uncovered or not_run:
        return "; ".join([f"{not_run} cells that were not run", *(text.rstrip(".") for text in summary.uncovered)])
    return ""


def _grouped(broken: Iterable[Result]) -> list[tuple[_Failure, list[Scope]]]:
    """Failures with the cells of one entry each. The globs of an entry cover these cells and no others."""
    cells: dict[_Failure, set[Scope]] = {}
    for result in broken:
        failure = _Failure(str(result.verdict), str(result.stage), _expected_message(result), result.upstream)
        cells.setdefault(failure, set()).add(scope_of(result))
    return [
        (failure, block)
        for failure, scopes in sorted(cells.items(), key=lambda item: str(item[0]))
        for block in _blocks(scopes)
    ]


def _blocks(scopes: set[Scope]) -> list[list[Scope]]:
    """Cells cut into blocks, each of which is every combination of its cases, writers, readers and platforms."""
    blocks = [tuple(frozenset({part}) for part in scope) for scope in sorted(scopes)]
    # Readers are merged first, then writers, cases and platforms: that makes the fewest entries, since most failures
    # are a release's.
    for axis in (2, 1, 0, 3):
        merged: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        for block in blocks:
            rest = (*block[:axis], *block[axis + 1 :])
            merged[rest] = merged.get(rest, frozenset()) | block[axis]
        blocks = [(*rest[:axis], names, *rest[axis:]) for rest, names in merged.items()]
    return [
        [Scope(case, writer, reader, platform) for case in sorted(block[0]) for writer in sorted(block[1])
         for reader in sorted(block[2]) for platform in sorted(block[3])]
        for block in blocks
    ]  # fmt: skip


def _expected_message(result: Result) -> str:
    """The message that an entry expects: the first line, without the size of the error where numbers are wrong."""
    line = result.message.strip().splitlines()[0] if result.message.strip() else ""
    return line.partition(" (max abs")[0] if result.verdict is Verdict.NUMERICS else line


def _entry(
    failure: _Failure,
    scopes: Sequence[Scope],
    others: set[Scope],
    as_of: datetime.date,
    built: Mapping[str, datetime.date],
    issue: KnownIssue | None,
) -> str:
    # Releases by build date; cases and platforms have none, and are sorted by name.
    names = [
        sorted({scope[axis] for scope in scopes}, key=lambda name: (built.get(name, as_of), name)) for axis in range(4)
    ]
    entry = {
        **dict(zip(("cases", "writers", "readers", "platforms"), names, strict=True)),
        "verdict": failure.verdict,
        "stage": failure.stage,
        "message": failure.message,
        **dict(_TODO),
        # What the table of upstream issues says need not be written again; the owner is always a person's choice.
        **({"reason": issue.title, "issue": issue.issue or issue.id} if issue else {}),
        "added": as_of,
    }
    # 50 is the default of `at_most`; an entry that covers more has to say so.
    if len(scopes) > 50:
        entry["at_most"] = len(scopes)
    text = yaml_text([entry], width=120, default_flow_style=None)
    lines = [*text.splitlines(), "  expires: TODO a day, at most 90 days after added"]
    if ambiguous := sorted(others.intersection(scopes)):
        cells = "; ".join(f"{scope.case} by {scope.writer} in {scope.reader}" for scope in ambiguous)
        warning = "This entry also covers cells that are not broken, since only their jax is different"
        lines.insert(0, f"# {warning}: {shown(printable(cells))}")
    return "".join(f"  {line}\n" for line in lines)
