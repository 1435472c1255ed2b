"""The reference is what the code says: commands, options, keys, files, messages, variables, the Python API."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from export_core.cli.app import jaxexport
from export_core.releases.index import VARIABLES
from tools.reference import PARTS, pages, parts_of, renewed
from tools.reference.commands import every_command
from tools.reference.files import FILES, OUTPUT
from tools.reference.policy import EXAMPLES, keys
from tools.reference.variables import READ
from tools.schemas import KINDS

ROOT = Path(__file__).parents[2]
PACKAGES = ("export_core", "pytest_jaxexport")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_is_what_the_code_says(page):
    text = page.read_text(encoding="utf-8")
    assert text == renewed(text), "run `python -m tools.reference`"


def test_every_part_is_in_one_page():
    assert Counter(name for page in pages() for name in parts_of(page.read_text(encoding="utf-8"))) == Counter([*PARTS])


def test_every_schema_has_a_table():
    assert sorted({*FILES, *OUTPUT} & set(KINDS)) == sorted(set(KINDS) - {"policy"})  # the policy has a page of its own


def test_an_older_part_is_replaced():
    text = "by hand\n<!-- from the code: exit codes -->\nold\n<!-- end -->\nby hand\n"
    assert "\nold\n" not in renewed(text)
    assert renewed(text).startswith("by hand\n")
    assert "Every promise is kept." in renewed(text)


def test_every_command_has_a_section():
    def paths(group: click.Group, path: str) -> Iterator[str]:
        for name, command in group.commands.items():
            yield f"{path} {name}"
            if isinstance(command, click.Group):
                yield from paths(command, f"{path} {name}")

    headings = re.findall(r"^### (jaxexport .*)$", every_command(), re.MULTILINE)
    assert sorted(headings) == sorted(paths(jaxexport, "jaxexport"))


def test_every_key_of_a_policy_has_an_example():
    examples = re.findall(r"```yaml\n(.*?)```", keys(), re.DOTALL)
    comments_and_spaces = re.compile(r"^#.*\n|\s+", re.MULTILINE)
    written = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    assert sorted(re.sub(r"\s+", "", "".join(examples))) == sorted(comments_and_spaces.sub("", written))


def test_every_variable_that_the_code_reads_is_listed():
    found = set(VARIABLES)
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"environ(?:ment)?(?:\.get\(|\[)[\"']([A-Z][A-Z0-9_]+)", code))
        for names in re.findall(r"for name in (\([^)]*\)) if name in (?:os\.)?environ\b", code):
            found |= set(re.findall(r"\"(\w+)\"", names))
    assert {name for names in READ for name in names} == found
