"""The command `jaxexport bisect`: since which release a cell fails, and whether jax or jaxlib is to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from export_core.cli.click_options import FiniteRange, console
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.features.why.choosing import choosing_options, interrupted_with, notes

if TYPE_CHECKING:
    from export_core.features.why.choice import Choice


@command(
    "docs/how-to/bisect.md",
    "jaxexport bisect --case tests.test_model.test_attention --writer 0.9.2 --reader 0.11.0",
    "jaxexport bisect 'tests.test_model.test_attention/0.9.2-cpu in 0.11.0 on cpu' --good 0.10.2",
    section="Why",
)
@choosing_options
@click.option(
    "--good",
    metavar="READER",
    default="",
    help="A release in which it works, older or younger than the reader. [default: the nearest that works in the "
    "results, else the golden's writer, else the newest]",
)
@click.option(
    "--by",
    type=click.Choice(["message", "verdict", "numbers", "cost"]),
    default="message",
    show_default=True,
    help="Which releases count as alike: those with the same verdict, stage, signal and kind of message; with the same "
    "verdict; with errors, in units of the writer's noise, or a cost on the same side of a threshold.",
)
@click.option(
    "--threshold",
    metavar="UNITS",
    type=FiniteRange(min=0),
    help="With --by numbers: an error of more units of noise is bad. [default: the middle between both ends]",
)
@click.option(
    "--figure", metavar="NAME", default="temp_bytes", show_default=True, help="With --by cost: temp_bytes, flops, …"
)
@click.option(
    "--factor",
    metavar="F",
    type=FiniteRange(min=0),
    help="With --by cost: more than so many times the figure of the good release is bad. [default: 1.1]",
)
@click.option(
    "--all", "every", is_flag=True, help="Run every release of the window, also where there are more than twelve."
)
@click.option(
    "--pairs/--no-pairs",
    default=True,
    show_default=True,
    help="Also run the two mixed pairs at the edge, jax of one release on jaxlib of the other.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue a bisection that was interrupted or killed: what this command has run here before is not run again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/bisection.schema.json).")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def bisect(
    context: click.Context,
    choice: Choice,
    good: str,
    by: str,
    threshold: float | None,
    figure: str,
    factor: float | None,
    every: bool,
    pairs: bool,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say since which release a cell fails, and whether jax or jaxlib brought that.

    CELL is a cell as reports print it (GOLDEN in READER on PLATFORM), the id of a cause, a golden, or a case. The
    releases between the reader and a good release are run by build date: all of them where there are at most twelve,
    else by binary search. The good release may be younger: then it is said since when the failure is gone.

    Exit codes: 0 found, 1 the reader does not fail here, 2 bad input, 3 no answer. Ctrl-C ends it with 130.
    """
    from export_core.features.why.bisect.bisection import Wanted
    from export_core.features.why.bisect.bisection import bisect as bisection_of
    from export_core.features.why.bisect.criterion import BisectBy, Measure
    from export_core.features.why.bisect.report import bisect_lines

    wanted = Wanted(good, Measure(BisectBy(by), _figure(figure, by), _least(by, threshold, factor)), every, pairs)
    with interrupted_with("Interrupted. The same command with --resume runs the releases that are left."):
        found = bisection_of(choice, wanted, notes(quiet=quiet), resume=resume)
    if as_json:
        echo_json(found)
    else:
        for line in bisect_lines(found, console().width):
            echo(line)
    context.exit(found.exit_code)


def _least(by: str, threshold: float | None, factor: float | None) -> float | None:
    """The size from which on a release is bad. Raises `click.UsageError` for an option that --by has no use for."""
    for option, value, kind in (("--threshold", threshold, "numbers"), ("--factor", factor, "cost")):
        if value is not None and by != kind:
            raise click.UsageError(f"{option} is for --by {kind}, found --by {by}.")
    return threshold if by == "numbers" else factor


def _figure(figure: str, by: str) -> str:
    from export_core.judge.cost import FIGURES

    if figure not in FIGURES:
        raise click.UsageError(f"--figure: expected one of {', '.join(FIGURES)}, found {figure!r}.")
    if figure != "temp_bytes" and by != "cost":
        raise click.UsageError(f"--figure is for --by cost, found --by {by}.")
    return figure
