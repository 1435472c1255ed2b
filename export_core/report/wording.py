"""The wording that all media share: a cell with its dates and evidence, similar cells, costs, the headline of a run."""

import datetime
import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from export_core.artifact.audit import LAPACK, WITH_XLA, only_jax, targets_of_jax
from export_core.base.exit_code import ExitCode
from export_core.base.facts import labelled_facts
from export_core.base.text import few, first_line, plain_text, plural
from export_core.base.tolerances import GARBAGE
from export_core.judge import Judgement, Result, Summary
from export_core.judge.causes import Cause
from export_core.judge.gate import calendar_age
from export_core.judge.known import expired_among, expired_by_noun, matching_entry, may_excuse
from export_core.matrix import Verdict
from export_core.matrix.reproduce_command import command_parts, with_more_time
from export_core.matrix.result import Control, grouped, release_name
from export_core.matrix.verdicts import (
    MISSING_RESULT,
    NOTHING_PROMISED,
    STALE_LIST,
    STORED_IN_DOUBT,
    VERDICTS,
    WITHOUT_FLAGS,
    WORKING,
    FindingKind,
)
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure
from export_core.policy.known_issues import KnownIssue
from export_core.policy.run_options import ONE_CELL, ONE_OF_SEVERAL, OPTIONS, RESULTS
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Direction, Release, Windows
from export_core.releases.runtimes import known_runtimes
from export_core.report.run_tables import MapRelease, map_releases
from export_core.run.run import Run, command_again

MARKS = [
    "[..] outside the window",
    *(f"{name.facts.mark.strip()} {name.facts.short}" for name in Judgement if name.facts.mark),
    "~ flaky: had another verdict last time",
]
"""What the marks around the word of a verdict mean."""
_WORDS: dict[bool, list[str]] = {True: [], False: []}
"""The words of the verdicts, by whether a cell with one works."""
for _verdict in Verdict:
    _WORDS[_verdict in WORKING].append(f"{VERDICTS[_verdict].mark} {VERDICTS[_verdict].short}")
LEGEND = "\n".join(" · ".join(line) for line in (*_WORDS.values(), MARKS))
"""What the words and marks of a table mean."""

_FOR_ONE_CELL = {OPTIONS[name].flag for name in ("cases", "writers", "readers", "platforms", *ONE_CELL)}
"""The options of `jaxexport matrix` by which `reduce` and `explain` find the same cell, there in the singular."""
_MOST_LINES = 20


def named_folder(folder: Path | None) -> str:
    """Return the folder of results as an argument to append to a command, with a space before it.

    The text is "" for the default folder, which commands use without the argument.
    """
    return "" if folder in (None, RESULTS) else f" {shlex.quote(str(folder))}"


def judged_as(run: Run) -> str:
    """Return the arguments with which `jaxexport report` shows a run with the same judgement as here.

    They are the folder and the options, with a space before them; "" for the default folder without options.
    """
    return named_folder(run.folder) + (f" {run.options}" if run.options else "")


_STORE = ("--goldens", "--policy")
_TAKES = {
    "matrix": (*_STORE, "--as-of"),
    "can-i-deploy": (*_STORE, "--as-of", "--results"),
    "audit": _STORE,
    "diff": _STORE,
    "goldens verify": _STORE,
    "goldens prune": (*_STORE, "--as-of"),
    "forecast": (*_STORE, "--as-of"),
    "policy show": ("--policy",),
    "inspect": ("--policy",),
    "convert": ("--policy",),
    # `why_command` has the others.
    "explain": ("--results",),
    "bisect": ("--results",),
    "reduce": ("--results",),
}
"""The commands that a finding may advise, with the options by which they see what the run saw."""
_WITH_FILES = ("inspect", "convert", "diff")  # Those that do nothing without a file.
# Settings of variables may stand before a command.
_COMMAND = re.compile(rf"`(?:\w+=[^`]* )?jaxexport ({'|'.join(_TAKES)})((?: [^`]*)?)`")


def asked_of(run: Run) -> dict[str, str]:
    """Return the options that chose the goldens, the policy, the day and the folder of a run, with their values.

    An option of the command that judged the run takes precedence over the same option of the command that made it.
    """
    made = run.plan.options if run.plan and isinstance(run.plan.options, list) else []
    asked = asked_in(made) | asked_in(shlex.split(run.options))
    return {**asked, "--results": str(run.folder)} if named_folder(run.folder) else asked


def asked_in(words: Sequence[str]) -> dict[str, str]:
    """Return the options --goldens, --policy and --as-of among the words of a command, with their values."""
    return {option: value for option, value in itertools.pairwise(words) if option in _TAKES["matrix"]}


