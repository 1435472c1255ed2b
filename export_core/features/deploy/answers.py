"""The answers whether each artifact runs in each deployment target, why not and since when, and what to upgrade first.

A stored run is evidence about a golden as long as the golden is still the same.
"""

import datetime
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.audit import calls_of_jax, only_jax
from export_core.artifact.readers import fails_when_called, without_advice
from export_core.artifact.writers import find_writer, is_rewritten
from export_core.base.text import few
from export_core.features.deploy.asked import Place, StoredResults, Subject, answer_folder, place_of, ran, shows_failure
from export_core.goldens import Golden
from export_core.goldens.manifest import EXPORTED_AGAIN, ConvertedFrom
from export_core.judge import Result
from export_core.judge.accepted import Accepted, as_of_day
from export_core.judge.causes import fails_in_own_writer
from export_core.judge.known import matching_entry
from export_core.judge.unmatched import Unmatched
from export_core.judge.weakening import accepted_in
from export_core.knowledge import NO, Forecast, conversion_may_help, forecast, forecasts, shardings_in_the_way
from export_core.matrix import Verdict
from export_core.matrix.forecasts import in_words
from export_core.matrix.reproduce_command import longer_limit
from export_core.numbers.nothing_compared import nothing_compared
from export_core.policy import Policy
from export_core.policy.entries import ALL, DeploymentTarget
from export_core.policy.known_issues import KnownIssue, todo_about
from export_core.policy.load_check import LoadCheck, check_load, find_reader, not_promised
from export_core.policy.run_options import RESULTS, CellOptions, ProjectOptions, Selection, option_words
from export_core.policy.terms import Terms
from export_core.readers.cell import FOR_ONE_DEVICE
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Calendar
from export_core.releases.names import parts_of, title_of
from export_core.releases.runtimes import built_on, runtime_of
from export_core.report.wording import asked_in, explain_command, with_asked


class DeployAnswer(StrEnum):
    """Whether an artifact runs in a deployment target."""

    YES = "yes"  # A stored result shows that it does.
    NO = "no"  # A stored result shows that it does not, or its bytes show that the release cannot load it.
    UNKNOWN = "unknown"
    """Neither is shown: a release that loads an artifact may still fail to run it, or give other numbers."""


class Deployment(msgspec.Struct, frozen=True):
    """The answer for one artifact in one deployment target."""

    artifact: str
    """The golden, `case/writer`; or the named file, with its golden if there is one; or a pattern of the target that
    matches no golden."""
    target: str  # The name of the deployment target.
    jaxlib: str  # The jaxlib that runs there, or a runtime such as tensorflow==2.21.0.
    platform: str  # The platform of the deployment target.
    answer: DeployAnswer  # Whether it runs there.
    why: str  # What shows it, in words.
    shown_by: str
    """The evidence: `results` of a stored run, the `forecast` from the bytes of the artifact, or, for a pattern, the
    `policy`."""
    folder: str = ""  # The folder of the stored run, if its `results` are the evidence.
    since: str = ""
    """If the answer is no: the first of the releases, up to the target's own, that all do not run it; empty unless a
    stored run passed in the release before."""
    upgrade_to: str = ""
    """If the answer is no: the first later release in which a stored run passed, or in which it may run if `foreseen`;
    empty if none is known. Releases before it that were not run may run it too."""
    foreseen: bool = False  # Whether `upgrade_to` is only forecast, from the artifact's bytes.
    run: str = ""  # If the answer is unknown: the shell command that answers it.


class Upgrade(msgspec.Struct, frozen=True):
    """A deployment target to upgrade, since some of the artifacts do not run there."""

    target: str  # The name of the deployment target.
    jaxlib: str  # The jaxlib that runs there, or a runtime such as tensorflow==2.21.0.
    to: str
    """The first later release that runs all of these artifacts, and in which no other artifact of the target is known
    to fail; one that stored results show to run them comes before a forecast. Empty if none is known."""
    foreseen: bool  # Whether `to`, or `partly`, is only forecast for at least one of the artifacts.
    artifacts: int  # How many artifacts do not run there.
    partly: str = ""
    """If `to` is empty: the first later release that runs all of these artifacts, though others fail in it."""
    failing: list[str] = []  # The artifacts of the target that fail in `partly`, each with how it fails.
    foreseen_earlier: str = ""
    """If stored results show that `to` runs these artifacts: the first release before it that is forecast to run them;
    empty if none is."""
    instead: list[str] = []  # If `to` and `partly` are empty: what to do instead, in sentences.


