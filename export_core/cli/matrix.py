"""The command `jaxexport matrix`: replay goldens in other releases, and judge every cell; or show which cells."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from export_core.cli import click_options
from export_core.cli.completion import CASE
from export_core.cli.help import command
from export_core.cli.output import echo_json
from export_core.policy.run_options import (
    LOCAL,
    OPTIONS,
    RESULTS,
    RunOptions,
    Selection,
    option_words,
    read_options,
    repeating_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from export_core.judge import Result, Summary
    from export_core.matrix import Plan
    from export_core.policy import Policy
    from export_core.report.progress import RunProgress
    from export_core.run.session import Observer


@command(
    "docs/reference/matrix.md",
    "jaxexport matrix",
    "jaxexport matrix --readers 0.9.2,0.12.0.1 --only promised",
    "jaxexport matrix 'tests.test_model.*' --html report.html",
    "jaxexport matrix --readers all --dry-run",
    "jaxexport matrix --resume",
    section="Matrix",
)
@click.argument("named_cases", metavar="[CASE]...", nargs=-1, type=CASE)
@click_options.with_options(*map(click_options.declared, OPTIONS))
@click.option(
    "--unpromised",
    metavar="REASON",
    help="The reason to accept a run without a promised cell: it ends with 0, not 3. [default: the policy's]",
)
@click_options.fail_on_option
@click_options.report_file_options
@click_options.dry_run_option("Only show the cells that would run, how many, and which environments would be built.")
@click_options.json_option("With --dry-run: print JSON (schema/plan.schema.json).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["github"]),
    help="With --dry-run: print a job matrix for GitHub Actions.",
)
@click_options.quiet_option
def matrix(
    named_cases: Sequence[str],
    unpromised: str | None,
    fail_on: Sequence[str],
    files: Mapping[str, str],
    dry_run: bool,
    as_json: bool,
    form: str | None,
    quiet: bool,
    **values: Any,
) -> None:
    """Replay goldens in other releases, or other runtimes, and judge every cell.

    CASE is the id of a case or a glob, as with --cases; without any, all cases run.

    Exit codes: 0 kept, 1 broken, 2 bad input, 3 incomplete, no cell promised or for a deployment target (0 for such a
    shard), or a report not written, 4 the list of known failures is stale. Ctrl-C ends a run cleanly, with 130.
    """
    import msgspec

    from export_core.cli.signals import Interrupted, interruptible
    from export_core.report.terminal import print_report
    from export_core.report.view import view
    from export_core.run.errors import ResultsNotWritten
    from export_core.run.session import run_matrix

    click_options.check_fail_on(fail_on, ())
    values["cases"] = (*named_cases, *values["cases"])
    policy = click_options.policy_of(values["policy_file"])
    if dry_run:
        if files:
            raise click.UsageError(f"--{next(iter(files))} reports a run: it cannot be combined with --dry-run.")
        _show_plan(policy, values, as_json=as_json, form=form)
        return
    if as_json or form:
        raise click.UsageError(f"{'--json' if as_json else '--format'} prints the plan: it needs --dry-run.")
    if unpromised is not None:
        if not unpromised.strip():
            raise click.UsageError(
                "--unpromised: expected the reason for accepting a run without promised cells, found none."
            )
        policy = msgspec.structs.replace(policy, unpromised=unpromised)
    policy = click_options.with_fail_on(policy, fail_on)
    options = run_options(values)
    screen = click_options.console(stderr=click_options.STDOUT in files.values())
    selection = selection_of(policy, values)
    # These two are in the policy of the run, so that a run without them is another one.
    added = [*(["--unpromised", unpromised] if unpromised else []), *click_options.fail_on_words(fail_on)]
    words = [*repeating_words(selection, options), *added]
    follower = Follower(screen, options, quiet=quiet)
    try:
        with interruptible():
            with follower.shown:
                run = run_matrix(policy, selection, options, observer=follower.observer(), words=words)
            with click_options.keeping_exit_code(run.summary.exit_code):
                print_report(screen, view(run), has_page="html" in files)
                click_options.write_reports(files, run)
    except Interrupted as stop:
        screen.print(f"Interrupted: {follower.state()}", highlight=False)
        raise click.exceptions.Exit(stop.exit_code) from None
    # A full disk: what is in the journal is complete, and --resume continues from it.
    except ResultsNotWritten as error:
        raise ResultsNotWritten(f"{error} {follower.state()}") from error
    raise click.exceptions.Exit(run.summary.exit_code)


def _show_plan(policy: Policy, values: Mapping[str, Any], *, as_json: bool, form: str | None) -> None:
    """Print the cells that a run with these options would have, as text, as JSON, or as jobs of GitHub Actions."""
    from export_core.matrix.plan import part_of
    from export_core.report.plan_report import github_jobs, plan_report, print_plan_report
    from export_core.run.session import environments_cost, plan_matrix

    if form and (as_json or values["shard"]):
        other = "--json" if as_json else "--shard: it divides the whole plan into shards"
        raise click.UsageError(f"--format github cannot be combined with {other}.")
    selection, options = selection_of(policy, values), read_options(RunOptions, values)
    cells = plan_matrix(policy, selection, options)
    if form:
        # Jobs start on different days, and must all judge for the same one.
        words = option_words(selection, replace(options, as_of=cells.as_of), plan=True)
        echo_json(github_jobs(cells, words), indent=-1)
        return
    if options.shard:
        cells = part_of(cells, options.shard)
    cost, windows = environments_cost(cells, policy), policy.window_lengths()
    if as_json:
        echo_json(plan_report(cells, windows, cost))
    else:
        print_plan_report(click_options.console(), cells, windows, cost)


def selection_of(policy: Policy, values: Mapping[str, Any]) -> Selection:
    """Return the selection that the values of options make; what they leave open is taken from the policy."""
    from export_core.matrix.selection import completed

    selection = read_options(Selection, values)
    # Given and empty, such as a variable of CI that is not set: it must not mean the policy's.
    if values["platforms"] is not None and not selection.platforms:
        raise click.UsageError("--platforms: expected platforms such as cpu,cuda, found none.")
    if values["readers"] is not None and not selection.readers:
        raise click.UsageError("--readers: expected readers such as window or 0.9.2,0.12.0.1, found none.")
    if not selection.readers and not selection.wheels and not selection.indexes:
        _check_readers_of_policy(policy, values["policy_file"])
    return completed(selection, policy)


def _check_readers_of_policy(policy: Policy, named: str | None) -> None:
    """Raise `PolicyError` for an unknown reader in the policy. The message names the policy's line, not an option."""
    from pathlib import Path

    from export_core.judge.unmatched import READERS, unknown_readers
    from export_core.policy.load import policy_file, read_policy

    if policy.readers == type(policy)().readers:
        return
    if (wrong := unknown_readers(policy, policy.calendar())) and (file := policy_file(Path(), named)):
        raise read_policy(file)[1].error([(READERS, problem) for problem in wrong])


