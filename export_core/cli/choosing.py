"""The options by which `explain`, `bisect` and `reduce` are told the one cell that they are about."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.options import (
    as_of_option,
    cache_option,
    day_of,
    goldens_option,
    index_option,
    memory_option,
    policy_of,
    policy_option,
    target_option,
    timeout_option,
    wheels_option,
)

if TYPE_CHECKING:
    from export_core.matrix import Limits
    from export_core.why.choice import Choice

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
    goldens_option,
    policy_option,
    as_of_option,
    wheels_option,
    index_option,
    target_option,
    click.option(
        "--jobs",
        metavar="N",
        type=click.IntRange(min=1),
        help="Number of cells at a time. [default: the number of cores]",
    ),
    timeout_option,
    memory_option,
)


def choosing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name one cell to a command, and pass it the `Choice` that they make."""
    return cache_option(choosing_uncached(command))


def choosing_uncached(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that takes no outcomes of earlier runs."""

    @functools.wraps(command)
    def with_choice(
        cell: str,
        case: str,
        writer: str,
        reader: str,
        platform: str,
        results: Path | None,
        goldens: str | None,
        policy_file: str | None,
        as_of: str | None,
        wheels: Sequence[str],
        index: Sequence[str],
        target: Sequence[str],
        **values: Any,
    ) -> None:
        from export_core.why.asked import Asked
        from export_core.why.choice import choose

        asked = Asked(
            *(cell, case, writer, reader, platform, results, Path(goldens) if goldens else None),
            *(tuple(wheels), tuple(index), tuple(target), policy_file),
        )
        limits = _limits(values.pop("jobs"), values.pop("timeout"), values.pop("memory"))
        chosen: Choice = choose(asked, policy_of(policy_file), day_of(as_of), limits, cache=values.pop("cache", False))
        command(chosen, **values)

    decorated: Callable[..., None] = with_choice
    # Reversed: as with decorators, the one applied last is shown first in --help.
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _limits(jobs: int | None, timeout: float, memory: float) -> Limits:
    from export_core.matrix.limits import GIB, Limits

    limits = Limits(timeout=timeout, memory=int(memory * GIB))
    return limits if jobs is None else Limits(jobs, timeout, int(memory * GIB))