class Deployability(msgspec.Struct, frozen=True):
    """What `jaxexport can-i-deploy --json` prints."""

    as_of: datetime.date  # The day: later releases are ignored.
    answers: list[Deployment]  # One for each artifact and deployment target.
    upgrades: list[Upgrade]  # The deployment targets to upgrade, those with the oldest release first.
    exit_code: int  # 0: all answers are yes. 1: at least one is no. 3: none is no, at least one is unknown.
    old_calendar: str = ""
    """The age of the calendar of releases in words; empty if it is less than the policy's `calendar_days`."""
    accepted: list[Accepted] = []  # What weakens these answers in the goldens and in the policy.
    out_of_force: dict[str, str] = {}
    """By deployment target: why it is not in force on that day. It has answers only if `--to` names it."""
    left_out: dict[str, list[str]] = {}
    """By deployment target: the goldens that need not run there, since they were not exported for its platform."""


_DEFAULT = Policy()


@dataclass(frozen=True)
class Question:
    """What answers depend on, besides the artifact and the deployment target.

    `calendar` has the releases that exist on the day asked about, `evidence` the stored results, `issues` the known
    upstream issues by id. A printed `jaxexport matrix` command gets the options of `project`. `results` is the results
    folder that was asked about: the command writes to the folder inside it for `to`, the value of `--to`. `cases` are
    all cases that run on the targets' platforms, or empty if the user named artifacts. `policy` says how outputs are
    compared. `of_other_content` has the cells with a stored result that does not count, since the golden was changed;
    `folders` has the results folder of each cell in `evidence`.
    """

    calendar: Calendar
    terms: Terms
    evidence: StoredResults
    issues: Mapping[str, KnownIssue]
    project: ProjectOptions
    results: Path
    cases: Collection[str] = ()
    policy: Policy = _DEFAULT
    of_other_content: Collection[Place] = ()
    folders: Mapping[Place, Path] = field(default_factory=dict)
    to: str = ALL


_CONVERTED = Path("converted")
"""The folder for converted goldens, in the command that answers for a converted file: in a folder for each reader."""
_MOST_NAMED = 5  # The most cases that a printed command names; for more, it runs all cases.
_LOADING = (Stage.READ, Stage.DESERIALIZE, Stage.MODULE)  # Stages in which a release cannot load an artifact.


def deployability(
    pairs: Sequence[tuple[Subject, DeploymentTarget]],
    question: Question,
    as_of: datetime.date,
    unmatched: Sequence[tuple[Unmatched, DeploymentTarget]] = (),
) -> Deployability:
    """Return the answer for each pair of an artifact and a deployment target.

    Args:
        pairs: The artifacts and deployment targets to answer for.
        question: What the answers depend on besides.
        as_of: The day that the answers are for.
        unmatched: Patterns in the `cases` of a target that match no golden. Their answer is unknown.

    Raises:
        ArtifactError: A module of an artifact cannot be read.
    """
    targets = list({target.name: target for _, target in pairs}.values())
    answered_of = {
        target.name: [_deployment(*pair, question) for pair in pairs if pair[1] == target] for target in targets
    }
    run = _command_for_unknown([each for own in answered_of.values() for each in own], targets, question)
    targets = list({target.name: target for target in (*targets, *(target for _, target in unmatched))}.values())
    answers: list[Deployment] = []
    upgrades = []
    for target in targets:
        answered = answered_of.get(target.name, [])
        answers += [
            msgspec.structs.replace(each.deployment, run=run) if _is_pending(each) else each.deployment
            for each in answered
        ]
        for pattern, own in unmatched:
            if own == target:
                where = target.name, target.release, target.platform
                answers.append(Deployment(pattern.pattern, *where, DeployAnswer.UNKNOWN, pattern.text, "policy"))
        if any(each.outlook for each in answered) and not target.has_ended(as_of):
            upgrades.append(_upgrade_of(target, answered, question))
    built = {target.name: built_on(target.release, question.calendar) or datetime.date.max for target in targets}
    upgrades.sort(key=lambda upgrade: (built[upgrade.target], upgrade.target))
    given = {answer.answer for answer in answers}
    exit_code = 1 if DeployAnswer.NO in given else 3 if DeployAnswer.UNKNOWN in given else 0
    goldens = {subject.golden.id: subject.golden for subject, _ in pairs if subject.golden}
    accepted = [as_of_day(as_of, each) for each in accepted_in(goldens.values(), question.policy)]
    return Deployability(as_of, answers, upgrades, exit_code, accepted=accepted)


