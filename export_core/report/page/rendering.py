"""A page from its template: with its style and its script, and nothing else that a browser may run or load."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from export_core.base.escaping import shown

_TEMPLATES = Path(__file__).parent / "templates"


def rendered(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A page from its template, with style and scripts, which it allows by their hashes."""
    style = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "map.css"))
    script = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in scripts)
    # Undefined names are errors, and whatever comes from results is escaped.
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["code"] = _with_code
    return templates.get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        # No script that a library's message might bring along is allowed.
        hashes={"style": _csp_hash(style), "script": _csp_hash(script)},
        **values,
    )


def _with_code(text: str) -> Markup:
    """Our own sentences, in which backticks enclose what is typed."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
