"""The changes of all files on the day of the first release: ``python -m tools.release_day``.

Until that day, no package index has the package, and the repository and the documentation have no public address: a
planned address is not ours yet, and could lead to a stranger's page. So every page and workflow installs from a
checkout or a wheel, says so in one sentence, and names no address. On that day the maintainer sets `RELEASED`, runs
this script and writes the day into CHANGELOG.md. A test checks that all files agree with `RELEASED`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELEASED = False
"""Whether the version in pyproject.toml, or an earlier one, has been released."""

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
NAME = "pytest-jaxexport"
REPOSITORY = f"https://github.com/{NAME}/{NAME}"
FILES = f"https://raw.githubusercontent.com/{NAME}/{NAME}"
DOCUMENTATION = f"https://{NAME}.readthedocs.io/en/stable"

RULES = (
    # The sentence is a paragraph of a page, with the commands after its colon, or a comment of a workflow.
    (r"^There is no release yet(?:.*\S.*\n)*?.*:\n\n```sh\n(?:.+\n)+?```\n\n", ""),
    (r"^There is no release yet(?:.*\S.*\n)+\n", ""),
    (r"^ *# There is no release yet.*\n", ""),
    (r"repo: \.\./pytest-jaxexport\n( +)rev: HEAD$", rf"repo: {REPOSITORY}\n\1rev: v{VERSION}"),
    (r"uses: \./\.pytest-jaxexport$", f"uses: {NAME}/{NAME}@v{VERSION}"),
    (r"(?<![\w/])(?:\.\./pytest-jaxexport|\./\.pytest-jaxexport|ci/pytest_jaxexport-\*\.whl)(?![\w/])", NAME),
)
"""Patterns of text in pages and workflows before the first release, each with the text that replaces it."""

_PYPI = f"""\
# The README as the page of a package index shows it: from there a relative link leads nowhere.
[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]  # ![text](picture)
pattern = '(!\\[[^]]*\\]\\()(?![a-z]+:)'
replacement = '\\1{FILES}/v$HFPR_VERSION/'

[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]  # <img src="picture">
pattern = '( src(?:set)?=")(?![a-z]+:)'
replacement = '\\1{FILES}/v$HFPR_VERSION/'

[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]  # [text](docs/page.md), [text]: docs/page.md
pattern = '(\\]\\(| href="|(?m:^\\[[^]]+\\]: ))docs/([\\w/-]+)\\.md'
replacement = '\\1{DOCUMENTATION}/\\2.html'

[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]  # [text](other file)
pattern = '(\\]\\(| href="|(?m:^\\[[^]]+\\]: ))(?![a-z]+:|#)'
replacement = '\\1{REPOSITORY}/blob/v$HFPR_VERSION/'

"""
_URLS = f"""\
[project.urls]
Homepage = "{REPOSITORY}"
Documentation = "{DOCUMENTATION}"
Source = "{REPOSITORY}"
Issues = "{REPOSITORY}/issues"
Changelog = "{REPOSITORY}/blob/main/CHANGELOG.md"

"""
_CONTACTS = f"""\
  - name: A vulnerability
    url: {REPOSITORY}/security/advisories/new
    about: Report it in private. SECURITY.md says what counts.
  - name: Documentation
    url: {DOCUMENTATION}
    about: Tutorial, how-to, reference, explanation.
"""
ADDRESSES = {
    "pyproject.toml": (
        ("# There is no release yet: no addresses. tools/release_day.py\n", _URLS),
        ("# There is no release yet: links of the README stay relative. tools/release_day.py\n", _PYPI),
    ),
    "CITATION.cff": (
        ("# There is no release yet: no addresses.\n", f"repository-code: {REPOSITORY}\nurl: {DOCUMENTATION}\n"),
    ),
    "SECURITY.md": (
        (
            "\n*Report a vulnerability*. The repository has no public address yet.",
            f"\n[*Report a vulnerability*]({REPOSITORY}/security/advisories/new).",
        ),
    ),
    "schema/schemastore.json": (
        ('"url": "schema/policy.schema.json"', f'"url": "{FILES}/main/schema/policy.schema.json"'),
    ),
    ".github/ISSUE_TEMPLATE/config.yml": (("  # There is no release yet: no addresses.\n", _CONTACTS),),
}
"""Files with addresses of the project, each with pairs of its text before the first release and afterwards."""


def texts() -> dict[str, str]:
    """Return the texts of all pages and workflows, and of the files with addresses, by path."""
    patterns = (
        "*.md",
        "docs/**/*.md",
        "docs/ci/*.yml",
        "examples/*.md",
        "examples/*/*.md",
        "examples/*/.github/*/*.yml",
    )
    found = (path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern))
    names = [name for name in found if not name.startswith(("docs/_build/", "docs/atlas/"))]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in [*names, *ADDRESSES]}


def released(name: str, text: str) -> str:
    """Return the text of a file as it is after the first release.

    Args:
        name: the path of the file.
        text: its text before the release.
    """
    for before, after in ADDRESSES.get(name, ()):
        text = text.replace(before, after)
    for pattern, after in () if name in ADDRESSES else RULES:
        text = re.sub(pattern, after, text, flags=re.MULTILINE)
    return text


def main() -> None:
    """Change all files to what they are after the first release, and print the names of those that changed.

    Raises:
        SystemExit: `RELEASED` is false.
    """
    if not RELEASED:
        raise SystemExit("Expected RELEASED = True in tools/release_day.py, found False. It is set on release day.")
    for name, text in texts().items():
        if (after := released(name, text)) != text:
            (ROOT / name).write_text(after, encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main()