def command_of_plan(run: Run) -> str:
    """Return the shell command `jaxexport matrix` that runs all that is promised on the day of a run's judgement.

    It has the options of the command that made the run. --as-of is left out if the day is today.
    """
    made = run.plan.options if run.plan and isinstance(run.plan.options, list) else []
    replaced = {place for place, word in enumerate(made) if word in _TAKES["matrix"]}
    kept = [word for place, word in enumerate(made) if not {place, place - 1} & replaced]
    asked = {option: value for option, value in asked_of(run).items() if option != "--as-of"}
    if run.summary.as_of != datetime.datetime.now(tz=datetime.UTC).date():
        asked["--as-of"] = str(run.summary.as_of)
    return shlex.join(["jaxexport", "matrix", *kept, *itertools.chain(*asked.items())])


def with_asked(text: str, asked: Mapping[str, str]) -> str:
    """Return a text with the options `asked` added to each command in it that takes them and lacks them."""

    def completed(match: re.Match[str]) -> str:
        if match[1] in _WITH_FILES and not match[2]:  # the command is named, not shown
            return match[0]
        lacking = [option for option in _TAKES[match[1]] if option in asked and option not in match[2].split()]
        words = [word for option in lacking for word in (option, asked[option])]
        return f"{match[0][:-1]}{f' {shlex.join(words)}' if words else ''}`"

    return _COMMAND.sub(completed, text) if asked else text


