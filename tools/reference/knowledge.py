"""The entries of the knowledge base about consumers that are not jaxlib."""

from __future__ import annotations

from export_core.policy.known_issues import KnownIssue, known_issues
from export_core.releases.runtimes import JAXLIB
from tools.reference.markdown import table


def entries() -> str:
    """A table of the entries of each consumer."""
    by_consumer: dict[str, list[KnownIssue]] = {}
    for issue in known_issues():
        if issue.consumer != JAXLIB:
            by_consumer.setdefault(issue.consumer, []).append(issue)
    parts = []
    for consumer, issues in by_consumer.items():
        rows = [(f"`{issue.id}`: {issue.title}", issue.readers or "all", issue.outcome, issue.todo) for issue in issues]
        parts.append(f"### {consumer}\n\n{table(('what', 'releases', 'outcome', 'to do'), rows)}")
    return "\n".join(parts) or "Nothing is known of other consumers yet."


PARTS = {"entries of runtimes": entries}
