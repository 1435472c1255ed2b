"""The command `jaxexport`: backfill, releases, and what its other files add, without pytest or nox."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from export_core.cli.artifacts import audit, diff, inspect
from export_core.cli.environments import environments_group
from export_core.cli.forecast import forecast
from export_core.cli.goldens import goldens_group
from export_core.cli.judge import judge
from export_core.cli.matrix import matrix
from export_core.cli.merge import merge
from export_core.cli.options import index_option, policy_of, policy_option, wheels_option
from export_core.cli.plan import plan
from export_core.cli.policy import policy_group
from export_core.cli.releases import releases
from export_core.cli.report import report
from export_core.errors import ExportCompatError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-jaxexport")
def jaxexport() -> None:
    """Will this exported JAX function still run there?"""


for _command in (inspect, audit, diff, matrix, plan, merge, judge, policy_group, forecast, report, environments_group):
    jaxexport.add_command(_command)


@jaxexport.command()
@policy_option
@click.option(
    "--writers",
    metavar="WRITER,…",
    required=True,
    help="jaxlib releases to write goldens with, spelled as `jaxexport matrix --readers` has them: 0.10.2, or a jaxlib wheel file.",
)
@wheels_option
@index_option
@click.option(
    "--install",
    metavar="REQUIREMENT",
    multiple=True,
    help="What the tests need beside jax. [default: the policy's, else the project here]",
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
    sys.exit(write_goldens(chosen, tuple(install) or policy.backfill_install, tuple(pytest_args)))


jaxexport.add_command(goldens_group)
jaxexport.add_command(releases)


def main() -> None:
    """Entry point: an error that a person can mend is one line, and never a traceback."""
    try:
        jaxexport()
    except ExportCompatError as error:
        click.echo(f"jaxexport: error: {error}", err=True)
        sys.exit(error.exit_code)
