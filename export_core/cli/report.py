"""The command `jaxexport report`: a finished run in the terminal, in files, as a badge, and how its figures change."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from export_core.cli import click_options
from export_core.cli.click_options import hook_of
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.policy.run_options import RESULTS
from export_core.run.errors import RunError

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping

    import msgspec

    from export_core.goldens import Golden
    from export_core.judge import Result
    from export_core.policy import Policy
    from export_core.releases import Calendar, Release
    from export_core.report.document import RunDifference
    from export_core.run.run import Run

    Spelled = Callable[[Release], str]


class ShowTrend(Protocol):
    """The hook `trend`: how numbers and costs change from release to release."""

    def __call__(
        self,
        runs: Mapping[str, Sequence[Result]],
        goldens: Mapping[str, Mapping[str, str]],
        *,
        numbers: bool,
        cost: bool,
    ) -> tuple[msgspec.Struct, Sequence[str]]:
        """Return what --json prints, and the lines for people.

        `runs` has the results of each run by the run's name, the oldest first. `goldens` has the hash of each golden of
        a run by its id, by the run's name. `numbers` and `cost` say which of the two to show.
        """


NUMBERS, COST, BOTH = "numbers", "cost", "both"


@command(
    "docs/reference/reports.md",
    "jaxexport report --open",
    "jaxexport report --html report.html --junit junit.xml",
    "jaxexport report --badge badge.svg",
    "jaxexport report --trend numbers --cases '*.test_fft'",
    section="Matrix",
)
@click.argument("folders", metavar="[DIR]...", required=False, nargs=-1, type=click_options.PATH)
@click_options.results_option("Folder of the run, as DIR. [default: .jaxexport]")
@click.option("--open", "is_opened", is_flag=True, help="Write the page, and open it in a browser.")
@click_options.report_file_options
@click_options.full_option
@click.option(
    "--annotations",
    is_flag=True,
    help="Print workflow commands of GitHub Actions: annotations at the lines of affected tests.",
)
@click.option(
    "--badge",
    metavar="FILE",
    help="Draw a badge with the verdict as SVG; into a file *.json, write what a shields.io endpoint badge reads.",
)
@click_options.baseline_option
@click.option(
    "--trend",
    metavar="[numbers|cost]",
    type=click.Choice([NUMBERS, COST, BOTH]),
    is_flag=False,
    flag_value=BOTH,
    help="Show what changes from release to release, by build date: numbers, in units of the writer's noise, or "
    "memory, work and run times, the largest step first. Put DIR before it. [default: both]",
)
@click_options.declared("cases", text="With --trend: only these cases, ids or globs; may be given several times.")
@click_options.json_option("With --trend: print JSON (schema/trend.schema.json).")
@click_options.declared(
    "policy_file",
    text="Judge the results again by this policy, as `jaxexport judge` does. [default: as the run was judged]",
)
@click_options.rejudge_day_option
@click_options.fail_on_option
def report(
    folders: Sequence[str],
    results: str | None,
    is_opened: bool,
    files: Mapping[str, str],
    annotations: bool,
    badge: str | None,
    baselines: Sequence[str],
    trend: str | None,
    cases: Sequence[str],
    as_json: bool,
    full: bool,
    policy_file: str | None,
    as_of: str | None,
    fail_on: Sequence[str],
) -> None:
    """Show a finished matrix run in the terminal, or write it into files.

    Of several DIR, the newest run is shown, and the others are its history, as with --baseline.

    The run is shown as it was judged when it ran; with --policy, --as-of or --fail-on, as `jaxexport judge` judges it
    with the same options. A line names what decides verdicts and has changed since. The FILE - is standard output.

    --trend judges nothing: a change of bits is shown also where it is far inside the tolerance, and a change of cost
    whatever the budgets are.

    Exit code 0: the report was written. Exit code 3: it was not, since a planned cell has no result, or two.
    Whether the promise was kept is the exit code of `jaxexport matrix` and `jaxexport judge`.
    """
    from dataclasses import replace

    from export_core.report.view import view
    from export_core.report.wording import OUTDATED, doubts
    from export_core.run.outdated import changed_here, other_policy, unread_policy
    from export_core.run.results import read_run
    from export_core.run.run import command_again

    if folders and results:
        raise click.UsageError("DIR cannot be combined with --results, which means the same.")
    if folders[1:] and baselines:
        raise click.UsageError("Several DIR are a history already: they cannot be combined with --baseline.")
    if (as_json or cases) and not trend:
        raise click.UsageError(f"{'--json' if as_json else '--cases'} can only be used with --trend.")
    others: dict[str, object] = {"open": is_opened, "full": full, **files, "annotations": annotations, "badge": badge}
    others |= {"baseline": baselines, "policy": policy_file, "as-of": as_of, "fail-on": fail_on}
    if trend and (other := next((name for name, value in others.items() if value), "")):
        raise click.UsageError(f"--trend neither judges a run nor writes a file: it cannot be combined with --{other}.")
    click_options.check_fail_on(fail_on, baselines or folders[1:])
    runs = sorted(map(read_run, map(Path, folders or (results or RESULTS,))), key=lambda run: run.moment)
    run = runs[-1]
    path = run.folder
    assert path
    baselines = [*baselines, *(str(earlier.folder) for earlier in runs[:-1])]
    if is_opened:
        files = {"html": str(path / "report.html"), **files}
    if is_opened and files["html"] == click_options.STDOUT:
        raise click.UsageError("--open needs the page in a file: it cannot be combined with --html -.")
    written = [*files.values(), *filter(None, [badge, click_options.STDOUT if annotations else None])]
    click_options.check_outputs(written)
    if trend:
        if changed := changed_here(run):
            echo(f"note: {OUTDATED.format(path, changed, command_again(run))}", err=True)
        _show_trend(runs, trend, cases, as_json=as_json)
        return
    if policy_file or as_of or fail_on:
        run = judged_run(run, path, policy_file, as_of, fail_on)  # refuses a run that does not count any more
    else:
        run = replace(run, changed=changed_here(run), unread_policy=unread_policy(run))
        if not run.changed and (other_file := other_policy(run)):
            words = ["jaxexport", "report", *([] if path == RESULTS else [str(path)]), "--policy", str(other_file)]
            other = f"{other_file} is not the policy by which this run was judged: `{shlex.join(words)}` judges by it."
            run = replace(run, judged_otherwise=other)
    comparison = None
    if baselines:
        comparison = compared(run, baselines)
        # A lost bonus, or a growth since then, may have failed the run.
        run = comparison.run
    click_options.write_reports(files, run, comparison)
    if badge:
        from export_core.report.badge import badge_file

        click_options.write_output(badge, badge_file(run, as_json=badge.endswith(".json")))
    if annotations:
        from export_core.report.annotations import annotation_commands

        # As bytes: what is printed for people has its commands disarmed.
        click_options.write_output(click_options.STDOUT, annotation_commands(view(run)).encode())
    if full or not (files or badge or annotations):
        from export_core.report.terminal import print_report

        # What goes to standard output for other programs is not mixed with text for people.
        console = click_options.console(stderr=click_options.STDOUT in written)
        print_report(console, view(run, comparison), full=full, has_page="html" in files)
    else:
        for sentence in doubts(run).values():
            echo(f"note: {sentence}", err=True)
    if is_opened:
        import webbrowser

        if not webbrowser.open(Path(files["html"]).resolve().as_uri()):
            echo(f"{files['html']}: found no browser that opens it. Open the file yourself.", err=True)


def _show_trend(runs: Sequence[Run], shown: str, cases: Sequence[str], *, as_json: bool) -> None:
    """Print what changes in cells of `cases`, or of all cases: between releases in the last run, and between runs.

    `shown` is `NUMBERS`, `COST` or `BOTH`. Raises `RunError` if a pattern in `cases` matches no case of the last run.
    """
    from export_core.goldens import cases_meant
    from export_core.policy.entries import matches
    from export_core.report.wording import asked_of, with_asked
    from export_core.run.run import names_of_runs

    for pattern in cases:
        if not any(matches(result.case, pattern) for result in runs[-1].results):
            hint = cases_meant([pattern], dict.fromkeys(result.case for result in runs[-1].results), globs=True)
            raise RunError(f"--cases: no case of the run in {runs[-1].folder} matches {pattern!r}.{hint}")
    named = {
        f"{number}: {name}": run for number, (name, run) in enumerate(zip(names_of_runs(runs), runs, strict=True), 1)
    }
    chosen = {
        name: [result for result in run.results if not cases or any(matches(result.case, pattern) for pattern in cases)]
        for name, run in named.items()
    }
    goldens = {name: run.goldens for name, run in named.items()}
    trend, lines = hook_of("trend", ShowTrend, "--trend")(chosen, goldens, numbers=shown != COST, cost=shown != NUMBERS)
    if as_json:
        echo_json(trend)
        return
    asked = asked_of(runs[-1])
    for line in lines:
        echo(with_asked(line, asked))


def judged_run(
    recorded: Run,
    folder: Path,
    policy_file: str | None,
    as_of: str | None,
    fail_on: Sequence[str] = (),
    note: Callable[[str], None] | None = None,
) -> Run:
    """Judge the results of a run again by the policy that `judging_policy` finds, and return the run.

    Results of writers or readers that were built after the day are left out, as a plan of that day leaves them out.

    Args:
        recorded: the run as it was judged.
        folder: the folder of the run.
        policy_file: the policy that was named; None for none.
        as_of: the day to judge as of; None uses the day of the run.
        fail_on: what also fails the run, added to `fail_on` of the policy.
        note: gets a sentence about each two goldens of a case whose inputs or outputs differ, unless the run has
            that sentence already.

    Raises:
        RunError: as `judging_policy` does; or each cell of the run has a writer or reader that was built after the day.
    """
    from msgspec.structs import replace

    from export_core.judge import calendar_facts, judge_again
    from export_core.judge.gate import recorded_policy
    from export_core.judge.generations import notes_on_changed_goldens
    from export_core.matrix.result import existed_on
    from export_core.policy.run_options import ProjectOptions, option_words
    from export_core.run.plan_record import policy_hash
    from export_core.run.run import judge_run

    before, earlier = recorded.summary, recorded.policy
    file, policy, goldens = judging_policy(recorded, folder, policy_file)
    options = ["--policy", str(file)] if policy.without_locations() != earlier.without_locations() else []
    # The day of the run, not today: equal results and policy give the same judgement on any day.
    day = click_options.day_of(as_of) if as_of else before.as_of
    options += ["--as-of", str(day)] if day != before.as_of else []
    options += click_options.fail_on_words(fail_on)
    policy = click_options.with_fail_on(policy, fail_on)
    identity = replace(before.identity, policy_sha256=policy_hash(recorded_policy(policy)))
    later = before.later | _written_since(recorded, policy, goldens)
    existing = [result for result in recorded.results if existed_on(result, day)]
    if recorded.results and not existing:
        raise RunError(
            f"--as-of {day}: expected a cell whose writer and reader were built on or before this day in {folder}, "
            "found only later ones. Choose a later --as-of."
        )
    later |= {result.golden: result.writer.built for result in recorded.results if result.writer.built > day}
    facts = replace(
        before,
        as_of=day,
        calendar=calendar_facts(policy.calendar(), day),
        identity=identity,
        later=later,
        planned=before.planned - (len(recorded.results) - len(existing)),
    )
    # What reproduces a cell, and what explains it, has to say what this judgement says.
    named = {"--policy": str(file)} if file and (policy_file or "--policy" in options) else {}
    spelled = _spelled_on(day, policy.calendar()) if as_of else None
    if note:
        own = [golden for name, golden in goldens.items() if name in recorded.goldens and name not in later]
        root = before.identity.goldens
        project = ProjectOptions(Path(root) if root and Path(root) != Path(policy.goldens) else None, policy_file)
        known = before.other_generations
        for text in notes_on_changed_goldens(own, policy, option_words(project), known=known):
            note(text)
    results = (
        replace(judged, reproduce=_judged_alike(judged, named, day, spelled))
        for judged in (judge_again(result, policy, day) for result in existing)
    )
    return judge_run(results, policy, facts, plan=recorded.plan, folder=folder, options=shlex.join(options))


def _judged_alike(result: Result, named: Mapping[str, str], day: datetime.date, spelled: Spelled | None) -> str:
    """Return the command that reproduces a cell, with the policy and the day by which the cell was judged.

    Args:
        result: the judged cell.
        named: the option that names the policy; empty if the command finds it by itself.
        day: the day of the judgement.
        spelled: names the readers that existed on that day; None if the day of the run is meant.
    """
    from export_core.matrix.reproduce_command import command_parts, with_options

    reader = result.reader
    if spelled and (name := spelled(reader)):
        _, words = command_parts(result.reproduce)
        # A path of a wheel stays. A name alone means another jax on another day.
        has_name = {reader.name, reader.pair}.intersection(words)
        named = {**named, "--as-of": str(day), **({"--readers": name} if has_name else {})}
    return with_options(result.reproduce, named)


def _spelled_on(day: datetime.date, calendar: Calendar) -> Spelled:
    """Return a function that gives the name by which commands with `--as-of` this day take a reader.

    The name is "" for a reader that did not exist on that day.
    """
    from export_core.matrix.selection import reader_named
    from export_core.releases import ReleaseError

    existing = calendar.as_of(day)

    @functools.cache
    def spelled(reader: Release) -> str:
        for name in (reader.name, reader.pair):
            with contextlib.suppress(ReleaseError):
                if reader_named(name, existing) == reader:
                    return name
        return ""

    return spelled


def judging_policy(
    recorded: Run, folder: Path, policy_file: str | None
) -> tuple[Path | None, Policy, dict[str, Golden]]:
    """Return the policy by which to judge a run, with its file, and the run's goldens under this policy, by id.

    The policy is the one that `policy_file` names, else that of the project in the working folder, else that which the
    command of the run named. If none of them is here, it is the policy of the run, and its file is None. Only goldens
    whose folder is on this machine are returned.

    Raises `RunError` if the recorded verdicts do not count any more. Then the policy would run or compare the cells
    differently, the goldens are not those of the run, or something else that decides verdicts has changed.
    """
    from export_core.policy import load
    from export_core.run.outdated import changed_goldens, goldens_here
    from export_core.run.run import command_again

    file = load.policy_file(Path(), policy_file)
    own = recorded.plan.policy_file if recorded.plan else None
    if file is None and own and Path(own).exists():
        file = Path(own)
    policy = load.load_policy(file) if file else recorded.policy
    # The command of a run that named another file, or none, would run by that again.
    again = command_again(recorded, file if policy_file or own else None)
    if name := policy.replays_otherwise(recorded.policy):
        raise RunError(
            f"{file}: {name}: expected the value that this run was made with, found another one. It decides how "
            f"cells run and are compared: run it again (`{again}`), or judge by a policy with "
            "the same value."
        )
    if changed := recorded.changed_since(policy):
        raise RunError(
            f"{folder}: expected a run whose verdicts hold today, found one made with {changed}. Run it "
            f"again (`{again}`); `jaxexport report` shows this run as it was judged."
        )
    goldens = goldens_here(recorded, policy)
    if changed := changed_goldens(recorded, goldens):
        raise RunError(
            f"{folder}: expected a run of the goldens that are here, found one of {changed}. Restore them, or run it "
            f"again (`{again}`); `jaxexport report` shows this run as it was judged."
        )
    return file, policy, goldens or {}


def _written_since(recorded: Run, policy: Policy, goldens: Mapping[str, Golden]) -> dict[str, datetime.date]:
    """Return the goldens that a run lacks although one of its readers is promised to run them.

    The result has the build date of each golden's writer, by the golden's id. Goldens for other platforms than those
    of the run are left out. The result is empty for a run that is not whole.
    """
    from export_core.policy.run_options import Selection
    from export_core.readers.cell import promise_of_golden
    from export_core.readers.placement import parse_platform

    if not recorded.summary.selection["whole"]:
        return {}
    readers, windows = {result.reader for result in recorded.results}, policy.window_lengths()
    asked = recorded.summary.selection.get("platforms", Selection().or_else().platforms)
    platforms = {parse_platform(platform)[0] for platform in asked}
    new = {
        name: golden
        for name, golden in goldens.items()
        if name not in recorded.goldens and not platforms.isdisjoint(golden.manifest.replayed_on)
    }
    return {
        name: golden.manifest.writer.built
        for name, golden in new.items()
        if any(promise_of_golden(golden, reader, windows).promised for reader in readers)
    }


def compared(run: Run, baselines: Sequence[str]) -> RunDifference:
    """Return the difference of a run from the newest of the runs in the folders `baselines`.

    The older runs are shown as its history. Raises `click.UsageError` if no installed feature compares runs.
    """
    from export_core.report.document import CompareRuns

    return hook_of("compare", CompareRuns, "--baseline")(run, *map(Path, baselines))
