"""The decision about a run: its counts, what it lacks, what is stale, and the exit code.

If no cell of a run covers what was asked of the run, the run is incomplete, whatever its other cells say.
"""

import dataclasses
import datetime
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from msgspec import structs

from export_core.base.exit_code import ExitCode
from export_core.base.json_text import as_stored
from export_core.base.text import few, plural
from export_core.judge.accepted import Accepted, as_of_day, merge_accepted
from export_core.judge.causes import Cause, causes_in
from export_core.judge.custom_call_changes import JudgedChange, judge_changes
from export_core.judge.known import check_width, scope_of, stale_entries
from export_core.judge.promised_plan import missing_promised
from export_core.judge.weakening import accepted_in
from export_core.matrix import Verdict
from export_core.matrix.result import Result, by_build_date
from export_core.matrix.selection import is_whole, readers_left_out, selection_by_policy
from export_core.matrix.verdicts import Judgement, is_expected
from export_core.policy import Policy
from export_core.policy.entries import Required, matches
from export_core.policy.known_issues import KnownIssue, known_issues
from export_core.policy.run_options import BACKWARD, Selection, Shard
from export_core.releases import Calendar, load_calendar
from export_core.releases.names import title_of

OUTSIDE, BONUS_LOST = "outside", "bonus-lost"
"""Values of the policy's `fail_on`, and of --fail-on: what else fails a run."""


class DeploymentTargetSummary(msgspec.Struct, frozen=True):
    """A deployment target of the policy, and the number of its cells by judgement."""

    name: str  # The name of the deployment target.
    jaxlib: str  # The jaxlib that runs there, or a runtime such as tensorflow==2.21.0.
    platform: str  # The platform of the deployment target.
    until: datetime.date | None  # The last day of its obligation; null for no end.
    cells: int  # How many cells of the run it has.
    judgements: dict[str, int]  # These cells by judgement.

    @property
    def works(self) -> int:
        """The number of the deployment target's cells that work."""
        return sum(self.judgements.values()) - sum(self.failing.values())

    @property
    def failing(self) -> dict[str, int]:
        """The number of the deployment target's cells that do not work, by judgement."""
        works = [judgement for judgement in Judgement if judgement.facts.works]
        return {name: count for name, count in self.judgements.items() if name not in works}

    @property
    def no_cell(self) -> str:
        """The beginning of a sentence that says why the run has no cell of this deployment target."""
        return f"deployed {self.name}: it has no cell"


class RunIdentity(msgspec.Struct, frozen=True):
    """What was run: project, commit, tool and goldens. A field is empty if its value is not known."""

    project: str = ""  # The name of the project.
    commit: str = ""  # The commit that was checked out.
    changed: bool | None = None  # Whether files of that commit were changed; null where git does not say.
    source_url: str = ""  # Where the files of that commit are shown.
    ci_url: str = ""  # The job of a CI system.
    tool: str = ""  # The version of pytest-jaxexport.
    machine: str = ""  # System, processor and number of cores.
    goldens: str = ""  # The folder of goldens as it was named.
    policy_sha256: str = ""  # The hash of the policy.
    started: datetime.datetime | None = None  # When the run began.
    ended: datetime.datetime | None = None  # When it ended.

    @property
    def checkout(self) -> str:
        """The commit, and whether files of it were changed; empty if the commit is not known."""
        return f"{self.commit} with changes" if self.commit and self.changed else self.commit


