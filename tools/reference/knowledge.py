"""The part about the knowledge base: how many entries it has for each consumer, since the docs cannot list them all."""

from __future__ import annotations

from collections import Counter

from export_core.policy.known_issues import known_issues
from tools.reference.markdown import table


def entries() -> str:
    """Return a table with a row for each consumer, which has the number of entries with each outcome."""
    by_consumer: dict[str, Counter[str]] = {}
    for issue in known_issues():
        by_consumer.setdefault(issue.consumer, Counter())[issue.outcome] += 1
    rows = (
        (consumer, ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common()))
        for consumer, outcomes in by_consumer.items()
    )
    return table(("consumer", "entries"), rows)


PARTS = {"entries by consumer": entries}
