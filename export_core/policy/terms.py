"""The terms that an artifact is described by: releases, windows of the promise, allowed calls.

A project's policy sets them. Loading one takes longer than all else that `jaxexport inspect` does, most of it to import
YAML and msgspec: with fifty entries, `inspect` is 10 times faster than jax.export as a process with what is stored
here, and 4 times without. So it first looks whether there can be a policy, and takes what an earlier process read from
the same bytes. That is stored in the cache folder, under a hash of everything that decided it; a policy with an error
is never stored.
"""

from __future__ import annotations

import json
import os
import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from export_core.base.cache_folder import STORED_DAYS, cache_path
from export_core.base.untrusted import read_named
from export_core.releases.calendar_entries import CalendarEntry, calendar_entries, from_rows, shipped_entries
from export_core.releases.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from export_core.artifact.writers import WrittenBy
    from export_core.policy import Policy

RELEASES_FILE = "export_releases.yaml"
POLICY_FILES = ("export_compat.yaml", "export_compat.yml", RELEASES_FILE)
"""Files that make a folder a project with terms of its own. The second is a mistake that the loader reports."""
PROJECT_FILE = "pyproject.toml"
_CODE = ("base", "policy", "releases", "releases/data")
"""Folders of this package whose files decide what a policy means, beside those of features, which add keys. Another
version has others, in size or time."""


class Terms(NamedTuple):
    """Releases, oldest build first; the windows of the promise; allowed targets with reasons."""

    releases: tuple[CalendarEntry, ...]
    windows: Windows = Windows()
    allow: Mapping[str, str] = {}


class PromisedDays(NamedTuple):
    """The build dates of readers that are promised to read it, by the earliest and the latest possible writer."""

    backward_days: int  # The length of the backward window.
    forward_days: int  # The length of the forward window.
    since: tuple[str, str]  # The first day, by the earliest and by the latest writer.
    until: tuple[str, str]  # The last day, by the earliest and by the latest writer.


def promised_days(writer: WrittenBy, terms: Terms) -> PromisedDays | None:
    """The build dates of readers that are promised to read an artifact; None where no writer is known."""
    built = sorted(date.fromisoformat(x.built) for x in terms.releases if x.jaxlib in writer.possible)
    if not built:
        return None
    backward, forward = (timedelta(days=days) for days in terms.windows)
    first, last = built[0], built[-1]  # with several possible writers the promise is a range
    since, until = (str(first - forward), str(last - forward)), (str(first + backward), str(last + backward))
    return PromisedDays(*terms.windows, since, until)


def terms_here(policy_file: str | None = None) -> Terms:
    """The terms of the named policy, else of the project in the working folder, else those that ship with this package.

    Raises:
        ExportCompatError: the policy, or the project's file of releases, cannot be used.
    """
    if policy_file is None and not _may_have_policy():
        return Terms(shipped_entries())
    files: tuple[str, ...] = (*POLICY_FILES, PROJECT_FILE)
    if policy_file is not None:
        files = policy_file, os.path.join(os.path.dirname(policy_file), RELEASES_FILE)  # noqa: PTH118, PTH120
    path = _terms_path(files)
    if path and (terms := _load_terms(path)):
        return terms
    from pathlib import Path

    from export_core.policy import find_policy

    terms = terms_of(find_policy(Path(), policy_file))
    if path:
        _store_terms(path, terms)
    return terms


def terms_of(policy: Policy) -> Terms:
    """The terms that a policy sets."""
    # Without releases of its own a project has the shipped ones, which need no YAML parser: 10 ms less.
    own = policy.releases.jaxlib or policy.releases.jax
    releases = calendar_entries(policy.calendar()) if own else shipped_entries()
    return Terms(releases, policy.window_lengths(), policy.allow)


def _may_have_policy() -> bool:
    if any(map(os.path.lexists, POLICY_FILES)):  # lexists: a broken link is for the loader to report
        return True
    try:
        # Whether it is our table only a TOML parser can say. The policy's loader has one; loading it takes longer.
        return b"jaxexport" in read_named(PROJECT_FILE)
    except OSError:
        return False


def _terms_path(files: Sequence[str]) -> str | None:
    """The file for the terms that these files set, of which some may be missing; None where one cannot be read."""
    import hashlib

    digest = hashlib.sha256()
    try:
        # A broken link is there too, and cannot be read.
        contents = (os.fsencode(file) + b"\0" + read_named(file) if os.path.lexists(file) else b"" for file in files)
        for part in (*_code(), *contents):
            digest.update(b"%d:" % len(part) + part)
    except OSError:
        return None
    return cache_path("terms", f"{digest.hexdigest()}.json")


def _load_terms(path: str) -> Terms | None:
    """What is stored there; None where there is nothing, or not what was written."""
    try:
        check, _, data = read_named(path).partition(b"\n")
        if check != _checksum(data):
            return None
        own, windows, allow = json.loads(data)
        return Terms(from_rows(own) if own else shipped_entries(), Windows(*windows), allow)
    except (OSError, ValueError, TypeError):  # no file, or one whose content is not terms
        return None


def _store_terms(path: str, terms: Terms) -> None:
    """Store them, and delete what is older than STORED_DAYS. A folder that cannot be written to leaves it undone."""
    from contextlib import suppress
    from pathlib import Path

    from export_core.base.atomic import write_whole

    own = None if terms.releases == shipped_entries() else [release.row for release in terms.releases]
    data = json.dumps([own, terms.windows, dict(terms.allow)]).encode()
    with suppress(OSError):
        folder = Path(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(Path(path), [_checksum(data), b"\n", data])
        for other in folder.iterdir():
            if other.stat().st_mtime < time.time() - STORED_DAYS * 86_400:
                other.unlink()


def _checksum(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).hexdigest().encode()


def _code() -> Iterator[bytes]:
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    with os.scandir(os.path.join(package, "features")) as entries:  # noqa: PTH118
        features = sorted(f"features/{entry.name}" for entry in entries if entry.is_dir())
    for folder in (*_CODE, *features):
        with os.scandir(os.path.join(package, folder)) as entries:  # noqa: PTH118
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_file() and (folder in _CODE or entry.name == "policy_key.py"):
                    status = entry.stat()
                    yield os.fsencode(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