class RunFacts(msgspec.Struct, frozen=True):
    """The recorded facts of a run that are neither results nor policy: what was planned, selected and left out."""

    planned: int  # The number of planned cells.
    as_of: datetime.date  # The day as of which the run was judged.
    selection: dict[str, Any]
    """The readers, writers, cases and platforms that the run was asked for. `whole` is true if it had every golden, in
    the policy's readers or those of the window."""
    calendar: dict[str, Any]
    """The newest release with its build date, the number of releases that were not withdrawn, and a hash of dates."""
    seconds: float  # Wall time of the run, or of its last part.
    accepted: list[Accepted] = []
    """What makes these verdicts say less, each with its reason: allowed calls, own tolerances, quirks."""
    undecided: list[str] = []
    """Outputs with elements that would not show a wrong number: rounding alone moves them as far."""
    unmeasured: list[str] = []  # The goldens without noise, which `jaxexport goldens verify --noise` can measure.
    inputs_only: list[str] = []
    """The goldens whose noise was measured with changed inputs and compilations only: by an older version, or because
    results inside the program could not be changed."""
    other_generations: list[str] = []
    """The goldens whose inputs or expected outputs are not those of the golden before them, a sentence each."""
    plan: str = ""  # A digest of the whole plan: the same for all its shards.
    shard: Shard | None = None  # Which shard of the plan this was, null for all of it.
    missing_shards: list[Shard] = []  # Of joined shards, those that are missing or did not finish.
    not_run_shards: list[Shard] = []  # Of joined shards, those with cells that were not run.
    without_cells: str = ""  # The selected goldens that have no cell on the platforms asked for.
    unexported_cases: dict[str, list[str]] = {}
    """By platform: the cases of which no selected golden runs there."""
    later: dict[str, datetime.date] = {}
    """The selected goldens that the run does not have: by writers that were built after its day, or not there then;
    with the build dates of their writers."""
    identity: RunIdentity = RunIdentity()  # What was run: project, commit, tool and goldens.
    resumed: int = 0  # How many cells ran before --resume continued the run.


class Summary(RunFacts, frozen=True, kw_only=True):
    """summary.json: what was planned, what happened, and by which policy and calendar."""

    results: int  # The number of cells that have a result.
    verdicts: dict[str, int]  # Cells by verdict.
    judgements: dict[str, int]  # Cells by judgement.
    stale: list[str]  # Which known failures or quirks have expired or are no longer true, a sentence each.
    policy: dict[str, Any]  # The policy by which it was judged, in the form of its JSON Schema.
    exit_code: int  # The exit code of the run.
    custom_call_changes: list[JudgedChange] = []  # The declared changes of custom calls as of that day.
    uncovered: list[str] = []
    """What is missing beside the cells that were not run: what the policy requires and no cell covers."""
    unplanned: dict[str, int] = {}
    """The readers in which cells are missing that are promised on that day, or that a deployment target has to run;
    with how many. Of goldens that the run does not have and that are promised, the golden itself."""
    flaky: int = 0  # How many cells had another verdict the last time.
    unpromised: str = ""  # That no cell was promised; empty if one was, or was one that a deployment target has to run.
    partial: str = ""  # Which part of the project's plan this was; empty if it was all of it.
    results_sha256: str = ""  # The SHA-256 of results.jsonl.
    promised: dict[str, int] = {}  # The cells inside their window, by judgement.
    deployed: list[DeploymentTargetSummary] = []
    """The deployment targets of the policy that are in force on that day, and how their cells ended."""
    causes: list[Cause] = []  # What cells that fail have in common, the worst first.
    known_issues: list[KnownIssue] = []  # The known upstream issues that the causes name.
    failed_on: list[str] = []  # What failed the run because `fail_on` of the policy asks for it.


def facts_at_end(facts: RunFacts, seconds: float) -> RunFacts:
    """Return the facts with the run's end set to now, and its wall time to `seconds`."""
    now = datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0)
    return structs.replace(facts, seconds=seconds, identity=structs.replace(facts.identity, ended=now))


def calendar_facts(calendar: Calendar, as_of: datetime.date) -> dict[str, Any]:
    """Return the field `calendar` of a summary, as of a day: the newest release, its date, and a hash of all dates.

    Withdrawn releases are not counted.
    """
    known = calendar.as_of(as_of)
    # All that decides which readers there are and what is promised of them.
    facts = {
        kind: {version: (entry.built, entry.yanked) for version, entry in entries.items()}
        for kind, entries in (("jaxlib", known.jaxlib), ("jax", known.jax))
    }
    digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()
    newest = known.newest()
    return {
        "newest_jaxlib": newest,
        "newest_built": str(known.built(newest)),
        "releases": len(known.versions()),
        "sha256": digest,
    }