@dataclass(frozen=True)
class _Outlook:
    """Whether an artifact works in each release of the runtime that a deployment target runs, the oldest first.

    `works` has no release if none can run the artifact. A release works if a stored result shows it (`ran_in`), or if
    it is forecast; None stands for a release of which neither is known.
    """

    works: Mapping[str, bool | None]
    ran_in: Collection[str]

    def around(self, release: str) -> tuple[str, str, bool]:
        """Return in which releases the failure of an artifact begins and ends, given a release in which it fails.

        Returns the first failing release, the first later release that works, and whether the latter is only forecast.
        A release is "" if it is not known: the first failing one unless a stored run passed in the release before it.
        """
        if not self.works:
            return "", "", False
        versions = [*self.works]
        here = versions.index(release)
        # The deployment target's own release fails: a stored result or the artifact's bytes show it.
        good = [number for number in range(here) if self.works[versions[number]] is not False]
        since = versions[good[-1] + 1] if good and versions[good[-1]] in self.ran_in else ""
        later = next((name for name in versions[here + 1 :] if self.works[name]), "")
        return since, later, bool(later) and later not in self.ran_in


@dataclass(frozen=True)
class _Answered:
    """The answer for an artifact in a deployment target; `outlook` is None unless the answer is no."""

    subject: Subject
    deployment: Deployment
    outlook: _Outlook | None


def _is_pending(answered: _Answered) -> bool:
    """Return whether an answer is unknown, and a run of the project's goldens would give it."""
    deployment = answered.deployment
    return deployment.answer is DeployAnswer.UNKNOWN and not deployment.run


def _command_for_unknown(answered: Sequence[_Answered], targets: Sequence[DeploymentTarget], question: Question) -> str:
    """Return the command that runs the cells whose answers are unknown; empty if a run would answer none.

    The command also runs cells with a known answer if it replaces the folder that has their results. It may run
    others, since its options name cases, writers and readers, and it runs every golden of these in each reader.
    """
    written = answer_folder(question.results, question.to)

    def place_asked(each: _Answered) -> Place:
        golden = each.subject.golden
        return golden.id if golden else "", each.deployment.jaxlib, each.deployment.platform

    pending = [each for each in answered if _is_pending(each)]
    if not pending:
        return ""
    stored = (question.evidence.get(place_asked(each)) for each in pending)
    timed_out = [one.reproduce for one in stored if one is not None and one.verdict is Verdict.TIMEOUT]
    limit = max(map(longer_limit, timed_out), key=float, default="")  # the others get it too: one run has one limit
    needed = [each for each in answered if _is_pending(each) or question.folders.get(place_asked(each)) == written]
    named = {each.deployment.target for each in needed}
    chosen = [target for target in targets if target.name in named]
    return _command([each.subject for each in needed], chosen, question, limit)


def _deployment(subject: Subject, target: DeploymentTarget, question: Question) -> _Answered:
    answer, why, result = _answer(subject, target, question)
    outlook = _outlook(subject, target, question) if answer is DeployAnswer.NO else None
    around = outlook.around(target.release) if outlook else ("", "", False)
    run = todo = ""
    if subject.golden is None:
        run, todo = _adding_command(subject, question)
        if subject.stored:
            store = subject.stored.folder.parents[1]
            run = "; ".join(_asking_again(subject, subject.stored, store, target, question))
            why += f"; it is the artifact of {subject.stored.id} in {store}"
            todo = "run that golden"
        elif subject.original and subject.origin and subject.origin.reader == target.release:
            # Its record is no evidence: anybody can write one. A golden that is converted too can be replayed.
            run = _converting_command(subject, subject.original, subject.origin, target, question)
            says = f" (its record, which is no evidence, says: {subject.verified})" if subject.verified else ""
            why += f"; it was converted from {subject.original.id}{says}"
            todo = "convert that golden too, run it"
    named = subject.name, target.name, target.release, target.platform
    shown_by = "results" if result else "forecast"
    folder = question.folders.get(place_of(result), "") if result else ""
    if answer is not DeployAnswer.UNKNOWN:  # what is known needs no run
        run = todo = ""
    why += f": {todo}, and ask again" if todo else ""
    return _Answered(subject, Deployment(*named, answer, why, shown_by, str(folder), *around, run), outlook)