def only_in_jax(results: Sequence[Result]) -> str:
    """Return what to do about cells of another runtime, each of which makes a custom call that only jax registers.

    Return "" if a cell is of another kind. The error of a cell may name another problem first, such as a dialect.
    """
    targets = [targets_of_jax(result.custom_calls) for result in results]
    refused = (Verdict.REFUSED, Verdict.ERROR)
    if not all(targets) or not all(one.reader.runtime and one.verdict in refused for one in results):
        return ""
    why = only_jax(sorted({target for of_cell in targets for target in of_cell}))
    family = results[0].reader.family
    helps = f"Neither a conversion nor another release of {family} helps"
    if all(target.startswith(LAPACK) for of_cell in targets for target in of_cell):
        helped = "helps only with `--replace-custom-calls`" if family in WITH_XLA else "seldom helps"
        helps = f"A conversion {helped}, and another release of {family} does not"
    return f"{why[0].upper()}{why[1:]}. {helps}."


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, with its full stop."""
    start, stop, _ = text.partition(". ")
    return f"{start}." if stop else text


OUTDATED = (
    "What decides verdicts has changed since the run in {}: it was made by {}. `jaxexport judge` and `can-i-deploy` do "
    "not count it. Run it again: `{}`."
)
"""The sentence about a run that is shown although it does not count any more: its folder, what has changed, and its
command."""


OUTDATED_RUN = FindingKind("OUTDATED", 2, "bold yellow", level="warning")
UNREAD_POLICY = FindingKind("UNREADABLE POLICY", 2, "bold yellow", level="warning")
OTHER_POLICY = FindingKind("OTHER POLICY", 2, "bold yellow", level="warning")


def doubts(run: Run) -> dict[FindingKind, str]:
    """Return why the judgement of a run may not hold for this project today: sentences by kind, the worst first."""
    outdated = OUTDATED.format(run.folder, run.changed, command_again(run)) if run.changed else ""
    sentences = {OUTDATED_RUN: outdated, UNREAD_POLICY: run.unread_policy, OTHER_POLICY: run.judged_otherwise}
    return {kind: sentence for kind, sentence in sentences.items() if sentence}


def headline(summary: Summary, readers: Sequence[Release] = ()) -> tuple[str, str]:
    """Return the two lines of the headline: what the run shows, with its numbers; then counts, date and exit code.

    `readers` are all readers of the run, by which a jaxlib that occurs with several jax is named with its jax. Without
    them, only the oldest and the newest reader of each cause are considered.
    """
    name, facts = _verdict_of_run(summary)
    counted = []
    if compiled := summary.verdicts.get(Verdict.COMPILED):
        counted.append(f"{compiled:,} compiled only")
    if known := summary.judgements.get(Judgement.KNOWN):
        counted.append(f"{plural(known, 'known failure')}{_listed_until(summary)}")
    if summary.flaky:
        counted.append(f"{summary.flaky:,} flaky")
    if counted:
        # What is missing may end with a count of its own, to which these do not belong.
        facts += f"{'; ' if summary.exit_code == ExitCode.INCOMPLETE else ', '}{', '.join(counted)}"
    if summary.exit_code in (ExitCode.BROKEN, ExitCode.INCOMPLETE) and summary.stale:
        facts += f"; {_stale_facts(summary)}"
    facts += _readers_affected(summary, readers)
    if summary.partial:
        facts += f"; partial: {plain_text(summary.partial)}"
    if old := old_calendar(summary):
        facts += f"; {old}"
    counts = counts_line(summary.judgements) or "no cell"
    line, below = _first_line(facts, summary)
    return (
        f"{name}: {line}.",
        f"{below}{summary.results:,} of {summary.planned:,} planned cells: {counts}. "
        f"As of {summary.as_of}, {summary.seconds:.0f} s{run_before(summary)}, exit code {summary.exit_code}.",
    )


def run_before(summary: Summary) -> str:
    """Return the words that say how many cells of a run that --resume continued ran before; "" for any other run."""
    return f" (continued: {plural(summary.resumed, 'cell')} ran before)" if summary.resumed else ""


def _first_line(facts: str, summary: Summary) -> tuple[str, str]:
    """Return the first line of the headline, and a sentence with details for below it, which ends with a space.

    The sentence is "" unless the run has several causes or fails in several ways.
    """
    failing = [name for name in Judgement if name.facts.exit_code is ExitCode.BROKEN]
    cells = sum(summary.judgements.get(name, 0) for name in failing)
    # Cells that fail alike are one cause, however they are judged.
    causes = len({cause.id for cause in summary.causes if cause.judgement in failing})
    others = [name for name in failing if name is not Judgement.BROKEN and summary.judgements.get(name)]
    line, below = facts, ""
    caused = f", {plural(causes, 'cause')}" if causes else ""
    ways = [name for name in failing if _failing_facts(summary, name)]
    if summary.exit_code == ExitCode.INCOMPLETE and len(ways) > 1:
        missing = _missing_facts(summary)
        line = f"{plural(cells, 'cell')}{caused}; {missing}"
        below = facts.replace(f"; {missing}", "", 1)
    elif summary.exit_code == ExitCode.BROKEN and cells:
        if len([*_broken_facts(summary), *others]) > 1:
            line, below = f"{plural(cells, 'cell')}{caused}", facts
        elif causes > 1:
            line, _, below = facts.partition("; ")
    return line, f"{below[:1].upper()}{below[1:]}. " if below else ""


def _verdict_of_run(summary: Summary) -> tuple[str, str]:
    """Return the word with which the headline begins, such as ``KEPT``, and the numbers that follow the word."""
    promised, kept = sum(summary.promised.values()), summary.promised.get(Judgement.KEPT, 0)
    failing = [(name, _failing_facts(summary, name)) for name in Judgement if name.facts.exit_code is ExitCode.BROKEN]
    also = [f"{name}: {facts}" for name, facts in failing if facts]
    if promised_nothing(summary):
        which = "every cell of this shard" if summary.shard else "every cell"
        return NOTHING_PROMISED.title, f"{which} is outside its window"
    if summary.exit_code == ExitCode.INCOMPLETE:
        # Incomplete outranks broken as an exit code only: what is broken is known, and comes first.
        also.append(_missing_facts(summary))
        name, _, facts = also[0].partition(": ")
        return name.upper(), "; ".join((facts, *also[1:]))
    if summary.exit_code == ExitCode.BROKEN:
        # Without a broken promise, a run fails by what the policy asks for in addition.
        name, _, facts = also[0].partition(": ") if also else ("failed", "", "")
        return name.upper(), "; ".join(filter(None, (facts, *also[1:], *summary.failed_on)))
    counted = "the 1 promised cell" if promised == 1 else f"all {promised:,} promised cells"
    all_kept = counted if kept == promised else f"{kept:,} of {plural(promised, 'promised cell')}"
    targets = [target for target in summary.deployed if target.cells]
    if cells := sum(target.cells for target in targets):
        works, names = sum(target.works for target in targets), _targets([target.name for target in targets])
        needed = f"{works:,} of {plural(cells, 'cell')} that {names} must run"
        all_kept = f"{all_kept}, and {needed}" if promised else needed
    if summary.exit_code == ExitCode.STALE:
        return STALE_LIST.title, f"{_stale_facts(summary)}; kept: {all_kept}"
    return "KEPT", all_kept


def _missing_facts(summary: Summary) -> str:
    """Return what an incomplete run lacks, such as ``incomplete: 1 of 9 planned cells has no result that counts``."""
    missing = summary.judgements.get(Judgement.INCOMPLETE, 0) + max(summary.planned - summary.results, 0)
    what = _unplanned_facts(summary) or _uncovered_facts(summary) or "no promise was tested"
    if missing:
        have = "has" if missing == 1 else "have"
        what = f"{missing:,} of {summary.planned:,} planned cells {have} no result that counts"
        if lost := _lost_shards(summary):
            of_them = summary.planned - summary.results
            what += f", {'' if of_them == missing else f'{of_them:,} of them '}since {lost} missing"
    return f"{MISSING_RESULT.title.lower()}: {what}"


def lost_cells(summary: Summary) -> str:
    """Return a sentence about the cells that tables do not show since their shards are missing; "" if none are."""
    lost, cells = _lost_shards(summary), summary.planned - summary.results
    be = "is" if cells == 1 else "are"
    return f"{lost.capitalize()} missing: {plural(cells, 'planned cell')} {be} not shown." if lost else ""


def _lost_shards(summary: Summary) -> str:
    """Return a phrase with the missing shards of a run, such as ``shards 2/3, 3/3 are``; "" if no shard is missing."""
    missing = summary.missing_shards
    named = few([*map(str, missing)])
    return f"{'shard' if len(missing) == 1 else 'shards'} {named} {'is' if len(missing) == 1 else 'are'}" * bool(
        missing
    )


def _stale_facts(summary: Summary) -> str:
    """Return in words how many entries of the policy have expired, the first day and the owners, and other defects.

    Known failures and quirks are counted separately. The text is "" if nothing has expired and there is no defect.
    """
    past = expired_by_noun(msgspec.convert(summary.policy, Policy), summary.as_of)
    facts = []
    for noun, entries in past.items():
        when = "expired on" if len(entries) == 1 else "have expired, the first on"
        owners = [*dict.fromkeys(entry.owner for entry in entries)]
        whose = plain_text(f"{'owner' if len(owners) == 1 else 'owners'} {few(owners)}")
        facts.append(f"{plural(len(entries), noun)} {when} {entries[0].expires}, {whose}")
    if others := len(summary.stale) - sum(map(len, past.values())):
        facts.append(f"{plural(others, 'defect')} in the list of known failures")
    return ", and ".join(facts)


def _listed_until(summary: Summary) -> str:
    """Return a phrase that says until when entries excuse the known failures of a run, such as `` until 2026-12-31``.

    The phrase is "" if all entries are permanent, or if all have expired, which `_stale_facts` reports.
    """
    known = [cause for cause in summary.causes if cause.judgement is Judgement.KNOWN]
    listed = msgspec.convert(summary.policy, Policy).known_failures
    entries = [entry for entry in listed if any(may_excuse(entry, cause) for cause in known)]
    ends = {entry.expires for entry in entries} - {None}
    if not ends or len(entries) == len(expired_among(entries, summary.as_of)):
        return ""
    words = first_end(entries, summary.as_of)
    return f" {words}" if words.startswith("until") else f", {words}"


def first_end(entries: Sequence[KnownFailure], as_of: datetime.date) -> str:
    """Return in words when the first of some known failures expires.

    Examples are ``until 2026-12-01``, ``the first until 2026-12-01`` and ``permanent``. For a day before `as_of`,
    ``until`` is ``expired on``.
    """
    ends = {entry.expires for entry in entries}
    days = sorted(day for day in ends if day)
    if not days:
        return "permanent"
    return f"{'the first ' if len(ends) > 1 else ''}{'expired on' if days[0] < as_of else 'until'} {days[0]}"


def old_calendar(summary: Summary) -> str:
    """Return in words how old the calendar of a run is; "" if its age is within the policy's `calendar_days`."""
    policy = msgspec.convert(summary.policy, Policy)
    return calendar_age(summary.calendar.get("newest_built", ""), summary.as_of, policy)


