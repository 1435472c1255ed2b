"""The commands on the calendar: list it with the windows as of a day, and bring it up to date."""

from __future__ import annotations

from pathlib import Path

import click

from export_core.cli.options import as_of_option, day_of, policy_of, policy_option


@click.group()
def releases() -> None:
    """The calendar that the windows run on."""


@releases.command(name="list")
@policy_option
@as_of_option
@click.option("--json", "as_json", is_flag=True, help="As JSON (schema/releases.schema.json).")
def list_releases(policy_file: str | None, as_of: str | None, as_json: bool) -> None:
    """Every jaxlib that exists on a day: its build date, its jax, whose artifacts it is promised to run, and who runs its own."""
    import msgspec

    from export_core.releases.dated import calendar_lines, dated_calendar

    policy = policy_of(policy_file)
    told = dated_calendar(policy.calendar(), policy.window_lengths(), day_of(as_of))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    else:
        for line in calendar_lines(told):
            click.echo(line)


@releases.command()
@policy_option
@click.option("--index", metavar="URL", help="The package index to ask. [default: the one that uv installs from here]")
@click.option(
    "--wheels", metavar="DIR", help="Read the wheels of this folder in the place of an index: nothing is fetched."
)
@click.option(
    "--into",
    metavar="FILE",
    help="Renew this calendar, a copy of the shipped one. [default: export_releases.yaml beside the policy file, which adds to it]",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Also install each new jaxlib, and ask it for its StableHLO versions, which `jaxexport inspect` counts with.",
)
def refresh(policy_file: str | None, index: str | None, wheels: str | None, into: str | None, measure: bool) -> None:
    """Add the releases that were published since, dated by the newest time stamp inside their wheels."""
    from functools import partial

    from export_core.environments.environment import Sources
    from export_core.environments.formats import measure as ask
    from export_core.phrases import plural
    from export_core.policy import releases_file
    from export_core.releases import Calendar
    from export_core.releases.calendar import CalendarFile
    from export_core.releases.index import configured_index
    from export_core.releases.project_releases import HEADER, read_releases, renewed, write_releases
    from export_core.releases.refresh import refreshed, seen_in_folder, seen_on_index

    if index and wheels:
        raise click.UsageError("--index and --wheels: expected one of them.")
    path = Path(into) if into else releases_file(Path(), policy_file)
    kept = read_releases(path) if into or path.exists() else CalendarFile()
    known = Calendar(kept.jaxlib, kept.jax, kept.requirements) if into else policy_of(policy_file).calendar()
    seen = seen_in_folder(Path(wheels)) if wheels else seen_on_index(index or configured_index(Path()), known)
    sources = Sources(held=seen.wheels) if wheels else Sources(indexes=(index,) if index else ())
    found = refreshed(known, seen, partial(ask, sources=sources) if measure else None)
    read = f"read {plural(len(seen.wheels), 'wheel')}"
    click.echo(f"{seen.source}: {read}{f', {seen.fetched:,} of {seen.size:,} bytes' if seen.size else ''}")
    for line in found.said:
        click.echo(line)
    if not found.said:
        click.echo(f"nothing new: the newest jaxlib is {known.newest()}, built {known.built(known.newest())}")
        return
    text = path.read_text(encoding="utf-8") if into or path.exists() else HEADER
    expected = CalendarFile({**kept.jaxlib, **found.jaxlib}, {**kept.jax, **found.jax}, kept.requirements)
    write_releases(path, renewed(text, found.jaxlib, found.jax), expected)
    click.echo(f"wrote {plural(len(found.said), 'release')} into {path}")