def _answer(subject: Subject, target: DeploymentTarget, question: Question) -> tuple[DeployAnswer, str, Result | None]:
    """Return the answer and its reason, and the stored result that gives it, or None if no result does."""
    result = _stored(subject, target.release, target.platform, question)
    # A cell that passes where the artifact is refused shows the refusal.
    if result is not None and ran(result) and (target.reader or not _is_refused_on(subject.artifact, target.platform)):
        return (
            DeployAnswer.YES,
            f"it ran in {title_of(target.release)}{_shown_by_outputs(subject, target, question)}",
            result,
        )
    reader = find_reader(target.release, question.terms, question.calendar)
    check = check_load(subject.artifact, question.terms, reader, target.platform)
    foreseen = forecast(subject.artifact, reader, target.platform)
    refusals = _refusals(check, target, advised=not _is_rewritten(subject, question))
    accepted = _accepted_as_known(result, question) if result else ""
    if result is not None and (shows_failure(result) or accepted):
        issue = question.issues.get(result.upstream)
        fixed = f", fixed in {issue.mended_in}" if issue and issue.mended_in else ""
        known = f", known as: {issue.title}{fixed}" if issue else ""
        # The runtime's own message does not explain how to export for it; the reasons of its facts do.
        reasons = "".join(f"; {reason}" for reason in refusals if target.reader)
        return DeployAnswer.NO, f"{result.verdict} in {result.ending}{known}{reasons}{accepted}", result
    if _is_refused_on(subject.artifact, target.platform):
        exported = subject.artifact.envelope.platforms if subject.artifact.envelope else ()
        return DeployAnswer.NO, f"it was exported for {', '.join(exported)}, and not for {target.platform}", None
    if check.loads is False:
        refused = "loads, and cannot be called" if fails_when_called(check.reasons) else "cannot be loaded"
        return DeployAnswer.NO, f"{refused}: {'; '.join(refusals)}", None
    if target.reader and check.unpromised:
        return DeployAnswer.NO, "; ".join(refusals), None
    if foreseen.spoiled.answer == NO:
        return DeployAnswer.NO, f"{title_of(target.release)} {foreseen.in_words}: {_reasons(foreseen)}", None
    if result is not None and result.verdict is Verdict.TIMEOUT:
        may_run = "it may run with more time, or on a machine that is not busy"
        return DeployAnswer.UNKNOWN, f"{result.verdict} in {result.ending}; {may_run}", result
    if result is not None and result.flaky:
        why = f"it ran in {title_of(target.release)}, but not each time: it {result.flaky}"
        return DeployAnswer.UNKNOWN, why, result
    if result is not None and result.mode is Mode.COMPILE:
        return DeployAnswer.UNKNOWN, f"it was compiled for {target.platform}, and did not run", None
    how = f"may load ({'; '.join(check.reasons)})" if check.reasons else "should load"
    if check.unpromised:
        how += f"; {not_promised(check)}: {', '.join(check.unpromised)};"
    elif foreseen.doubt and not check.reasons:
        how += f", but may {foreseen.doubt}: {_reasons(foreseen)};"
        if others := [str(reason) for reason in foreseen.doubts if reason not in foreseen.spoiled.reasons]:
            how += f" beside that, {'; '.join(others)};"
    else:
        how += ", and"
    shown = "no stored result shows that it runs"
    if subject.golden and (subject.golden.id, target.release, target.platform) in question.of_other_content:
        shown = "the stored result does not count: the golden was changed since that run"
    return DeployAnswer.UNKNOWN, f"it {how} {shown}", None


def _accepted_as_known(result: Result, question: Question) -> str:
    """Return the end of a sentence on a failing cell that a known failure of the policy lists; "" if none does."""
    entry = None if result.fails_audit else matching_entry(result, question.policy.known_failures)
    if entry is None:
        return ""
    return (
        "; the policy lists it as a known failure, which `matrix` and `judge` accept, but it does not run: "
        f"{entry.reason} (owner {entry.owner}, {entry.issue})"
    )


def _is_rewritten(subject: Subject, question: Question) -> bool:
    """Return whether an artifact was changed after its export, as its bytes, its golden or the record beside it say.

    For such an artifact, the advice is to convert its original, not to export it in another way.
    """
    golden = subject.golden or subject.stored
    if made := golden.manifest.converted_from if golden else subject.origin:
        return made.differs_from_original
    releases = question.terms.releases
    return golden is None and is_rewritten(subject.artifact, find_writer(subject.artifact, releases), releases)


