"""The commands about one failing cell: `jaxexport explain`, why it fails; `bisect`, since when; `reduce`, by what."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.base.text import plural
from export_core.cli.click_options import console, declared, json_option, quiet_option, results_option, with_options
from export_core.cli.completion import CASE, GOLDEN, RELEASE
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.policy.run_options import ONE_CELL, RunOptions, Selection, read_options

if TYPE_CHECKING:
    from export_core.features.why.choice import Choice

_FOLDER = click.Path(path_type=Path)
_ONE_CELL = (
    click.argument("cell", metavar="[CELL]", type=GOLDEN, default=""),
    click.option("--case", metavar="CASE", type=CASE, default="", help="The case of the golden: its id, or a glob."),
    click.option("--writer", metavar="JAXLIB", type=RELEASE, default="", help="The release that wrote the golden."),
    click.option(
        "--reader",
        metavar="READER",
        type=RELEASE,
        default="",
        help="The release in which it fails: a jaxlib (0.9.2), one with its jax (0.11.2-jax0.12.0.1), or a jaxlib "
        "wheel file. [default: that of the one failing cell in the results]",
    ),
    click.option(
        "--platform",
        metavar="PLATFORM",
        default="",
        help="One of cpu, cuda, rocm or tpu; cuda:run or cuda:compile for one of the two. [default: as in the results, "
        "else cpu where the golden runs there]",
    ),
    results_option(
        "Folder of a finished run, also of another machine, that has the cell. [default: .jaxexport, where there is "
        "one]"
    ),
    *map(declared, ONE_CELL),
    declared("jobs", text="Number of cells at a time. [default: the number of cores]"),
)


def _about_one_cell(*, first_cause: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options that name one cell to a command, and passes it the chosen cell.

    If the options fit cells with several causes, `first_cause` chooses the first cause; without it, that is an error.
    """

    def add(about: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(about)
        def with_choice(results: str | None, **values: Any) -> None:
            from export_core.features.why.choice import Asked, choose

            words = {name: values.pop(name) for name in ("cell", "case", "writer", "reader", "platform")}
            given = {name: values.pop(name) for name in (*ONE_CELL, "jobs", "cache") if name in values}
            asked = Asked(
                **words,
                results=Path(results) if results else None,
                selection=read_options(Selection, given),
                run=read_options(RunOptions, {"cache": False, **given}),
                first_cause=first_cause,
            )
            about(choose(asked), **values)

        return with_options(*_ONE_CELL)(with_choice)

    return add


@contextmanager
def _interrupted_with(text: str) -> Iterator[None]:
    """Run the block; if a signal interrupts it, print `text`, and exit with the exit code of that signal."""
    from export_core.cli.signals import Interrupted, interruptible

    try:
        with interruptible():
            yield
    except Interrupted as stop:
        echo(text, err=True)
        raise click.exceptions.Exit(stop.exit_code) from None


@command(
    "docs/how-to/explain-a-failure.md",
    "jaxexport explain",
    "jaxexport explain --case tests.test_model.test_attention --writer 0.12.0.1 --reader 0.9.2 --bundle report",
    section="Why",
)
@declared("cache")
@_about_one_cell(first_cause=True)
@click.option(
    "--bundle",
    metavar="DIR",
    type=_FOLDER,
    help="Write a folder that shows the failure to somebody else: the artifact, a script that needs only jax to "
    "run it, and the text of an issue.",
)
@click.option(
    "--reduced",
    metavar="DIR",
    type=_FOLDER,
    help="The folder that `jaxexport reduce` wrote for this cell: its smaller program is shown, and is in the bundle "
    "in place of the golden's.",
)
@click.option(
    "--bisect/--no-bisect",
    "is_bisected",
    default=None,
    help="Run `jaxexport bisect` first, and say since which release it fails. [default: with --bundle]",
)
@click.option(
    "--reference/--no-reference",
    "is_referred",
    default=True,
    help="If numbers differ: also compute them in StableHLO's reference interpreter and in double precision, and say "
    "which side these agree with. [default: --reference]",
)
@json_option("Print JSON (schema/explanation.schema.json).")
@quiet_option
def explain(
    choice: Choice,
    bundle: Path | None,
    reduced: Path | None,
    is_bisected: bool | None,
    is_referred: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say why a cell fails, what shows it, what to do now, and what would have shown it earlier.

    CELL is a cell as findings print it. Without it, the example of the run's worst cause is explained, and commands for
    the other causes follow, those outside the window last. If one case is named, commands for its other failing goldens
    follow too. A cell that no stored run has is run here, and so is a reference for numbers.


    Exit codes: 0 it is explained, 2 bad input, also a cell that works.
    """
    from export_core.cli.steps import Steps
    from export_core.features.why.bisect.bisection import bisect as bisection_of
    from export_core.features.why.explain import bundle as bundling
    from export_core.features.why.explain import explanation as explaining
    from export_core.features.why.explain.who_is_right import references
    from export_core.features.why.reduce.reduction import ReductionFolder

    if bundle:
        bundling.check_new(bundle)  # before anything is run
    with Steps(quiet=quiet) as notify:
        result = explaining.result_of(choice, notify)
        left = ReductionFolder(reduced) if reduced else None
        with _interrupted_with("Interrupted: nothing was written. `--no-bisect` explains without running anything."):
            bisection = bisection_of(choice, notify) if is_bisected or (is_bisected is None and bundle) else None
        shown = references(choice, result, notify, ask=is_referred)
        explanation = explaining.explain(choice, result, left, bisection, shown)
        if bundle:
            program = bundling.bundled_program(choice, result, left, notify)
            written = bundling.write_bundle(bundle, choice, result, explanation, program)
    if as_json:
        echo_json(explanation)
    else:
        lines = explaining.explanation_lines(explanation, choice, console().width)
        echo("\n".join([*lines, *([f"\nBundle: {', '.join(map(str, written))}"] if bundle else [])]))


@command(
    "docs/how-to/explain-a-failure.md",
    "jaxexport bisect --case tests.test_model.test_attention --writer 0.9.2 --reader 0.11.0",
    "jaxexport bisect 'tests.test_model.test_attention/0.9.2-cpu in 0.11.0 on cpu' --good 0.10.2",
    section="Why",
)
@declared("cache")
@_about_one_cell()
@click.option(
    "--good",
    metavar="READER",
    type=RELEASE,
    default="",
    help="A release in which it works, older or younger than the reader. [default: the nearest that works in the "
    "results, else the golden's writer, else the newest]",
)
@click.option(
    "--by",
    type=click.Choice(["message", "verdict", "numbers"]),
    default="message",
    show_default=True,
    help="What counts as the same failure. message: the same verdict, stage, signal and kind of message; verdict: the "
    "same verdict; numbers: an error nearer to that of the reader than to that of the good release, in units of the "
    "writer's noise.",
)
@click.option("--all", "every", is_flag=True, help="Run every release in between, even if there are more than twelve.")
@json_option("Print JSON (schema/bisection.schema.json).")
@quiet_option
@click.pass_context
def bisect(context: click.Context, choice: Choice, good: str, by: str, every: bool, as_json: bool, quiet: bool) -> None:
    """Find the release in which a cell began to fail, and show what changed in it.

    A cell is one golden in one reader. CELL names it as reports print it: GOLDEN in READER on PLATFORM. It can also be
    the id of a cause, a golden, or a case. --case, --writer and --reader name it too. Without any of these, the failing
    cell of the results is taken, if all that fail there have one cause.

    The golden is run in the releases between that reader and a good one, in which it works (--good). They are ordered
    by build date. Up to twelve are all run; more are searched by halves. Where the good release is the younger one,
    the answer is the release that fixed the failure.

    After Ctrl-C, the same command runs only what is left, unless with --no-cache.

    Exit codes: 0 found, 1 the cell does not fail here, 2 bad input, 3 no answer. Ctrl-C ends it with 130.
    """
    from export_core.cli.steps import Steps
    from export_core.features.why.bisect.bisection import bisect as bisection_of
    from export_core.features.why.bisect.bisection_report import BisectBy, bisect_lines

    is_stored = choice.options.cache
    left = "runs only what is not in the cache" if is_stored else "begins anew, since --no-cache stores no outcome"
    message = f"Interrupted. The same command {left}."
    with _interrupted_with(message), Steps(quiet=quiet) as notify:
        bisection = bisection_of(choice, notify, good=good, by=BisectBy(by), every=every)
    if as_json:
        echo_json(bisection)
    else:
        for line in bisect_lines(bisection, console().width):
            echo(line)
    context.exit(bisection.exit_code)


@command(
    "docs/how-to/explain-a-failure.md",
    "jaxexport reduce --case tests.test_model.test_attention --reader 0.9.2 -o reduced",
    "jaxexport reduce --results from-ci --goldens golden --reader 0.9.2 -o reduced",
    section="Why",
)
@_about_one_cell()
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    type=_FOLDER,
    help="The folder for the reduced program. It always holds the smallest one so far.",
)
@click.option(
    "--good",
    metavar="JAXLIB",
    type=RELEASE,
    default="",
    help="The release to compare with: a smaller program has to work in it, or give other numbers. [default: the "
    "golden's writer]",
)
@click.option("--resume", is_flag=True, help="Continue the reduction in --output, which was interrupted or killed.")
@quiet_option
def reduce(choice: Choice, output: Path, good: str, resume: bool, quiet: bool) -> None:
    """Find the smallest program that still fails in the same way.

    CELL must be one that fails: it crashes, raises an error, does not end, or gives other numbers. Functions,
    operations, regions, dimensions and inputs are taken away as long as the rest fails with the same verdict, stage and
    kind of message, each tried in a cold process. If numbers differ, the first operation whose outputs differ is named,
    if one is found.

    Exit codes: 0 reduced, 2 bad input, 3 it does not fail here, or no environment could be built. Ctrl-C leaves the
    smallest program so far in DIR, with 130.
    """
    from collections import Counter

    from export_core.cli.steps import Steps
    from export_core.features.why.reduce.reduction import ReductionFolder, reduce_chosen

    message = f"Interrupted. The same command with --resume continues with what is in {output}."
    with _interrupted_with(message), Steps(quiet=quiet) as notify:
        reduction, steps, program = reduce_chosen(choice, good, ReductionFolder(output), resume=resume, notify=notify)
    last = steps[-1]
    call = f" (its call {reduction.call})" if reduction.call else ""
    echo(f"{reduction.cell}{call}: {reduction.failure}")
    echo(
        f"{plural(reduction.operations, 'operation')} → {last.operations}, {plural(last.tried, 'cell')} run in "
        f"{last.seconds:g} s"
    )
    names = [f"{name} × {count}" if count > 1 else name for name, count in Counter(program.names).items()]
    echo(f"  {', '.join(names) or 'none is left: the failure comes from outside the module'}")
    if reduction.units:
        apart = f"{reduction.units:.3g} units in the last place of the largest element"
        echo(f"its outputs differ from those of jaxlib {reduction.second} by {apart}")
    if first := reduction.first_diverging:
        ulp = "" if first.ulp is None else f", by up to {first.ulp} ulp"
        echo(f"first operation whose outputs differ (value {first.place} of {first.values}{ulp}):")
        echo(f"  {first.operation}")
    echo(f"written: {output}")
    echo(f"to report it: {choice.command('explain', '--reduced', str(output), '--bundle', 'DIR')}")