def summarize(
    results: Sequence[Result], policy: Policy, facts: RunFacts, causes: Sequence[Cause] | None = None
) -> Summary:
    """Return the summary of a run: counts of results, violations of the policy, and the exit code.

    A run is incomplete if nothing was planned, a result is missing or duplicated, or no cell covers what the policy
    requires. A run without a promised cell is incomplete too, unless the policy accepts that or the run is a shard. A
    golden that calls a new custom-call target too early breaks the run, even if every reader of this run has the
    target: other readers in use may lack it.

    Args:
        results: All results of the run, with the ids of their causes.
        policy: The policy by which the results were judged.
        facts: What else is known about the run; may be an earlier summary.
        causes: The causes of the results; None to collect them from the results.

    Raises:
        PolicyError: The globs of a known failure cover too much.
    """
    check_width(policy.known_failures, (scope_of(result) for result in results if result.promised or result.deployed))
    selection = _selection_of(facts, policy)
    # A part of a run cannot show that an entry matches nothing. The policy may select more now than when it was run.
    whole = bool(facts.selection["whole"]) and is_whole(selection, policy, facts.as_of)
    whole = whole and facts.shard is None and not facts.later
    # Nor can converted goldens alone, which are in a folder of their own.
    are_converted = bool(results) and all(result.converted for result in results)
    whole = whole and not are_converted
    stale = stale_entries(results, policy, facts.as_of, whole=whole, selection=selection)
    partial = part_of_project(selection, policy, facts.shard, facts)
    missing = _miscounted(facts.planned, results, facts.missing_shards)
    platforms = _without_modes(facts.selection.get("platforms", ()))
    if not facts.shard:  # a shard cannot know what the others cover
        missing += uncovered(results, policy.required, platforms, is_part=bool(partial))
    # Whatever the readers are, a run of every golden shows that a target's `cases` match none: they are misspelled.
    every_golden = facts.shard is None and selection.has_every_golden and not are_converted
    cases = {result.case for result in results}
    deployed, on_targets = [], [result for result in results if result.deployed]
    for target in policy.targets_on(facts.as_of):
        own = [result.judgement for result in on_targets if target.name in result.deployed]
        named = target.name, target.release, target.platform, target.until
        deployed.append(DeploymentTargetSummary(*named, len(own), _counted(own)))
        if target.platform not in platforms:
            continue
        elsewhere = facts.unexported_cases.get(target.platform, [])
        matches_none = every_golden and not any(map(target.has_case, {*cases, *elsewhere}))
        exported = f"was exported for {target.platform}"
        if not own and (whole or matches_none):
            why = "its `cases` match no case of this run" if matches_none else f"no golden of its cases {exported}"
            missing.append(f"{deployed[-1].no_cell}, since {why}. Correct the entry, or write such goldens.")
        elif every_golden:
            missing += [
                f"deployed {target.name}: {pattern!r} in its `cases` matches no case of this run. Correct the entry, "
                "or write such goldens."
                for pattern in target.cases
                if not _match_any({*cases, *elsewhere}, pattern)
            ]
            # Without those of which all cells there show that the golden is refused.
            here = {result.case for result in results if result.platform == target.platform}.difference(elsewhere)
            missing += [
                f"deployed {target.name}: no golden of {pattern!r} in its `cases` {exported}. Correct the entry, or "
                "write such goldens."
                for pattern in target.cases
                if _match_any(elsewhere, pattern) and not _match_any(here, pattern)
            ]
    causes = list(causes_in(results, load_calendar()) if causes is None else causes)
    issues = {cause.upstream for cause in causes if cause.upstream}
    # What is accepted of all goldens is that of the policy by which they are judged now.
    of_goldens = [as_of_day(facts.as_of, accepted) for accepted in facts.accepted if accepted.cases]
    summary = Summary(
        **{name: getattr(facts, name) for name in RunFacts.__struct_fields__ if name not in ("seconds", "accepted")},
        accepted=merge_accepted((of_goldens, accepted_in((), policy))),
        seconds=round(facts.seconds, 1),
        results=len(results),
        verdicts=_counted(result.verdict for result in results),
        judgements=_counted(result.judgement for result in results),
        stale=stale,
        policy=recorded_policy(policy),
        exit_code=ExitCode.KEPT,  # until `exit_code_of`
        custom_call_changes=judge_changes(results, policy.custom_call_changes, policy.window_lengths(), facts.as_of),
        uncovered=missing,
        unplanned=_unplanned(results, policy, facts),
        flaky=sum(bool(result.flaky) for result in results),
        unpromised=_nothing_promised(results, policy, facts, is_part=bool(partial)),
        partial=partial,
        promised=_counted(result.judgement for result in results if result.promised),
        deployed=deployed,
        causes=causes,
        known_issues=[issue for issue in known_issues(policy.known_issues) if issue.id in issues] if issues else [],
        failed_on=failing_outside(results, policy),
    )
    return structs.replace(summary, exit_code=exit_code_of(summary))


