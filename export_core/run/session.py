"""Running a matrix, the one use case: what is selected is planned, replayed, judged, and written.

The command line calls `run_matrix`, and nox and CI call the command line; pytest's own replay calls it too, with the
interpreter that runs pytest as the only reader.
"""

import datetime
import logging
import os
import platform
import re
import subprocess
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from msgspec import structs

from export_core.base.checked_arguments import require_type
from export_core.base.feature import hooks
from export_core.base.json_text import safe_json
from export_core.base.processes import run_git
from export_core.base.text import few, without_credentials
from export_core.base.untrusted import read_named
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.verify import check_claims, check_dates, is_unusual, verify_goldens
from export_core.judge import Result, RunFacts, Summary, calendar_facts, judge
from export_core.judge.gate import RunIdentity, facts_at_end, part_of_project, recorded_policy
from export_core.judge.generations import other_generations
from export_core.judge.known import check_width, promised_scopes
from export_core.judge.unmatched import unmatched_patterns
from export_core.judge.weakening import accepted_in
from export_core.matrix import Cell, Plan, Selection, make_plan
from export_core.matrix.cached_replay import OutcomeCache, replay_here, replay_unknown
from export_core.matrix.comparisons import under_policy
from export_core.matrix.forecasts import CellForecasts
from export_core.matrix.outcome import foreseen_note
from export_core.matrix.plan import part_of, planned_cell, without_needless
from export_core.matrix.replay import Replayed, ignore, replay
from export_core.matrix.replay_options import ReplayOptions, opened
from export_core.matrix.reproduce_command import reproduce_command
from export_core.matrix.selection import MatrixError, completed, is_whole, unused_jax
from export_core.numbers.measuring_noise import lacks_noise
from export_core.numbers.noise import knows_inputs_only, undecided_in
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.known_issues import known_issues
from export_core.policy.load import find_locations
from export_core.policy.run_options import LOCAL, CellLimits, RunOptions, Shard, reproduce_options
from export_core.readers.cached_environments import EnvironmentsCost, expected_cost
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.hardware import resolve_mode
from export_core.readers.placement import Placement
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import WorkerStarter
from export_core.releases import Release, parse_day
from export_core.run.errors import RunError
from export_core.run.plan_record import PlanRecord, is_narrower, policy_hash, record_of, recorded_plan
from export_core.run.results import WHOLE, Journal, finish_run, is_whole_run_moved, results_so_far
from export_core.run.run import Run, judge_run

Outcomes = Generator[Replayed, None, None]
Replay = Callable[..., Outcomes]
"""A function of cells, `ReplayOptions` and `notify`, which gets lines for people; it yields each cell with its outcome.
"""
_GIT_SECONDS = 10.0
_HEAD, _OBJECT = "# branch.oid ", re.compile("[0-9a-f]{40,}")


@dataclass(frozen=True)
class Interpreter:
    """The running interpreter as the only reader of a matrix."""

    environment: Environment  # The interpreter as a reader's environment.
    start: WorkerStarter = start_worker  # Starts the worker that runs cells.
    user_code: UserCode | None = None  # The process for comparators that the user wrote; None starts one for the run.
    cache: OutcomeCache | None = None  # The outcomes of earlier runs; if None, every cell runs.
    stopping: threading.Event = field(default_factory=threading.Event)  # Set when no more outcomes are wanted.

    def find(self, placement: Placement) -> Environment:
        """Return the environment of this interpreter, whatever the placement: nothing has to be built."""
        return self.environment

    build = find

    def replay(self, cells: Sequence[Cell], options: ReplayOptions, *, notify: Callable[[str], None]) -> Outcomes:
        """Yield each cell with its outcome.

        An outcome that `cache` has from an earlier run is taken from there, unless modules are dumped (`options.dump`).
        """
        run = partial(replay, options=options, notify=notify, start=self.start, stopping=self.stopping)
        if self.cache is None or options.dump:
            return run(cells, self.build)
        return replay_unknown(cells, self.cache, self, options, run, notify)


