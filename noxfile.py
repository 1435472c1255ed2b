"""Everything there is to do here: `nox --list`."""

from __future__ import annotations

import nox

from pytest_jaxexport.sessions import register

nox.options.sessions = ["lint", "typecheck", "tests"]
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True

register()


@nox.session
def tests(session: nox.Session) -> None:
    """The fast tests; -- -m matrix for those that need other jaxlib releases."""
    session.install("-e", ".[nox]", "--group", "tests")
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Mypy, strict."""
    session.install("-e", ".[nox]", "--group", "typecheck")
    session.run("mypy")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The budgets of the design, measured side by side in one run."""
    session.install("-e", ".", "--group", "tests")
    session.run("python", "-m", "benchmarks", *session.posargs)
