"""The commands `jaxexport report` and `jaxexport badge`: a finished run in the terminal, in files, as a picture."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core import policy as policies
from export_core.cli import click_options
from export_core.cli.help import command
from export_core.run.errors import RunError

if TYPE_CHECKING:
    from export_core.report.document import Comparison
    from export_core.run.run import Run

_FORMATS = {
    "html": "page:html_page",
    "markdown": "markdown:markdown_text",
    "junit": "junit:junit_xml",
    "sarif": "sarif:sarif_file",
    "svg": "map_svg:map_picture",
}
"""What each option writes: a function of report/, which is imported only where it is asked for."""


@command("docs/reference/reports.md", "jaxexport report --html report.html --junit junit.xml", section="Matrix")
@click.argument("folder", metavar="[DIR]", default=".jaxexport", type=click.Path(path_type=Path))
@click.option("--html", metavar="FILE", help="Write one self-contained page with all details of every cell.")
@click.option(
    "--markdown", metavar="FILE", help="Write causes, a map and folded details, within GitHub's limit for a comment."
)
@click.option(
    "--junit", metavar="FILE", help="Write JUnit XML: a test case for each golden and reader, and one for the run."
)
@click.option("--svg", metavar="FILE", help="Draw the map of writers and readers as SVG.")
@click_options.full_option
@click.option("--sarif", metavar="FILE", help="Write SARIF for code scanning: a rule for each cause.")
@click.option(
    "--annotations",
    is_flag=True,
    help="Print workflow commands of GitHub Actions: annotations at the lines of affected tests.",
)
@click.option("--baseline", metavar="OLD", help="Folder of an earlier run: show what is different from it first.")
@click_options.declared(
    "policy_file",
    text="Judge the results again by this policy, as `jaxexport judge` does. [default: as the run was judged]",
)
@click_options.rejudge_day_option
@click_options.fail_on_option
def report(
    folder: Path,
    annotations: bool,
    baseline: str | None,
    full: bool,
    policy_file: str | None,
    as_of: str | None,
    fail_on: Sequence[str],
    **files: str | None,
) -> None:
    """Report a finished matrix run in the terminal, or in files; - is standard output.

    Without DIR, it is the run in .jaxexport.

    It is shown as it was judged when it ran; with --policy, --as-of or --fail-on, as `jaxexport judge` judges it with
    the same options.

    Exit code 0: the report was written. Whether the promise was kept is the exit code of `jaxexport matrix` and
    `jaxexport judge`.
    """
    from export_core.report.view import view
    from export_core.run.results import read_run

    if [*files.values(), click_options.STDOUT if annotations else None].count(click_options.STDOUT) > 1:
        raise click.UsageError("- is standard output, as --annotations is: only one format can be written to it.")
    click_options.check_different(list(files.values()))
    click_options.check_fail_on(fail_on, baseline)
    is_judged_again = policy_file or as_of or fail_on
    run = judged_run(folder, policy_file, as_of, fail_on) if is_judged_again else read_run(folder)
    comparison = None
    if baseline:
        comparison = compared(run, baseline)
        # A lost bonus, or a growth since then, may have failed the run.
        run = comparison.run
    for name, file in files.items():
        if file:
            module, _, function = _FORMATS[name].partition(":")
            written = getattr(importlib.import_module(f"export_core.report.{module}"), function)(view(run, comparison))
            click_options.write_output(file, written if isinstance(written, bytes) else written.encode())
    if annotations:
        from export_core.report.annotations import annotation_commands

        # As bytes: what is printed for people has its commands disarmed.
        click_options.write_output(click_options.STDOUT, annotation_commands(view(run)).encode())
    elif not any(files.values()):
        from export_core.report.terminal import print_report

        print_report(click_options.console(), view(run, comparison, folder), full=full)


@command("docs/reference/reports.md", "jaxexport badge --output badge.svg", section="Matrix")
@click.argument("folder", metavar="[DIR]", default=".jaxexport", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", metavar="FILE", default=click_options.STDOUT, help="Where to write it; - is standard output."
)
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
    click_options.write_output(output, (safe_json(shown) if as_json else badge_svg(shown).encode()) + b"\n")


def judged_run(folder: Path, policy_file: str | None, as_of: str | None, fail_on: Sequence[str] = ()) -> Run:
    """Judge the results in a folder by the named policy, else that of the project here, else that of the run.

    Raises `RunError` for a policy under which the cells would have run or compared differently.
    """
    from msgspec.structs import replace

    from export_core.judge import calendar_facts, judge_again
    from export_core.run.results import read_run
    from export_core.run.run import judge_run

    recorded = read_run(folder)
    before, earlier = recorded.summary, recorded.policy
    file = policies.policy_file(Path(), policy_file)
    policy = policies.load_policy(file) if file else earlier
    if name := policy.replays_otherwise(earlier):
        raise RunError(
            f"{file}: {name}: expected the value that this run was made with, found another one. It decides how "
            "cells run and are compared: run `jaxexport matrix` again, or judge by a policy with the same value."
        )
    options = ["--policy", str(file)] if policy.without_locations() != earlier.without_locations() else []
    # Not today: the same results and policy are to give the same judgement on any day.
    day = click_options.day_of(as_of) if as_of else before.as_of
    options += ["--as-of", str(day)] if day != before.as_of else []
    options += [word for kind in fail_on for word in ("--fail-on", kind)]
    policy = click_options.with_fail_on(policy, fail_on)
    facts = replace(before, as_of=day, calendar=calendar_facts(policy.calendar(), day))
    results = (judge_again(result, policy, day) for result in recorded.results)
    return judge_run(results, policy, facts, plan=recorded.plan, folder=folder, options=shlex.join(options))


def compared(run: Run, baseline: str) -> Comparison:
    """What is different from the run in another folder. Raises `click.UsageError` where no feature compares runs."""
    from export_core.base.feature import hooks

    for compare in hooks("compare"):
        comparison: Comparison = compare(run, Path(baseline))
        return comparison
    raise click.UsageError("--baseline: this program has no feature that compares runs.")
