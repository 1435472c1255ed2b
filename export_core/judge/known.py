"""The known reasons of failing cells: upstream issues; the policy's known failures, and which of those are stale."""

import datetime
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from export_core.artifact import ArtifactError
from export_core.base.leaf_names import without_paths
from export_core.base.text import few, plural
from export_core.goldens import Golden, GoldenError, cases_meant
from export_core.judge.causes import Cause
from export_core.knowledge.concerns import About, is_concerned
from export_core.knowledge.knowledge_base import consumers_of
from export_core.matrix import Cell
from export_core.matrix.comparisons import is_about
from export_core.matrix.result import Cells, Result, titles
from export_core.matrix.selection import DEPLOYED
from export_core.matrix.verdicts import Judgement, Verdict
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import LONGEST_DAYS, KnownFailure, Quirk, matches
from export_core.policy.known_issues import Concerns, KnownIssue, days_of
from export_core.policy.run_options import COMPARISONS, GROUPS, WINDOW, Selection
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases.runtimes import JAXLIB, names_runtime

_WINDOW = Selection(readers=WINDOW)  # Every golden, in all readers of `window`.


Entry = TypeVar("Entry", bound=KnownFailure | Quirk)


class Scope(NamedTuple):
    """The properties of a cell that are compared with the patterns of a known failure.

    `writer` is the version of the writer's jaxlib, and `reader` the name of the reader.
    """

    case: str
    writer: str
    reader: str
    platform: str


def scope_of(result: Result) -> Scope:
    """Return the properties of a result's cell that are compared with the patterns of a known failure."""
    return Scope(result.case, result.writer.jaxlib, result.reader.name, result.platform)


def matching_entry(result: Result, known: Sequence[KnownFailure]) -> KnownFailure | None:
    """Return the known failure that matches the cell of a result and the way in which it failed, or None."""
    scope = scope_of(result)
    return next((entry for entry in known if covers(entry, scope) and _fails_so(entry, result)), None)


def covers(entry: KnownFailure, scope: Scope) -> bool:
    """Return whether the patterns of a known failure match the case, writer, reader and platform of a cell."""
    named = ((scope.case, entry.cases), (scope.writer, entry.writers), (scope.reader, entry.readers))
    has_platform = scope.platform in entry.platforms
    return has_platform and all(any(matches(name, pattern) for pattern in patterns) for name, patterns in named)


def may_excuse(entry: KnownFailure, cause: Cause) -> bool:
    """Return whether a known failure may match cells of a cause: by names, platform, verdict and stage."""
    named = ((cause.cases, entry.cases), (cause.writers, entry.writers), (cause.readers, entry.readers))
    fails_so = (cause.platform in entry.platforms, cause.verdict, cause.stage) == (True, entry.verdict, entry.stage)
    return fails_so and all(
        any(matches(name, pattern) for name in names for pattern in patterns) for names, patterns in named
    )


def check_width(known: Sequence[KnownFailure], promised: Iterable[Scope]) -> None:
    """Raise `PolicyError` if a known failure matches more cells than its `at_most` allows.

    Its globs would otherwise excuse new cells that its author has never seen. `promised` are the scopes of the cells
    that are promised, or that a deployment target has to run.
    """
    # By scope: a reader with two releases of jax is still one reader to an entry.
    scopes = set(promised) if known else set()
    for number, entry in enumerate(known):
        if (count := sum(covers(entry, scope) for scope in scopes)) > entry.at_most:
            raise PolicyError(
                f"{entry.location or 'policy'}: known_failures[{number}]: expected at most "
                f"{plural(entry.at_most, 'cell')} that "
                f"it can excuse (promised, or of a deployment target), found {count}. Name cases, writers and "
                f"readers more exactly, or write `at_most: {count}` and the `reason`."
            )


