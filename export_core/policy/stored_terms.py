"""The terms of the project in the working folder, as an earlier process has read and stored them.

Loading a policy takes longer than all else that `jaxexport inspect` does, most of it to import YAML and msgspec: with
fifty entries, `inspect` is 10 times faster than jax.export as a process with what is stored here, and 4 times without.
So `terms_here` first looks whether there can be a policy, and then for terms that were read from the same bytes. They
are stored in the cache folder, under a hash of everything that decided them; a policy with an error is never stored.
"""

from __future__ import annotations

import json
import os

from export_core.base.cache_folder import cache_path
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.base.quick_hash import sha256_of
from export_core.base.untrusted import read_named
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import from_rows, shipped_entries
from export_core.releases.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RELEASES_FILE = "export_releases.yaml"
POLICY_FILES = ("export_compat.yaml", "export_compat.yml", RELEASES_FILE)
"""Files that make a folder a project with its own terms. `export_compat.yml` is a mistake that the loader reports."""
PROJECT_FILE = "pyproject.toml"
_CODE = ("base", "policy", "releases", "releases/data")
"""Folders of this package whose files decide what a policy means, beside those of features, which add keys. Size and
time of these files are in the hash, since those of another version differ."""


def terms_here(policy_file: str | None = None) -> Terms:
    """Return the terms of a policy file, else of the project in the working folder, else the default terms.

    Raises:
        ExportCompatError: The policy, or the project's file of releases, cannot be used.
    """
    if policy_file is None and not _may_have_policy():
        return Terms(shipped_entries())
    files: tuple[str, ...] = (*POLICY_FILES, PROJECT_FILE)
    if policy_file is not None:
        files = policy_file, os.path.join(os.path.dirname(policy_file), RELEASES_FILE)  # noqa: PTH118, PTH120
    path = _terms_path(files)
    if path and (terms := _load_terms(path)):
        return terms
    from export_core.policy.project_terms import read_terms, store  # YAML and msgspec: 160 ms

    terms = read_terms(policy_file)
    if path:
        store(path, _written(terms))
    return terms


def _may_have_policy() -> bool:
    if any(map(os.path.lexists, POLICY_FILES)):  # lexists: a broken link is for the loader to report
        return True
    try:
        # Whether it is our table only a TOML parser can say. The policy's loader has one; loading it takes longer.
        return b"jaxexport" in read_named(PROJECT_FILE)
    except OSError:
        return False


def _terms_path(files: Sequence[str]) -> str | None:
    """Return the path at which the terms of these policy files are stored; None if an existing file cannot be read.

    The path depends on the content of the files, of which some may be missing.
    """
    try:
        # A broken link is there too, and cannot be read.
        contents = (os.fsencode(file) + b"\0" + read_named(file) if os.path.lexists(file) else b"" for file in files)
        parts = b"".join(b"%d:" % len(part) + part for part in (*_code(), *contents))
    except OSError:
        return None
    return cache_path("terms", f"{sha256_of(parts)}.json")


def _load_terms(path: str) -> Terms | None:
    """Return the terms that are stored in a file; None if the file does not exist, or is damaged."""
    try:
        check, _, data = read_named(path).partition(b"\n")
        if check != _checksum(data):
            return None
        own, windows, allow = json.loads(data)
        return Terms(from_rows(own) if own else shipped_entries(), Windows(*windows), allow)
    except (OSError, ValueError, TypeError):  # no file, or one whose content is not terms
        return None


def _written(terms: Terms) -> tuple[bytes, ...]:
    """Return the content of a file of terms, in parts, in the form that `_load_terms` reads."""
    own = None if terms.releases == shipped_entries() else [release.row for release in terms.releases]
    data = json.dumps([own, terms.windows, dict(terms.allow)]).encode()
    return _checksum(data), b"\n", data


def _checksum(data: bytes) -> bytes:
    return sha256_of(data).encode()


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