def _refusals(check: LoadCheck, target: DeploymentTarget, *, advised: bool) -> list[str]:
    """Return why a target cannot load an artifact, and why another runtime than jaxlib cannot compile it.

    If not `advised`, the reasons do not say how to export otherwise.
    """
    reasons = check.reasons if advised else map(without_advice, check.reasons)
    calls = [f"cannot be compiled: {only_jax(check.unpromised)}"] if target.reader and check.unpromised else []
    return [*(reasons if check.loads is False else ()), *calls]


def _reasons(known: Forecast) -> str:
    """Return the reasons of a forecast in one text; empty if it has none."""
    return "; ".join(map(str, known.spoiled.reasons))


def _shown_by_outputs(subject: Subject, target: DeploymentTarget, question: Question) -> str:
    """Return the end of a sentence on a cell that ran: that its outputs agree, or why nothing was compared."""
    golden = subject.golden
    nothing = nothing_compared(golden, target.platform, question.policy.tolerances) if golden else ""
    return f", and nothing was compared: {nothing}" if nothing else " and agrees with its writer's outputs"


def _stored(subject: Subject, jaxlib: str, platform: str, question: Question) -> Result | None:
    return question.evidence.get((subject.golden.id, jaxlib, platform)) if subject.golden else None


def _is_refused_on(artifact: Artifact, platform: str) -> bool:
    """Return whether jax refuses to run an artifact on a platform that it was not exported for."""
    envelope = artifact.envelope
    if envelope is None or platform in envelope.platforms:
        return False
    return not any(check.kind == "platform" for check in envelope.disabled_checks)


def _outlook(subject: Subject, target: DeploymentTarget, question: Question) -> _Outlook:
    """Return in which releases of a target's runtime an artifact works that fails in the target's own release.

    Stored results decide first, then forecasts. A forecast alone shows that a release works only if the target's own
    release fails to load the artifact, or an upstream issue names the release that fixed the failure.
    """
    # A call that only jax registers is compiled by no release of another runtime.
    if _is_refused_on(subject.artifact, target.platform) or (target.reader and calls_of_jax(subject.artifact)):
        return _Outlook({}, ())
    built = _releases(target, question.calendar)
    versions = [*built]
    readers = [find_reader(version, question.terms, question.calendar) for version in versions]
    foreseen = dict(zip(versions, forecasts(subject.artifact, readers, target.platform), strict=True))
    stored = {version: _stored(subject, version, target.platform, question) for version in versions}
    ran_in = {name for name, result in stored.items() if result and result.verdict is Verdict.PASS and ran(result)}
    own = stored[target.release]
    by_loading = own is None or own.stage in _LOADING
    issue = question.issues.get(own.upstream) if own else None
    fixed_on = built_on(issue.mended_in, question.calendar) if issue and issue.mended_in else None

    def works(version: str) -> bool | None:
        result = stored[version]
        if version in ran_in:
            return True
        if shows_failure(result) or foreseen[version].spoiled.answer == NO:
            return False
        is_fixed = fixed_on is not None and built[version] >= fixed_on
        return True if by_loading or is_fixed else None

    return _Outlook({version: works(version) for version in versions}, ran_in)


def _releases(target: DeploymentTarget, calendar: Calendar) -> dict[str, datetime.date]:
    """Return the build dates of all releases of the runtime in a target, by reader name, the oldest first."""
    own = parts_of(target.release)[2]
    if target.reader:
        runtime = runtime_of(target.reader)
        return {f"{runtime.name}=={version}{own}": entry.built for version, entry in runtime.known(calendar).items()}
    versions = {*calendar.versions(), target.jaxlib}
    return {f"{version}{own}": calendar.built(version) for version in sorted(versions, key=calendar.built)}


def _upgrade_of(target: DeploymentTarget, answered: Sequence[_Answered], question: Question) -> Upgrade:
    """Return to which release a target is to be upgraded, since artifacts do not run in it."""
    outlooks = [each.outlook for each in answered if each.outlook]
    versions = [*_releases(target, question.calendar)]
    later = versions[versions.index(target.release) + 1 :]
    runs_these = [version for version in later if all(outlook.works.get(version) for outlook in outlooks)]
    ran_in = [version for version in runs_these if all(version in outlook.ran_in for outlook in outlooks)]
    named = target.name, target.release
    upgrade = Upgrade(*named, "", foreseen=False, artifacts=len(outlooks))
    for version in dict.fromkeys((*ran_in, *runs_these)):  # what was run comes before what is forecast
        failing = [*_failing_in(version, target, answered, question)]
        foreseen = version not in ran_in
        if not failing:
            earlier = [] if foreseen else [one for one in runs_these[: runs_these.index(version)] if one not in ran_in]
            sooner = next((one for one in earlier if not any(_failing_in(one, target, answered, question))), "")
            return Upgrade(*named, version, foreseen, len(outlooks), foreseen_earlier=sooner)
        if not upgrade.partly:
            upgrade = Upgrade(*named, "", foreseen, len(outlooks), version, failing)
    if not upgrade.partly:
        upgrade = msgspec.structs.replace(upgrade, instead=[*_instead(target, answered, question)])
    return upgrade


