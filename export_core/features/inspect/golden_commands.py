"""The commands `jaxexport goldens show` and `jaxexport goldens coverage`."""

from __future__ import annotations

import click

from export_core.cli.goldens import find_golden
from export_core.cli.help import command
from export_core.cli.options import Project, project_options
from export_core.cli.output import echo


@command("docs/reference/artifacts.md", "jaxexport goldens show tests.test_model.test_attention/0.9.2-cpu")
@click.argument("name", metavar="CASE[/WRITER]")
@project_options
@click.option("--mlir", is_flag=True, help="Only module.mlir: the module as its writer printed it.")
@click.option("--jaxpr", is_flag=True, help="Only jaxpr.txt: the jaxpr as its writer printed it.")
def show(project: Project, name: str, mlir: bool, jaxpr: bool) -> None:
    """Show everything in one golden: manifest, arrays with their first values, files.

    CASE and WRITER are as `jaxexport goldens list` prints them; without WRITER the newest golden is shown.
    """
    from export_core.features.inspect.golden import golden_screen, side_file

    generations, golden = find_golden(project.store, name)
    files = [file for is_wanted, file in ((mlir, "module.mlir"), (jaxpr, "jaxpr.txt")) if is_wanted]
    for file in files:
        echo(side_file(golden, file), nl=False)
    if not files:
        others = [other for other in generations if other is not golden]
        echo(golden_screen(golden, others, project.policy), nl=False)


@command("docs/reference/coverage.md", "jaxexport goldens coverage")
@project_options
def coverage(project: Project) -> None:
    """Count what the goldens cover: custom-call targets, primitives, dtypes, effects, features and formats.

    A number counts cases: all of them, then those exported for each platform. Writers are jaxlib releases.
    """
    from export_core.features.inspect.coverage import coverage, coverage_text
    from export_core.goldens import GoldenError

    goldens = project.store.goldens()
    if not goldens:  # a table of nothing would look like goldens that cover nothing
        raise GoldenError(f"{project.store.root}: expected goldens, found none. Name their folder with --goldens.")
    echo(coverage_text(coverage(goldens)), nl=False)