def run_options(values: Mapping[str, Any]) -> RunOptions:
    """Return the options of a run that the values of options make. The folder of --dump-ir is made if it is given."""
    from export_core.matrix.plan import make_dump_folder

    options = read_options(RunOptions, values)
    if not options.dump_ir:
        return options
    if options.executor != LOCAL:
        raise click.UsageError("--dump-ir writes on the machine that runs the cells: it needs --executor local.")
    return replace(options, dump_ir=make_dump_folder(options.dump_ir))


class Follower:
    """The printer of the plan and the progress of a run.

    `shown` is a context manager that ends the progress bar.
    """

    _progress: RunProgress  # Made when the run starts, before anything else of it is observed.

    def __init__(self, screen: Console, options: RunOptions, *, quiet: bool) -> None:
        self._screen, self._options, self._quiet = screen, options, quiet
        self.shown = contextlib.ExitStack()
        self._planned = 0
        self._is_complete = False
        self._note: Callable[[str], None] = self._note_at_first

    def observer(self) -> Observer:
        """Return the observer that prints during the run."""
        from export_core.matrix.replay import AGAIN_SECONDS
        from export_core.report.progress import TERMINAL_SILENCE, is_redrawn
        from export_core.run.session import Observer

        return Observer(
            planned=self._plan,
            started=self._start,
            environment=lambda reader: self._progress.environment(reader),
            note=lambda text: self._note(text),
            result=lambda result: self._progress.result(result),
            ended=self._end,
            silence=TERMINAL_SILENCE if is_redrawn(self._screen) else AGAIN_SECONDS,
        )

    def _plan(self, plan: Plan, whole: Plan) -> None:
        from export_core.report.plan_report import print_plan

        print_plan(self._screen, plan)
        if self._options.shard:
            self._screen.print(f"shard {self._options.shard} of {len(whole.cells)} cells", highlight=False)

    def _start(self, plan: Plan, results: Sequence[Result]) -> None:
        from export_core.report.progress import RunProgress

        self._planned = len(plan.cells)
        # Not before the run: the plan, which says how long the bar is, is made inside it.
        self._progress = self.shown.enter_context(RunProgress(self._screen, plan, quiet=self._quiet))
        self._note = self._progress.note
        if self._options.resume:
            self._progress.note(
                f"{len(results)} of {self._planned} cells already {'has' if len(results) == 1 else 'have'} a result"
            )
        for result in results:
            self._progress.result(result)

    def _note_at_first(self, text: str) -> None:
        """Show a line, such as about machines that do not answer, before there is progress to show."""
        if not self._quiet:
            self._screen.print(text, style="bright_black", markup=False, highlight=False)

    def _end(self, summary: Summary) -> None:
        self._is_complete = True

    def state(self) -> str:
        """Return a sentence about an interrupted run: what is done, what is left, and how to continue."""
        from export_core.run.results import finished_before, results_written

        if not self._planned:
            return "No cell was run. Nothing was judged."
        if self._is_complete:
            return f"Every cell was judged: `jaxexport report {self._options.results}` shows the results."
        # Counted in the file: a signal may come after a result is written and before it is shown.
        folder = self._options.results or RESULTS
        done = results_written(folder)
        left = "1 is" if self._planned - done == 1 else f"{self._planned - done} are"
        return (
            f"{done} of {self._planned} cells {'has' if done == 1 else 'have'} a result, in {folder}, and {left} left: "
            f"the same command with --resume continues. Nothing was judged.{finished_before(folder)}"
        )
