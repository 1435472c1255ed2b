"""The command `jaxexport forecast`: what will happen to the goldens of this project, day by day."""

import click

from export_core.base.text import did_you_mean
from export_core.cli import click_options
from export_core.cli.completion import RELEASES
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.policy.run_options import comma_separated

HALF_A_YEAR = 183


@command("docs/how-to/look-ahead.md", "jaxexport forecast --deployed serving,0.11.0 --days 90", section="Days")
@click_options.project_options
@click_options.as_of_option
@click.option(
    "--days",
    metavar="DAYS",
    type=click.IntRange(0, 3660),
    default=HALF_A_YEAR,
    show_default=True,
    help="How many days to look ahead.",
)
@click.option(
    "--deployed",
    metavar="NAME,…",
    type=RELEASES,
    default="",
    help="Readers that are in use, beside the deployment targets of the policy (`deployed`) that are in force: "
    "jaxlib releases, such as 0.11.0, releases of another runtime, such as tensorflow==2.21.0, and deployment targets "
    "by their name.",
)
@click_options.json_option("Print JSON (schema/forecast.schema.json).")
def forecast(project: click_options.Project, as_of: str | None, days: int, deployed: str, as_json: bool) -> None:
    """Show when goldens leave the window, what a jaxlib built on each day must run, and which deadlines are coming."""
    from export_core.features.forecast.forecast import forecast as look_ahead
    from export_core.features.forecast.forecast import forecast_lines
    from export_core.goldens import GoldenError, no_goldens
    from export_core.goldens.verify import check_claims
    from export_core.report.wording import with_asked

    store, policy, names = project.store, project.policy, comma_separated(deployed)
    targets = [target.name for target in policy.deployed]
    for name in names:
        # No version of jaxlib begins with a letter.
        if name not in targets and name[0].isalpha() and "==" not in name:
            raise click.UsageError(
                f"--deployed: expected a deployment target of the policy ({', '.join(targets) or 'it has none'}) or a "
                f"release such as 0.11.0 or tensorflow==2.21.0, found {name!r}.{did_you_mean(name, targets)}"
            )
    stored = store.goldens_so_far()
    # Without goldens a forecast would be empty: more likely the folder is the wrong one.
    if not stored:
        raise GoldenError(no_goldens(store.root, "Name their folder with --goldens."))
    calendar = policy.calendar()
    check_claims(stored, calendar)
    ahead = look_ahead(stored, policy, calendar, click_options.day_of(as_of, calendar), days, names)
    if as_json:
        echo_json(ahead)
    else:
        named = {"--goldens": project.goldens, "--policy": project.policy_file, "--as-of": as_of}
        asked = {option: value for option, value in named.items() if value}
        for line in forecast_lines(ahead):
            echo(with_asked(line, asked))
