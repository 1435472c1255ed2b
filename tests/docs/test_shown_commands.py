"""Every command that README, docs and examples show exists, with the options that they give it."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from export_core.cli.app import jaxexport
from tools.printed import FENCE

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts),
    *sorted((ROOT / "examples").rglob("*.md")),
]
NOX = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("noxfile.py", "pytest_jaxexport/nox_sessions.py"))
SESSIONS = set(re.findall(r"^ *def (\w+)\(session: ", NOX, re.MULTILINE))
PASSED_ON = {"compat_matrix": "matrix", "backfill": "goldens backfill"}
"""The commands to which the sessions of a user's noxfile pass their words."""


def shown(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a page: in fences, in indented blocks and in line."""
    for fence in FENCE.finditer(text):
        if fence["language"] not in ("python", "diff"):
            lines = fence["text"].replace("\\\n", " ").splitlines()
            session = fence["language"] == "console"
            yield from (words for line in lines if line.startswith("$ ") or not session for words in _commands(line))
    text = FENCE.sub("", text)
    for line in re.findall(r"^ {4,}(.*)$", text, re.MULTILINE):
        yield from _commands(line)
    for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text):
        yield from _commands(" ".join(code.split()))


def _commands(line: str) -> Iterator[list[str]]:
    reader = shlex.shlex(re.sub(r"[][]", " ", line), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError:  # a sentence with an apostrophe
        return
    ends = [number for number, word in enumerate(words) if re.fullmatch(r"[();<>|&]+", word)]
    for start, end in zip([-1, *ends], [*ends, len(words)], strict=True):
        part = words[start + 1 : end]
        while part and (part[0] in ("$", "-", "run:") or re.fullmatch(r"\w+=.*", part[0])):
            part.pop(0)
        if part and part[0] in ("jaxexport", "pytest", "nox"):
            yield part


def problem(words: list[str], of_pytest: set[str]) -> str:
    """Return which part of a command does not exist, or an empty text."""
    if words[0] == "pytest":
        return _unknown(words[1:], of_pytest, long_ones_only=True)
    if words[0] == "nox":
        name = words[2].partition("(")[0] if words[1:2] == ["-s"] and len(words) > 2 else ""
        if name and name not in SESSIONS:
            return f"no session {name}"
        passed = words[words.index("--") + 1 :] if "--" in words else []
        return problem(["jaxexport", *PASSED_ON[name].split(), *passed], of_pytest) if name in PASSED_ON else ""
    command: click.Command = jaxexport
    words = words[1:]
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        if words[0] not in command.commands:
            return f"no command {words[0]}"
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return _unknown(words, options | {"--help", "-h"})


def _unknown(words: list[str], options: set[str], *, long_ones_only: bool = False) -> str:
    own = words[: words.index("--")] if "--" in words else words
    names = (word.partition("=")[0] for word in own if word.startswith("--" if long_ones_only else "-"))
    return next((f"no option {name}" for name in names if name not in options), "")


@pytest.fixture(scope="module")
def of_pytest() -> set[str]:
    command = [sys.executable, "-m", "pytest", "--help"]
    text = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z][\w-]*", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_shown_command_exists_with_its_options(page, of_pytest):
    commands = list(shown(page.read_text(encoding="utf-8")))
    assert [(found, " ".join(words)) for words in commands if (found := problem(words, of_pytest))] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`jaxexport forecats`", "no command forecats"),
        ("    jaxexport policy shwo", "no command shwo"),
        ("```sh\njaxexport matrix --cases a \\\n  --nothing\n```", "no option --nothing"),
        (
            "```console\n$ A=1 jaxexport matrix --dry-run | jaxexport matrix --dry-run --nothing=1\n```",
            "no option --nothing",
        ),
        ("- run: `pip install . && pytest --nothing`", "no option --nothing"),
        ("`nox -s nothing`", "no session nothing"),
        ("`nox -s compat_matrix -- --nothing`", "no option --nothing"),
        ("`jaxexport inspect CASE/WRITER --mlir`", ""),
        ("`jaxexport goldens backfill --writers V -- tests --lf`", ""),
        ("```console\n$ true\njaxexport nothing\n```", ""),
    ],
)
def test_the_check_of_docs_finds_an_unknown_command_or_option(text, found, of_pytest):
    problems = [problem(words, of_pytest) for words in shown(text)]
    assert [one for one in problems if one] == ([found] if found else [])
