"""The command `jaxexport badge`: the verdict of a finished run as a picture for a README."""

from __future__ import annotations

from pathlib import Path

import click

from export_core.cli.click_options import STDOUT, write_output
from export_core.cli.help import command


@command("docs/reference/reports.md", "jaxexport badge --output badge.svg", section="Matrix")
@click.argument("folder", metavar="[DIR]", default=".jaxexport", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="FILE", default=STDOUT, help="Where to write it; - is standard output.")
@click.option("--json", "as_json", is_flag=True, help="Write what a shields.io endpoint badge reads, instead of SVG.")
def badge(folder: Path, output: str, as_json: bool) -> None:
    """Write a badge with the verdict of a finished run, as SVG.

    Without DIR, it is the run in .jaxexport.

    Publish the file wherever a README can link to it, such as the pages of the repository.
    """
    from export_core.base.escaping import safe_json
    from export_core.report.badge import badge as badge_of
    from export_core.report.badge import badge_svg
    from export_core.run.results import read_run

    shown = badge_of(read_run(folder).summary)
    write_output(output, (safe_json(shown) if as_json else badge_svg(shown).encode()) + b"\n")