@dataclass(frozen=True)
class Observer:
    """The callbacks during a run; each does nothing unless given."""

    planned: Callable[[Plan, Plan], None] = ignore  # Gets the plan, and the whole plan (the same, unless for a shard).
    started: Callable[[Plan, Sequence[Result]], None] = ignore
    """Gets the plan and the results that a continued run has from before."""
    environment: Callable[[Release], None] = ignore
    """Gets each reader whose environment is found or built; called from several threads."""
    note: Callable[[str], None] = ignore
    """Gets a line about what happens beside the cells; called from several threads."""
    result: Callable[[Result], None] = ignore  # Gets each result, once it is written.
    ended: Callable[[Summary], None] = ignore  # Gets the summary, once it is written.
    silence: float | None = None
    """The seconds without a result after which `note` gets a line about the cell that runs longest; None for never."""


SILENT = Observer()  # An observer that does nothing.


def failing_softly(observer: Observer) -> Observer:
    """Wrap an observer so that its errors do not end a run.

    A callback that raises is not called again, and a note says so once: a warning in the log where `note` is not given
    or fails too. The result that it should show is on disk by then: hours of a run must not be lost to an error in
    showing it.
    """
    failed: set[str] = set()

    def report(text: str) -> None:
        if observer.note is not ignore:
            calls["note"](text)
        if observer.note is ignore or "note" in failed:
            logging.getLogger(__name__).warning("%s", text)

    def soft(name: str, call: Callable[..., None]) -> Callable[..., None]:
        def run(*args: object) -> None:
            if name in failed:
                return
            try:
                call(*args)
            except Exception as error:
                failed.add(name)
                shown = f"{type(error).__name__}: {error}"
                # The frame below this one: the line of the callback, whatever it called.
                frames = traceback.extract_tb(error.__traceback__)[1:2]
                where = "".join(f" ({frame.filename}:{frame.lineno})" for frame in frames)
                failure = f"the observer's callback {name} failed{where}, and is not called again: {shown}"
                report(f"{failure}. The results of the run are not affected.")

        return run

    values = {of.name: getattr(observer, of.name) for of in fields(observer)}
    calls: dict[str, Any] = {name: soft(name, value) for name, value in values.items() if callable(value)}
    return replace(observer, **calls)


class ExtendResults(Protocol):
    """The hook `after_replay`: what a feature does with the cells of a matrix once all of them have run."""

    def __call__(
        self, results: Sequence[Result], cells: Sequence[Cell], options: ReplayOptions, notify: Callable[[str], None]
    ) -> Sequence[Result]:
        """Return the results, with what the feature found added. `notify` is called with a line for people."""


class ReplayAt(Protocol):
    """The hook `executor`: the replay of cells on other machines."""

    def __call__(self, text: str, notify: Callable[[str], None]) -> AbstractContextManager[Replay]:
        """Return a context manager that gives the replay on the machines in `text`, the value of --executor.

        While the machines are waited for, `notify` is called from another thread with a line for people.
        """


