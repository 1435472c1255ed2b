"""The terms of a project's policy, as an earlier process read them from the same bytes.

Reading a policy takes 100 ms, most of it to import YAML and msgspec; `jaxexport inspect` takes 60 in all. So what was
read is stored in the cache folder, under a hash of everything that decided it. A policy with an error is never stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence

from export_core.base.cache_folder import cache_path
from export_core.base.untrusted import read_named
from export_core.policy.terms import Terms
from export_core.releases.entries import from_rows, shipped_entries

STORED_DAYS = 180
_CODE = ("base", "policy", "releases", "releases/data", "features/costs", "features/deploy")
"""Folders of this package whose files decide what a policy means. Another version has others, in size or time."""


def terms_path(files: Sequence[str]) -> str | None:
    """The file for the terms that these files set, of which some may be missing; None where one cannot be read."""
    digest = hashlib.sha256()
    try:
        for part in (*_code(), *map(_content, files)):
            digest.update(b"%d:" % len(part) + part)
    except OSError:
        return None
    return cache_path("terms", f"{digest.hexdigest()}.json")


def load_terms(path: str) -> Terms | None:
    """What is stored there; None where there is nothing, or not what was written."""
    try:
        check, _, data = read_named(path).partition(b"\n")
        if check != _checksum(data):
            return None
        own, backward, forward, allow = json.loads(data)
        return Terms(from_rows(own) if own else shipped_entries(), backward, forward, allow)
    except (OSError, ValueError, TypeError):  # no file, or one whose content is not terms
        return None


def store_terms(path: str, terms: Terms) -> None:
    """Store them, and delete what is older than STORED_DAYS. A folder that cannot be written to leaves it undone."""
    from contextlib import suppress
    from pathlib import Path

    from export_core.base.atomic import write_whole

    own = None if terms.releases == shipped_entries() else terms.releases
    data = json.dumps([own, terms.backward_days, terms.forward_days, dict(terms.allow)]).encode()
    with suppress(OSError):
        folder = Path(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(Path(path), [_checksum(data), b"\n", data])
        for other in folder.iterdir():
            if other.stat().st_mtime < time.time() - STORED_DAYS * 86_400:
                other.unlink()


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _code() -> Iterator[bytes]:
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    for folder in _CODE:
        with os.scandir(os.path.join(package, folder)) as entries:  # noqa: PTH118
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_file():
                    status = entry.stat()
                    yield os.fsencode(f"{entry.path} {status.st_size} {status.st_mtime_ns}")


def _content(file: str) -> bytes:
    """The name of a file and its bytes. Raises `OSError` for what cannot be read, which the loader reports."""
    try:
        return os.fsencode(file) + b"\0" + read_named(file)
    except FileNotFoundError:
        if os.path.lexists(file):  # a broken link
            raise
        return b""
