"""The commands `jaxexport environments list|clean`: what readers and writers run in, and how to free the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from export_core.base.layout import aligned
from export_core.base.text import plural
from export_core.cli.click_options import Command, dry_run_option, is_confirmed, yes_option
from export_core.cli.help import group
from export_core.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from export_core.readers.cached_environments import CachedEnvironment

UNUSED_DAYS = 30
_PAGE = "docs/reference/platforms.md"
_NAMES = click.argument("names", metavar="[NAME]...", nargs=-1)


def _older_than(default: str) -> Callable[[Command], Command]:
    """Return the option --older-than. `default` ends its help text, and says what happens without the option."""
    return click.option(
        "--older-than",
        type=click.IntRange(min=0),
        metavar="DAYS",
        help=f"Only those that nothing has used for this many days, 0 for all, and builds that were killed. {default}",
    )


@group(_PAGE, "jaxexport environments list", section="Project", invoke_without_command=True)
@click.pass_context
def environments(context: click.Context) -> None:
    """List or remove the cached environments in which readers and writers run. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_environments, names=(), older_than=None)


@environments.command(_PAGE, "jaxexport environments list", "jaxexport environments list --older-than 7", name="list")
@_NAMES
@_older_than("[default: all]")
def list_environments(names: Sequence[str], older_than: int | None) -> None:
    """List the cached environments: what each was built for, its size, when it was last used, whether it is in use.

    NAME is a folder or a glob of folders, as the last column has them.
    """
    from export_core.readers.build import cache_folder

    chosen = _chosen(names, older_than)
    _show(chosen)
    echo(
        f"{_count(chosen)} in {cache_folder() / 'environments'}. On the disk of uv's cache, their files are hard links "
        "into it and take no extra space."
    )


@environments.command(
    _PAGE, "jaxexport environments clean --older-than 7", "jaxexport environments clean 'writer-*' --yes"
)
@_NAMES
@_older_than(f"[default: {UNUSED_DAYS}, without NAME]")
@dry_run_option("Only show what would be removed.")
@yes_option
def clean(names: Sequence[str], older_than: int | None, dry_run: bool, yes: bool) -> None:
    """Remove cached environments that no running process uses.

    NAME is a folder or a glob of folders, as `jaxexport environments list` has them. What is needed again is built
    again. A folder that this tool did not make stays.
    """
    from export_core.readers.cached_environments import remove

    chosen = _chosen(names, UNUSED_DAYS if older_than is None and not names else older_than)
    _show(chosen)
    free = [cached for cached in chosen if not cached.in_use]
    if free and not is_confirmed(f"Remove {_count(free)}?", yes=yes, dry_run=dry_run):
        echo(f"{_count(free)} would be removed.")
        return
    # A run may have started to use one since the list was made; `remove` takes its lock.
    removed = [cached for cached in free if remove(cached)]
    for cached in chosen:
        if cached not in removed:
            echo(f"{cached.folder.name}: in use, not removed")
    if not free:
        echo("Nothing to remove.")
        return
    echo(f"{_count(removed)} removed. `uv cache prune` removes files that only uv's cache still has.")


def _chosen(names: Sequence[str], older_than: int | None) -> Sequence[CachedEnvironment]:
    """Return the environments with these names, or those unused for `older_than` days; all if neither is given.

    Raises `click.UsageError` if both are given.
    """
    import datetime

    from export_core.readers.cached_environments import cached_environments, named, to_clean

    if names and older_than is not None:
        raise click.UsageError("NAME cannot be combined with --older-than.")
    every = cached_environments()
    if names:
        return named(every, names)
    if older_than is None:
        return every
    return to_clean(every, datetime.datetime.now(datetime.UTC).date(), older_than)


def _show(chosen: Sequence[CachedEnvironment]) -> None:
    """Print a table of environments."""
    rows = [("release", "platform", "for", "MB", "last used", "", "packages", "folder")]
    for cached in chosen:
        state = "in use" if cached.in_use else "" if cached.is_built else "half built"
        built_for = cached.jaxlib, cached.plugin or "cpu", cached.kind
        used = f"{cached.size / 1e6:.0f}", str(cached.last_used), state
        rows.append((*built_for, *used, ", ".join(cached.packages), cached.folder.name))
    for line in aligned(rows, right=(3,)) if chosen else ():
        echo(line)


def _count(environments: Sequence[CachedEnvironment]) -> str:
    """Return the number of environments and their total size in words, such as ``3 environments of 1.2 GB``."""
    return f"{plural(len(environments), 'environment')} of {sum(one.size for one in environments) / 1e9:.1f} GB"
