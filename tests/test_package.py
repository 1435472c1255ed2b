"""Metadata of the package: the version, the addresses, and the links of the README on a package index."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tools.release_day import RELEASED, released

ROOT = Path(__file__).parents[1]
# The metadata after the release, so that they are tested before it.
PROJECT = tomllib.loads(released("pyproject.toml", (ROOT / "pyproject.toml").read_text()))
URLS = PROJECT["project"]["urls"]
VERSION = PROJECT["project"]["version"]
LINK = re.compile(r'(?:href|src|srcset)="([^"]+)"')


def described(text: str, version: str = VERSION) -> str:
    """Return the long description that hatch-fancy-pypi-readme makes of a README."""
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text.replace("$HFPR_VERSION", version)


@pytest.fixture(scope="module")
def description() -> str:
    built = ROOT / "PKG-INFO"  # made by hatchling, in a source distribution
    text = (ROOT / "README.md").read_text()
    if built.exists():
        shown = described(text) if RELEASED else text
        assert built.read_text().partition("\n\n")[2].strip() == shown.strip()
    return described(text)


def links(text: str) -> list[str]:
    return LINK.findall(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_the_long_description_has_no_relative_link(description):
    found = links(description)
    assert len(found) > 10
    assert [link for link in found if not link.startswith(("https://", "#"))] == []


def test_links_of_the_long_description_lead_to_files(description):
    missing = []
    for link in links(description):
        for base, ending in (("/blob/", ""), ("/pytest-jaxexport/v", ""), (URLS["Documentation"], ".html")):
            if base in link and "pytest-jaxexport" in link:
                path = link.partition(base)[2].partition("#")[0].partition("/")[2]
                file = f"docs/{path.removesuffix('.html')}.md" if ending else path
                missing += [link] if not (ROOT / file).exists() else []
    assert missing == []


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("![a](docs/a.svg)", "raw.githubusercontent.com/pytest-jaxexport/pytest-jaxexport/v1/docs/a.svg"),
        ('<img alt="" src="docs/a.svg">', "raw.githubusercontent.com/pytest-jaxexport/pytest-jaxexport/v1/docs/a.svg"),
        ("[a](docs/b/a-c.md#d)", "pytest-jaxexport.readthedocs.io/en/stable/b/a-c.html#d"),
        ('<a href="docs/a.md">a</a>', "pytest-jaxexport.readthedocs.io/en/stable/a.html"),
        ("[a](golden)", "github.com/pytest-jaxexport/pytest-jaxexport/blob/v1/golden"),
        ("[a]\n\n[a]: LICENSE", "github.com/pytest-jaxexport/pytest-jaxexport/blob/v1/LICENSE"),
        ("[![a](a.svg)](b)", "github.com/pytest-jaxexport/pytest-jaxexport/blob/v1/b"),
    ],
)
def test_every_kind_of_relative_link_becomes_absolute(text, link):
    assert f"https://{link}" in links(described(text, "1"))


def test_the_version_is_written_in_one_place():
    tracked = ["export_core", "pytest_jaxexport", "CITATION.cff", "action.yml", "noxfile.py", "docs/conf.py"]
    found = subprocess.run(["grep", "-rlwF", VERSION, *tracked], cwd=ROOT, capture_output=True, text=True, check=False)
    assert [name for name in found.stdout.split() if name.endswith((".py", ".cff", ".yml"))] == []


def test_the_changelog_begins_with_this_version():
    first = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert first.startswith(f"## {VERSION} (")


def test_the_changelog_has_one_section_before_the_first_release():
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.split(r"^## .*\n", text, flags=re.MULTILINE)[1:]
    assert 200 < len(sections[-1].split()) < 600
    assert ("(not released yet)" in text) == (not RELEASED)
    if not RELEASED:  # files in changes/ describe changes since an earlier release, and there is none
        assert (len(sections), [path.name for path in (ROOT / "changes").glob("+*.md")]) == (1, [])


def test_version_option_shows_jax_without_importing_it():
    program = (
        "import sys; sys.argv[:] = ['jaxexport', '--version']\n"
        "import atexit; atexit.register(lambda: print(sorted({'jax', 'jaxlib', 'numpy'} & {*sys.modules})))\n"
        "from export_core.cli.entry import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own, jax, jaxlib = (importlib.metadata.version(name) for name in ("pytest-jaxexport", "jax", "jaxlib"))
    python = ".".join(map(str, sys.version_info[:3]))
    assert ended.stdout == f"jaxexport {own}, jax {jax}, jaxlib {jaxlib}, Python {python}\n[]\n"
