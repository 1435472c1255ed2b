"""The commands on goldens: list, show, verify, add, prune. None of them runs what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.options import as_of_option, day_of, goldens_option, policy_of, policy_option, verified_goldens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.artifact import Artifact
    from export_core.goldens import Golden, GoldenStore, Writer
    from export_core.releases import Calendar


@click.group(name="goldens")
def goldens_group() -> None:
    """List, show, verify, add and prune goldens."""


@goldens_group.command(name="list")
@goldens_option
@policy_option
def list_goldens(goldens: str | None, policy_file: str | None) -> None:
    """Every golden: case, writer, build date, platforms, custom calls."""
    from export_core.goldens import GoldenStore

    found = GoldenStore(Path(goldens or policy_of(policy_file).goldens)).goldens()
    for golden in found:
        manifest = golden.manifest
        calls = ", ".join(manifest.custom_calls) or "no custom calls"
        click.echo(f"{golden.id}  built {manifest.writer.built}  for {','.join(manifest.options.platforms)}  {calls}")
    click.echo(f"{len(found)} goldens")


@goldens_group.command()
@click.argument("name", metavar="CASE[/WRITER]")
@goldens_option
@policy_option
@click.option("--mlir", is_flag=True, help="Only module.mlir: the module as its writer printed it.")
@click.option("--jaxpr", is_flag=True, help="Only jaxpr.txt: the jaxpr as its writer printed it.")
def show(name: str, goldens: str | None, policy_file: str | None, mlir: bool, jaxpr: bool) -> None:
    """Everything of one golden on a screen: manifest, arrays with their first values, files.

    CASE and WRITER are as `jaxexport goldens list` prints them; without WRITER it is the newest.
    """
    from export_core.goldens import GoldenStore
    from export_core.inspection.golden import golden_screen, side_file

    store = GoldenStore(Path(goldens or policy_of(policy_file).goldens))
    case, golden = _chosen(store, name)
    chosen = [file for wanted, file in ((mlir, "module.mlir"), (jaxpr, "jaxpr.txt")) if wanted]
    for file in chosen:
        click.echo(side_file(golden, file), nl=False)
    if not chosen:
        click.echo(golden_screen(golden, [other for other in case if other is not golden]), nl=False)


@goldens_group.command()
@goldens_option
@policy_option
def verify(goldens: str | None, policy_file: str | None) -> None:
    """Compare every file with its SHA-256, read every artifact, and find what belongs to no golden."""
    from export_core.goldens import GoldenError, GoldenStore
    from export_core.goldens.strays import strays, unlisted

    store = GoldenStore(Path(goldens or policy_of(policy_file).goldens))
    # Before anything is opened: the store itself completes an update that was killed between two renames.
    found = list(strays(store.root))
    whole = verified_goldens(store)
    found += unlisted(store)
    if found:
        raise GoldenError(
            "\n".join(map(str, found))
            + f"\n{len(whole)} goldens are as they were written; these {len(found)} files and folders belong "
            "to none of them. Delete them, or move them elsewhere."
        )
    click.echo(f"{len(whole)} goldens, every file as it was written")


@goldens_group.command(name="add")
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


@goldens_group.command()
@goldens_option
@policy_option
@as_of_option
@click.option("--delete", "--yes", "delete", is_flag=True, help="Do it. Without this nothing is changed.")
@click.option("--quiet", "-q", is_flag=True, help="Do not list the goldens that stay.")
def prune(goldens: str | None, policy_file: str | None, as_of: str | None, delete: bool, quiet: bool) -> None:
    """Delete goldens that nothing keeps: no window, no deployed reader, no pin, and not the last of its case.

    Says why each of the others stays. Without --delete it only says what it would do.
    """
    from export_core.goldens import GoldenStore
    from export_core.judge.retention import retention_status, unmatched_pins
    from export_core.policy import PolicyError

    policy = policy_of(policy_file)
    store = GoldenStore(Path(goldens or policy.goldens))
    day = day_of(as_of)
    goldens_here = verified_goldens(store)
    found = retention_status(goldens_here, policy, policy.calendar(), day)
    if idle := unmatched_pins(goldens_here, policy):
        if delete:
            raise PolicyError(f"{' '.join(idle)} Say what should stay, or take the pin off: nothing was deleted.")
        for problem in idle:
            click.echo(problem, err=True)
    going = [each.golden for each in found if not each.reasons]
    for each in found:
        if each.reasons and not quiet:
            click.echo(f"keeps    {each.golden.id}  {'; '.join(each.reasons)}")
    for golden in going:
        if delete:
            store.remove(golden)
        click.echo(f"{'deleted' if delete else 'prunes '}  {golden.id}  built {golden.manifest.writer.built}")
    counted = f"{len(going)} of {len(found)} goldens"
    if delete:
        click.echo(f"deleted {counted}, as of {day}")
    else:
        click.echo(f"would delete {counted}, as of {day}" + (": run it again with --delete" if going else ""))


def _chosen(store: GoldenStore, name: str) -> tuple[list[Golden], Golden]:
    """The goldens of a case, and the one that was named. A path to its folder, as a shell completes it, is a name too."""
    from export_core.goldens import GoldenError

    inside = name.rstrip("/").removeprefix(f"{store.root.as_posix()}/")
    case, _, writer = inside.partition("/")
    generations = store.generations(case) if case not in ("", ".", "..") else []
    if not generations:
        raise GoldenError(f"{store.root}: no case is called {case!r}. `jaxexport goldens list` shows all.")
    found = next((g for g in reversed(generations) if writer in ("", g.manifest.writer.id)), None)
    if found is None:
        there = ", ".join(g.manifest.writer.id for g in generations)
        raise GoldenError(f"{store.root / case}: no writer is called {writer!r}. There are goldens by {there}.")
    return generations, found


def _writer(artifact: Artifact, calendar: Calendar, jaxlib: str | None) -> Writer:
    """Who wrote it: the one that was named, or else the one that the artifact tells."""
    from export_core.goldens import GoldenError, Writer
    from export_core.inspection.describe import find_writer
    from export_core.releases.dates import dates_of

    found = find_writer(artifact, dates_of(calendar))
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