def broken_changes(summary: Summary) -> int:
    """Return how many declared changes of custom calls a golden or a reader has made too early."""
    return sum(bool(change.broken or change.deleted) for change in summary.custom_call_changes)


def exit_code_of(summary: Summary) -> ExitCode:
    """Return the exit code that follows from the other fields of a summary."""
    codes = {judgement.facts.exit_code for judgement in Judgement if summary.judgements.get(judgement)}
    # Incomplete outranks broken: what did not run may be broken too. The report lists both.
    if summary.uncovered or summary.unplanned or ExitCode.INCOMPLETE in codes:
        return ExitCode.INCOMPLETE
    if ExitCode.BROKEN in codes or broken_changes(summary) or summary.failed_on:
        return ExitCode.BROKEN
    if summary.stale:
        return ExitCode.STALE
    # Other shards may have promised cells.
    meant = summary.policy.get("unpromised") or summary.shard
    return ExitCode.INCOMPLETE if summary.unpromised and not meant else ExitCode.KEPT


def failing_outside(results: Sequence[Result], policy: Policy) -> list[str]:
    """Return one sentence if cells outside the window fail other than by a refusal, and `fail_on` has `outside`.

    Otherwise the list is empty.
    """
    failing = sum(
        result.judgement is Judgement.OUTSIDE
        and result.verdict.fails
        and not is_expected(result.judgement, result.verdict)
        for result in results
    )
    text = f"{OUTSIDE}: {plural(failing, 'cell')} outside the window failed other than by a refusal"
    return [text] if failing and OUTSIDE in policy.fail_on else []


def lost_bonuses(cells: Sequence[tuple[Result | None, Result | None]], policy: Policy) -> list[str]:
    """Return one sentence if cells that were a bonus in the baseline fail now, and `fail_on` has `bonus-lost`.

    Otherwise the list is empty. `cells` are pairs of results of the same cell: in the baseline, and in this run.
    """
    both = [(then, now) for then, now in cells if then and now]
    lost = sum(then.judgement is Judgement.BONUS and now.verdict.fails for then, now in both)
    text = f"{BONUS_LOST}: {plural(lost, 'cell')} that worked outside the window in the baseline failed"
    return [text] if lost and BONUS_LOST in policy.fail_on else []


