"""The docstring of pytest_jaxexport/export_compat.py: each message that it quotes is printed by a run of that step.

Its code is Python, and the commands that docstrings of pytest_jaxexport name exist.
"""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import click
import pytest
from projects import Project, Projects

import pytest_jaxexport
from export_core.cli.app import jaxexport
from pytest_jaxexport import export_compat
from pytest_jaxexport.marker import all_keywords

TEST = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x)), np.arange(8.0))
"""
OTHER = "def test_other(): pass\n"
LIFE = inspect.getdoc(export_compat) or ""
QUOTED = re.findall(r"^    \| (.*)$", LIFE, re.MULTILINE)


@pytest.fixture(scope="module")
def printed(projects: Projects) -> str:
    """The text that pytest prints in all steps of a test's life."""
    project = projects(test_a=TEST)
    texts = [project.pytest().text, project.pytest("--update-goldens").text, project.pytest().text]
    for change in ("2 * jnp.sin(x)", "jnp.sin(x + 0)"):
        texts.append(run_changed(project, "jnp.sin(x)", change))
    texts.append(project.pytest("--update-goldens").text)
    project.write(test_a=TEST)
    project.pytest("--update-goldens")
    texts.append(run_changed(project, "8.0", "8.0) + np.float64(1"))
    project.write(test_a=TEST)
    older = project.add_older_generation("test_a.test_wave")
    newer = next(folder for folder in older.parent.iterdir() if folder != older)
    newer.rename(project.folder / "newer")
    texts.append(project.pytest().text)
    (project.folder / "newer").rename(newer)
    texts.append(run_changed(project, "test_wave", "test_wave_by_another_name"))
    project.write(test_a=TEST.replace("@pytest.mark.export_compat\ndef test_wave", OTHER + "def helper"))
    project.write(test_b=TEST.replace("test_wave", "test_b"))
    project.pytest("--update-goldens", "test_b.py")
    texts.append(project.pytest().text)
    return "\n".join(texts)


def run_changed(project: Project, old: str, new: str) -> str:
    """Change the test and return what a run prints."""
    assert old in TEST
    project.write(test_a=TEST.replace(old, new))
    return project.pytest().text


@pytest.mark.parametrize("message", QUOTED)
def test_each_message_that_the_docstring_quotes_is_printed(printed, message):
    pattern = ".*".join(map(re.escape, message.split("...")))
    assert re.search(pattern, printed), printed


def test_the_docstring_of_export_compat_explains_all_keywords():
    assert len(QUOTED) > 10
    text = export_compat.__doc__ or ""
    assert all(f"\n{name}=" in text for name in all_keywords())


def test_the_example_in_the_docstring_of_export_compat_compiles():
    life = LIFE.partition("The keywords of the marker:")[0]
    examples = re.findall(r"(?:^    (?!\|).+\n)+", life, re.MULTILINE)
    assert len(examples) == 1
    compile(textwrap.dedent(examples[0]), "example", "exec")


DOCSTRINGS = "\n".join(
    ast.get_docstring(node) or ""
    for file in Path(pytest_jaxexport.__file__).parent.glob("*.py")
    for node in ast.walk(ast.parse(file.read_text()))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
)


@pytest.mark.parametrize("words", sorted(set(re.findall(r"`jaxexport ([^`]+)`", DOCSTRINGS))))
def test_each_command_in_docstrings_exists(words):
    command: click.Command = jaxexport
    for word in words.split():
        if not isinstance(command, click.Group):
            break
        assert word in command.commands
        command = command.commands[word]
    assert command is not jaxexport
