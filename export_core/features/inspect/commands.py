"""The commands inspect, audit, diff, goldens show and goldens coverage. They never run what is in a file."""

import csv
import functools
import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from export_core.base.errors import PREFIX
from export_core.base.escaping import printable
from export_core.base.phrases import plural
from export_core.cli.click_options import PATH, Project, day_of, policy_option, project_options
from export_core.cli.goldens import find_golden
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json

SAME, DIFFERENT = 0, 1
FINE, NOT_FINE, BAD_INPUT, UNKNOWN = 0, 1, 2, 3
_FORMULA = ("=", "+", "-", "@")  # What a spreadsheet takes for the start of a formula.


jobs_option = click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Processes that read files. [default: one for each core]"
)


@command(
    "docs/reference/artifacts.md",
    "jaxexport inspect attention.jaxexport",
    "jaxexport inspect attention.jaxexport --reader 0.11.0",
    "jaxexport inspect attention.jaxexport --reader tensorflow==2.21.0",
    "jaxexport inspect exported --csv",
    section="Artifacts",
)
@click.argument("paths", metavar="FILE|DIR…", type=PATH, nargs=-1, required=True)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print everything as one JSON object (schema/inspect.schema.json). Of a folder: an object a line for each "
    "file (schema/inventory.schema.json).",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print a row for each file.")
@click.option("--mlir", is_flag=True, help="Print the module as text; needs jaxlib.")
@click.option(
    "--reader",
    metavar="READER",
    help="What is to load it: a jaxlib, or releases of another runtime, such as tensorflow==2.21.0, 'iree>=3.9' or "
    "litert for its newest. The exit code says whether all do.",
)
@click.option(
    "--as-of",
    metavar="DATE",
    help="Of a folder: count the days from this day, and ignore later releases. [default: today]",
)
@jobs_option
@policy_option
@click.pass_context
def inspect(context: click.Context, /, paths: Sequence[str], mlir: bool, reader: str | None, **options: Any) -> None:
    """Show what is in an artifact, which release wrote it, and which releases can load it; or what is in a folder.

    FILE is what Exported.serialize() returned, or a StableHLO portable artifact. Nothing in it is run. The policy's
    releases, windows and allowed calls are used.

    Of a DIR, or of several files: an inventory of all artifacts below it, of any number.

    Exit codes with --reader: 0 that release loads it and every custom call is promised or allowed (another runtime
    than jaxlib: it makes none that only jax registers), 1 not, 2 the file cannot be read, 3 whether it loads is not
    known. Without: 0, or 2 where a file cannot be read.
    """
    file = paths[0] if len(paths) == 1 and not os.path.isdir(paths[0]) else None  # noqa: PTH112 - it is shown as typed
    if (mlir or reader) and (file is None or options["as_csv"] or (mlir and reader)):
        raise click.UsageError("--mlir and --reader take one file each, without the other and without --csv.")
    if options["as_csv"] and options["as_json"]:
        raise click.UsageError("--json cannot be combined with --csv.")
    if file is not None and not options["as_csv"] and (options["as_of"] or options["jobs"]):
        raise click.UsageError("--as-of and --jobs are for a folder, several files, or --csv.")
    if file is None or options["as_csv"]:
        context.exit(_show_inventory(paths, **options))
    if mlir:
        from export_core.artifact import read
        from export_core.artifact.module_text import module_text

        echo(module_text(read(file)))
        return
    from export_core.features.inspect.screen import inspect_text

    text, ok = inspect_text(file, as_json=options["as_json"], reader=reader, policy_file=options["policy_file"])
    echo(text, nl=False)
    context.exit({True: FINE, False: NOT_FINE, None: UNKNOWN}[ok])


def _show_inventory(
    paths: Sequence[str], *, as_json: bool, as_csv: bool, jobs: int | None, as_of: str | None, policy_file: str | None
) -> int:
    """Print the inventory of files and folders; return the exit code.

    Raises:
        ExportCompatError: there is no artifact, or the policy cannot be used.
    """
    from export_core.artifact import as_dict
    from export_core.artifact.archive import read_archive
    from export_core.features.inspect.inventory import Inventory, InventoryRow, inventory_row
    from export_core.policy.terms import terms_here

    day = day_of(as_of)
    terms = terms_here(policy_file)
    terms = terms._replace(releases=tuple(release for release in terms.releases if release.built <= str(day)))
    inventory = Inventory(day, terms.releases[-1].jaxlib if terms.releases else "")
    if as_csv:
        echo(_csv_line(InventoryRow._fields), nl=False)
    for file in read_archive(functools.partial(inventory_row, terms), paths, inventory.left_out, jobs):
        row = file.result or InventoryRow(file.path, file.error)
        inventory.add(row)
        if as_json:
            echo_json(as_dict(row), indent=-1)
        elif as_csv:
            echo(_csv_line(row), nl=False)
        if row.error is not None:
            echo(f"{PREFIX}{row.file}: {row.error}", err=True)
    for line in inventory.lines():
        echo(line, err=as_json or as_csv)
    return BAD_INPUT if inventory.unread else FINE


def _csv_line(values: Iterable[Any]) -> str:
    cells = []
    for value in values:
        text = " ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        text = printable(text)
        cells.append(f"'{text}" if text.startswith(_FORMULA) else text)  # or a spreadsheet would run it
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


