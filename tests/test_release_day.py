"""Pages, workflows and metadata that change on the day of the first release, by one constant."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tools import release_day
from tools.release_day import ADDRESSES, RELEASED, REPOSITORY, VERSION, main, released, texts

ROOT = Path(__file__).parents[1]
TEXTS = texts()
INSTALLS = {
    "README.md",
    "docs/index.md",
    *(f"docs/how-to/{page}.md" for page in ("install", "run-in-ci")),
    *(f"docs/tutorial/{page}.md" for page in ("1-first-golden", "5-gate")),
    *(f"docs/ci/{name}.yml" for name in ("github", "github-prerelease", "github-weekly", "gitlab")),
}
"""The files that tell how to install."""

INSTALLED = re.compile(r"pip install[^\n`]*?[ ']([./\w]*pytest[-_]jaxexport[\w*.-]*)")
ADDRESS = re.compile(r"https://[\w./-]*pytest-jaxexport[\w./-]*|pytest-jaxexport/pytest-jaxexport@[\w.]+")


def test_the_text_of_each_file_agrees_with_the_flag_released():
    waiting = {name for name, text in TEXTS.items() if released(name, text) != text}
    if RELEASED:
        assert waiting == set(), "python -m tools.release_day"
    else:
        assert waiting >= {*INSTALLS, *ADDRESSES}
        assert [name for name in INSTALLS if "There is no release yet" not in TEXTS[name]] == []


def test_a_git_tag_exists_only_if_released():
    found = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert RELEASED or found.stdout == "", "and nothing where there is no git, such as in a source distribution"


def test_install_commands_name_existing_sources():
    commands = {found for text in TEXTS.values() for found in INSTALLED.findall(text)}
    assert commands
    assert RELEASED or all(re.match(r"\.|ci/", command) for command in commands), commands
    after = {found for name, text in TEXTS.items() for found in INSTALLED.findall(released(name, text))}
    assert after == {"pytest-jaxexport"}


def test_no_file_names_an_address_of_the_project_before_its_release():
    before = {found for text in TEXTS.values() for found in ADDRESS.findall(text)}
    assert RELEASED or before == set()
    after = {found for name, text in TEXTS.items() for found in ADDRESS.findall(released(name, text))}
    assert {f"pytest-jaxexport/pytest-jaxexport@v{VERSION}", REPOSITORY} <= after
    project = tomllib.loads(released("pyproject.toml", TEXTS["pyproject.toml"]))["project"]
    known = (*project["urls"].values(), *(f"https://raw.githubusercontent.com{end}" for end in [REPOSITORY[18:]]))
    assert [found for found in after if found.startswith("https") and not found.startswith(known)] == []


def test_release_day_replaces_every_text_about_the_missing_release():
    after = {name: released(name, text) for name, text in TEXTS.items()}
    before = re.compile(r"There is no release yet|\.pytest-jaxexport\b|\./pytest-jaxexport\b|[Tt]he clone\b|git -C")
    left = [name for name, text in after.items() if before.search(text)]
    assert [name for name in left if name not in ADDRESSES] == []
    assert {name: text for name, text in after.items() if released(name, text) != text} == {}
    assert f"    rev: v{VERSION}\n" in after["docs/how-to/install.md"]


def test_release_day_stops_unless_released_is_true(monkeypatch):
    monkeypatch.setattr(release_day, "RELEASED", False)
    with pytest.raises(SystemExit, match="Expected RELEASED = True"):
        main()
