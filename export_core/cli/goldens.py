"""The commands on goldens: list, show, verify, add, rename, prune. They never run the code in a golden."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from export_core.cli.options import as_of_option, day_of, goldens_option, policy_of, policy_option
from export_core.phrases import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from export_core.artifact import Artifact
    from export_core.goldens import Golden, GoldenStore, Writer
    from export_core.policy import Policy
    from export_core.releases import Calendar


class _Project(NamedTuple):
    store: GoldenStore
    policy: Policy


def _project_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --goldens and --policy to a command, and pass it the folder and the policy that they name."""

    @goldens_option
    @policy_option
    @functools.wraps(command)
    def with_project(goldens: str | None, policy_file: str | None, **options: object) -> None:
        from export_core.goldens import GoldenStore

        policy = policy_of(policy_file)
        command(_Project(GoldenStore(Path(goldens or policy.goldens)), policy), **options)

    return with_project


@click.group(name="goldens")
def goldens_group() -> None:
    """List, show, verify, add, rename and prune goldens."""


@goldens_group.command(name="list")
@_project_options
def list_goldens(project: _Project) -> None:
    """List every golden: case, writer, build date, platforms, custom calls."""
    goldens = project.store.goldens()
    for golden in goldens:
        manifest = golden.manifest
        calls = ", ".join(manifest.custom_calls) or "no custom calls"
        click.echo(f"{golden.id}  built {manifest.writer.built}  for {','.join(manifest.options.platforms)}  {calls}")
    click.echo(plural(len(goldens), "golden"))


@goldens_group.command()
@click.argument("name", metavar="CASE[/WRITER]")
@_project_options
@click.option("--mlir", is_flag=True, help="Only module.mlir: the module as its writer printed it.")
@click.option("--jaxpr", is_flag=True, help="Only jaxpr.txt: the jaxpr as its writer printed it.")
def show(project: _Project, name: str, mlir: bool, jaxpr: bool) -> None:
    """Show everything in one golden: manifest, arrays with their first values, files.

    CASE and WRITER are as `jaxexport goldens list` prints them; without WRITER the newest golden is shown.
    """
    from export_core.inspection.golden import golden_screen, side_file

    generations, golden = _find_golden(project.store, name)
    files = [file for is_wanted, file in ((mlir, "module.mlir"), (jaxpr, "jaxpr.txt")) if is_wanted]
    for file in files:
        click.echo(side_file(golden, file), nl=False)
    if not files:
        click.echo(golden_screen(golden, [other for other in generations if other is not golden]), nl=False)


@goldens_group.command()
@_project_options
def verify(project: _Project) -> None:
    """Compare every file with its SHA-256, read every artifact, and find files that belong to no golden.

    The build date of each writer must be that of the calendar.
    """
    from export_core.goldens import GoldenError
    from export_core.goldens.strays import strays, unlisted_files
    from export_core.goldens.verify import verify_goldens

    # Before anything is opened: the store itself completes an update that was killed between two renames.
    stray_files = list(strays(project.store.root))
    goldens = verify_goldens(project.store, project.policy.calendar(), project.policy.allow)
    stray_files += unlisted_files(project.store)
    if stray_files:
        raise GoldenError(
            "\n".join(map(str, stray_files))
            + f"\nThese files and folders belong to no golden: delete them, or move them elsewhere. "
            f"{plural(len(goldens), 'golden')}, every file as it was written."
        )
    click.echo(f"{plural(len(goldens), 'golden')}, every file as it was written")


@goldens_group.command(name="add")
@click.option("--artifact", "file", metavar="FILE", required=True, help="What Exported.serialize() returned.")
@click.option("--inputs", metavar="NPZ", required=True, help="The flat arguments, in order: np.savez(file, *leaves).")
@click.option(
    "--outputs", metavar="NPZ", required=True, help="The flat results that its writer computed, in the same form."
)
@click.option("--case", metavar="NAME", required=True, help="The name of the case, and of its folder.")
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote it. [default: read from the artifact]")
@click.option(
    "--register",
    metavar="PY",
    multiple=True,
    help="A Python file that readers import first, to register tree nodes, effects or custom-call targets. It is "
    "copied into the golden; may be given several times.",
)
@click.option(
    "--mesh",
    metavar="AXIS=SIZE,…",
    help="The mesh of an artifact for several devices: data=2,model=4. [default: read from the artifact]",
)
@click.option(
    "--in-specs",
    metavar="SPECS",
    help="How each flat argument is sharded, where the artifact does not say so: \"P('data'), None\". [default: "
    "replicated]",
)
@_project_options
def add_golden(
    project: _Project,
    file: str,
    inputs: str,
    outputs: str,
    case: str,
    writer: str | None,
    register: Sequence[str],
    mesh: str | None,
    in_specs: str | None,
) -> None:
    """Make a golden from an artifact whose source code is lost."""
    from export_core.artifact import read
    from export_core.environments.reader_packages import import_problems
    from export_core.goldens import GoldenError
    from export_core.goldens.adopt import adopt_artifact
    from export_core.goldens.adopted_mesh import parse_mesh, parse_specs
    from export_core.goldens.verify import check_read_whole

    artifact = read(file)
    check_read_whole(artifact, project.policy.allow)
    by = _writer_of(artifact, project.policy.calendar(), writer)
    manifest, files = adopt_artifact(
        artifact,
        Path(inputs),
        Path(outputs),
        case,
        by,
        [Path(name) for name in register],
        parse_mesh(mesh) if mesh else {},
        parse_specs(in_specs) if in_specs else (),
    )
    if problems := import_problems(files, project.policy.reader_packages):
        raise GoldenError("\n".join(problems))
    status = project.store.write(manifest, files)
    golden = next(golden for golden in project.store.generations(case) if golden.manifest.writer == manifest.writer)
    golden.verify()
    click.echo(f"{golden.folder}: {status}, by jaxlib {manifest.writer.jaxlib}; every file is as it was written")