def _instead(target: DeploymentTarget, answered: Sequence[_Answered], question: Question) -> Iterator[str]:
    """Yield what to do about the artifacts that do not run in a target, if no later release runs all of them."""
    failing = [each.subject for each in answered if each.outlook]
    elsewhere = [subject for subject in failing if _is_refused_on(subject.artifact, target.platform)]
    if elsewhere:
        names = few([subject.name for subject in elsewhere])
        yield (
            f"Not exported for {target.platform}: {names}. Export them again for it too (`platforms` in the marker), "
            "or leave their cases out of the target's `cases`."
        )
    done = {subject.name for subject in elsewhere}
    on_several = [one for one in failing if target.reader and one.name not in done and one.artifact.devices > 1]
    if on_several:
        yield f"Made for several devices: {few([one.name for one in on_several])}. {FOR_ONE_DEVICE}"
        done |= {one.name for one in on_several}
    convert = f"`jaxexport convert FILE --for {target.release} -o OUT`"
    convert = with_asked(convert, asked_in(option_words(question.project)))
    # Why the target cannot take it comes before how it fails elsewhere.
    calling = [each for each in failing if target.reader and each.name not in done and calls_of_jax(each.artifact)]
    replacing = convert.replace(" -o OUT", " --replace-custom-calls -o OUT", 1)
    # A conversion that keeps these calls is refused, and any other export would call the same functions.
    for is_replaced, instead in ((False, ""), (True, f", or try {replacing}")):
        if own := [one for one in calling if _conversion_may_help(one, target, question) is is_replaced]:
            names = few([subject.name for subject in own])
            todo = f"Compute with operations that need none, and export again{instead}."
            yield f"Calls what only jax registers: {names}. {todo}"
            done |= {subject.name for subject in own}
    # What to do about a known issue, and the artifacts that show it: those that a conversion may help apart.
    known = dict[tuple[str, bool], tuple[str, list[str]]]()
    for subject in failing:
        if subject.name not in done and (issue := _issue_of(subject, target, question)):
            file = subject.golden.artifact if subject.golden else subject.file
            reader = find_reader(target.release, question.terms, question.calendar).release
            todo = todo_about(issue, file, [call.target for call in subject.artifact.custom_calls], reader)
            converts = not _may_load(subject, target, question) and _conversion_may_help(subject, target, question)
            known.setdefault((issue.id, converts), (todo, []))[1].append(subject.name)
    for (_, converts), (todo, names_of) in known.items():
        says = converts and "jaxexport convert" not in todo
        yield f"Fails in a known way: {few(names_of)}. {todo}{f' Or try {convert}.' if says else ''}"
        done |= {*names_of}
    taken = [subject for subject in failing if subject.name not in done and not _is_forecast(subject, target, question)]
    in_writer = {subject.name: result for subject in taken if (result := _in_own_writer(subject, question))}
    if in_writer:
        folders = [question.folders.get(place_of(result)) for result in in_writer.values()]
        commands = [f"`{explain_command(*pair)}`" for pair in zip(in_writer.values(), folders, strict=True)]
        yield f"Fails in the release that wrote it: {few([*in_writer])}. To see why: {few(commands)}."
        done |= in_writer.keys()
    rewritten = [one for one in failing if one.name not in done and _is_rewritten(one, question)]
    if rewritten := [one for one in rewritten if _conversion_may_help(one, target, question)]:
        command = f"`jaxexport convert ORIGINAL --for {target.release} -o OUT`"
        yield f"Changed after its export: {few([one.name for one in rewritten])}. Convert the original: {command}."
        done |= {subject.name for subject in rewritten}
    rest = [subject for subject in failing if subject.name not in done]
    if not rest:
        return
    how = "where a reason above says how"
    if not target.reader:
        # An artifact of an older release may have failed for its age.
        built = built_on(target.release, question.calendar)
        writers = [subject.golden.manifest.writer for subject in rest if subject.golden]
        are_younger = built is not None and all(writer.built > built for writer in writers)
        how = f"with jaxlib {target.release}{' or older' if are_younger else ''}"
    helpless = [subject for subject in rest if not _conversion_may_help(subject, target, question)]
    if helpless:
        todo = "Compute with other operations what fails there, and export again" if target.reader else ""
        yield f"Conversion does not help: {few([each.name for each in helpless])}. {todo or f'Export again {how}'}."
    if len(helpless) < len(rest):
        which = "the others" if done or helpless else "them"
        yield f"Export {which} again {how}, or try {convert}."


