"""The entries of the knowledge base about consumers that are not jaxlib."""

from __future__ import annotations

from export_core.policy.known_issues import KnownIssue, known_issues
from export_core.releases.runtimes import JAXLIB
from tools.reference.markdown import code, table


def entries() -> str:
    """A table of the entries of each consumer, by their ids: `jaxexport policy show --known` says the rest."""
    by_consumer: dict[str, list[KnownIssue]] = {}
    for issue in known_issues():
        if issue.consumer != JAXLIB:
            by_consumer.setdefault(issue.consumer, []).append(issue)
    parts = []
    for consumer, issues in by_consumer.items():
        rows = [(code(issue.id), issue.readers or "all", issue.outcome) for issue in issues]
        parts.append(f"### {consumer}\n\n{table(('entry', 'releases', 'outcome'), rows)}")
    return "\n".join(parts) or "Nothing is known of other consumers yet."


PARTS = {"entries of runtimes": entries}