def recorded_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy in the form that a summary stores, without the passwords in its URLs."""
    return cast(dict[str, Any], as_stored(policy.without_passwords()))


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, names)).items()))


def _miscounted(planned: int, results: Sequence[Result], missing: Sequence[Shard]) -> list[str]:
    if planned == 0:
        return ["Nothing was planned: expected at least one cell."]
    # Counting alone would take a result that is given twice for the one that is missing.
    if duplicates := len(results) - len({result.key for result in results}):
        return [f"{plural(duplicates, 'duplicate result')}: expected one for each of {planned} planned cells."]
    if missing:
        shards = f"{len(missing)} of {missing[0].count} shards missing or not finished"
        return [f"{shards}: --shard {', '.join(map(str, missing))}. Run them, then judge all shards again."]
    if len(results) != planned:
        return [f"Expected one result for each of {planned} planned cells, found {len(results)}."]
    return []


def uncovered(
    results: Sequence[Result], required: Required, platforms: Sequence[str], *, is_part: bool = False
) -> list[str]:
    """Return a sentence for each requirement that no cell covers.

    Args:
        results: The results of a run.
        required: The requirements of the policy.
        platforms: The platforms that the run was asked for.
        is_part: Whether the run is only a part of the project's plan. If so, the first sentence says how to get an
            exit code for this part alone.
    """
    ran = [result for result in results if result.verdict is not Verdict.NOT_RUN]
    # Cells that had to run and did not are incomplete already.
    planned = bool(results) and not any(result.judgement is Judgement.INCOMPLETE for result in results)
    missing = ["No cell ran, so nothing was tested."] if planned and not ran else []
    planned_on = {result.platform for result in results}
    missing += [
        f"Platform {platform} was asked for and has no cell, since no golden of this run was exported for it. Export "
        "for it (platforms= of the marker), or leave it out of --platforms and the policy."
        for platform in platforms
        if platform not in planned_on
    ]
    unmet = []
    if len(ran) < required.cells:
        unmet.append(f"required.cells: expected at least {plural(required.cells, 'cell')} that ran, found {len(ran)}.")
    seen = {
        "readers": by_build_date(result.reader for result in ran),
        "writers": by_build_date(result.writer for result in ran),
        "platforms": sorted({result.platform for result in ran}),
    }
    for name, values in seen.items():
        covered = ", ".join(values) or "none"
        for pattern in getattr(required, name):
            if not any(matches(value, pattern) for value in values):
                unmet.append(f"required.{name}: expected a cell that ran for {pattern}, found {covered}.")
    return [*missing, *(f"{text}{_FOR_PARTS if is_part and not number else ''}" for number, text in enumerate(unmet))]


_FOR_PARTS = (
    " `required` holds for each run, and this one is a part of the project's: `can-i-deploy` counts its cells "
    "all the same. For an exit code of this part alone, write what `jaxexport policy show --without required` "
    "prints into a file, and name it with --policy."
)


def _match_any(names: Iterable[str], pattern: str) -> bool:
    return any(matches(name, pattern) for name in names)


def _nothing_promised(results: Sequence[Result], policy: Policy, facts: RunFacts, *, is_part: bool) -> str:
    """Return a sentence if no cell of a run was promised or belongs to a deployment target; otherwise "".

    If `is_part`, the run is only a part of the project's plan, and the sentence advises nothing that would accept the
    whole plan.
    """
    # A deployment target of the policy is a reason to run it, as good as a promise.
    if not results or any(result.promised or result.deployed for result in results):
        return ""
    where = (
        f"is inside its window ({plural(policy.windows.backward, 'day')} backward, {policy.windows.forward} forward)"
    )
    choose = "Choose readers of the window (--readers window), write goldens with newer releases"
    if all(result.reader.runtime for result in results):
        where = "is promised by the runtime that reads it"
        choose = "Name the release that has to run them under `deployed` in the policy"
    if facts.shard or facts.missing_shards:
        which = "this shard" if facts.shard else "the shards that finished"
        return f"No cell of {which} {where}. `jaxexport judge` of all shards decides whether the run tests the promise."
    what = f"No cell of this run {where}, so it does not test the promise. "
    if policy.unpromised:
        return f"{what}This is accepted: {policy.unpromised}"
    for_all = "" if is_part else "unpromised: REASON in the policy, or "
    return f"{what}{choose}, or accept it with a reason: {for_all}--unpromised REASON."


def _unplanned(results: Sequence[Result], policy: Policy, facts: RunFacts) -> dict[str, int]:
    """Return the number of promised cells that the run lacks, by reader, and 1 for each golden that was left out.

    The result is empty for a shard or a run with missing results, for which this cannot be known.
    """
    if facts.shard or len(results) != facts.planned:  # the latter is incomplete anyway
        return {}
    goldens = dict.fromkeys(_not_run(facts), 1)
    return missing_promised(results, policy, facts.selection, facts.as_of) | goldens


def _not_run(facts: RunFacts) -> list[str]:
    """Return the goldens that a run left out although their writers were built by the day of the judgement."""
    return [golden for golden, built in facts.later.items() if built <= facts.as_of]


def calendar_age(newest_built: str, as_of: datetime.date, policy: Policy) -> str:
    """Return a phrase on the age of a calendar if it is older than the policy's `calendar_days` on a day; else "".

    A run knows no releases that were built after the last one in its calendar.
    """
    if not newest_built:  # of a run by an earlier version
        return ""
    days = (as_of - datetime.date.fromisoformat(newest_built)).days
    return (
        f"the calendar of releases ends on {newest_built}, {plural(days, 'day')} before"
        if days > policy.calendar_days
        else ""
    )


def _selection_of(facts: RunFacts, policy: Policy) -> Selection:
    """Return what a run was asked for: the selection in its facts, completed by the policy's defaults."""
    names = {field.name for field in dataclasses.fields(Selection)}
    recorded = {name: value for name, value in facts.selection.items() if name in names}
    return dataclasses.replace(selection_by_policy(policy), **recorded)


