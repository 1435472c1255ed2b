"""The commands on single artifacts: inspect, audit, diff. They never run what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.help import HelpfulCommand
from export_core.cli.options import PATH, policy_option
from export_core.cli.output import echo
from export_core.errors import PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME, DIFFERENT = 0, 1
FINE, NOT_FINE, BAD_INPUT = 0, 1, 2


@click.command(cls=HelpfulCommand)
@click.argument("file", metavar="FILE", type=PATH)
@click.option(
    "--json", "as_json", is_flag=True, help="Print everything as one JSON object (schema/inspect.schema.json)."
)
@click.option("--mlir", is_flag=True, help="Print the module as text; needs jaxlib.")
@policy_option
def inspect(file: str, as_json: bool, mlir: bool, policy_file: str | None) -> None:
    """Show what is in an artifact, which release wrote it, and which releases can load it.

    FILE is what Exported.serialize() returned, or a StableHLO portable artifact. Nothing in it is run. The policy's
    releases, windows and allowed calls are used.
    """
    if mlir:
        from export_core.artifact import read
        from export_core.inspection.module_text import module_text

        echo(module_text(read(file)))
    else:
        from export_core.inspection.inspect_text import inspect_text

        echo(inspect_text(file, as_json=as_json, policy_file=policy_file), nl=False)


@click.command(cls=HelpfulCommand)
@click.argument("files", metavar="FILE…", type=PATH, nargs=-1, required=True)
@policy_option
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote the files. [default: read from each file]")
@click.option("--reader", metavar="JAXLIB", help="A jaxlib that must guarantee the calls as well. [default: none]")
@click.pass_context
def audit(
    context: click.Context, files: Sequence[str], policy_file: str | None, writer: str | None, reader: str | None
) -> None:
    """Check every custom call against what its writer guaranteed and the policy allows.

    The parameters of `main` are checked against the artifact's envelope and its calling convention.

    Exit codes: 0 no problems found, 1 a call is not guaranteed or `main` does not match the envelope, 2 a file cannot
    be read.
    """
    from export_core.artifact import ArtifactError, read
    from export_core.inspection.audit_text import audit_text
    from export_core.inspection.terms import terms_of
    from export_core.policy import find_policy

    policy = find_policy(Path(), policy_file)
    calendar = policy.calendar()
    for version in filter(None, (writer, reader)):
        calendar.built(version)  # a name that is no release is bad input
    terms = terms_of(policy)
    code = FINE
    for file in files:
        try:
            text, fine = audit_text(read(file), terms, writer, reader)
        except ArtifactError as error:
            echo(f"{PREFIX}{error}", err=True)
            # The other files are still audited; the exit code stays that of the worst.
            code = BAD_INPUT
        else:
            echo(text, nl=False)
            code = max(code, FINE if fine else NOT_FINE)
    context.exit(code)


@click.command(cls=HelpfulCommand)
@click.argument("old", metavar="A", type=PATH)
@click.argument("new", metavar="B", type=PATH)
@policy_option
@click.pass_context
def diff(context: click.Context, old: str, new: str, policy_file: str | None) -> None:
    """Show what changed from one artifact to another, with the releases and allowed calls of the policy.

    Exit codes: 0 the same bytes, 1 different, 2 a file cannot be read.
    """
    from export_core.artifact import read
    from export_core.inspection.describe import describe
    from export_core.inspection.difference import differences
    from export_core.inspection.terms import terms_here

    before, after = read(old), read(new)
    if before.data == after.data:
        echo(f"{old} and {new} are the same, byte for byte")
        context.exit(SAME)
    # Only now: about files with the same bytes nothing else has to be known.
    terms = terms_here(policy_file)
    echo(differences(describe(before, terms, whole=False), describe(after, terms, whole=False)), nl=False)
    context.exit(DIFFERENT)
