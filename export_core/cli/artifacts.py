"""The commands on single artifacts: inspect, audit, diff. None of them runs what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME, DIFFERENT = 0, 1
FINE, NOT_FINE, BAD_INPUT = 0, 1, 2


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object (schema/inspect.schema.json).")
@click.option("--mlir", is_flag=True, help="The module as text; needs jaxlib.")
def inspect(file: str, as_json: bool, mlir: bool) -> None:
    """What is in an artifact, who wrote it, and which releases can load it.

    FILE is what Exported.serialize() returned, or a StableHLO portable artifact. Nothing in it is run.
    """
    if mlir:
        from export_core.artifact import read
        from export_core.inspection.module_text import module_text

        click.echo(module_text(read(file)))
    else:
        from export_core.inspection.inspected import inspected

        click.echo(inspected(file, as_json=as_json), nl=False)


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    help="Policy file. [default: export_compat.yaml or [tool.jaxexport] in pyproject.toml, where there is one]",
)
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote them, where the files leave it open.")
@click.option("--reader", metavar="JAXLIB", help="A jaxlib that must guarantee the calls too. [default: none]")
@click.pass_context
def audit(
    context: click.Context, files: Sequence[str], policy_file: str | None, writer: str | None, reader: str | None
) -> None:
    """Hold every custom call against what its writer guaranteed and the policy allows, and `main` against its calling convention.

    Exit codes: 0 nothing speaks against it, 1 a call is not guaranteed or main is not what the envelope says, 2 a file cannot be read.
    """
    from export_core.artifact import ArtifactError, read
    from export_core.inspection.audited import audited
    from export_core.policy import find_policy
    from export_core.releases.dates import dates_of

    policy = find_policy(Path(), policy_file)
    calendar = policy.calendar()
    for named in filter(None, (writer, reader)):
        calendar.built(named)  # a name that is no release is bad input
    dates = dates_of(calendar)
    code = FINE
    for file in files:
        try:
            told, fine = audited(read(file), dates, policy.allow, writer, reader)
        except ArtifactError as error:
            click.echo(f"jaxexport: error: {error}", err=True)
            code = BAD_INPUT
        else:
            click.echo(told, nl=False)
            code = max(code, FINE if fine else NOT_FINE)
    context.exit(code)


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.pass_context
def diff(context: click.Context, old: str, new: str) -> None:
    """What changed from one artifact to another.

    Exit codes: 0 the same bytes, 1 different, 2 a file cannot be read.
    """
    from export_core.artifact import read
    from export_core.inspection.describe import describe
    from export_core.inspection.difference import differences
    from export_core.releases.dates import shipped_dates

    before, after = read(old), read(new)
    if before.data == after.data:
        click.echo(f"{old} and {new} are the same, byte for byte")
        context.exit(SAME)
    dates = shipped_dates()
    click.echo(differences(describe(before, dates, whole=False), describe(after, dates, whole=False)), nl=False)
    context.exit(DIFFERENT)