def _uncovered_facts(summary: Summary) -> str:
    """Return in words the first requirement that no cell covers, and how many more there are; "" if all are met."""
    if not summary.uncovered:
        return ""
    first, *others = map(plain_text, summary.uncovered)
    what = first_sentence(first).removesuffix(".")
    more = f"; {plural(len(others), 'more requirement')} {'is' if len(others) == 1 else 'are'} not met"
    return f"{what[:1].lower()}{what[1:]}{more if others else ''}"


def _unplanned_facts(summary: Summary) -> str:
    """Return in words how many goldens and cells are promised on the run's day but were never planned; "" if none."""
    goldens, cells = _unplanned(summary)
    parts = plural(len(goldens), "golden") if goldens else "", plural(sum(cells.values()), "cell") if cells else ""
    return (
        f"{' and '.join(filter(None, parts))} of the promised plan of {summary.as_of} never ran"
        if summary.unplanned
        else ""
    )


def unplanned_sentence(summary: Summary) -> str:
    """Return a sentence with the goldens and readers whose promised cells were never planned; "" if there are none."""
    if not summary.unplanned:
        return ""
    goldens, cells = _unplanned(summary)
    where = [*goldens, *(f"{name.replace('==', ' ')} ({plural(count, 'cell')})" for name, count in cells.items())]
    return f"{_unplanned_facts(summary)}: {', '.join(where)}. Run the matrix as of that day."


def _unplanned(summary: Summary) -> tuple[list[str], dict[str, int]]:
    """Return the promised goldens that a run left out, and the number of missing cells of its own goldens by reader."""
    goldens = [name for name in summary.unplanned if name in summary.later]
    return goldens, {name: count for name, count in summary.unplanned.items() if name not in summary.later}


def _failing_facts(summary: Summary, judgement: Judgement) -> str:
    """Return in words how many cells of a run fail with a judgement: ``67 of 1,350 promised cells``; "" if none."""
    cells, promised = summary.judgements.get(judgement, 0), summary.promised.get(judgement, 0)
    if judgement is Judgement.OWED:
        owing = [target.name for target in summary.deployed if target.judgements.get(judgement)]
        return f"{plural(cells, 'cell')} that {_targets(owing)} must run" if cells else ""
    if judgement is not Judgement.BROKEN:
        which = f"{cells:,} of {_all_promised(summary)}" if cells == promised else plural(cells, "cell")
        return f"{which} {judgement.facts.short}" if cells else ""
    causes = [cause for cause in summary.causes if cause.judgement is Judgement.BROKEN]
    rounding = sum(cause.is_rounding for cause in causes)
    of_them = f", {rounding} of which look{'s' * (rounding == 1)} like rounding" if rounding else ""
    return " and ".join(_broken_facts(summary)) + (f", {plural(len(causes), 'cause')}{of_them}" if cells else "")


