"""Phrases that messages share: counts with their noun, lists, and hints at a name that was misspelled."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence


def plural(count: int, noun: str) -> str:
    """``1 golden``, ``2 goldens``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def few(names: Sequence[str], most: int = 4) -> str:
    """All names where there are at most `most`, else the first three and how many more there are."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:3])} and {len(names) - 3} more"


def signal_name(number: int | None) -> str:
    """``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


def close_match(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a misspelled one; empty where none is close."""
    import difflib  # only a mistake needs it, and it takes milliseconds to import

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'cuda'?``, to follow a sentence; empty where no known name is close."""
    return f" Did you mean {match!r}?" if (match := close_match(name, known)) else ""
