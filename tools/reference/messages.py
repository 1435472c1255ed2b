"""The parts about messages of releases that are known: upstream issues, refusals, and needs of a driver."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from export_core.matrix.outcome import load_driver_needs, load_refusals
from export_core.policy.known_issues import known_issues
from export_core.releases import JaxlibRelease, JaxRelease, load_calendar
from export_core.releases.runtimes import JAXLIB
from tools.reference.markdown import code, table

Entries = Mapping[str, JaxRelease] | Mapping[str, JaxlibRelease]


def issues() -> str:
    """Return a section for each known issue of jaxlib. Issues of other runtimes are described in knowledge.md."""
    parts = []
    for issue in known_issues():
        if issue.consumer != JAXLIB:  # knowledge.md has them
            continue
        link = f" [{'Report' if issue.issue else 'Documentation'}]({issue.link})." if issue.link else ""
        facts = {
            "readers": issue.readers,
            "writers": issue.written_before and f"before {issue.written_before}",
            "platforms": ", ".join(issue.platforms),
            "stage": code(issue.stage),
            "message": code(issue.message),
        }
        has = "; ".join(f"{name} {value}" for name, value in facts.items() if value)
        parts.append(f"### {issue.id}\n\n{issue.title}.{link}\n\nTo do: {issue.todo}\n\nCells: {has}.\n")
    return "\n".join(parts)


def refusals() -> str:
    """Return a table of the messages by which jax refuses an artifact."""
    refused = ((each, f"`{each.stage}`, {code(each.exception)}") for each in load_refusals())
    return _messages(refused, "stage, exception", "jax", load_calendar().jax)


def driver_needs() -> str:
    """Return a table of the messages by which jaxlib says that it needs a driver."""
    needs = ((each, f"{each.platform}, {' or '.join(map(code, each.stages))}") for each in load_driver_needs())
    return _messages(needs, "platform, stage", "jaxlib", load_calendar().jaxlib)


def _messages(listed: Iterable[tuple[Any, str]], where: str, package: str, entries: Entries) -> str:
    """Return a table with a row for each message: its text, its origin, the releases that print it, its meaning.

    Args:
        listed: the messages, each with its origin.
        where: the heading of the column of origins.
        package: the package whose releases are meant, which is the heading of their column.
        entries: the releases of the package by version.
    """
    rows = [
        (code(each.message), origin, _range(each.since, each.until, entries), each.meaning) for each, origin in listed
    ]
    return table(("message", where, package, "meaning"), rows)


def _range(since: datetime.date | None, until: datetime.date | None, entries: Entries) -> str:
    """Return a range of releases as text, such as "from 0.5.0 until 0.6.2", or "all" if it has no ends.

    Args:
        since: the build date of the first release, if the range has a beginning.
        until: the build date of the last release, if the range has an end.
        entries: the releases by version.
    """
    named = {entry.built: version for version, entry in entries.items()}
    first = f"from {named[since]}" if since else ""
    last = f"until {named[until]}" if until else ""
    return " ".join(filter(None, (first, last))) or "all"


PARTS = {"known issues": issues, "refusals": refusals, "driver needs": driver_needs}