def _broken_facts(summary: Summary) -> list[str]:
    """Return a phrase for each way in which a run is broken, with a count: ``67 of 1,350 promised cells``."""
    cells, promised = (counts.get(Judgement.BROKEN, 0) for counts in (summary.judgements, summary.promised))
    broken = [cause for cause in summary.causes if cause.judgement is Judgement.BROKEN]
    audited = [cause for cause in broken if cause.stage is Stage.AUDIT]
    stopped, inside = sum(cause.cells for cause in audited), sum(cause.promised for cause in audited)
    facts = [f"{promised - inside:,} of {_all_promised(summary)}"] if promised > inside else []
    if stopped:
        facts.append(f"{plural(stopped, 'cell')} with an artifact that fails the audit")
    unpromised = sum(cause.cells for cause in broken if promises_nothing(cause.first_reader) and cause not in audited)
    if unpromised:
        facts.append(f"{plural(unpromised, 'cell')} with other numbers in runtimes that promise nothing")
    if outside := cells - promised - (stopped - inside) - unpromised:
        facts.append(f"{plural(outside, 'cell')} with other numbers outside the window")
    if early := sum(len(change.broken) for change in summary.custom_call_changes):
        facts.append(f"{plural(early, 'golden')} with a custom call used too early")
    if gone := sum(len(change.deleted) for change in summary.custom_call_changes):
        facts.append(f"{plural(gone, 'cell')} in which a custom call was deleted too early")
    return facts


def _all_promised(summary: Summary) -> str:
    # A missing shard may have promised cells: which ones, its results would say.
    least = "at least " if summary.missing_shards else ""
    return f"{least}{sum(summary.promised.values()):,} promised cells"


def _targets(names: Sequence[str]) -> str:
    return f"{'deployment target' if len(names) == 1 else 'deployment targets'} {few(names)}"


def _readers_affected(summary: Summary, readers: Sequence[Release]) -> str:
    """Return a phrase with the oldest and the newest reader that has a broken or owed cell; "" if there is none.

    If causes affect different readers, the phrase has the readers of each known issue or verdict:
    ``lapack-cold-process in 0.6.2 to 0.9.2, crash in 0.11.0 and 0.12.0``. `readers` are all readers of the run.
    """
    so_far = " so far" if summary.missing_shards else ""
    causes = [cause for cause in summary.causes if cause.judgement.is_breach]
    ends = [_ends(cause) for cause in causes]
    named = map_releases([*readers, *itertools.chain.from_iterable(ends)])
    spans = [(named[oldest].name, named[newest].name) for oldest, newest in ends]
    if len(set(spans)) > 1:
        by_name = grouped(causes, lambda cause: cause.upstream or str(cause.verdict))
        texts = [f"{name} in {_joined(_united(own, named))}" for name, own in by_name.items()]
        return f"; readers affected{so_far}, by cause: {few(texts)}"
    oldest, newest = spans[0] if spans else ("", "")
    if oldest == newest:
        return f"; {'' if so_far else 'only '}reader affected{so_far} {oldest}" if oldest else ""
    return f"; oldest reader affected{so_far} {oldest}, newest {newest}"


def _ends(cause: Cause) -> tuple[Release, Release]:
    return cause.first_reader, cause.last_reader


def _united(causes: Sequence[Cause], named: Mapping[Release, MapRelease]) -> list[str]:
    """Return the readers that any of these causes affects, as ranges that do not overlap, oldest build first."""
    united: list[tuple[Release, Release]] = []
    for oldest, newest in sorted((_ends(cause) for cause in causes), key=lambda ends: ends[0].date_order):
        if united and oldest.date_order <= united[-1][1].date_order:
            first, last = united.pop()
            united.append((first, max(last, newest, key=lambda release: release.date_order)))
        else:
            united.append((oldest, newest))
    names = [(named[oldest].name, named[newest].name) for oldest, newest in united]
    return [oldest if oldest == newest else f"{oldest} to {newest}" for oldest, newest in names]


def _joined(spans: Sequence[str]) -> str:
    """Return at most three ranges of releases joined by "and", and how many more there are.

    The text has no comma, since commas separate causes.
    """
    rest = [f"{len(spans) - 3} more"] if len(spans) > 3 else []
    return " and ".join([*spans[:3], *rest])


def promised_nothing(summary: Summary) -> bool:
    """Return whether the most important fact about a run is that it tested no promise.

    That is so if no cell is promised, and nothing is broken, missing or stale.
    """
    missing = summary.uncovered or summary.unplanned or summary.judgements.get(Judgement.INCOMPLETE)
    return bool(summary.unpromised) and summary.exit_code in (ExitCode.KEPT, ExitCode.INCOMPLETE) and not missing


