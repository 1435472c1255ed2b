"""The command `jaxexport backfill`: goldens by older releases."""

from __future__ import annotations

from collections.abc import Sequence

import click

from export_core.cli.options import index_option, policy_of, policy_option, wheels_option


@click.command()
@policy_option
@click.option(
    "--writers",
    metavar="WRITER,…",
    required=True,
    help="jaxlib releases to write goldens with, in the form of `jaxexport matrix --readers`: 0.10.2, or a wheel file.",
)
@wheels_option
@index_option
@click.option(
    "--install",
    metavar="REQUIREMENT",
    multiple=True,
    help="A pip requirement of the tests besides jax; may be given several times. [default: the policy's, else the "
    "project in the working folder]",
)
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def backfill(
    policy_file: str | None,
    writers: str,
    wheels: Sequence[str],
    index: Sequence[str],
    install: Sequence[str],
    pytest_args: Sequence[str],
) -> None:
    """Write goldens with older releases, by running the marked tests in their environments.

    Arguments after -- go to pytest.
    """
    from export_core.backfill import choose_writers, write_goldens

    policy = policy_of(policy_file)
    chosen = choose_writers(writers, policy.calendar(), wheels=tuple(wheels), indexes=tuple(index))
    raise click.exceptions.Exit(write_goldens(chosen, tuple(install) or policy.backfill_install, tuple(pytest_args)))
