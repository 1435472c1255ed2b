"""URLs as they may be shown and stored."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")  # a password may hold an @: up to the last one of the host's part


def without_credentials(url: str) -> str:
    """A URL without user and password, the only form that is shown, logged or stored."""
    return _CREDENTIALS.sub("", url)
