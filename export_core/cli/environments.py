"""The commands `jaxexport environments list|clean`: what readers and writers run in, and how to free the disk."""

import click

from export_core.base.layout import aligned
from export_core.base.phrases import plural
from export_core.cli.help import group
from export_core.cli.output import echo

UNUSED_DAYS = 30


@group("docs/reference/platforms.md", "jaxexport environments list", section="Project", name="environments")
def environments_group() -> None:
    """List and remove the cached environments in which readers and writers run."""


@environments_group.command("docs/reference/platforms.md", "jaxexport environments list", name="list")
def list_() -> None:
    """Show each environment: what it was built for, its size, when it was last used, and whether it is in use."""
    from export_core.readers.build import cache_folder
    from export_core.readers.inventory import cached_environments

    environments = cached_environments()
    rows = [("release", "platform", "for", "MB", "last used", "", "packages", "folder")]
    for cached in environments:
        state = "in use" if cached.in_use else "" if cached.is_built else "half built"
        built_for = cached.jaxlib, cached.plugin or "cpu", cached.kind
        used = f"{cached.size / 1e6:.0f}", str(cached.last_used), state
        rows.append((*built_for, *used, ", ".join(cached.packages), cached.folder.name))
    for line in aligned(rows, right=(3,)) if environments else ():
        echo(line)
    total = sum(cached.size for cached in environments) / 1e9
    echo(
        f"{plural(len(environments), 'environment')} of {total:.1f} GB in {cache_folder() / 'environments'}. On the "
        "same disk as uv's cache their files are hard links into it, and take no additional space."
    )


@environments_group.command(
    "docs/reference/platforms.md",
    "jaxexport environments clean --older-than 7 --yes",
    "jaxexport environments clean 'writer-*' --yes",
)
@click.argument("names", metavar="[NAME…]", nargs=-1)
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Remove those unused for this many days, and what killed builds left behind. "
    f"[default: {UNUSED_DAYS}, where no NAME is given]",
)
@click.option("--all", "everything", is_flag=True, help="Remove all that are not in use.")
@click.option("--yes", is_flag=True, help="Remove them; without it, they are only listed.")
def clean(names: tuple[str, ...], older_than: int | None, everything: bool, yes: bool) -> None:
    """Remove unused environments, or those with this NAME: a folder, as `list` shows it, or a glob of folders.

    One that a running process uses is never removed; one that is needed again is built again.
    """
    import datetime

    from export_core.readers.inventory import cached_environments, named, remove, to_clean

    if names and (everything or older_than is not None):
        raise click.UsageError("NAME cannot be combined with --all or --older-than.")
    if names:
        chosen = named(cached_environments(), names)
    else:
        today = datetime.datetime.now(datetime.UTC).date()
        days = UNUSED_DAYS if older_than is None else older_than
        chosen = to_clean(cached_environments(), today, None if everything else days)
    size = in_use = 0
    for cached in chosen:
        # A run may have started to use it since the list was made; `remove` takes its lock.
        if cached.in_use or (yes and not remove(cached)):
            in_use += 1
            echo(f"{cached.folder.name}: in use, not removed")
            continue
        size += cached.size
        echo(f"{cached.folder.name}  {cached.size / 1e6:.0f} MB  last used {cached.last_used}")
    done = "removed" if yes else "would be removed; --yes removes them"
    count = plural(len(chosen) - in_use, "environment")
    echo(f"{count} of {size / 1e9:.1f} GB {done}. `uv cache prune` removes what is left in uv's cache only.")