def _issue_of(subject: Subject, target: DeploymentTarget, question: Question) -> KnownIssue | None:
    """Return the known issue that a stored failure of an artifact in a target shows; None without one."""
    result = _stored(subject, target.release, target.platform, question)
    return question.issues.get(result.upstream) if result is not None and result.verdict.fails else None


def _may_load(subject: Subject, target: DeploymentTarget, question: Question) -> bool:
    """Return whether an artifact's bytes do not rule out that a target loads it."""
    reader = find_reader(target.release, question.terms, question.calendar)
    return check_load(subject.artifact, question.terms, reader, target.platform).loads is not False


def _is_forecast(subject: Subject, target: DeploymentTarget, question: Question) -> bool:
    """Return whether an artifact's bytes show that a jaxlib does not load it, or another runtime does not run it."""
    reader = find_reader(target.release, question.terms, question.calendar)
    check = check_load(subject.artifact, question.terms, reader, target.platform)
    if check.loads is False or not target.reader:
        return check.loads is False
    return bool(check.unpromised) or forecast(subject.artifact, reader, target.platform).spoiled.answer == NO


def _conversion_may_help(subject: Subject, target: DeploymentTarget, question: Question) -> bool:
    """Return whether an artifact was not converted for a target yet, and may run there if it is."""
    golden = subject.golden or subject.stored
    made = golden.manifest.converted_from if golden else subject.origin
    if made and made.reader == target.release:
        return False
    reader = find_reader(target.release, question.terms, question.calendar)
    known = forecast(subject.artifact, reader, target.platform)
    if known.spoiled.answer != NO and shardings_in_the_way(subject.artifact, reader):
        return True
    targets = [call.target for call in subject.artifact.custom_calls]
    return conversion_may_help(in_words(known.spoiled), reader.release, targets, question.terms.allow)


def _in_own_writer(subject: Subject, question: Question) -> Result | None:
    """Return the stored result of an artifact in the release that wrote its golden if it fails there; else None."""
    if subject.golden is None:
        return None
    writer = subject.golden.manifest.writer
    result = _stored(subject, writer.jaxlib, writer.platform, question)
    return result if result is not None and fails_in_own_writer(result) else None


def _failing_in(
    version: str, target: DeploymentTarget, answered: Sequence[_Answered], question: Question
) -> Iterator[str]:
    """Yield each other artifact that a target has to run and that fails in this release, and how it fails.

    An artifact that runs today counts as failing if the knowledge base says that it may fail in this release: an
    upgrade should not put it at risk.
    Of goldens that were not asked about, only those that stored results show to run today are counted.
    """
    asked = {each.subject.golden.id for each in answered if each.subject.golden}
    for each in answered:
        if each.outlook:
            continue
        today = ", which runs today," if each.deployment.answer is DeployAnswer.YES else ""
        result = _stored(each.subject, version, target.platform, question)
        if result is not None and shows_failure(result):
            yield f"{each.subject.name}{today} fails there: {_stored_failure(result, question)}"
        elif result is None or not ran(result):
            reader = find_reader(version, question.terms, question.calendar)
            foreseen = forecast(each.subject.artifact, reader, target.platform)
            if foreseen.spoiled.answer == NO:
                yield f"{each.subject.name}{today} fails there: {_reasons(foreseen)} (forecast)"
            elif today and foreseen.doubt:
                yield f"{each.subject.name}{today} may {foreseen.doubt} there: {_reasons(foreseen)} (forecast)"
    for (golden, release, platform), result in question.evidence.items():
        if (release, platform) != (version, target.platform) or golden in asked or not shows_failure(result):
            continue
        own = question.evidence.get((golden, target.release, platform))
        if own is not None and ran(own) and target.has_case(result.case):
            yield f"{golden}, which runs today, fails there: {_stored_failure(result, question)}"


