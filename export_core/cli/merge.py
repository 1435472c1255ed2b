"""The command `jaxexport merge`: the shards of a plan, joined and judged as one run."""

from pathlib import Path

import click

from export_core.cli.click_options import console
from export_core.cli.help import command
from export_core.cli.output import echo
from export_core.run.errors import RunError


@command("docs/how-to/many-machines.md", "jaxexport merge shard-1 shard-2 --results .jaxexport", section="Matrix")
@click.argument("folders", metavar="DIR…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--results",
    metavar="OUT",
    default=Path(".jaxexport"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for results.jsonl and summary.json of the whole run.",
)
def merge(folders: tuple[Path, ...], results: Path) -> None:
    """Join the results of all shards of a plan, and judge them as one run.

    A shard that is missing or did not finish makes the run incomplete. A shard that is given twice is refused, and so
    are shards of different plans. Exit codes are those of `jaxexport matrix`.
    """
    from export_core.report.terminal import print_report
    from export_core.report.view import view
    from export_core.run.merge import merge_shards, missing_shards
    from export_core.run.results import Journal, finish_run

    # `.jaxexport` is the default of both --results: a shard is easily named by mistake.
    if results.resolve() in {folder.resolve() for folder in folders}:
        raise RunError(
            f"--results {results}: this is one of the shards, which are never overwritten. Choose another folder."
        )
    merged = merge_shards(folders)
    assert merged.plan
    with Journal(results, merged.plan) as journal:
        finish_run(journal, results, merged)
    print_report(console(), view(merged, folder=results))
    if missing := missing_shards(folders):
        echo(
            f"gap: {len(missing)} of {missing[0].partition('/')[2]} shards missing or not finished: "
            f"--shard {', '.join(missing)}. Run them, then merge all shards."
        )
    raise click.exceptions.Exit(merged.summary.exit_code)
