"""The terms of a project, read from its policy, and their storage for the next process.

`stored_terms` imports this module only if it finds no stored terms, since YAML and msgspec are imported with it.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from export_core.base.atomic import write_whole
from export_core.base.cache_folder import STORED_DAYS
from export_core.policy import Policy, find_policy
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import calendar_entries, shipped_entries


def read_terms(policy_file: str | None) -> Terms:
    """Return the terms that a policy file sets, or if it is None, the policy of the project in the working folder.

    Raises:
        ExportCompatError: The policy, or the project's file of releases, cannot be used.
    """
    return terms_of(find_policy(Path(), policy_file))


def terms_of(policy: Policy) -> Terms:
    """Return the terms that a policy sets: releases, windows and allowed custom calls."""
    # Without releases of its own a project has the shipped ones, which need no YAML parser: 10 ms less.
    own = policy.releases.jaxlib or policy.releases.jax
    releases = calendar_entries(policy.calendar()) if own else shipped_entries()
    return Terms(releases, policy.window_lengths(), policy.allow)


def store(name: str, parts: Iterable[bytes]) -> None:
    """Write the content of a file of terms, and delete files beside it that are older than `STORED_DAYS`.

    If the folder cannot be written to, nothing is written.
    """
    path = Path(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, parts)
        for other in path.parent.iterdir():
            if other.stat().st_mtime < time.time() - STORED_DAYS * 86_400:
                other.unlink()
