"""`jaxexport goldens import`: goldens that somebody else keeps, such as JAX's own."""

from __future__ import annotations

from collections import Counter
from functools import partial

import click

from export_core.base.errors import PREFIX
from export_core.base.phrases import plural
from export_core.cli.help import command
from export_core.cli.options import Project, project_options
from export_core.cli.output import echo

DONE, SOME_REFUSED = 0, 2


@command(
    "docs/how-to/adopt-an-archive.md",
    "jaxexport goldens import --from-jax",
    "jaxexport goldens import --from-jax 0.12.0.1 --goldens jax-goldens",
    name="import",
)
@click.option(
    "--from-jax",
    "named",
    is_flag=False,
    flag_value="",
    metavar="[WHEEL|RELEASE]",
    help="JAX's own goldens, of a wheel file of jax or of a release such as 0.12.0.1, whose environment is built where "
    "it is missing. Without a value, of the installed jax.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not list the goldens that are stored.")
@project_options
def import_goldens(project: Project, named: str | None, quiet: bool) -> None:
    """Store the goldens that ship inside jax as goldens of this project, each as a case `jax.FILE.VARIABLE`.

    They are read as literals: no code of the wheel is run, and no jax is imported. Each has a bare module, so its
    envelope is made as JAX's own test runner makes it. Its writer is the first release from the day of the data on, and
    its outputs are compared as JAX's own test compares them. golden.yaml says so under `origin`.

    None is run here: the matrix does that next. One that is refused is named with its file and line, and does not stop
    the others; the exit code is 2 then, and where there is none.
    """
    from export_core.features.adopt.jax_data import find_data
    from export_core.features.adopt.jax_goldens import REFUSED, import_goldens

    if named is None:
        raise click.UsageError("expected --from-jax, with or without a wheel or a release.")
    data = find_data(named, project.policy, partial(echo, err=True))
    counts: Counter[str] = Counter()
    for imported in import_goldens(data, project.store, project.policy):
        counts[imported.status] += 1
        if imported.status == REFUSED:
            echo(f"{PREFIX}{imported.text}", err=True)
        elif not quiet:
            echo(imported.text)
    numbers = ", ".join(f"{count} {what}" for what, count in counts.items())
    echo(f"{plural(counts.total(), 'golden')} in jax {data.jax}: {numbers or 'none'}")
    # A wheel without goldens is most likely not the one that was meant.
    click.get_current_context().exit(DONE if counts and not counts[REFUSED] else SOME_REFUSED)
