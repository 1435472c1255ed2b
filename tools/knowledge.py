"""The writer of the short form of the knowledge base that forecasts read: ``python -m tools.knowledge``.

Run it after every change of export_core/knowledge/data/CONSUMER.yaml. It refuses an entry with a mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from export_core.goldens import Golden, GoldenStore
from export_core.knowledge.concerns import HOLDS
from export_core.knowledge.knowledge_base import CONSUMERS, FILE, Entry
from export_core.policy.known_issues import KnownIssue, days_of, problems_of, shipped_issues
from tools import renew

ROOT = Path(__file__).parents[1]
GOLDENS = ROOT / "golden", ROOT / "studies" / "known" / "golden"
"""The folders of the goldens that entries name: cases of this project, and programs that show one entry each."""


def fixtures() -> Mapping[str, Golden]:
    """Return the goldens that an entry of the knowledge base can name, by id."""
    return {golden.id: golden for folder in GOLDENS for golden in GoldenStore(folder).goldens()}


def rows() -> dict[str, list[Entry]]:
    """Return the entries that say which artifacts they concern, in their short form, by consumer.

    Consumers, and the entries of each, are in the order of the shipped files.
    """
    by_consumer: dict[str, list[Entry]] = {}
    for issue in shipped_issues():
        if issue.concerns is not None:
            by_consumer.setdefault(issue.consumer, []).append(_entry(issue))
    return by_consumer


def _entry(issue: KnownIssue) -> Entry:
    assert issue.concerns is not None
    return Entry(
        issue.id,
        issue.title,
        issue.effect,
        issue.todo,
        issue.outcome,
        issue.stage,
        issue.certainty == "always",
        issue.platforms,
        issue.settings,
        issue.unless,
        *days_of(issue),
        {key: issue.concerns.given[key] for key in HOLDS if key in issue.concerns.given},  # The cheapest first.
    )


def written() -> bytes:
    """Return the bytes of `data/entries.json`, in which each entry is a line."""
    lines = [
        f' "{consumer}": [\n' + ",\n".join(f"  {json.dumps(entry)}" for entry in entries) + "\n ]"
        for consumer, entries in rows().items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def mistakes() -> Iterator[str]:
    """Yield a line for each mistake in the shipped entries of the knowledge base."""
    before: set[str] = set()
    for issue in shipped_issues():
        name = f"{issue.consumer}.yaml ({issue.id})"
        yield from (f"{name}: {problem}" for problem in (*problems_of(issue, before), *lacking(issue)))
        before.add(issue.id)


def lacking(issue: KnownIssue) -> Iterable[str]:
    """Yield what a shipped entry lacks that only shipped entries must have, such as a source."""
    if bool(issue.since or issue.mended_in) == bool(issue.any_reader):
        yield "expected either a range of releases, or in any_reader why there is none."
    if not issue.stage:
        yield "expected `stage`, found none."
    if not issue.link and not issue.study:
        yield "expected a source, `issue`, `documented` or `study`, found none."
    if not issue.measured:
        yield "expected the day on which it was measured, found none."
    if issue.fixture is None:
        yield "expected `fixture`, found none: an artifact that it is about, and one that it is not about."
    elif bool(issue.fixture.concerned) == bool(issue.fixture.why_none):
        yield "expected in `fixture` either `concerned`, or in `why_none` why there is none."
    elif issue.fixture.concerned and issue.outcome in ("crash", "timeout") and not (issue.issue and issue.mended_in):
        yield "expected no `concerned` artifact, which ends other software, without `issue` and `mended_in`."


if __name__ == "__main__":
    if found := [*mistakes()]:
        raise SystemExit("\n".join(found))
    assert {*rows()} <= {*CONSUMERS}
    renew(Path(FILE), written())
