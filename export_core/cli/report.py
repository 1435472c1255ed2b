"""The command `jaxexport report`, and how a comparison is printed: a finished run as pages and files that others show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.options import STDOUT, console, write_output

if TYPE_CHECKING:
    from export_core.runs.baseline import Comparison


@click.command()
@click.argument("folder", metavar="DIR", default=".jaxexport", type=click.Path(path_type=Path))
@click.option("--html", metavar="FILE", help="One page with everything of every cell, which loads nothing else.")
@click.option(
    "--markdown", metavar="FILE", help="The counts and findings, within the 1 MiB of a step summary on GitHub."
)
@click.option("--junit", metavar="FILE", help="A test case for each cell, and one for the run.")
def report(folder: Path, html: str | None, markdown: str | None, junit: str | None) -> None:
    """Tell what came of a finished matrix run: here in the terminal, or in files; - is standard output.

    Exit code 0: the report was written. `jaxexport matrix` and `jaxexport judge` say whether the promise was kept.
    """
    from export_core.report import print_report
    from export_core.runs.results import read_run

    if [html, markdown, junit].count(STDOUT) > 1:
        raise click.UsageError("- is standard output: it takes one format.")
    results, summary = read_run(folder)
    if not (html or markdown or junit):
        print_report(console(), results, summary)
    if html:
        from export_core.report.html import html_page

        write_output(html, html_page(results, summary).encode())
    if markdown:
        from export_core.report.markdown import markdown_text

        write_output(markdown, markdown_text(results, summary).encode())
    if junit:
        from export_core.report.junit import junit_xml

        write_output(junit, junit_xml(results, summary).encode())


def print_comparison(comparison: Comparison, *, as_json: bool) -> None:
    """What is different from an earlier run, for people or for programs."""
    import msgspec

    from export_core.report import changes, counted, print_findings, told

    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told(comparison)), indent=2))
        return
    screen = console()
    print_findings(screen, changes(comparison))
    screen.print(f"\n{counted(comparison)}", markup=False, highlight=False, soft_wrap=True)
