"""URLs as they may be shown and stored: without user, password and what a query holds.

They are parsed conservatively. A password may hold `@`, `/`, `?` and `#` although it should not, and then a program
that parses by the standard sees only a part of it as such.
"""

from __future__ import annotations

import re

HIDDEN = "***"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(\S+)")
_PLAIN_HOST = re.compile(r"[\w.-]*|\[[0-9A-Fa-f:.%]+\]")


def without_credentials(text: str) -> str:
    """A text with each URL in it as it may be shown, logged or stored; everything else of the text stays."""
    return _URL.sub(lambda match: match[1] + _shown(match[2]), text) if "://" in text else text


def _shown(rest: str) -> str:
    """What follows ``scheme://``: all up to the last @ is dropped, unless it can only be in a path or a query."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # Not after a port: in https://user:12/34@host it is a part of the password.
    shown = rest if _PLAIN_HOST.fullmatch(authority) else rest.rpartition("@")[2]
    start = re.search(r"[?#]", shown)
    return shown[: start.start()] + _hidden(shown[start.start() :]) if start else shown


def _hidden(query: str) -> str:
    """A query and a fragment without their values."""
    return re.sub(r"([?#&;])([^&;#\s\"'<>`)]+)", _hidden_part, query)


def _hidden_part(match: re.Match[str]) -> str:
    name, equals, _ = match[2].partition("=")
    # A place in a page, as jax's own messages name it, and the hash of a file are no secrets.
    if match[1] == "#" and re.fullmatch(r"[\w.-]+[,:]*|sha256=[0-9a-f]{64}\W*", match[2]):
        return match[0]
    return f"{match[1]}{name}={HIDDEN}" if equals else f"{match[1]}{HIDDEN}" if name else match[0]
