"""URLs as they may be shown and written down."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")  # a password may hold an @: up to the last one of the host's part


def without_credentials(url: str) -> str:
    """A package index without the user and password in its URL: what is written down anywhere."""
    return _CREDENTIALS.sub("", url)
