"""The command `jaxexport goldens backfill`: goldens by older releases."""

from collections.abc import Sequence
from pathlib import Path

import click

from export_core.cli.click_options import (
    dry_run_option,
    index_option,
    policy_of,
    policy_option,
    quiet_option,
    wheels_option,
)
from export_core.cli.completion import RELEASES
from export_core.cli.help import command


@command(
    "docs/reference/cases.md",
    "jaxexport goldens backfill --writers 0.9.2,0.10.2 -- tests/test_model.py",
    section="Goldens",
)
@policy_option
@click.option(
    "--writers",
    metavar="WRITER,…",
    type=RELEASES,
    required=True,
    help="The jaxlib releases that write, each with the newest jax that works on it: 0.10.2, or a wheel file.",
)
@wheels_option
@index_option
@click.option(
    "--install",
    metavar="REQUIREMENT",
    multiple=True,
    help="A package that the tests need besides jax, as pip names it; may be given several times. [default: the "
    "policy's, else the project in the working folder]",
)
@click.option(
    "--constraints",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the exact versions of all packages but jax and jaxlib, as `pip freeze` and `uv export` write it.",
)
@dry_run_option("Only show which releases would write, and what would be installed beside jax.")
@quiet_option
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def backfill(
    policy_file: str | None,
    writers: str,
    wheels: Sequence[str],
    indexes: Sequence[str],
    install: Sequence[str],
    constraints: Path | None,
    dry_run: bool,
    quiet: bool,
    pytest_args: Sequence[str],
) -> None:
    """Write goldens with older jaxlib releases, by running your marked tests in an environment of each.

    Each environment has that jaxlib, its jax, pytest, and what the tests need. The marked tests run in it with
    `pytest --update-goldens=missing`: goldens that exist are checked and stay, unless `-- --update-goldens` replaces
    them. Arguments after -- are passed to that pytest. Each golden records the versions of all installed packages.

    Exit codes: 0 every release wrote its goldens, 1 tests failed with one, 3 an environment could not be built, or a
    test ended pytest.
    """
    from export_core.cli.output import echo
    from export_core.cli.signals import Interrupted, interruptible
    from export_core.cli.steps import Steps
    from export_core.features.backfill.backfill import Progress, choose_writers, foreseen_lines, title, write_goldens
    from export_core.policy.validation import problem_of_requirement
    from export_core.readers.packages import constraints_of

    if problem := next(filter(None, map(problem_of_requirement, install)), ""):
        raise click.UsageError(f"--install: {problem}")
    policy = policy_of(policy_file)
    chosen = choose_writers(writers, policy.calendar(), wheels=tuple(wheels), indexes=tuple(indexes))
    versions = constraints_of(constraints) if constraints else ()
    chosen_packages = tuple(install) or policy.backfill_install
    if dry_run:
        for release in chosen.chosen:
            echo(f"would write goldens with {title(release, chosen.calendar)}")
        for line in foreseen_lines(chosen_packages, pytest_args):
            echo(line)
        return
    progress = Progress()
    try:
        with interruptible("pytest", progress.kill):
            code = write_goldens(chosen, chosen_packages, pytest_args, versions, Steps(quiet=quiet), progress)
    except Interrupted as stop:
        echo(progress.state(), err=True)
        raise click.exceptions.Exit(stop.exit_code) from None
    raise click.exceptions.Exit(code)