def promised_scopes(cells: Iterable[Cell]) -> Iterator[Scope]:
    """Yield the scopes of the cells of a plan that are promised, or that a deployment target has to run."""
    for cell in cells:
        if cell.decides:
            manifest = cell.golden.manifest
            yield Scope(manifest.case, manifest.writer.jaxlib, cell.reader.name, cell.platform)


def stale_entries(
    results: Iterable[Result], policy: Policy, as_of: datetime.date, *, whole: bool, selection: Selection = _WINDOW
) -> list[str]:
    """Return a sentence for each known failure and quirk of the policy that has expired or is no longer true.

    Args:
        results: All results of the run.
        policy: The policy.
        as_of: The day of the judgement.
        whole: Whether the run has all cells that `selection` asks for; only then an entry without a match is stale.
        selection: What the run was asked for.
    """
    results = list(results)
    # A converted golden has the name of its original, of which it shows nothing.
    whole = whole and not any(result.converted for result in results)
    problems = []
    readers = {result.reader.name for result in results} - _readers_of_ended_targets(policy, selection, as_of)
    for number, entry in enumerate(policy.known_failures):
        name = entry_name("known_failures", number, entry)
        untruths = _untruths(entry, results, as_of, readers, selection if whole else None)
        problems += [f"{name}: {problem}" for problem in untruths]
    # The writer's id, with its platform, is the last part of the golden's id.
    goldens = {(result.case, result.writer.jaxlib, result.golden.split("/")[-1]) for result in results}
    # Deployment targets and other runtimes may leave out goldens, for which pytest still needs the quirk.
    every_golden = whole and any(name != DEPLOYED and not names_runtime(name) for name in selection.named)
    for number, quirk in enumerate(policy.quirks):
        if every_golden and quirk.added <= as_of and not any(is_about(quirk, *golden) for golden in goldens):
            advice = _correction([quirk.case], results) or " Delete it."
            problems.append(f"{entry_name('quirks', number, quirk)}: matches no golden of this run.{advice}")
    return problems + expired(policy, as_of) + added_later(policy, as_of)


def _correction(patterns: Sequence[str], results: Iterable[Result]) -> str | None:
    """Return advice with the cases of a run that an entry's patterns probably mean; "" if they mean none.

    None if a pattern matches a case of the run.
    """
    cases = dict.fromkeys(result.case for result in results)
    if any(matches(case, pattern) for case in cases for pattern in patterns):
        return None
    hint = cases_meant(patterns, cases, globs=True)
    return f"{hint} Correct the entry, or delete it." if hint else ""


def _readers_of_ended_targets(policy: Policy, selection: Selection, as_of: datetime.date) -> set[str]:
    """Return the readers that are selected only for deployment targets that are not in force on a day.

    The results of an earlier run may have them; a run of that day does not.
    """
    named = set(selection.named)
    if DEPLOYED not in named or any(name in GROUPS or name[0] in COMPARISONS for name in named):
        return set()
    in_force = {target.release for target in policy.targets_on(as_of)}
    return {target.release for target in policy.deployed} - in_force - named


