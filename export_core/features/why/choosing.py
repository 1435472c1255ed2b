"""What `explain`, `bisect` and `reduce` share: the options that name the one cell, notes, and how Ctrl-C ends them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from export_core.cli.click_options import declared
from export_core.cli.output import echo
from export_core.policy.run_options import ONE_CELL, RunOptions, Selection, read_options

_OPTIONS = (
    click.argument("cell", metavar="[CELL]", default=""),
    click.option("--case", metavar="CASE", default="", help="The case of the golden: its id, or a glob."),
    click.option("--writer", metavar="JAXLIB", default="", help="The release that wrote the golden."),
    click.option(
        "--reader",
        metavar="READER",
        default="",
        help="The release in which it fails: a jaxlib (0.9.2), one with its jax (0.11.2-jax0.12.0.1), or a jaxlib "
        "wheel file. [default: that of the one failing cell in the results]",
    ),
    click.option(
        "--platform",
        metavar="PLATFORM",
        default="",
        help="cpu, cuda, rocm or tpu; cuda:run or cuda:compile for one of the two. [default: as in the results, else "
        "cpu where the golden runs there]",
    ),
    click.option(
        "--results",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Folder of a finished run, also of another machine, that has the cell. [default: .jaxexport, where there "
        "is one]",
    ),
    *map(declared, ONE_CELL),
    declared("jobs", text="Number of cells at a time. [default: the number of cores]"),
)


def choosing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name one cell to a command, and pass it the `Choice` that they make."""
    return declared("cache")(choosing_uncached(command))


def choosing_uncached(command: Callable[..., None]) -> Callable[..., None]:
    """`choosing_options` for a command that takes no outcomes of earlier runs."""

    @functools.wraps(command)
    def with_choice(results: Path | None, **values: Any) -> None:
        from export_core.features.why.choice import Asked, choose

        words = {name: values.pop(name) for name in ("cell", "case", "writer", "reader", "platform")}
        given = {name: values.pop(name) for name in (*ONE_CELL, "jobs", "cache") if name in values}
        run = read_options(RunOptions, {"cache": False, **given})
        command(choose(Asked(**words, results=results, selection=read_options(Selection, given), run=run)), **values)

    decorated: Callable[..., None] = with_choice
    # Reversed: as with decorators, the one applied last is shown first in --help.
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def notes(*, quiet: bool = False) -> Callable[[str], None]:
    """What is called with a line about what happens: it is shown on stderr, unless `quiet`."""

    def notify(text: str) -> None:
        if not quiet:
            echo(text, err=True)

    return notify


@contextmanager
def interrupted_with(text: str) -> Iterator[None]:
    """Ends the command at a signal with this text and the exit code of the signal."""
    from export_core.cli.signals import Interrupted, interruptible

    try:
        with interruptible():
            yield
    except Interrupted as stop:
        echo(text, err=True)
        raise click.exceptions.Exit(stop.exit_code) from None
