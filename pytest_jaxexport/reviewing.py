"""The question at the terminal whether a golden is written, for `--update-goldens=review`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ANSWERS, _SCREEN = map(Path, ("CONIN$", "CONOUT$") if os.name == "nt" else ("/dev/tty", "/dev/tty"))
"""The files of the terminal, for answers and questions. pytest takes standard input and output away, but not these."""
_QUESTION = "Write it? [y]es, [n]o, [a]ll: yes to all that follow, [q]uit: no to all that follow: "


class Reviewer:
    """The person at the terminal, who is asked about each golden whether to write it."""

    def __init__(self) -> None:
        self._for_all: bool | None = None

    def accepts(self, text: str) -> bool:
        """Show the person what would be written, and return whether the person agrees to write it."""
        if self._for_all is None:
            answer = _ask(text)
            if answer in "aq":
                self._for_all = answer == "a"
            return answer in "ya"
        return self._for_all


REVIEWER: pytest.StashKey[Reviewer] = pytest.StashKey()


def has_terminal() -> bool:
    """Return whether this process has a terminal at which a person can answer."""
    try:
        with _ANSWERS.open(encoding="utf-8"), _SCREEN.open("w", encoding="utf-8"):
            return True
    except OSError:
        return False


def _ask(text: str) -> str:
    """Return the first letter of the answer to a question: y, n, a or q; q if the terminal is gone."""
    with _ANSWERS.open(encoding="utf-8") as source, _SCREEN.open("w", encoding="utf-8") as screen:
        screen.write(f"\n{text}\n")
        while True:
            screen.write(_QUESTION)
            screen.flush()
            typed = source.readline()
            answer = typed.strip().lower()[:1] if typed else "q"
            if answer and answer in "ynaq":
                return answer
