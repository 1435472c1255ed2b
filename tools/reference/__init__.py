"""The reference, made from the code: ``python -m tools.reference`` renews docs/reference/.

A page is written by hand, but for what stands between ``<!-- from the code: NAME -->`` and ``<!-- end -->``: that is
what the function `NAME` of `PARTS` returns.
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
    """The pages that have a part from the code."""
    return [page for page in sorted(PAGES.glob("*.md")) if _PART.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """The text of a page with its parts as the code has them now. Raises `KeyError` for a part that nobody makes."""
    return _PART.sub(lambda part: f"{part[1]}\n{_spaced(PARTS[part[2]]())}\n\n{part[3]}", text)


def _spaced(text: str) -> str:
    """The text with one empty line where there are several."""
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def parts_of(text: str) -> list[str]:
    """The names of the parts in a page."""
    return [name for _, name, _ in _PART.findall(text)]
