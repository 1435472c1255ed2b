"""The number of entries that the knowledge base has of each consumer, by outcome: they are too many for the docs."""

from __future__ import annotations

from collections import Counter

from export_core.policy.known_issues import known_issues
from tools.reference.markdown import table


def entries() -> str:
    """Return a table with a row for each consumer: its entries, counted by their outcomes."""
    by_consumer: dict[str, Counter[str]] = {}
    for issue in known_issues():
        by_consumer.setdefault(issue.consumer, Counter())[issue.outcome] += 1
    rows = (
        (consumer, ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common()))
        for consumer, outcomes in by_consumer.items()
    )
    return table(("consumer", "entries"), rows)


PARTS = {"entries by consumer": entries}
