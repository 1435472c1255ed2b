"""The commands `jaxexport releases list|refresh`: the calendar with its windows as of a day, and its update."""

from pathlib import Path

import click

from export_core.base.untrusted import read_named
from export_core.cli import click_options
from export_core.cli.help import group
from export_core.cli.output import echo, echo_json


@group("docs/reference/policy.md", "jaxexport releases list", section="Days")
def releases() -> None:
    """Show or refresh the calendar of releases, whose build dates every window is counted from."""


@releases.command("docs/reference/policy.md", "jaxexport releases list --as-of 2026-10-25", name="list")
@click_options.policy_option
@click_options.as_of_option
@click.option(
    "--runtime",
    metavar="NAME",
    help="List the releases of another runtime, such as tensorflow, and what it promises; not with --json.",
)
@click_options.json_option("Print JSON (schema/releases.schema.json).")
def list_releases(policy_file: str | None, as_of: str | None, runtime: str | None, as_json: bool) -> None:
    """List every jaxlib that exists on a day, with its windows.

    Each line has the build date of a jaxlib, its jax, and the releases whose artifacts it is promised to run. Then come
    the last build date of a jaxlib that is promised to run its artifacts, and whether the newest one is promised to.
    """
    from export_core.releases.release_list import calendar_lines, dated_calendar, runtime_lines

    policy = click_options.policy_of(policy_file)
    known = policy.calendar()
    day = click_options.day_of(as_of, known)
    if runtime:
        if as_json:
            raise click.UsageError("--json cannot be combined with --runtime.")
        for line in runtime_lines(runtime, known.as_of(day)):
            echo(line)
        return
    calendar = dated_calendar(known, policy.window_lengths(), day)
    if as_json:
        echo_json(calendar)
    else:
        for line in calendar_lines(calendar):
            echo(line)


@releases.command("docs/reference/policy.md", "jaxexport releases refresh --measure")
@click_options.policy_option
@click.option(
    "--index",
    metavar="URL",
    help="The package index to read. [default: that of the variables of uv or pip, else the public one]",
)
@click.option(
    "--wheels", metavar="DIR", help="Read the wheels in this folder instead of an index, without network access."
)
@click.option(
    "--into",
    metavar="FILE",
    help="Update this copy of the shipped calendar. [default: export_releases.yaml beside the policy file, which adds "
    "to the calendar]",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Also install each new jaxlib and ask it for its StableHLO versions, which `jaxexport inspect` needs to say "
    "which releases can read an artifact.",
)
@click_options.dry_run_option("Only show which releases would be added.")
@click_options.quiet_option
def refresh(
    policy_file: str | None,
    index: str | None,
    wheels: str | None,
    into: str | None,
    measure: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Add newly published releases, each dated by the newest time stamp inside its wheels."""
    from functools import partial

    from export_core.base.text import plural
    from export_core.cli.steps import Steps
    from export_core.policy.load import releases_file
    from export_core.readers.environment import Sources, stablehlo_versions
    from export_core.releases import Calendar
    from export_core.releases.calendar import CalendarFile
    from export_core.releases.index import configured_index
    from export_core.releases.project_releases import HEADER, read_calendar, with_entries, write_releases
    from export_core.releases.refresh import calendar_update, published_in_folder, published_on_index

    if index and wheels:
        raise click.UsageError("--index cannot be combined with --wheels.")
    path = Path(into) if into else releases_file(Path(), policy_file)
    # With --into, the file is a whole calendar: only its own entries are known.
    of_project = None if into else click_options.policy_of(policy_file).calendar()
    present = read_calendar(path) if into or path.exists() else CalendarFile()
    known = of_project or Calendar(present.jaxlib, present.jax, present.requirements)
    with Steps(quiet=quiet) as steps:
        if wheels:
            published = published_in_folder(Path(wheels))
        else:
            steps(f"reading {(asked := index or configured_index())}")
            published = published_on_index(asked, known)
        sources = Sources(held=published.wheels) if wheels else Sources(indexes=(index,) if index else ())
        update = calendar_update(known, published, partial(stablehlo_versions, sources=sources) if measure else None)
    if not update.changes:
        newest = f"the newest is {known.newest()}, built {known.built(known.newest())}"
        echo(f"{published.source}: nothing new: {plural(len(known.versions()), 'jaxlib release')} known, {newest}")
        return
    echo(f"{published.source}: read {plural(len(published.wheels), 'wheel')}")
    for line in update.changes:
        echo(line)
    if dry_run:
        echo(f"would write {plural(len(update.changes), 'release')} into {path}")
        return
    # The text and not its data, so that comments and order of the file stay.
    text = read_named(path).decode() if into or path.exists() else HEADER
    expected = CalendarFile({**present.jaxlib, **update.jaxlib}, {**present.jax, **update.jax}, present.requirements)
    write_releases(path, with_entries(text, update.jaxlib, update.jax), expected)
    echo(f"wrote {plural(len(update.changes), 'release')} into {path}")
