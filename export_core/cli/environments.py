"""The commands `jaxexport environments list|clean`: what readers and writers run in, and how to get the disk back."""

from __future__ import annotations

import click

from export_core.cli.options import console

UNUSED_DAYS = 30


@click.group("environments")
def environments_group() -> None:
    """The environments of readers and writers, in the cache folder of this user."""


@environments_group.command("list")
def list_() -> None:
    """Show each environment: for whom it was built, its size, when it was last used, and whether it is in use."""
    from rich.table import Table

    from export_core.environments.build import cache_folder
    from export_core.environments.inventory import kept_environments

    kept = kept_environments()
    table = Table(box=None, pad_edge=False)
    for name in ("jaxlib", "platform", "for", "MB", "last used", "", "folder"):
        table.add_column(name, justify="right" if name == "MB" else "left")
    for each in kept:
        state = "in use" if each.in_use else "" if each.whole else "half built"
        size = f"{each.size / 1e6:.0f}"
        table.add_row(each.jaxlib, each.plugin or "cpu", each.kind, size, str(each.used), state, each.folder.name)
    screen = console()
    if kept:
        screen.print(table)
    total = sum(each.size for each in kept)
    screen.print(
        f"{len(kept)} environments of {total / 1e9:.1f} GB in {cache_folder() / 'environments'}. Their files are hard links into uv's "
        "cache where both are on one disk: they take no room twice.",
        highlight=False,
        soft_wrap=True,
    )


@environments_group.command()
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    default=UNUSED_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Those that nobody has used for so long, and what killed builds left.",
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--yes", is_flag=True, help="Remove them, and do not just say which.")
def clean(older_than: int, everything: bool, yes: bool) -> None:
    """Remove environments that are not needed any more. Never one that a running process uses; what is needed is built again."""
    import datetime

    from export_core.environments.inventory import kept_environments, remove, to_clean

    today = datetime.datetime.now(datetime.UTC).date()
    chosen = to_clean(kept_environments(), today, None if everything else older_than)
    gone = 0
    for each in chosen:
        if yes and not remove(each):
            click.echo(f"{each.folder.name}: in use by now, left alone")
            continue
        gone += each.size
        click.echo(f"{each.folder.name}  {each.size / 1e6:.0f} MB  last used {each.used}")
    what = "removed" if yes else "would go; --yes removes them"
    click.echo(
        f"{len(chosen)} environments of {gone / 1e9:.1f} GB {what}. `uv cache prune` clears what only uv's cache still holds."
    )