@goldens_group.command()
@click.argument("old")
@click.argument("new")
@click.option("--test", metavar="TEST", help="The test that exports NEW, as in tests/test_a.py::test_f.")
@_project_options
def rename(project: _Project, old: str, new: str, test: str | None) -> None:
    """Give the goldens of case OLD the name NEW, after its test was renamed.

    Artifacts and arrays stay as they are. A rename that was interrupted is completed by the same command.
    """
    from export_core.goldens.rename import rename_case
    from export_core.judge.renamed import entries_that_name

    old, new = (name.rstrip("/").removeprefix(f"{project.store.root.as_posix()}/") for name in (old, new))
    renamed = rename_case(project.store, old, new, test)
    writers = [golden.manifest.writer.id for golden in renamed]
    click.echo(f"{old} is now {new}: {plural(len(renamed), 'golden')} ({', '.join(writers)})")
    if named := renamed[-1].manifest.test:
        click.echo(f"They belong to the test {named}.")
    else:
        click.echo("They belong to no test, since none follows from the new name: --test names it.")
    for entry in entries_that_name(project.policy, old, new, writers):
        click.echo(f"{entry} names {old}: change it too.", err=True)


@goldens_group.command()
@_project_options
@as_of_option
@click.option("--delete", "--yes", "delete", is_flag=True, help="Delete them; without it, they are only listed.")
@click.option("--quiet", "-q", is_flag=True, help="Do not list the goldens that are retained.")
def prune(project: _Project, as_of: str | None, delete: bool, quiet: bool) -> None:
    """Delete goldens that are no longer needed.

    A golden is retained by a window, a reader in use, a custom call that may not be deleted yet, a pin, or as the last
    of its case. The reasons are printed. Without --delete, nothing is deleted.
    """
    from export_core.goldens.verify import verify_goldens
    from export_core.judge.retention import retention_status, unmatched_pins
    from export_core.policy import PolicyError

    policy = project.policy
    day = day_of(as_of)
    calendar = policy.calendar()
    goldens = verify_goldens(project.store, calendar)  # a golden with a wrong date would be pruned too early
    decisions = retention_status(goldens, policy, calendar, day)
    # A pin that matches nothing may be misspelled, and what it should protect is about to be deleted.
    if problems := unmatched_pins(goldens, policy):
        if delete:
            raise PolicyError(f"{' '.join(problems)} Pin what should stay, or remove the pin: nothing was deleted.")
        for problem in problems:
            click.echo(f"warning: {problem}", err=True)
    for decision in decisions:
        if decision.reasons and not quiet:
            click.echo(f"retains  {decision.golden.id}  {'; '.join(decision.reasons)}")
    prunable = [decision.golden for decision in decisions if not decision.reasons]
    for golden in prunable:
        if delete:
            project.store.remove(golden)
        click.echo(f"{'deleted' if delete else 'prunes '}  {golden.id}  built {golden.manifest.writer.built}")
    counted = f"{len(prunable)} of {len(decisions)} goldens"
    if delete:
        click.echo(f"deleted {counted}, as of {day}")
    else:
        click.echo(f"would delete {counted}, as of {day}" + (": run it again with --delete" if prunable else ""))


def _find_golden(store: GoldenStore, name: str) -> tuple[list[Golden], Golden]:
    """The goldens of a case, and the named one of them: the newest, or that of a writer.

    The path of a golden's folder, as a shell completes it, is a name too. Raises `GoldenError` for an unknown case or
    writer.
    """
    from export_core.goldens import GoldenError

    # A case such as `..` must not lead out of the folder of goldens.
    case, _, writer = name.rstrip("/").removeprefix(f"{store.root.as_posix()}/").partition("/")
    generations = store.generations(case) if case not in ("", ".", "..") else []
    if not generations:
        raise GoldenError(f"{store.root}: no case is called {case!r}. `jaxexport goldens list` shows all.")
    for golden in reversed(generations):
        if writer in ("", golden.manifest.writer.id):
            return generations, golden
    known = ", ".join(golden.manifest.writer.id for golden in generations)
    raise GoldenError(f"{store.root / case}: no writer is called {writer!r}. There are goldens by {known}.")


def _writer_of(artifact: Artifact, calendar: Calendar, jaxlib: str | None) -> Writer:
    """The writer of an artifact: the jaxlib that was named, or else the one that can be read from its bytes.

    Raises `GoldenError` when neither is there.
    """
    from export_core.goldens import GoldenError, Writer
    from export_core.inspection.describe import find_writer
    from export_core.releases.entries import calendar_entries

    clues = find_writer(artifact, calendar_entries(calendar))
    jaxlib = jaxlib or clues["jaxlib"]
    if jaxlib is None:
        candidates = ", ".join(clues["candidates"]) or "none in the calendar"
        raise GoldenError(
            f"{artifact.name}: expected an artifact that names its writer, found one that several releases can have "
            f"written. Name the jaxlib with --writer; these fit: {candidates}."
        )
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return Writer(
        # An artifact that does not name its jax was most likely written by the jax with the jaxlib's number.
        jax=clues["jax"] or (jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax),
        jaxlib=jaxlib,
        built=calendar.built(jaxlib),
        python="unknown",
        platform="cpu" if "cpu" in platforms or not platforms else platforms[0],
    )