def run_matrix(
    policy: Policy,
    selection: Selection,
    options: RunOptions,
    *,
    goldens: Sequence[Golden] | None = None,
    interpreter: Interpreter | None = None,
    observer: Observer = SILENT,
    words: Sequence[str] = (),
) -> Run:
    """Plan the selected cells, run those that have no result yet, judge each, and write results and summary.

    Args:
        policy: the policy of the project.
        selection: which cells are planned; readers and platforms that it does not give are those of the policy.
        options: how cells run.
        goldens: verified goldens to select from; None reads and verifies those of the folder.
        interpreter: the only reader, which replays the given goldens on the CPU; None for the selected readers.
        observer: callbacks; one that fails is noted, and not called again.
        words: the options of the command that makes the run, if any, for --resume.

    Raises:
        ExportCompatError: A golden or other input is wrong.
        MatrixError: The plan is empty.
        RunError: The folder of results cannot be used.
        ResultsNotWritten: The folder has no room for more results.
    """
    _check_arguments(policy, selection, options, goldens)
    observer, selection = failing_softly(observer), completed(selection, policy)
    limits = CellLimits.of(options)
    with ExitStack() as stack:
        given = interpreter.user_code if interpreter else None
        user_code = stack.enter_context(opened(given, policy, limits))
        whole = _whole_plan(policy, selection, options, goldens, interpreter, user_code)
        plan = part_of(whole, options.shard) if options.shard else whole
        observer.planned(plan, whole)
        started = time.monotonic()
        # The record is of the whole plan: all shards of a plan have the same digest, by which they are merged.
        shard = str(options.shard or "")
        identity = run_identity(policy, options.goldens or Path(policy.goldens)) if options.results else RunIdentity()
        record = record_of(whole, policy, limits, shard, plan, identity.checkout, words) if options.results else None
        facts = _facts(plan, identity, options.shard, record)
        if interpreter is None:  # a run of pytest reports neither, and has no time to read all arrays again
            undecided = undecided_in(plan.goldens, policy.tolerances)
            facts = structs.replace(
                facts,
                accepted=accepted_in(whole.goldens, policy),
                undecided=undecided,
                other_generations=other_generations(whole.goldens, policy),
            )
        # Before the journal is opened: a run that does not reach its machines leaves the results of the last run.
        replay_cells = interpreter.replay if interpreter else _replay_by(options, observer, stack)
        journal, results = None, []
        if options.results and record:
            journal = stack.enter_context(Journal(options.results, record, resume=options.resume))
            results = results_so_far(journal, plan, policy) if journal.resumed else []
        observer.started(plan, results)
        facts = structs.replace(facts, resumed=len(results))
        done = {result.key for result in results}
        left = [cell for cell in plan.cells if cell.key not in done]
        reproducing = reproduce_options(selection, options)
        # For pytest, the environment variables with which it was started: an imported module may have set more.
        variables = interpreter.environment.variables if interpreter else None
        # A run of pytest has one reader, and no time to read artifacts again.
        forecast = None if interpreter else CellForecasts(plan.cells, plan.calendar).of
        how = ReplayOptions(
            plan.calendar,
            policy,
            limits,
            plan.sources,
            options.cache,
            options.dump_ir,
            user_code,
            forecast,
            observer.silence,
        )
        # Closed at once when a signal or a full disk ends the loop: this stops the cells that are running.
        with closing(replay_cells(left, how, notify=observer.note)) as outcomes:
            for cell, outcome in outcomes:
                command = reproduce_command(plan, cell, reproducing, policy.environment, variables)
                forecast_text = (outcome.forecast or forecast(cell)) if forecast else ""
                known = foreseen_note(cell), forecast_text
                result = judge(outcome, cell.golden, policy, command, plan.as_of, *known)
                # Written before it is shown: a result that a person has seen survives when the process is killed.
                if journal:
                    journal.append(safe_json(result))
                results.append(result)
                observer.result(result)
        extended: Sequence[Result] = results
        set_options = [name for name, value in vars(options).items() if value]
        for extend_results in hooks("after_replay", ExtendResults, set_options):
            extended = extend_results(extended, plan.cells, how, observer.note)
        run = judge_run(extended, policy, facts_at_end(facts, time.monotonic() - started), plan=record)
        if journal and options.results:
            run = finish_run(journal, options.results, run)
        observer.ended(run.summary)
    return run


def _whole_plan(
    policy: Policy,
    selection: Selection,
    options: RunOptions,
    goldens: Sequence[Golden] | None,
    interpreter: Interpreter | None,
    user_code: UserCode,
) -> Plan:
    """Return the whole plan of a run, of which `options.shard` may name a part.

    A run that is continued is planned as of the day in its recorded plan, unless --as-of is given.
    """
    folder = options.results
    if options.resume and folder and not options.as_of and (last := recorded_plan(folder)):
        # For the plan alone: the command of a cell repeats the user's own options.
        options = replace(options, as_of=parse_day(last.as_of))
    if interpreter:
        return plan_here(policy, selection, options, goldens or (), interpreter.environment.release)
    plan = plan_matrix(policy, selection, options, goldens, user_code, is_run=True)
    is_part = bool(options.shard) or not plan.whole
    is_part |= bool(folder and is_narrower(selection.readers, folder))
    if folder and is_part and not options.resume and is_whole_run_moved(folder):
        part = part_of_project(plan.selection, policy, options.shard) or f"only readers {few(selection.named)}"
        moved = (
            f"this is less than a whole run ({part}): the results of the "
            f"last whole run in {folder} go to {folder / WHOLE} when it begins. To leave them where they are, choose "
            "another folder with --results DIR."
        )
        return replace(plan, warnings=(*plan.warnings, moved))
    return plan


