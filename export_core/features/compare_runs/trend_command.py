"""The command `jaxexport trend`: what moves from release to release in the results of a run."""

from pathlib import Path

import click

from export_core.cli.click_options import declared
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.run.errors import RunError


@command("docs/reference/reports.md", "jaxexport trend --numbers --cases '*.test_fft'", section="Matrix")
@click.argument("folder", metavar="[DIR]", default=".jaxexport", type=click.Path(path_type=Path))
@click.option("--numbers", is_flag=True, help="How outputs move, in units of the writer's noise. [default: everything]")
@click.option("--cost", is_flag=True, help="Where memory, work and run times change, the largest step first.")
@declared("cases")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/trend.schema.json).")
def trend(folder: Path, numbers: bool, cost: bool, cases: tuple[str, ...], as_json: bool) -> None:
    """Show what moves from release to release, by build date, in a finished matrix run.

    Without DIR, it is the run in .jaxexport.

    A change of bits is shown also where it is far inside the tolerance, and a change of cost whatever the budgets are:
    nothing is judged. Exit code 0.
    """
    from export_core.features.compare_runs.trend import Trend, cost_lines, cost_steps, number_drift, trend_lines
    from export_core.policy.entries import matches
    from export_core.run.results import read_run

    results = read_run(folder).results
    names = {result.case for result in results}
    for pattern in cases:
        if not any(matches(name, pattern) for name in names):
            raise RunError(f"--cases: no case of the run in {folder} is called or matches {pattern!r}.")
    if cases:
        results = [result for result in results if any(matches(result.case, pattern) for pattern in cases)]
    everything = numbers == cost
    shown = Trend(
        number_drift(results) if numbers or everything else (), cost_steps(results) if cost or everything else None
    )
    if as_json:
        echo_json(shown)
        return
    lines = [*trend_lines(shown)] if numbers or everything else []
    lines += [""] if everything else []
    lines += cost_lines(shown.cost) if shown.cost else []
    for line in lines:
        echo(line)