def _untruths(
    entry: KnownFailure,
    results: Sequence[Result],
    as_of: datetime.date,
    readers: Collection[str],
    whole: Selection | None,
) -> Iterator[str]:
    """Yield a sentence for each thing that is no longer true about a known failure.

    Outside the window, a known failure can excuse only wrong numbers and cells of deployment targets, since no other
    failure there breaks a run. It excuses converted goldens too, but their results cannot make it untrue.

    Args:
        entry: The known failure.
        results: All results of the run.
        as_of: The day of the judgement.
        readers: The names of the readers that have results, and that a run of that day has.
        whole: What the run was asked for; None if it has only a part of that, so that a missing match shows nothing.
    """
    excusable = [judgement for judgement in Judgement if judgement.is_breach or judgement is Judgement.KNOWN]
    counted = (result for result in results if result.promised or result.deployed or result.judgement in excusable)
    matching = [result for result in counted if covers(entry, scope_of(result))]
    if (width := len({scope_of(result) for result in matching})) > entry.at_most:
        yield (
            f"expected at most {plural(entry.at_most, 'cell')} that it can excuse, found {width}: "
            "wrong numbers and owed cells "
            "outside the window count too. Name cases, writers and readers more exactly, or write "
            f"`at_most: {width}` and the `reason`."
        )
    originals = [result for result in matching if not result.converted]
    # One that was not run, or not as far as the entry's stage, shows nothing.
    needs_run = entry.stage in (Stage.RUN, Stage.COMPARE)
    working = [result for result in originals if result.verdict.works]
    if passing := [result for result in working if not (needs_run and result.mode is Mode.COMPILE)]:
        yield (
            f"{len(passing)} of its cells {'passes' if len(passing) == 1 else 'pass'} now: "
            f"{_cells(passing)}. Take them off the list."
        )
    failing = [result for result in originals if result.judgement in excusable]
    if differing := [result for result in failing if not _fails_so(entry, result)]:
        first = differing[0]
        yield (
            f"{len(differing)} of its cells {'fails' if len(differing) == 1 else 'fail'} in another "
            f"way: expected {entry.verdict} in stage {entry.stage} with "
            f"{entry.message!r}, found {first.verdict} in stage {first.stage} with {first.message[:200]!r} in "
            f"{_cells(differing)}. Let the entry name only cases, writers and readers that fail as it says, or write "
            "how they fail now."
        )
    # A run on other platforms, without its readers, or as of a day before the entry was made, cannot match it.
    has_readers = any(matches(name, pattern) for name in readers for pattern in entry.readers)
    if whole and whole.has_group:  # in no other jaxlib is a cell promised
        has_readers = has_readers or any(not pattern[0].isalpha() for pattern in entry.readers)
    has_platforms = any(result.platform in entry.platforms for result in results)
    if whole and not matching and entry.added <= as_of and has_platforms and has_readers:
        advice = "Delete it." if whole.has_group else "Delete it, or let it name only readers of other runs."
        # A cell that fails in the same way outside the window looks like a match in the list of results.
        outside = [one for one in results if covers(entry, scope_of(one)) and _fails_so(entry, one)]
        verbs = ("fails", "is", "needs") if len(outside) == 1 else ("fail", "are", "need")
        why = ": its {} that {} so {} outside the window, and {} no excuse".format(plural(len(outside), "cell"), *verbs)
        why = why if outside else ""
        if (correction := _correction(entry.cases, results)) is not None:
            why = f": no golden of the run matches its cases {few([*map(repr, entry.cases)])}"
        yield f"matches no cell of this run that it can excuse{why}.{correction or f' {advice}'}"


def expired(policy: Policy, as_of: datetime.date) -> list[str]:
    """Return a sentence for each known failure or quirk that has expired as of a day.

    An expired entry still excuses its cells.
    """
    return [
        f"{name}: expired on {entry.expires}; this is as of {as_of}. If it is still needed, write a new "
        f"`expires`, at most {LONGEST_DAYS} days after a new `added`; else delete it."
        for name, entry in _expiring(policy)
        if _has_expired(entry, as_of)
    ]


def added_later(policy: Policy, as_of: datetime.date) -> list[str]:
    """Return a sentence for each known failure or quirk whose day `added` is after both `as_of` and today.

    Such a day would postpone the end of the entry.
    """
    # In the time zone where the entry was written it may be tomorrow already.
    latest = max(as_of, datetime.datetime.now(tz=datetime.UTC).date()) + datetime.timedelta(days=1)
    return [
        f"{name}: added in the future, on {entry.added}. Write the day on which it was added."
        for name, entry in _expiring(policy)
        if entry.added > latest
    ]


def _expiring(policy: Policy) -> Iterator[tuple[str, KnownFailure | Quirk]]:
    for table in _NOUNS:
        for number, entry in enumerate(getattr(policy, table)):
            yield entry_name(table, number, entry), entry


