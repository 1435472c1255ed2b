"""The command `jaxexport environments`: what readers and writers run in, and how to free the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from export_core.base.text import aligned, plural
from export_core.cli.click_options import dry_run_option, is_confirmed, yes_option
from export_core.cli.help import command
from export_core.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.readers.cached_environments import CachedEnvironment

UNUSED_DAYS = 30


@command(
    "docs/reference/platforms.md",
    "jaxexport environments",
    "jaxexport environments --clean --older-than 7",
    "jaxexport environments --clean 'writer-*' --yes",
    section="Project",
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--clean",
    is_flag=True,
    help="Remove what is listed, but for what a running process uses. A folder that this tool did not make stays.",
)
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Only those that nothing has used for this many days, 0 for all, and builds that were killed. "
    f"[default: {UNUSED_DAYS}, with --clean and without NAME]",
)
@dry_run_option("With --clean: only show what would be removed.")
@yes_option
def environments(names: Sequence[str], clean: bool, older_than: int | None, dry_run: bool, yes: bool) -> None:
    """Show the cached environments in which readers and writers run, or remove them.

    Each line says what it was built for, its size, when it was last used, and whether it is in use. NAME is a folder or
    a glob of folders, as the last column has them. What is removed and needed again is built again.
    """
    import datetime

    from export_core.readers.build import cache_folder
    from export_core.readers.cached_environments import cached_environments, named, remove, to_clean

    if names and older_than is not None:
        raise click.UsageError("NAME cannot be combined with --older-than.")
    chosen = cached_environments()
    if names:
        chosen = named(chosen, names)
    elif clean or older_than is not None:
        today = datetime.datetime.now(datetime.UTC).date()
        chosen = to_clean(chosen, today, UNUSED_DAYS if older_than is None else older_than)
    rows = [("release", "platform", "for", "MB", "last used", "", "packages", "folder")]
    for cached in chosen:
        state = "in use" if cached.in_use else "" if cached.is_built else "half built"
        built_for = cached.jaxlib, cached.plugin or "cpu", cached.kind
        used = f"{cached.size / 1e6:.0f}", str(cached.last_used), state
        rows.append((*built_for, *used, ", ".join(cached.packages), cached.folder.name))
    for line in aligned(rows, right=(3,)) if chosen else ():
        echo(line)
    if not clean:
        echo(
            f"{_count(chosen)} in {cache_folder() / 'environments'}. On the disk of uv's cache, their files are hard "
            "links into it and take no extra space."
        )
        return
    free = [cached for cached in chosen if not cached.in_use]
    if free and not is_confirmed(f"Remove {_count(free)}?", yes=yes, dry_run=dry_run):
        echo(f"{_count(free)} would be removed.")
        return
    # A run may have started to use one since the list was made; `remove` takes its lock.
    removed = [cached for cached in free if remove(cached)]
    for cached in chosen:
        if cached not in removed:
            echo(f"{cached.folder.name}: in use, not removed")
    echo(f"{_count(removed)} removed. `uv cache prune` removes what is left in uv's cache only.")


def _count(environments: Sequence[CachedEnvironment]) -> str:
    """How many environments these are, and how large."""
    return f"{plural(len(environments), 'environment')} of {sum(one.size for one in environments) / 1e9:.1f} GB"
