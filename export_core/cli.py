"""The command `jaxexport`: the matrix and its judgement, goldens, releases, without pytest or nox."""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli_artifacts import audit, diff, inspect
from export_core.cli_goldens import goldens_group, goldens_option, policy_option, verified_goldens
from export_core.errors import ExportCompatError

if TYPE_CHECKING:
    from rich.console import Console

    from export_core.policy import Policy

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-jaxexport")
def jaxexport() -> None:
    """Will this exported JAX function still run there?"""


for _command in (inspect, audit, diff):
    jaxexport.add_command(_command)


_as_of_option = click.option(
    "--as-of", metavar="DATE", help="Judge as of this day, such as 2026-10-25: which releases exist. [default: today]"
)


@jaxexport.command()
@goldens_option
@policy_option
@_as_of_option
@click.option(
    "--readers", metavar="window|all|V,V…", help="jaxlib releases that read. [default: the policy's, else window]"
)
@click.option("--writers", metavar="V,V…", default="", help="Only goldens by these jaxlib releases. [default: all]")
@click.option(
    "--cases", metavar="CASE", multiple=True, help="Only these cases: ids or globs; may be given several times."
)
@click.option("--platforms", metavar="P,P…", help="Platforms to replay on. [default: the policy's, else cpu]")
@click.option(
    "--results", metavar="DIR", default=".jaxexport", show_default=True, help="Where results.jsonl and summary.json go."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Cells at once. [default: the number of cores]")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True, help="Seconds for one cell."
)
@click.option(
    "--memory", type=click.FloatRange(min=0), default=8.0, show_default=True, help="GiB for one cell; 0 is no limit."
)
@click.option("--dump-ir", metavar="DIR", help="Put each module there as text, as exported and as compiled, by case.")
@click.option("--quiet", is_flag=True, help="No progress.")
def matrix(
    goldens: str | None,
    policy_file: str | None,
    as_of: str | None,
    readers: str | None,
    writers: str,
    cases: Sequence[str],
    platforms: str | None,
    results: str,
    jobs: int | None,
    timeout: float,
    memory: float,
    dump_ir: str | None,
    quiet: bool,
) -> None:
    """Replay goldens in other jaxlib releases and judge every cell.

    Exit codes: 0 kept, 1 broken, 2 bad input, 3 incomplete, 4 the list of known failures is stale.
    """
    from export_core.goldens import GoldenStore
    from export_core.judge import ResultFile, judge, reproduce_command, summarize, write_summary
    from export_core.matrix import Limits, Selection, build_environment, make_plan, replay
    from export_core.matrix.dump import dump_folder
    from export_core.matrix.run import GIB
    from export_core.report import print_plan, print_report
    from export_core.report.progress import RunProgress

    console = _console()
    policy = _policy(policy_file)
    folder = goldens or policy.goldens
    selection = Selection(
        readers=readers or policy.readers,
        platforms=_listed(platforms) or policy.platforms or ("cpu",),
        cases=tuple(cases),
        writers=_listed(writers),
    )
    windows = policy.window_lengths()
    plan = make_plan(verified_goldens(GoldenStore(Path(folder))), policy.calendar(), windows, selection, _day(as_of))
    limits = Limits(jobs=jobs or os.cpu_count() or 1, timeout=timeout, memory=int(memory * GIB))
    given = (("--goldens", goldens), ("--policy", policy_file), ("--as-of", as_of))
    options = [word for name, value in given if value for word in (name, value)]
    dump = dump_folder(Path(dump_ir)) if dump_ir else None
    print_plan(console, plan)
    started = time.monotonic()
    judged = []
    file = ResultFile(Path(results))
    try:
        with RunProgress(console, plan, quiet=quiet) as progress:
            outcomes = replay(
                plan.cells,
                lambda release: build_environment(release, plan.calendar),
                plan.calendar,
                limits=limits,
                allow=policy.allow,
                tolerances=policy.tolerances,
                notify=progress.note,
                dump=dump,
            )
            for outcome in outcomes:
                result = judge(outcome, windows, policy.known_failures, lambda cell: reproduce_command(cell, options))
                file.append(result)
                judged.append(result)
                progress.result(result)
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: {len(judged)} of {len(plan.cells)} cells have a result, in {results}. Nothing was judged."
        )
        sys.exit(INTERRUPTED)
    finally:
        file.close()
    summary = summarize(
        judged,
        planned=len(plan.cells),
        policy=policy,
        as_of=plan.as_of,
        selection=selection.described(),
        seconds=time.monotonic() - started,
    )
    write_summary(Path(results), summary)
    print_report(console, judged, summary)
    sys.exit(summary.exit_code)


