"""The parts of docs/reference/ that are made from the code: ``python -m tools.reference`` renews them.

A page is written by hand, except for the parts between ``<!-- from the code: NAME -->`` and ``<!-- end -->``. The text
of such a part is what the function ``PARTS[NAME]`` returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tools.reference import api, commands, files, knowledge, messages, plugin, policy, variables, verdicts

PAGES = Path(__file__).parents[2] / "docs" / "reference"
PARTS: dict[str, Callable[[], str]] = {
    **commands.PARTS,
    **plugin.PARTS,
    **policy.PARTS,
    **files.PARTS,
    **verdicts.PARTS,
    **messages.PARTS,
    **knowledge.PARTS,
    **variables.PARTS,
    **api.PARTS,
}
_PART = re.compile(r"(<!-- from the code: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the paths of the pages that have parts which are generated from the code."""
    return [page for page in sorted(PAGES.glob("*.md")) if _PART.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """Return the text of a page, in which each part that comes from the code is generated anew.

    Raises:
        KeyError: the page names a part that is not in `PARTS`.
    """
    return _PART.sub(lambda part: f"{part[1]}\n{_spaced(PARTS[part[2]]())}\n\n{part[3]}", text)


def _spaced(text: str) -> str:
    """Return a text in which several empty lines in sequence are replaced by a single empty line."""
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def parts_of(text: str) -> list[str]:
    """Return the names of the parts of a page that are generated from the code, given its text."""
    return [name for _, name, _ in _PART.findall(text)]