def shown_exit_code(summary: Summary) -> ExitCode:
    """Return the exit code that decides the symbol and the colour of a run.

    A run without a promised cell never looks kept, even if the policy accepts such runs (`unpromised`). A run that is
    both broken and incomplete looks broken, as its headline says.
    """
    if promised_nothing(summary):
        return ExitCode.INCOMPLETE
    breaking = (name for name in Judgement if name.facts.exit_code is ExitCode.BROKEN)
    is_broken = any(_failing_facts(summary, name) for name in breaking)
    return ExitCode.BROKEN if is_broken else ExitCode.of(summary.exit_code)


def counts_line(counts: Mapping[str, int]) -> str:
    """Return counts in words, such as ``6 kept, 2 bonus``."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def began_and_ended(cause: Cause, issue: KnownIssue | None = None) -> list[tuple[str, str]]:
    """Return when a cause began and ended: pairs of a label and a release, such as ``since`` and ``0.12.0``.

    The second pair has the release that fixed the known issue, or else the next reader of the run that works. A pair
    that is not known is left out.
    """
    began = ("began between", f"{cause.before} and {cause.since}") if cause.before else ("since", cause.since)
    ended = ("fixed in", issue.mended_in) if issue and issue.mended_in else ("works in", cause.mended_in)
    return [(word, version.replace("==", " ")) for word, version in (began, ended) if version]


def cell_mark(result: Result) -> str:
    """Return the word for a cell in a table: its verdict, in brackets if not promised, then the judgement's mark."""
    mark = VERDICTS[result.verdict].mark
    # Brackets before the marks for judgements: wrong numbers outside the window are `[num]!`.
    if not result.promised:
        mark = f"[{mark}]"
    return mark + judgement_mark(result)


def judgement_mark(result: Result) -> str:
    """Return the mark that follows a cell's verdict in a table: that of its judgement, then ``~`` if it is flaky."""
    return result.judgement.facts.mark + ("~" if result.flaky else "")


def window_line(result: Result) -> str:
    """Return in words how far apart writer and reader of a cell were built, and what is promised for that.

    An example is ``backward: reader built 155 days after the writer; promised to jaxlibs built until 2026-11-14 (180
    days)``.
    """
    is_forward = result.direction is Direction.FORWARD
    days = (
        f"{result.direction}: reader built {plural(result.days, 'day')} "
        f"{'before' if is_forward else 'after'} the writer"
    )
    if promises_nothing(result.reader):
        return f"{days}; nothing is promised"
    # From the dates, not the policy: a result contains no lengths of windows.
    length = abs((result.promised_until - result.writer.built).days)
    releases = f"releases of {result.reader.family}" if result.reader.runtime else "jaxlibs"
    edge = f"from {result.promised_until} on" if is_forward else f"until {result.promised_until}"
    promise = f"promised to {releases} built {edge} ({plural(length, 'day')})"
    if result.direction is Direction.SAME:
        days = "same: reader and writer were built on the same day"
    if result.control is Control.ALIKE and result.days <= length:
        return f"{days}; {promise}, but no promise covers what the device cannot do"
    if result.promised or result.direction is Direction.SAME:
        return f"{days}; {promise}"
    if result.reader.runtime and result.reader.family in known_runtimes() and result.days <= length:
        return f"{days}; {promise}, but the promise excludes this refusal"
    return f"{days}; outside the window: {promise}"


def promises_nothing(reader: Release) -> bool:
    """Return whether no artifact is promised to run in a reader.

    That is so if its runtime makes no promise, or if the reader has settings, which no promise covers.
    """
    if reader.with_settings:
        return True
    runtime = known_runtimes().get(reader.family) if reader.runtime else None
    return runtime is not None and runtime.promise is None


def promise_line(reader: Release) -> str:
    """Return a line with the promise of a reader's runtime and its source; "" for a jaxlib without settings."""
    if reader.with_settings:
        return "JAX promises nothing about settings: only a deployment target of the policy requires anything here"
    if not reader.runtime:
        return ""
    if (runtime := known_runtimes().get(reader.family)) is None:
        return f"{reader.family} is not installed here: what it promises is not known"
    if promise := runtime.promise:
        return f"{runtime.name} promises: {promise.says} ({promise.source})"
    return f"{runtime.name} promises nothing: only a deployment target of the policy requires anything of it"


JAX_PROMISE = "https://docs.jax.dev/en/latest/export/export.html#compatibility-guarantees"
"""Where JAX says what it promises."""


def promise_basis(policy: Policy, readers: Iterable[Release]) -> str:
    """Return sentences that say which promise a run is judged by, JAX's or the project's, and how long that is."""
    own, of_jax = policy.window_lengths(), Windows()
    whose = "JAX" if own == of_jax else "this project's policy"
    days = f"{plural(own.backward_days, 'day')} after the writer or {plural(own.forward_days, 'day')} before it"
    sentences = [
        f"Promised by {whose}, to jaxlibs built at most {days}.",
        "" if own == of_jax else f"JAX itself promises {of_jax.backward_days} and {of_jax.forward_days} days.",
        "A cell of another runtime names its own promise." if any(reader.runtime for reader in readers) else "",
    ]
    return " ".join(filter(None, sentences))


