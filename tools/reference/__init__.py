"""The reference, made from the code: ``python -m tools.reference`` renews docs/reference/.

A page is written by hand, except for the parts between ``<!-- from the code: NAME -->`` and ``<!-- end -->``: such a
part is what the function `NAME` of `PARTS` returns.
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
    """Return the pages that have a part from the code."""
    return [page for page in sorted(PAGES.glob("*.md")) if _PART.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """Return the text of a page with its parts made anew from the code.

    Raises:
        KeyError: the page names a part that is not in `PARTS`.
    """
    return _PART.sub(lambda part: f"{part[1]}\n{_spaced(PARTS[part[2]]())}\n\n{part[3]}", text)


def _spaced(text: str) -> str:
    """Return the text with one empty line instead of several."""
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def parts_of(text: str) -> list[str]:
    """Return the names of the parts in a page."""
    return [name for _, name, _ in _PART.findall(text)]
