"""The commands on single artifacts: inspect, audit, diff, and goldens add. None of them runs what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.options import policy_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.artifact import Artifact
    from export_core.goldens import Writer
    from export_core.releases import Calendar

SAME, DIFFERENT = 0, 1
FINE, NOT_FINE, BAD_INPUT = 0, 1, 2


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object (schema/inspect.schema.json).")
@click.option("--mlir", is_flag=True, help="The module as text; needs jaxlib.")
@policy_option
def inspect(file: str, as_json: bool, mlir: bool, policy_file: str | None) -> None:
    """What is in an artifact, who wrote it, and which releases can load it.

    FILE is what Exported.serialize() returned, or a StableHLO portable artifact. Nothing in it is run. The policy's releases,
    windows and allowed calls are used.
    """
    if mlir:
        from export_core.artifact import read
        from export_core.inspection.module_text import module_text

        click.echo(module_text(read(file)))
    else:
        from export_core.inspection.inspect_text import inspect_text

        click.echo(inspect_text(file, as_json=as_json, policy_file=policy_file), nl=False)


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@policy_option
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote them, where the files leave it open.")
@click.option("--reader", metavar="JAXLIB", help="A jaxlib that must guarantee the calls too. [default: none]")
@click.pass_context
def audit(
    context: click.Context, files: Sequence[str], policy_file: str | None, writer: str | None, reader: str | None
) -> None:
    """Check every custom call against what its writer guaranteed and the policy allows, and `main` against its calling convention.

    Exit codes: 0 no problems found, 1 a call is not guaranteed or main is not what the envelope says, 2 a file cannot be
    read.
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
            click.echo(f"jaxexport: error: {error}", err=True)
            code = BAD_INPUT
        else:
            click.echo(text, nl=False)
            code = max(code, FINE if fine else NOT_FINE)
    context.exit(code)


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@policy_option
@click.pass_context
def diff(context: click.Context, old: str, new: str, policy_file: str | None) -> None:
    """What changed from one artifact to another, by the policy's releases and allowed calls.

    Exit codes: 0 the same bytes, 1 different, 2 a file cannot be read.
    """
    from export_core.artifact import read
    from export_core.inspection.describe import describe
    from export_core.inspection.difference import differences
    from export_core.inspection.terms import terms_here

    before, after = read(old), read(new)
    if before.data == after.data:
        click.echo(f"{old} and {new} are the same, byte for byte")
        context.exit(SAME)
    terms = terms_here(policy_file)
    click.echo(differences(describe(before, terms, whole=False), describe(after, terms, whole=False)), nl=False)
    context.exit(DIFFERENT)


@click.command(name="add")
@click.option("--artifact", "file", metavar="FILE", required=True, help="What Exported.serialize() returned.")
@click.option("--inputs", metavar="NPZ", required=True, help="The flat arguments, in order: np.savez(file, *leaves).")
@click.option("--outputs", metavar="NPZ", required=True, help="The flat results that its writer saw, likewise.")
@click.option("--case", metavar="NAME", required=True, help="What to call it: the name of its folder.")
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote it. [default: what the artifact tells]")
@click.option(
    "--register",
    metavar="PY",
    multiple=True,
    help="A module that readers import first: tree nodes, effects, targets. A copy is kept; may be given several times.",
)
@click.option("--goldens", metavar="DIR", help="Folder of goldens. [default: the policy's, else golden]")
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    help="Policy file. [default: export_compat.yaml or [tool.jaxexport] in pyproject.toml, where there is one]",
)
def add_golden(
    file: str,
    inputs: str,
    outputs: str,
    case: str,
    writer: str | None,
    register: Sequence[str],
    goldens: str | None,
    policy_file: str | None,
) -> None:
    """A golden of an artifact whose source nobody has any more."""
    from export_core.artifact import read
    from export_core.goldens import GoldenStore
    from export_core.goldens.adopt import adopted
    from export_core.policy import find_policy

    policy = find_policy(Path(), policy_file)
    store = GoldenStore(Path(goldens or policy.goldens))
    artifact = read(file)
    by = _writer(artifact, policy.calendar(), writer)
    manifest, files = adopted(artifact, Path(inputs), Path(outputs), case, by, [Path(module) for module in register])
    written = store.write(manifest, files)
    golden = next(found for found in store.generations(case) if found.manifest.writer == manifest.writer)
    golden.verify()
    click.echo(f"{golden.folder}: {written}, by jaxlib {manifest.writer.jaxlib}; every file is as it was written")


def _writer(artifact: Artifact, calendar: Calendar, jaxlib: str | None) -> Writer:
    """Who wrote it: the one that was named, or else the one that the artifact tells."""
    from export_core.goldens import GoldenError, Writer
    from export_core.inspection.describe import find_writer
    from export_core.releases.entries import calendar_entries

    found = find_writer(artifact, calendar_entries(calendar))
    jaxlib = jaxlib or found["jaxlib"]
    if jaxlib is None:
        fitting = ", ".join(found["candidates"]) or "none that the calendar has"
        raise GoldenError(
            f"{artifact.name}: expected an artifact that tells its writer, found one that several releases can have written. "
            f"Name the jaxlib with --writer; these fit: {fitting}."
        )
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return Writer(
        # Who does not say which jax it was had, most likely, the one of the same number.
        jax=found["jax"] or (jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax),
        jaxlib=jaxlib,
        built=calendar.built(jaxlib),
        python="unknown",
        platform="cpu" if "cpu" in platforms or not platforms else platforms[0],
    )