@command(
    "docs/reference/artifacts.md",
    "jaxexport audit --reader 0.9.2 exported/a.jaxexport exported/b.jaxexport",
    "jaxexport audit exported",
    section="Artifacts",
)
@click.argument("paths", metavar="FILE|DIR…", type=PATH, nargs=-1, required=True)
@policy_option
@click.option("--writer", metavar="JAXLIB", help="The jaxlib that wrote the files. [default: read from each file]")
@click.option("--reader", metavar="JAXLIB", help="A jaxlib that must guarantee the calls as well. [default: none]")
@jobs_option
@click.pass_context
def audit(
    context: click.Context,
    paths: Sequence[str],
    policy_file: str | None,
    writer: str | None,
    reader: str | None,
    jobs: int | None,
) -> None:
    """Check every custom call against what its writer guaranteed and the policy allows.

    The parameters of `main` are checked against the artifact's envelope and its calling convention. Of a DIR, all
    artifacts below it are audited, and those with problems are shown.

    Exit codes: 0 no problems found, 1 a call is not guaranteed or `main` does not match the envelope, 2 a file cannot
    be read.
    """
    from export_core.artifact.archive import read_archive
    from export_core.features.inspect.screen import audit_text
    from export_core.policy import find_policy
    from export_core.policy.terms import terms_of

    policy = find_policy(Path(), policy_file)
    calendar = policy.calendar()
    for version in filter(None, (writer, reader)):
        calendar.built(version)  # a name that is no release is bad input
    below = any(map(os.path.isdir, paths))
    ended: Counter[bool | None] = Counter()
    left_out: Counter[str] = Counter()
    for file in read_archive(functools.partial(audit_text, terms_of(policy), writer, reader), paths, left_out, jobs):
        if file.result is None:
            ended[None] += 1
            echo(f"{PREFIX}{file.path}: {file.error}", err=True)  # the other files are still audited
            continue
        text, is_fine = file.result
        ended[is_fine] += 1
        if not is_fine or not below:
            echo(text, nl=False)
    if below:
        others = plural(left_out.total(), "other file")
        echo(
            f"{plural(ended.total(), 'artifact')}: {ended[True]:,} ok, {ended[False]:,} with problems, "
            f"{ended[None]:,} not read; {others} left out"
        )
    context.exit(BAD_INPUT if ended[None] else NOT_FINE if ended[False] else FINE)


@command("docs/reference/artifacts.md", "jaxexport diff old.jaxexport new.jaxexport", section="Artifacts")
@click.argument("old", metavar="A", type=PATH)
@click.argument("new", metavar="B", type=PATH)
@policy_option
@click.pass_context
def diff(context: click.Context, old: str, new: str, policy_file: str | None) -> None:
    """Show what changed from one artifact to another, with the releases and allowed calls of the policy.

    Exit codes: 0 the same bytes, 1 different, 2 a file cannot be read.
    """
    from export_core.artifact import read
    from export_core.artifact.export_changes import operations_that_differ
    from export_core.features.inspect.facts import describe
    from export_core.features.inspect.screen import differences
    from export_core.policy.terms import terms_here

    before, after = read(old), read(new)
    if before.data == after.data:
        echo(f"{old} and {new} are the same, byte for byte")
        context.exit(SAME)
    # Only now: about files with the same bytes nothing else has to be known.
    terms = terms_here(policy_file)
    facts = (describe(before, terms, whole=False), describe(after, terms, whole=False))
    echo(differences(*facts, operations_that_differ(before, after)), nl=False)
    context.exit(DIFFERENT)


@command("docs/reference/artifacts.md", "jaxexport goldens show tests.test_model.test_attention/0.9.2-cpu")
@click.argument("name", metavar="CASE[/WRITER]")
@project_options
@click.option("--mlir", is_flag=True, help="Only module.mlir: the module as its writer printed it.")
@click.option("--jaxpr", is_flag=True, help="Only jaxpr.txt: the jaxpr as its writer printed it.")
def show(project: Project, name: str, mlir: bool, jaxpr: bool) -> None:
    """Show everything in one golden: manifest, arrays with their first values, files.

    CASE and WRITER are as `jaxexport goldens list` prints them; without WRITER the newest golden is shown.
    """
    from export_core.features.inspect.golden import golden_screen, side_file

    generations, golden = find_golden(project.store, name)
    files = [file for is_wanted, file in ((mlir, "module.mlir"), (jaxpr, "jaxpr.txt")) if is_wanted]
    for file in files:
        echo(side_file(golden, file), nl=False)
    if not files:
        others = [other for other in generations if other is not golden]
        echo(golden_screen(golden, others, project.policy), nl=False)


@command("docs/evidence/coverage.md", "jaxexport goldens coverage")
@project_options
def coverage(project: Project) -> None:
    """Count what the goldens cover: custom-call targets, primitives, dtypes, effects, features and formats.

    A number counts cases: all of them, then those exported for each platform. Writers are jaxlib releases.
    """
    from export_core.features.inspect.coverage import coverage, coverage_text
    from export_core.goldens import GoldenError

    goldens = project.store.goldens()
    if not goldens:  # a table of nothing would look like goldens that cover nothing
        raise GoldenError(f"{project.store.root}: expected goldens, found none. Name their folder with --goldens.")
    echo(coverage_text(coverage(goldens)), nl=False)
