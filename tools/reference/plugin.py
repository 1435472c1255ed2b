"""The parts about the plugin: the options, ini keys, marker, fixture and nox sessions that it adds."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from pytest_jaxexport import nox_sessions
from pytest_jaxexport.marker import all_keywords
from pytest_jaxexport.options import add_options
from tools.reference.api import documented
from tools.reference.markdown import code, table

INI_TYPES = {"args": "words", None: "text"}


class Options:
    """A stand-in for pytest's parser, which records the options and ini keys that `add_options` adds."""

    def __init__(self) -> None:
        self.options: list[tuple[str, dict[str, Any]]] = []
        self.ini: list[tuple[str, str, str | None]] = []

    def getgroup(self, *_: str) -> Options:
        """Return this object, which stands for every group of options too."""
        return self

    def addoption(self, name: str, **about: Any) -> None:
        """Record an option of the command line, with the keywords that describe it."""
        self.options.append((name, about))

    def addini(self, name: str, help: str, type: str | None = None) -> None:  # noqa: A002 - pytest's name
        """Record an ini key, with its help and the type of its value."""
        self.ini.append((name, help, type))


def _added() -> Options:
    options = Options()
    add_options(options)  # type: ignore[arg-type]  # all that it needs of a parser
    return options


def pytest_options() -> str:
    """Return a table of the plugin's options on the command line of pytest."""
    rows = [(code(f"{name} {about.get('metavar', '')}".strip()), about["help"]) for name, about in _added().options]
    return table(("option", "what"), rows)


def ini_keys() -> str:
    """Return a table of the plugin's keys in pytest's ini file."""
    return table(("key", "value", "what"), [(code(name), INI_TYPES[kind], text) for name, text, kind in _added().ini])


def marker_keywords() -> str:
    """Return a section for each keyword of the marker: an example, the meaning, the default."""
    return "\n".join(
        f"### {name}\n\n`{name}={example}`: {meaning}.{'' if 'default:' in meaning else f' Default: `{default}`.'}\n"
        for name, (default, meaning, example) in all_keywords().items()
    )


def sessions_text() -> str:
    """Return a table of the nox sessions that `register` defines, with their docstrings."""
    tree = ast.parse(inspect.getsource(nox_sessions.register))
    rows = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            name = "compat_matrix(reader='0.9.2', platform='cpu')" if node.name == "single" else node.name
            rows.append((code(f'nox -s "{name}"' if "(" in name else f"nox -s {name}"), ast.get_docstring(node) or ""))
    return table(("session", "what"), rows)


def fixture() -> str:
    """Return a section for each function that a test calls: `export_golden`, and the methods of what it returns."""
    return "\n".join(
        documented("pytest_jaxexport.recorder", path, title)
        for path, title in (
            ("Recorder.__call__", "export_golden"),
            ("Exported.also", "also"),
            ("Exported.refused", "refused"),
        )
    )


PARTS = {
    "fixture": fixture,
    "pytest options": pytest_options,
    "ini keys": ini_keys,
    "marker keywords": marker_keywords,
    "nox sessions": sessions_text,
}
