"""`jaxexport reduce`: the smallest program that still fails in the same way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.base.phrases import plural
from export_core.cli.help import command
from export_core.cli.output import echo
from export_core.features.why.choosing import choosing_uncached, interrupted_with, notes

if TYPE_CHECKING:
    from export_core.features.why.choice import Choice
    from export_core.features.why.reduce.reduction import Reduced


@command(
    "docs/how-to/reduce.md",
    "jaxexport reduce --case tests.test_model.test_attention --reader 0.9.2 -o reduced",
    "jaxexport reduce --results from-ci --goldens golden --reader 0.9.2 -o reduced",
    section="Why",
)
@choosing_uncached
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder for the reduced program. It always holds the smallest one so far.",
)
@click.option(
    "--good",
    metavar="JAXLIB",
    default="",
    help="A release that says what is right: a smaller program has to work in it, or give other numbers. [default: the "
    "golden's writer]",
)
@click.option("--resume", is_flag=True, help="Continue the reduction in --output, which was interrupted or killed.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def reduce(choice: Choice, output: Path, good: str, resume: bool, quiet: bool) -> None:
    """Find the smallest program that still fails in the same way.

    CELL fails in a reader: it crashes, raises an error, does not end, or gives other numbers. Functions, operations,
    regions, dimensions and inputs are taken away as long as the rest fails with the same verdict, stage and kind of
    message, each tried in a cold process. Of numbers, the first operation whose outputs differ is named.

    Exit codes: 0 reduced, 2 bad input, 3 it does not fail here. Ctrl-C leaves the smallest program so far in DIR, with
    exit code 130.
    """
    from export_core.features.why.reduce.folder import ReductionFolder
    from export_core.features.why.reduce.reduction import reduce_chosen

    with interrupted_with(f"Interrupted. The same command with --resume continues with what is in {output}."):
        reduced = reduce_chosen(choice, good, ReductionFolder(output), resume=resume, notify=notes(quiet=quiet))
    _show(reduced, output)
    echo(f"to report it: {choice.command('explain', '--reduced', str(output), '--bundle', 'DIR')}")


def _show(reduced: Reduced, output: Path) -> None:
    reduction, last = reduced.reduction, reduced.steps[-1]
    call = f" (its call {reduction.call})" if reduction.call else ""
    echo(f"{reduction.cell}{call}: {reduction.failure}")
    echo(
        f"{plural(reduction.operations, 'operation')} → {last.operations}, {plural(last.tried, 'cell')} run in "
        f"{last.seconds:g} s"
    )
    counts = Counter(reduced.program.names)
    names = [f"{name} × {count}" if count > 1 else name for name, count in counts.items()]
    echo(f"  {', '.join(names) or 'none is left: not the module fails, but what is around it'}")
    if reduction.units:
        echo(
            f"its outputs and those of jaxlib {reduction.second} are {reduction.units:.3g} units in the last place of "
            "the largest element apart"
        )
    if first := reduction.first_diverging:
        ulp = "" if first.ulp is None else f", by up to {first.ulp} ulp"
        echo(f"first operation whose outputs differ (value {first.place} of {first.values}{ulp}):")
        echo(f"  {first.operation}")
    if reduced.no_source:
        echo(f"no source: {reduced.no_source}")
    echo(f"written: {output}")
