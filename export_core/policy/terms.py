"""The terms that an artifact is described by: releases, windows of the promise, allowed calls.

A project's policy sets them. Loading one takes 100 ms, so `jaxexport inspect` first looks whether there can be one, and
takes what an earlier process read from the same bytes.
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from export_core.base.untrusted import read_named
from export_core.releases.entries import CalendarEntry, calendar_entries, shipped_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from export_core.artifact.writers import WrittenBy
    from export_core.policy import Policy

RELEASES_FILE = "export_releases.yaml"
POLICY_FILES = ("export_compat.yaml", "export_compat.yml", RELEASES_FILE)
"""Files that make a folder a project with terms of its own. The second is a mistake that the loader reports."""
PROJECT_FILE = "pyproject.toml"


class Terms(NamedTuple):
    """Releases, oldest build first; the windows of the promise in days; allowed targets with reasons."""

    releases: tuple[CalendarEntry, ...]
    backward_days: int = 180
    forward_days: int = 21
    allow: Mapping[str, str] = {}


class PromisedDays(NamedTuple):
    """The build dates of readers that are promised to read it, by the earliest and the latest possible writer."""

    backward_days: int
    """The length of the backward window."""
    forward_days: int
    """The length of the forward window."""
    since: tuple[str, str]
    """The first day, by the earliest and by the latest writer."""
    until: tuple[str, str]
    """The last day, by the earliest and by the latest writer."""


def promised_days(writer: WrittenBy, terms: Terms) -> PromisedDays | None:
    """The build dates of readers that are promised to read an artifact; None where no writer is known."""
    built = sorted(date.fromisoformat(x.built) for x in terms.releases if x.jaxlib in writer.possible)
    if not built:
        return None
    backward, forward = timedelta(days=terms.backward_days), timedelta(days=terms.forward_days)
    first, last = built[0], built[-1]  # with several possible writers the promise is a range
    since, until = (str(first - forward), str(last - forward)), (str(first + backward), str(last + backward))
    return PromisedDays(terms.backward_days, terms.forward_days, since, until)


def terms_here(policy_file: str | None = None) -> Terms:
    """The terms of the named policy, else of the project in the working folder, else those that ship with this package.

    Raises:
        ExportCompatError: the policy, or the project's file of releases, cannot be used.
    """
    if policy_file is None and not _may_have_policy():
        return Terms(shipped_entries())
    from export_core.policy.stored_terms import load_terms, store_terms, terms_path

    path = terms_path(_decisive_files(policy_file))
    if path and (terms := load_terms(path)):
        return terms
    from pathlib import Path

    from export_core.policy import find_policy

    terms = terms_of(find_policy(Path(), policy_file))
    if path:
        store_terms(path, terms)
    return terms


def terms_of(policy: Policy) -> Terms:
    """The terms that a policy sets."""
    windows = policy.window_lengths()
    # Without releases of its own a project has the shipped ones, which need no YAML parser: 10 ms less.
    own = policy.releases.jaxlib or policy.releases.jax
    releases = calendar_entries(policy.calendar()) if own else shipped_entries()
    return Terms(releases, windows.backward_days, windows.forward_days, policy.allow)


def _decisive_files(policy_file: str | None) -> tuple[str, ...]:
    """The files that decide the terms, whether or not they exist."""
    if policy_file is None:
        return (*POLICY_FILES, PROJECT_FILE)
    return policy_file, os.path.join(os.path.dirname(policy_file), RELEASES_FILE)  # noqa: PTH118, PTH120


def _may_have_policy() -> bool:
    if any(map(os.path.lexists, POLICY_FILES)):  # lexists: a broken link is for the loader to report
        return True
    try:
        # Whether it is our table only a TOML parser can say. The policy's loader has one; loading it takes longer.
        return b"jaxexport" in read_named(PROJECT_FILE)
    except OSError:
        return False
