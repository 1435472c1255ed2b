"""The addresses inside the page of a run: of a cell, of a cause, and of the table with a filter. They can be sent on.

A filter is what the page's text field shows: ``judgement:broken writer:0.9.2 case:*cholesky* words``. A value in double
quotes is taken letter by letter; elsewhere * and ? stand for other letters, and a comma for "or".
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from export_core.readers.cell import CellKey


def filter_link(**terms: str) -> str:
    """The table with the cells for which all of this holds: ``filter_link(judgement="broken", writer="0.9.2")``."""
    return f"#filter={_quoted(' '.join(term(name, value) for name, value in terms.items()))}"


def term(name: str, value: str) -> str:
    """One term of a filter."""
    plain = re.fullmatch(r'[^\s",*?]+', value)
    return f"{name}:{value}" if plain else '{}:"{}"'.format(name, value.replace('"', ""))


def cell_link(key: CellKey) -> str:
    """All details of a cell."""
    return f"#cell={_quoted(f'{key.golden} {key.jaxlib}-jax{key.jax} {key.platform}')}"


def cause_link(cause: str, judgement: str = "") -> str:
    """A cause among the findings; without a judgement the worst one."""
    return f"#cause={_quoted(f'{cause}={judgement}' if judgement else cause)}"


def release_term(jaxlib: str, jax: str) -> str:
    """A release as a filter names it where one jaxlib was used with several jax."""
    return f"{jaxlib}-jax{jax}"


def web_address(url: str) -> str:
    """An address that a browser may follow; empty for everything but http and https."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def file_address(source_url: str, folder: str) -> str:
    """Where the files of a folder are, with a slash at the end; relative to the page if no web address is known."""
    if web := web_address(source_url):
        return f"{web.rstrip('/')}/{quote(folder.strip('/'))}/"
    # A path that leads elsewhere, or a scheme, is no folder of this project.
    plain = folder and not folder.startswith("/") and ".." not in folder.split("/")
    return f"{quote(folder.rstrip('/'))}/" if plain else ""


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
