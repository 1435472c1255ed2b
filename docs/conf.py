"""The configuration of Sphinx, which builds the site: `nox -s docs`."""

from __future__ import annotations

import posixpath
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT.get("urls", {}).get("Source", "")  # empty until the first release

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
copyright = author  # noqa: A001  # the name that Sphinx reads
release = version = PROJECT["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
nitpicky = False
smartquotes = False  # an option is --json, and text in quotes is copied

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
# Tables that name a message or a command may begin with any level; the pages that a program writes do.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = f"{project} {release}"
html_favicon = "images/favicon.svg"
if SOURCE:
    html_theme_options = {"source_repository": SOURCE, "source_branch": "main", "source_directory": "docs/"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
autodoc_typehints = "description"
autodoc_member_order = "bysource"

TITLED_FENCE = re.compile(r"^```(\w+) title=\"([^\"]+)\"$", re.MULTILINE)
PAGE_LINK = re.compile(r"(\]\((?!https?:)[^)\s]+\.html(?:#[^)\s]*)?\))")
PAGES = ["atlas/page.html"]
"""HTML pages that Sphinx does not build: they are copied to the same path of the site."""
RELATIVE_LINK = re.compile(r"\[([^]]*)\]\(((?:\.\./)+[^)\s]+)\)")


def shown_on_the_site(page: str, text: str) -> str:
    """Return the Markdown of a page as Sphinx needs it; on GitHub the page is shown as it is written.

    A file's name, the `title` of its block, becomes the caption. A link to a file outside of docs/ leads to the
    repository; until that has an address, it becomes plain text.
    """

    def address(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[2]))
        if target.startswith("docs/") and not (SOURCE and target.startswith("docs/ci/")):
            return link[0]  # a workflow is a download as long as the repository has no address
        return f"[{link[1]}]({SOURCE}/blob/main/{target})" if SOURCE else link[1]

    text = TITLED_FENCE.sub(r"```{code-block} \1\n:caption: \2\n", text)
    return PAGE_LINK.sub(r"\1{.external}", RELATIVE_LINK.sub(address, text))


def setup(app) -> None:
    """Connect the functions below to Sphinx, which calls this."""

    def source_read(_app: object, page: str, source: list[str]) -> None:
        source[0] = shown_on_the_site(page, source[0])

    def build_finished(app: Any, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            for page in PAGES:
                shutil.copyfile(Path(app.srcdir, page), Path(app.outdir, page))

    app.connect("source-read", source_read)
    app.connect("build-finished", build_finished)