def first_lines(lines: Sequence[str], file: str = "results.jsonl") -> str:
    """Return the first `_MOST_LINES` lines of a text, then how many more are in `file` of the results folder."""
    rest = [f"and {len(lines) - _MOST_LINES} more, in {file}"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *rest])


def outcome_line(result: Result) -> str:
    """Return one line about what happened to a cell: how it ended, or a feature's objection to a cell that works."""
    objection = _objection(result)
    return f"{result.judgement.facts.short}: {objection}" if objection else result.ending


def why_command(name: str, result: Result, *words: str) -> str:
    """Return the shell command `jaxexport NAME` for a cell, such as `explain` or `reduce`, with `words` at its end.

    Its options and environment variables come from the command that reproduces the cell.
    """
    settings, given = command_parts(result.reproduce)
    pairs = [pair for pair in itertools.pairwise(given) if pair[0] in _FOR_ONE_CELL and pair != ("--platforms", "cpu")]
    chosen = [word for option, value in pairs for word in (ONE_OF_SEVERAL.get(option, option), value)]
    return " ".join([*settings, shlex.join(["jaxexport", name, *chosen, *words])])


def explain_command(result: Result, folder: Path | None) -> str:
    """Return the shell command `jaxexport explain` for a cell, with --results if `folder` is not the default one."""
    return why_command("explain", result, *(["--results", str(folder)] if named_folder(folder) else []))


def more_time(result: Result) -> str:
    """Return what to do about a cell that reached its time limit: first, run it again with more time."""
    longer = msgspec.structs.replace(result, reproduce=with_more_time(result.reproduce))
    step = VERDICTS[Verdict.TIMEOUT].next_step.format(longer=longer.reproduce, bisect=why_command("bisect", longer))
    return step.replace("report it to JAX", f"report it to {result.reader.family or 'JAX'}")


def writer_and_reader(result: Result) -> str:
    """Return a phrase with the case of a cell, its writer and its reader, and their build dates."""
    writer, reader = (
        f"{f'jax {release.jax} with ' if release.jax else ''}{release.title} (built {release.built})"
        for release in (result.writer.release, result.reader)
    )
    return f"{result.case}, written by {writer} and read by {reader} on {result.platform}"


def cell_sentence(result: Result) -> str:
    """Return a sentence with the case of a cell, its writer and reader, and what happened."""
    addition = result.judgement.facts.addition.format(few(result.deployed))
    if result.verdict is Verdict.NUMERICS and not result.promised:
        outside = ", and other numbers are broken on any date"
        whose = result.reader.family or "with such settings, JAX"
        addition = addition or (f"; {whose} promises nothing" if promises_nothing(result.reader) else outside)
    return f"{writer_and_reader(result)}, {VERDICTS[result.verdict].phrase}{addition}."


def owed_to(results: Iterable[Result]) -> str:
    """Return ``owed to`` with the names of the deployment targets that must run these cells; "" if none is owed."""
    names = dict.fromkeys(name for one in results if one.judgement is Judgement.OWED for name in one.deployed)
    return f"owed to {few([*names])}" if names else ""


def listed_briefly(results: Iterable[Result], policy: Policy, as_of: datetime.date) -> str:
    """Return the issues of the known failures that list these cells, and the first expiry; "" if none lists them.

    An example is ``#7, until 2026-12-01``.
    """
    known = (result for result in results if result.judgement is Judgement.KNOWN)
    entries = [*dict.fromkeys(entry for one in known if (entry := matching_entry(one, policy.known_failures)))]
    if not entries:
        return ""
    return f"{few([*dict.fromkeys(entry.issue for entry in entries)])}, {first_end(entries, as_of)}"


_TOO_LARGE = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|[Ee]xceed\w* \S* ?(?:capacity|memory)")
"""Messages of compilers about a program that needs more memory than their device has."""


def device_limit(result: Result) -> str:
    """Return in words whether the writer of a cell's golden can itself compile the program for the cell's device.

    The text is "" for a cell that was not judged by such a control.
    """
    writer = release_name(result.writer.release)
    device = result.device or result.platform
    if result.control is None:
        return ""
    is_too_large = _TOO_LARGE.search(result.message)
    what = f"The program does not fit {device}" if is_too_large else f"The compiler for {device} does not do this"
    if result.control is Control.ALIKE:
        return f"{what}, in {writer} either, which wrote it. So no release breaks a promise."
    shown = {
        Control.WORKS: f"{writer}, which wrote it, compiles it for {device}.",
        Control.OTHERWISE: f"{writer}, which wrote it, does not compile it for {device} either, for another reason.",
        Control.NOT_RUN: f"Whether {writer}, which wrote it, compiles it for {device} is not known: it was not run.",
    }
    return f"{what}. {shown[result.control]}" if is_too_large else shown[result.control]