_NOUNS = {"known_failures": "known-failure entry", "quirks": "quirk"}
"""The tables of a policy whose entries expire, and what one of their entries is called."""


def expired_by_noun(policy: Policy, as_of: datetime.date) -> dict[str, list[KnownFailure | Quirk]]:
    """Return the known failures and quirks that have expired as of a day, by noun, such as ``quirk``.

    The entries of each noun are sorted by the day on which they expired.
    """
    by_noun = {noun: expired_among(getattr(policy, table), as_of) for table, noun in _NOUNS.items()}
    return {noun: sorted(past, key=lambda entry: entry.expires or as_of) for noun, past in by_noun.items() if past}


def expired_among(entries: Iterable[Entry], as_of: datetime.date) -> list[Entry]:
    """Return the entries whose last day is before the day `as_of`."""
    return [entry for entry in entries if _has_expired(entry, as_of)]


def _has_expired(entry: KnownFailure | Quirk, as_of: datetime.date) -> bool:
    return entry.expires is not None and entry.expires < as_of


def entry_name(table: str, number: int, entry: Any) -> str:
    """Return the name of a policy's entry for messages: file, line, table and index, then reason, owner and issue."""
    location = f"{entry.location}: " if entry.location else ""
    owner = f"; owner {entry.owner}, {entry.issue}" if hasattr(entry, "owner") else ""
    about = getattr(entry, "reason", "") or getattr(entry, "name", "")
    return f"{location}{table}[{number}]{f' ({about}{owner})' if about else ''}"


def _fails_so(entry: KnownFailure, result: Result) -> bool:
    if (result.verdict, result.stage) != (entry.verdict, entry.stage):
        return False
    # An entry may have the message of an older version, which named outputs by number alone.
    return entry.message in result.message or entry.message in without_paths(result.message)


def _cells(results: Sequence[Result]) -> str:
    """Return the names of cells in one line: each golden and platform, with the readers of its cells."""
    ordered = sorted(results, key=lambda result: (*result.golden_order, result.platform, result.reader.built))
    return "; ".join(
        f"{golden} on {platform} in {titles(result.reader for result in cells)}"
        for (golden, platform), cells in Cells(ordered).by_golden.items()
    )


def upstream_of(result: Result, golden: Golden, issues: Iterable[KnownIssue]) -> str:
    """Return the id of the first known issue that explains a failing cell; "" if none does.

    The golden's artifact is read only for the few issues that depend on its content.
    """
    consumers, built = consumers_of(result.reader.family or JAXLIB), str(result.reader.built)
    for issue in issues:
        if issue.consumer not in consumers or result.verdict not in issue.shown_by:
            continue
        since, mended, written = days_of(issue)
        if (
            (not issue.stage or _STAGES.index(result.stage) >= _STAGES.index(Stage(issue.stage)))
            and (not issue.platforms or result.platform in issue.platforms)
            and (not since or built >= since)
            and (not mended or built < mended)
            and (not written or str(result.writer.built) < written)
            # Where only some fail so, the message has to say which: numbers have none.
            and (issue.message or issue.certainty == "always" or result.verdict is Verdict.NUMERICS)
            and re.search(issue.message, result.message)
            and _is_concerned(result, golden, issue.concerns)
        ):
            return issue.id
    return ""


_STAGES = [*Stage]


def _is_concerned(result: Result, golden: Golden, concerns: Concerns | None) -> bool:
    """Return whether the `concerns` of a known issue describe the artifact of a cell; true if the issue has none.

    Custom calls are taken from the result; anything else is read from the artifact.
    """
    if concerns is None:
        return True
    asked = concerns.given
    calls = asked.pop("calls", ())
    if calls and not any(matches(call, glob) for call in result.custom_calls for glob in calls):
        return False
    if not asked:
        return True
    try:
        return is_concerned(About(golden.read_artifact()), asked)
    except (ArtifactError, GoldenError):  # what cannot be read shows nothing
        return False
