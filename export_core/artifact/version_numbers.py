"""The numbers of a release, for comparison: every artifact is compared with the same few dozen."""

from __future__ import annotations

import functools

from packaging.version import Version


@functools.lru_cache(maxsize=1024)
def version_numbers(version: str) -> tuple[int, ...]:
    """(0, 9, 2) for 0.9.2. A nightly counts as the release that it becomes.

    Raises:
        InvalidVersion: it is no version.
    """
    return Version(version).release