def part_of_project(
    selection: Selection, policy: Policy, shard: Shard | None = None, facts: RunFacts | None = None
) -> str:
    """Return which part of the project's plan a run covers, such as ``shard 1/7, only cases t.a``; "" for the whole.

    The project's plan has all goldens, and the readers and platforms of the policy. `facts` say which goldens the run
    left out; they are None before a run.
    """
    parts = [f"shard {shard}"] if shard else []
    not_run = len(_not_run(facts)) if facts else 0
    later = len(facts.later) - not_run if facts else 0
    parts += [f"without {plural(later, 'golden')} written later"] if later else []
    parts += [f"without {plural(not_run, 'golden')} that it did not run"] if not_run else []
    parts += [f"only {name} {few(own)}" for name in ("cases", "writers") if (own := getattr(selection, name))]
    if selection.touching:
        parts.append(f"only cells that {title_of(selection.touching)} wrote or reads")
    if selection.only:
        kinds = ["promised"]
        kinds += ["owed to a deployment target"] if policy.deployed else []
        kinds += ["read by a release newer than their writer"] if selection.only == BACKWARD else []
        parts.append(f"only cells that are {' or '.join(kinds)}")
    if readers_left_out(selection.readers, policy, facts.as_of if facts else None):
        parts.append(f"only readers {few(selection.named)}")
    platforms = _without_modes(selection.platforms)
    if not {*_without_modes(policy.spelled_platforms())} <= {*platforms}:
        parts.append(f"only platforms {few(platforms)}")
    return ", ".join(parts)


def _without_modes(platforms: Iterable[str]) -> list[str]:
    return [platform.partition(":")[0] for platform in platforms]


def in_order(results: Iterable[Result]) -> list[Result]:
    """Return results in the order of results.jsonl: by reader, oldest build first, then case, writer and platform."""

    # All of a cell's key is in it: no two runs order the same cells differently, whichever ended first.
    def key(result: Result) -> tuple[Any, ...]:
        reader = result.reader
        return reader.built, reader.name, reader.jax, *result.golden_order, result.platform

    return sorted(results, key=key)