def _check_arguments(policy: object, selection: object, options: object, goldens: object) -> None:
    """Raise `MatrixError` if a program passes `run_matrix` an argument of a wrong type."""
    advice = "which find_policy('.') or load_policy('export_compat.yaml') reads"
    require_type(policy, Policy, "run_matrix: policy", f"a Policy, {advice}", MatrixError)
    require_type(selection, Selection, "run_matrix: selection", "a Selection, such as Selection()", MatrixError)
    require_type(options, RunOptions, "run_matrix: options", "RunOptions, such as RunOptions()", MatrixError)
    stored = "goldens as GoldenStore('golden').goldens() reads them, or None"
    require_type(goldens, (list, tuple, type(None)), "run_matrix: goldens", stored, MatrixError)


def plan_matrix(
    policy: Policy,
    selection: Selection,
    options: RunOptions,
    goldens: Sequence[Golden] | None = None,
    user_code: UserCode | None = None,
    *,
    is_run: bool = False,
) -> Plan:
    """Return the whole plan of a selection, as `run_matrix` makes it, of which `options.shard` may name a part.

    Args:
        policy: the policy of the project.
        selection: which cells are planned.
        options: the options of the run, such as the day and the folder of goldens.
        goldens: the goldens to select from, already verified; None reads and verifies all goldens of the folder.
        user_code: the process for comparators that the user wrote, which are imported there; None imports none.
        is_run: whether a run follows: then warnings that the report of the run gives are left out.

    Raises:
        PolicyError: The globs of a known failure cover too much.
    """
    selection = completed(selection, policy)
    warnings: tuple[str, ...] = ()
    calendar = policy.calendar()
    if policy.known_issues:  # a table that cannot be read must not end a run after hours
        known_issues(policy.known_issues)
    if goldens is None:
        goldens = verify_goldens(GoldenStore(options.goldens or Path(policy.goldens)), calendar, all_known=False)
        selection = without_needless(selection, goldens)
        # Of all goldens, whatever the selection: what a part of them does not match may match the others.
        # Of readers that a policy lists, the report says only what is wrong for these.
        whole = selection.has_group and is_whole(selection, policy) and not options.shard
        # The policy is about the project's goldens: a folder of converted ones has few of their cases.
        of_project = () if all(golden.manifest.converted_from for golden in goldens) else goldens
        unmatched = unmatched_patterns(policy, of_project, calendar)
        location = find_locations(policy, options.policy_file)
        warnings = tuple(
            pattern.located(location) for pattern in unmatched if not (is_run and pattern.is_reported(whole=whole))
        )
    # Before the cells are made: keys of cached outcomes and jobs for other machines take comparisons from the goldens.
    goldens, day = under_policy(goldens, policy), options.as_of or calendar.today()
    plan = make_plan(goldens, calendar, policy.window_lengths(), selection, day, user_code, policy.targets_on(day))
    check_width(policy.known_failures, promised_scopes(plan.cells))
    warnings += tuple(unused_jax({cell.reader for cell in plan.cells}, plan.sources, calendar.jax))
    return replace(plan, warnings=warnings, whole=is_whole(selection, policy, day))


def plan_here(
    policy: Policy, selection: Selection, options: RunOptions, goldens: Sequence[Golden], reader: Release
) -> Plan:
    """Return the plan by which the running interpreter replays those of the goldens that were exported for cpu.

    `reader`, the release of this interpreter, is the only reader, whatever `selection` says.
    """
    if policy.known_issues:
        known_issues(policy.known_issues)
    calendar, windows, day = policy.calendar(), policy.window_lengths(), _day(options)
    goldens = under_policy(goldens, policy)
    check_dates(goldens, calendar)
    # Artifacts of other goldens are not read again here: the matrix reads them, and pytest has a time budget.
    check_claims((golden for golden in goldens if is_unusual(golden.manifest)), calendar)
    targets = policy.targets_on(day)
    cells = tuple(
        planned_cell(golden, reader, "cpu", windows, targets)
        for golden in goldens
        if "cpu" in golden.manifest.replayed_on
    )
    # Whatever was selected, one interpreter is the only reader, on the CPU.
    return Plan(cells, day, calendar, replace(selection, readers=reader.pair, platforms=("cpu",)))


def environments_cost(plan: Plan, policy: Policy) -> EnvironmentsCost:
    """Return how many environments a plan needs on this machine, and what it would cost to build the missing ones."""
    cells = (replace(cell, mode=resolve_mode(cell.mode, cell.platform)) for cell in plan.cells)
    placements = dict.fromkeys(cell.placement for cell in cells)
    environments = ReaderEnvironments.of(policy, plan.calendar, plan.sources)
    return expected_cost(environments, placements)