def _stored_failure(result: Result, question: Question) -> str:
    """Return how a cell failed in a stored run, in words, with the folder of that run if it is known."""
    folder = question.folders.get(place_of(result), "")
    return f"{result.verdict} in {result.ending} ({shown_in('results', str(folder))})"


def shown_in(shown_by: str, folder: str) -> str:
    """Return the evidence of an answer in words, with the folder of the run whose results they are."""
    return f"{shown_by} in {folder}" if folder else shown_by


def _adding_command(subject: Subject, question: Question) -> tuple[str, str]:
    """Return the command that makes a golden of a file, and the words for it in a sentence.

    A word in capital letters stands for what the user has to fill in, such as a writer that the file does not show.
    """
    words = ["--artifact", subject.file, "--inputs", "INPUTS.npz", "--outputs", "OUTPUTS.npz", "--case", "CASE"]
    written_by = find_writer(subject.artifact, question.terms.releases)
    fitting = ""
    if written_by.jaxlib is None:
        words += ["--writer", "JAXLIB"]
        if written_by.candidates:
            fitting = f" (JAXLIB, which wrote it, is one of {few(written_by.candidates)})"
    return shlex.join(["jaxexport", "goldens", "add", *words]), f"make it a golden{fitting}"


def _converting_command(
    subject: Subject, original: Golden, origin: ConvertedFrom, target: DeploymentTarget, question: Question
) -> str:
    """Return a command that converts the original of a file again, replays it in the target, and asks again.

    The original is converted in the same way as the file was. Each part of the command runs whatever the exit code of
    the part before: a golden that could not be verified is converted too.
    """
    store = _CONVERTED / target.release
    convert = ["jaxexport", "convert", str(original.folder), "--for", target.release, "--output", str(store)]
    if origin.way == EXPORTED_AGAIN:
        convert += ["--via", "export"]
    elif not set(original.manifest.custom_calls) <= {call.target for call in subject.artifact.custom_calls}:
        convert += ["--replace-custom-calls"]  # It changes only calls that the reader does not take.
    convert += option_words(ProjectOptions(policy_file=question.project.policy_file))
    return "; ".join((shlex.join(convert), *_asking_again(subject, original, store, target, question)))


def _asking_again(
    subject: Subject, golden: Golden, store: Path, target: DeploymentTarget, question: Question
) -> tuple[str, str]:
    """Return the commands that replay a golden of another folder of goldens, and ask again about its artifact there."""
    project = replace(question.project, goldens=store)
    # In a folder of its own: the run of the project's goldens for this target would be lost.
    there = replace(question, project=project, cases=(), to=f"{question.to} of {store}")
    ask = ["jaxexport", "can-i-deploy", subject.file, "--to", question.to, *option_words(project)]
    if question.results != RESULTS:
        ask += ["--results", str(question.results)]
    return _command([replace(subject, golden=golden)], [target], there), shlex.join(ask)


def _command(
    subjects: Sequence[Subject], targets: Sequence[DeploymentTarget], question: Question, limit: str = ""
) -> str:
    """Return the `jaxexport matrix` command that replays the goldens of these artifacts in these targets.

    `limit` is its time limit for a cell; "" for the usual one. The command runs only cells without an outcome in the
    cache, which stores no timeout and no flaky pass.
    """
    goldens = [subject.golden.manifest for subject in subjects if subject.golden]
    # A compiled cell is no answer: where the hardware is missing, the cell is not run.
    platforms = dict.fromkeys(p if p == "cpu" else f"{p}:run" for p in (target.platform for target in targets))
    selection = Selection(
        ",".join(dict.fromkeys(target.release for target in targets)),
        tuple(platforms),
        tuple(dict.fromkeys(manifest.case for manifest in goldens)),
        tuple(dict.fromkeys(manifest.writer.jaxlib for manifest in goldens)),
    )
    # A command with many names is too long to read. The user's own names stay: a run of all cases is another question.
    if question.cases and ({*selection.cases} == {*question.cases} or len(selection.cases) > _MOST_NAMED):
        selection = replace(selection, cases=())
    words = [*option_words(selection, plan=True), *option_words(question.project)]
    words += ["--timeout", limit] if limit and float(limit) > CellOptions.timeout else []
    words += ["--results", str(answer_folder(question.results, question.to))]
    return shlex.join(["jaxexport", "matrix", *words])
