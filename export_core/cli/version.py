"""`jaxexport --version`: its own version, jax's, jaxlib's and Python's. Asks the installed packages, imports none."""

from __future__ import annotations

import platform

import click

from export_core.cli.help import PACKAGE
from export_core.cli.output import echo


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print one line and end the command, if asked for."""
    if not asked or ctx.resilient_parsing:
        return
    own, jax, jaxlib = map(_version_of, (PACKAGE, "jax", "jaxlib"))
    echo(f"jaxexport {own}, jax {jax}, jaxlib {jaxlib}, Python {platform.python_version()}")
    ctx.exit()


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
