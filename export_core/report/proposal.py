"""Which known failures would be needed for the broken cells of a run? Written down but for what only a person can say."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from export_core.judge import Judgement, Result, Summary
from export_core.judge.known import Scope, scope_of
from export_core.matrix import Verdict
from export_core.report.errors import ReportError

_TODO = (
    ("reason", "TODO why it fails"),
    ("owner", "TODO who looks after it"),
    ("issue", "TODO where it is followed"),
)


@dataclass(frozen=True)
class _Story:
    """How a cell failed: what an entry must say of all its cells."""

    verdict: str
    stage: str
    message: str


def proposal(results: Sequence[Result], summary: Summary) -> str:
    """The entries as YAML; empty where no promise is broken. Reason, owner, issue and expiry are left to be written.

    Raises `ReportError` for a part of a run: what it did not see may fail otherwise, or not at all.
    """
    if problem := _partial(summary):
        raise ReportError(f"--propose: expected a whole run whose cells all ran, found {problem}.")
    broken = [result for result in results if result.judgement is Judgement.BROKEN]
    others = {scope_of(result) for result in results if result.promised and result.judgement is not Judgement.BROKEN}
    entries = [_entry(story, scopes, others, summary.as_of) for story, scopes in _grouped(broken)]
    return "known_failures:\n" + "".join(entries) if entries else ""


def _partial(summary: Summary) -> str:
    if summary.shard:
        return f"shard {summary.shard.index} of {summary.shard.count}: merge the shards first"
    if not summary.selection["whole"]:
        return (
            "some of its cells: run the matrix without --cases, --writers, --touching, and with --readers window or all"
        )
    if summary.uncovered or summary.judgements.get(Judgement.INCOMPLETE):
        return f"{summary.judgements.get(Judgement.INCOMPLETE, 0)} cells that were not run" + "".join(
            f"; {each.rstrip('.')}" for each in summary.uncovered
        )
    return ""


def _grouped(broken: Iterable[Result]) -> list[tuple[_Story, list[Scope]]]:
    """One story with all its cells, whose globs cover these cells and no others: readers together, then writers, cases, platforms."""
    cells: dict[_Story, set[Scope]] = {}
    for result in broken:
        story = _Story(str(result.verdict), str(result.stage), _telling(result))
        cells.setdefault(story, set()).add(scope_of(result))
    return [
        (story, list(block))
        for story, scopes in sorted(cells.items(), key=lambda each: str(each[0]))
        for block in _blocks(scopes)
    ]


def _blocks(scopes: set[Scope]) -> list[list[Scope]]:
    """Cells cut into blocks, each of which is every combination of its cases, writers, readers and platforms."""
    blocks = [tuple(frozenset({part}) for part in scope) for scope in sorted(scopes)]
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


def _telling(result: Result) -> str:
    """What an entry can expect of the message: its first line, of wrong numbers without how wrong they are."""
    line = result.message.strip().splitlines()[0] if result.message.strip() else ""
    return line.partition(" (max abs")[0] if result.verdict is Verdict.NUMERICS else line


def _entry(story: _Story, scopes: Sequence[Scope], others: set[Scope], as_of: datetime.date) -> str:
    names = [sorted({scope[axis] for scope in scopes}) for axis in range(4)]
    entry = {
        **dict(zip(("cases", "writers", "readers", "platforms"), names, strict=True)),
        "verdict": story.verdict,
        "stage": story.stage,
        "message": story.message,
        **dict(_TODO),
        "added": as_of,
    }
    if len(scopes) > 50:
        entry["at_most"] = len(scopes)
    text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    lines = [*text.splitlines(), "  expires: TODO a day, at most 90 days after added"]
    if ambiguous := sorted(others.intersection(scopes)):
        names_of = "; ".join(f"{scope.case} by {scope.writer} in {scope.reader}" for scope in ambiguous)
        lines.insert(
            0,
            f"# No entry can tell these apart from cells that are kept, since another jax is all that differs: {names_of}",
        )
    return "".join(f"  {line}\n" for line in lines)