def beyond_rounding(result: Result) -> str:
    """Return in words how wrong the numbers of a cell are, if rounding cannot explain them; "" for any other cell."""
    if not result.is_beyond_rounding:
        return ""
    if result.looks_like.startswith(GARBAGE):
        return result.looks_like
    if result.is_garbage:
        return "not finite, which rounding gives only at the edge of what a function is defined for"
    if result.max_noise_error is not None:
        return f"{result.max_noise_error:.3g} times the noise"
    return f"{result.times_allowed:.3g} times what is allowed"


def stored_in_doubt(why: str) -> str:
    """Return a sentence that says that the stored outputs of a golden are in doubt, since `why`.

    It is for a golden whose own writer gives other numbers.
    """
    return f"Unless the test is not deterministic, the golden's stored outputs are in doubt: {why}."


def no_rounding(result: Result) -> str:
    """Return in words why rounding cannot explain the numbers of a cell; "" if rounding may explain them."""
    size = beyond_rounding(result)
    return f"no rounding of a processor is known to give such numbers ({size})" if size else ""


def steps_in_doubt(result: Result, folder: Path) -> list[str]:
    """Return the steps to take about a golden whose stored outputs are in doubt. `folder` is the golden's folder."""
    first = [WITHOUT_FLAGS] if "XLA_FLAGS=" in result.processors else []
    return [*first, STORED_IN_DOUBT.format(shlex.quote(str(folder)))]


def golden_folder(result: Result, goldens: str) -> Path:
    """Return the folder of a cell's golden, below `goldens` unless the cell's command names another folder."""
    _, given = command_parts(result.reproduce)
    return Path(dict(itertools.pairwise(given)).get(OPTIONS["goldens"].flag, goldens), result.golden)


def error_size(noise: float | None, absolute: float | None) -> str:
    """Return the size of an error in words: in units of the writer's noise if that is known, or else absolute."""
    if noise is not None:
        return f"{noise:.3g} x noise"
    return "not finite" if absolute is None else f"off by {absolute:.2g}"


def evidence(result: Result, *, all_of_stderr: bool = False) -> list[tuple[str, str]]:
    """Return the evidence about a cell, as pairs of a label and a text: window, stage, message and so on.

    The text is "" where there is nothing to say. With `all_of_stderr`, it has all of stderr, not only the lines that
    explain an error.
    """
    return [
        ("window", window_line(result)),
        ("promise", promise_line(result.reader)),
        ("deployed", ", ".join(result.deployed)),
        ("stage", str(result.stage)),
        *([("mode", "compiled only: nothing ran")] if result.mode is Mode.COMPILE else []),
        ("message", result.message or str(result.verdict)),
        ("device", ", ".join(filter(None, (result.device, result.driver)))),
        ("processor", result.processors),
        ("foreseen", result.foreseen),
        ("flaky", result.flaky),
        *((label, "\n".join(lines)) for label, lines in labelled_facts(result.facts)),
        ("stderr", result.stderr if all_of_stderr else result.error_lines),
        # Of a cell that was not run, this would reproduce nothing: what to do names the command that continues the run.
        ("reproduce", "" if result.verdict is Verdict.NOT_RUN else result.reproduce),
    ]


def amount(figure: str, value: float) -> str:
    """Return a figure with its unit, as people read it, such as ``169.0 MB``, ``12.5 ms``, ``1,204`` or ``3.2 G``."""
    if figure == "run_seconds":
        return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"
    unit = "B" if figure.endswith("bytes") or figure == "bytes_accessed" else ""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale and (unit or value >= 1e6):
            return f"{value / scale:.1f} {prefix}{unit}"
    return f"{value:,.0f}{f' {unit}' if unit else ''}"


def figures_line(result: Result) -> str:
    """Return all figures of the compiler for a cell, such as ``temp_bytes 169.0 MB, …, fusions 16``; "" if none."""
    figures = msgspec.structs.asdict(result.cost) if result.cost else {}
    return ", ".join(f"{name} {amount(name, value)}" for name, value in figures.items() if value is not None)


def times(was: float, now: float) -> str:
    """Return the factor from one value to another as text: ``x2.00`` or ``/1.33``; ``new`` or ``gone`` if one is 0."""
    if not was or not now:
        return "new" if now else "gone"
    ratio = max(now / was, was / now)
    return f"{'x' if now > was else '/'}{ratio:,.{0 if ratio >= 100 else 2}f}"


def reason_line(result: Result) -> str:
    """Return the reason of a cell's judgement in one line: a feature's objection, the message, or the verdict."""
    return _objection(result) or first_line(result.message) or str(result.verdict)


def _objection(result: Result) -> str:
    """Return the objections of features to a cell that works, in one line; "" if there are none."""
    return (
        "; ".join(line for _, lines in labelled_facts(result.facts) for line in lines) if result.verdict.works else ""
    )
