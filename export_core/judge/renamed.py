"""Which entries of a policy name a case by a name that it no longer has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_core.judge.known import entry_name
from export_core.judge.patterns import matches
from export_core.policy import Policy


def entries_that_name(policy: Policy, old: str, new: str, writers: Sequence[str]) -> Iterator[str]:
    """The entries that are about a case and not about the same case by its new name; `writers` are its goldens'."""
    for number, entry in enumerate(policy.known_failures):
        if any(_lost(pattern, old, new) for pattern in entry.cases):
            yield entry_name("known_failures", number, entry)
    for number, quirk in enumerate(policy.quirks):
        if quirk.case == old:
            yield entry_name("quirks", number, quirk)
    for number, pin in enumerate(policy.retention.pinned):
        if any(_lost(pattern, f"{old}/{by}", f"{new}/{by}") for pattern in pin.goldens for by in writers):
            yield f"retention.pinned[{number}] ({pin.reason})"


def _lost(pattern: str, old: str, new: str) -> bool:
    return matches(old, pattern) and not matches(new, pattern)
