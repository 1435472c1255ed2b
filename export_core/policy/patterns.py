"""Names and the patterns of a policy."""

from __future__ import annotations

import fnmatch


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches a name. One that is the name itself does, although an id may have brackets."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)