@jaxexport.command()
@click.argument("folder", metavar="DIR", default=".jaxexport")
@policy_option
@_as_of_option
def judge(folder: str, policy_file: str | None, as_of: str | None) -> None:
    """Judge the results of a matrix run again, with another policy or as of another day."""
    from export_core.judge import judge_again, read_results, read_summary, summarize
    from export_core.report import print_report

    before = read_summary(Path(folder))
    policy = _policy(policy_file)
    windows = policy.window_lengths()
    results = [judge_again(result, windows, policy.known_failures) for result in read_results(Path(folder))]
    summary = summarize(
        results,
        planned=before.planned,
        policy=policy,
        as_of=_day(as_of) if as_of else before.as_of,
        selection=before.selection,
        seconds=before.seconds,
    )
    print_report(_console(), results, summary)
    sys.exit(summary.exit_code)


@jaxexport.command()
@policy_option
@click.option("--writers", metavar="V,V…", required=True, help="jaxlib releases to write goldens with.")
@click.option(
    "--install",
    metavar="REQUIREMENT",
    multiple=True,
    help="What the tests need beside jax. [default: the policy's, else the project here]",
)
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def backfill(policy_file: str | None, writers: str, install: Sequence[str], pytest_args: Sequence[str]) -> None:
    """Write goldens with older releases, by running the marked tests in their environments.

    Arguments after -- go to pytest.
    """
    from pytest_jaxexport.backfill import write_goldens

    policy = _policy(policy_file)
    sys.exit(
        write_goldens(
            _listed(writers), tuple(install) or policy.backfill_install, tuple(pytest_args), policy.calendar()
        )
    )


jaxexport.add_command(goldens_group)


@jaxexport.group()
def releases() -> None:
    """The calendar that the windows run on."""


@releases.command(name="list")
@policy_option
@_as_of_option
def list_releases(policy_file: str | None, as_of: str | None) -> None:
    """Every jaxlib with its build date, the jax that goes with it, and until when it is promised to be read."""
    from export_core.releases import promise

    policy = _policy(policy_file)
    windows = policy.window_lengths()
    calendar = policy.calendar().as_of(_day(as_of))
    newest = calendar.built(calendar.newest())
    click.echo(f"{'jaxlib':<10} {'built':<12} {'jax':<10} {'its artifacts are promised until':<34} newest reads it")
    for version in calendar.versions():
        release = calendar.release(version)
        kept = promise(release.built, newest, windows)
        standing = "promised" if kept.promised else "outside"
        click.echo(f"{version:<10} {release.built!s:<12} {release.jax:<10} {kept.until!s:<34} {standing}")


def main() -> None:
    """Entry point: an error that a person can mend is one line, and never a traceback."""
    try:
        jaxexport()
    except ExportCompatError as error:
        click.echo(f"jaxexport: error: {error}", err=True)
        sys.exit(error.exit_code)


def _policy(named: str | None) -> Policy:
    from export_core.policy import find_policy

    return find_policy(Path(), named)


def _day(as_of: str | None) -> datetime.date:
    from export_core.releases import parse_day

    return parse_day(as_of) if as_of else datetime.datetime.now(tz=datetime.UTC).date()


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _console() -> Console:
    from rich.console import Console

    # Where output goes to a file or a CI log there is no width to respect; a table wants its columns side by side.
    console = Console()
    return console if console.is_terminal else Console(width=160)
