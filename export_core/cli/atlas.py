"""The command `jaxexport atlas`: how well each release keeps the promise, and how long its artifacts are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.help import HelpfulCommand
from export_core.cli.options import (
    as_of_option,
    comma_separated,
    console,
    day_of,
    goldens_option,
    index_option,
    policy_of,
    policy_option,
    wheels_option,
)
from export_core.cli.output import echo, echo_json

if TYPE_CHECKING:
    import datetime
    from collections.abc import Sequence

    from export_core.judge import Result

SCORED = "scored"
"""The folder, inside that of results, for those of `--release`."""
_RUN_ONLY = ("goldens", "policy_file", "as_of", "platforms", "wheels", "index")


@click.command(cls=HelpfulCommand)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--release",
    metavar="READER",
    help="Replay the goldens in this release first, and in those before it, where they are promised: a jaxlib wheel, "
    "or a version. Results go to DIR, else to .jaxexport/scored; outcomes that are known are not run again.",
)
@click.option(
    "--before",
    metavar="N",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="With --release: how many releases before it are replayed too.",
)
@click.option(
    "--platforms", metavar="P,P…", help="With --release: platforms, as `jaxexport matrix` takes them. [default: cpu]"
)
@goldens_option
@policy_option
@as_of_option
@wheels_option
@index_option
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/atlas.schema.json).")
@click.option("--quiet", is_flag=True, help="With --release: show no progress.")
def atlas(
    folder: Path | None, release: str | None, before: int, markdown: bool, as_json: bool, quiet: bool, **values: Any
) -> None:
    """Show how well each release keeps the promise, and how long later ones run its goldens.

    It is counted from the finished matrix run in DIR. Without DIR, it is the run in .jaxexport.

    A score is the share of promised cells that work. Listed failures count as failures, and nothing is judged: exit
    code 0. With --release, 3 where a cell could not be run. Ctrl-C ends it with 130.
    """
    from export_core.judge.atlas import atlas_of
    from export_core.matrix import Verdict
    from export_core.report.terminal.atlas_text import atlas_lines, atlas_markdown
    from export_core.run_options import RESULTS
    from export_core.runs.results import read_run

    # The usual run stays as it is: a score is no matrix.
    folder = folder or (RESULTS / SCORED if release else RESULTS)
    if release:
        results, day = _replayed(folder, release, before, values, quiet=quiet)
    else:
        if given := [name for name in _RUN_ONLY if values[name]]:
            option = {"policy_file": "policy", "as_of": "as-of"}.get(given[0], given[0])
            raise click.UsageError(f"--{option} is for --release; the run in {folder} has its own.")
        recorded = read_run(folder)
        results, day = recorded.results, recorded.summary.as_of
    found = atlas_of(results, day)
    if as_json:
        echo_json(found)
    else:
        for line in atlas_markdown(found) if markdown else atlas_lines(found):
            echo(line)
    if release and any(result.verdict is Verdict.NOT_RUN for result in results):
        raise click.exceptions.Exit(3)


def _replayed(
    folder: Path, release: str, before: int, values: dict[str, Any], *, quiet: bool
) -> tuple[Sequence[Result], datetime.date]:
    """The results of the promised cells in a release and those before it, and the day."""
    from export_core.cli.matrix import Follower
    from export_core.cli.signals import Interrupted, interruptible
    from export_core.matrix import Selection
    from export_core.matrix.selection import PROMISED, with_predecessors
    from export_core.run_options import RunOptions
    from export_core.session import run_matrix

    policy = policy_of(values["policy_file"])
    day = day_of(values["as_of"])
    asked = Selection(
        readers=release,
        platforms=comma_separated(values["platforms"]) or ("cpu",),
        wheels=tuple(values["wheels"]),
        indexes=tuple(values["index"]),
        only=PROMISED,
    )
    selection = with_predecessors(asked, policy.calendar(), day, before)
    goldens = Path(values["goldens"]) if values["goldens"] else None
    options = RunOptions(results=folder, goldens=goldens, policy_file=values["policy_file"], as_of=day)
    follower = Follower(console(stderr=True), options, quiet=quiet)
    try:
        with interruptible(), follower:
            run = run_matrix(policy, selection, options, observer=follower.observer())
    except Interrupted as stop:
        echo(f"Interrupted: {follower.state()}", err=True)
        raise click.exceptions.Exit(stop.exit_code) from None
    return run.results, day
