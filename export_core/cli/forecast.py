"""The command `jaxexport forecast`: what will happen to the goldens of this project, day by day."""

from __future__ import annotations

from pathlib import Path

import click

from export_core.cli.options import (
    as_of_option,
    comma_separated,
    day_of,
    goldens_option,
    policy_of,
    policy_option,
    write_output,
)

HALF_A_YEAR = 183


@click.command()
@goldens_option
@policy_option
@as_of_option
@click.option(
    "--days", type=click.IntRange(0, 3660), default=HALF_A_YEAR, show_default=True, help="How many days to look ahead."
)
@click.option(
    "--deployed",
    metavar="V,V…",
    default="",
    help="jaxlib releases in use as readers, besides those of the policy: 0.11.0.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON (schema/forecast.schema.json).")
@click.option("--markdown", is_flag=True, help="As a section of Markdown.")
@click.option("--ics", metavar="FILE", help="Also write the days as a calendar file (iCalendar).")
def forecast(
    goldens: str | None,
    policy_file: str | None,
    as_of: str | None,
    days: int,
    deployed: str,
    as_json: bool,
    markdown: bool,
    ics: str | None,
) -> None:
    """When goldens leave the window, what a release of each day would have to run, and which deadlines are coming."""
    import msgspec

    from export_core.goldens import GoldenError, GoldenStore
    from export_core.judge.forecast import forecast as look_ahead
    from export_core.report.forecast_ical import calendar_file
    from export_core.report.forecast_text import forecast_lines, forecast_markdown

    if as_json and markdown:
        raise click.UsageError("--json and --markdown: expected one of them.")
    policy = policy_of(policy_file)
    store = GoldenStore(Path(goldens or policy.goldens))
    stored = store.goldens()
    if not stored:
        raise GoldenError(f"{store.root}: expected goldens, found none. Name their folder with --goldens.")
    ahead = look_ahead(stored, policy, policy.calendar(), day_of(as_of), days, comma_separated(deployed))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(ahead), indent=2))
    elif markdown:
        click.echo(forecast_markdown(ahead), nl=False)
    else:
        for line in forecast_lines(ahead):
            click.echo(line)
    if ics:
        write_output(ics, calendar_file(ahead))