def _day(options: RunOptions) -> datetime.date:
    return options.as_of or datetime.datetime.now(tz=datetime.UTC).date()


def _facts(plan: Plan, identity: RunIdentity, shard: Shard | None, record: PlanRecord | None) -> RunFacts:
    """Return the facts that a run's summary takes from its plan, without what goldens and policy accept.

    Args:
        plan: the plan of the run; only the cells of the shard if the run is a shard.
        identity: what was run.
        shard: which shard the run is; None for a whole plan.
        record: the plan as it is written; None for a run that is not written.
    """
    return RunFacts(
        planned=len(plan.cells),
        as_of=plan.as_of,
        selection=plan.recorded_selection,
        calendar=calendar_facts(plan.calendar, plan.as_of),
        seconds=0.0,  # until `facts_at_end`
        unmeasured=sorted(golden.id for golden in plan.goldens if lacks_noise(golden)),
        inputs_only=sorted(
            golden.id for golden in plan.goldens if (noise := golden.manifest.noise) and knows_inputs_only(noise)
        ),
        plan=record.digest if record else "",
        shard=shard,
        without_cells=plan.without_cells,
        unexported_cases={platform: cases for platform, cases in plan.unexported_cases.items() if cases},
        later=dict(plan.later),
        identity=identity,
    )


def _replay_by(options: RunOptions, observer: Observer, stack: ExitStack) -> Replay:
    """Return the replay that --executor names: in readers' environments on this machine, or that of a feature.

    A feature's connections are closed with `stack`. Raises `RunError` if no feature has the hook `executor`.
    """
    if options.executor == LOCAL:
        return partial(replay_here, ready=observer.environment)
    for replay_at in hooks("executor", ReplayAt):
        return stack.enter_context(replay_at(options.executor, observer.note))
    raise RunError(f"--executor: expected {LOCAL}, found {options.executor!r}.")


# --- the commit and the job of a run; what the environment does not show is empty -------------------------------------


def run_identity(
    policy: Policy, goldens: Path, folder: Path = Path(), environment: Mapping[str, str] = os.environ
) -> RunIdentity:
    """Return the identity of a run that starts now: project, commit, CI job, tool, machine, goldens, policy and time.

    `folder` is that of the project. The environment variables are documented in GitHub's "Default environment
    variables" and in GitLab's "Predefined CI/CD variables".
    """
    commit, changed = _checked_out(folder)
    # The checked-out commit decides; a variable of CI names it where git is missing.
    commit = commit or environment.get("GITHUB_SHA") or environment.get("CI_COMMIT_SHA") or ""
    repository = environment.get("GITHUB_REPOSITORY", "")
    files, job = environment.get("CI_PROJECT_URL", ""), environment.get("CI_JOB_URL", "")
    if files:
        files += "/-"
    if server := environment.get("GITHUB_SERVER_URL"):
        files, number = f"{server}/{repository}", environment.get("GITHUB_RUN_ID")
        job = f"{files}/actions/runs/{number}" if number else ""
    return RunIdentity(
        project=_project(folder) or repository or environment.get("CI_PROJECT_PATH", ""),
        commit=commit,
        changed=changed,
        source_url=without_credentials(f"{files}/blob/{commit}" if files and commit else ""),
        ci_url=without_credentials(job),
        tool=version("pytest-jaxexport"),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count() or 1} cores",
        goldens=str(goldens),
        policy_sha256=policy_hash(recorded_policy(policy)),
        started=datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0),
    )


def _project(folder: Path) -> str:
    try:
        name = tomllib.loads(read_named(folder / "pyproject.toml").decode())["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return name if isinstance(name, str) else ""


def _checked_out(folder: Path) -> tuple[str, bool | None]:
    """Return the commit that is checked out in `folder`, and whether files of that commit were changed.

    The two are "" and None if git does not work in `folder`, or if there is no commit yet.
    """
    # One call, which writes nothing. Files that are not in git are left out: they may be many, and include results.
    words = ("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    try:
        lines = run_git(words, folder, _GIT_SECONDS).decode(errors="replace").splitlines()
    except (OSError, subprocess.SubprocessError):
        return "", None
    head = next((line.removeprefix(_HEAD) for line in lines if line.startswith(_HEAD)), "")
    if not _OBJECT.fullmatch(head):
        return "", None
    return head, any(not line.startswith("#") for line in lines)
