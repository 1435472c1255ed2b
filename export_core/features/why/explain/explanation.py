"""Why a cell fails, on one page: the cause, its evidence, what to do now, and what would have shown it earlier."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.audit import DISABLED, calls_of_jax
from export_core.artifact.readers import Reader
from export_core.artifact.writers import audit_calls, find_writer
from export_core.base.feature import hooks
from export_core.base.layout import labelled_paragraphs, wrapped
from export_core.base.text import first_line, plural, ranges
from export_core.features.why.bisect.bisection_report import Bisection, TriedRelease, answer
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.reduce.reduction import ReductionFolder
from export_core.judge import Result, judge
from export_core.judge.causes import failing_alike_in_writer, is_own_writer, lacks_registration
from export_core.knowledge import NO, YES, Forecast, forecast, forecasts_when_converted
from export_core.knowledge.forecasting import MATRIX
from export_core.matrix import Verdict
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.replay_options import SayRemedy
from export_core.matrix.reproduce_command import longer_limit
from export_core.matrix.result import Control
from export_core.matrix.verdicts import (
    AUDIT_FAILED,
    DEVICE_LIMIT,
    FAR_ON_ANOTHER_PROCESSOR,
    HISTORY,
    NEAR_ON_ANOTHER_PROCESSOR,
    RUN_CONTROL,
    how_to_allow,
)
from export_core.policy.known_issues import KnownIssue, known_issues, todo_about
from export_core.policy.load_check import find_reader
from export_core.policy.project_terms import terms_of
from export_core.policy.terms import Terms
from export_core.releases import Direction, Release
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.names import title_of
from export_core.report.run_tables import MapRelease, map_releases
from export_core.report.wording import (
    beyond_rounding,
    cell_sentence,
    counts_line,
    device_limit,
    evidence,
    no_rounding,
    steps_in_doubt,
    stored_in_doubt,
    with_asked,
)


class FailureCause(StrEnum):
    """The kind of cause behind a failing cell, as far as it can be decided without running anything else."""

    AUDIT = "stopped by the audit"  # No release was asked, and none is to blame.
    OWN_WRITER = "fails in its own writer"  # No release is to blame.
    STORED = "stored outputs in doubt"
    """Its own writer gives other numbers, which no rounding explains or with which an independent reference agrees."""
    PROCESSOR = "may depend on the processor"
    """Its own writer gives different numbers on another processor, and nothing contradicts the stored outputs."""
    UPSTREAM = "known upstream issue"  # An entry in the tables of known issues (`jaxexport policy show --known`).
    TIME_LIMIT = "the time limit"  # Nothing shows that the release cannot run it: the machine may have been busy.
    EXPIRED = "expired"  # The reader refuses the format of the artifact for its age.
    STABLEHLO = "newer StableHLO"  # The module uses something that the reader's StableHLO does not know.
    FORMAT = "another format"  # The reader does not read the format of the envelope.
    CUSTOM_CALL = "a custom call that is not promised"
    """The writer or the reader does not promise one of its custom calls."""
    REGISTRATION = "missing registration"
    """The process lacks a custom call's target or a pytree node, which a library registers."""
    DEVICE = "a limit of the device's compiler"  # The release that wrote it does not compile it for that device either.
    LACKING = "not supported by the runtime"  # A known refusal of another runtime, which names the way out.
    NUMBERS = "different numbers"  # It runs, and the outputs differ by more than the writer's noise allows.
    UNKNOWN = "not known"  # None of the causes above.


class Reference(NamedTuple):
    """Labelled evidence about whose numbers are right, and whether it supports the golden's stored outputs."""

    label: str
    text: str
    for_stored: bool | None = None  # None if it supports neither side.


class InRelease(msgspec.Struct, frozen=True):
    """The outcome of the explained cell's golden in one release."""

    reader: Release  # The release.
    verdict: Verdict  # What happened.
    message: str  # The first line of its message.


class Explanation(msgspec.Struct, frozen=True):
    """The explanation of why a cell fails, with evidence and advice."""

    cell: str  # The cell, as `bisect` and `reduce` take it.
    sentence: str  # What happened, with both releases and their dates.
    cause: FailureCause  # The kind of cause.
    because: str  # The cause in a sentence or two.
    evidence: tuple[tuple[str, str], ...]  # What shows it: labels and texts.
    releases: tuple[InRelease, ...]
    """The outcome of the golden in each release of the stored run and of the bisection, by build date."""
    steps: tuple[str, ...]  # What to do now.
    earlier: tuple[str, ...]  # What would have shown it earlier.
    bisection: Bisection | None = None  # Since which release it fails; null if that was not asked.
    others: tuple[str, ...] = ()  # A command for each other cause of the cells that were meant, the worst first.
    outside: tuple[str, ...] = ()
    """A command for each cause that only cells outside the window have, if what was meant is what breaks the run."""
    goldens: tuple[str, ...] = ()  # If one case was meant: a command for each golden that the others do not name.


def result_of(choice: Choice, notify: Callable[[str], None]) -> Result:
    """Return the result of the chosen cell: the stored one, or if no run has the cell, that of a replay here.

    Raises `WhyError` if the cell works, or cannot be run here.
    """
    result = choice.result
    if result is None:
        known = f"no stored run has {choice.cell.key}"
        if choice.not_counted:
            known = f"the stored result of {choice.cell.key} does not count any more, made with {choice.not_counted}"
        notify(f"{known}: it is replayed here, unless the cache has its outcome")
        ((cell, outcome),) = replay_here([choice.cell], choice.options, notify=notify)
        result = judge(outcome, cell.golden, choice.options.policy, as_of=choice.plan.as_of)
    if result.verdict.works:
        raise WhyError(f"{choice.cell.key}: expected a cell that fails, found {result.verdict}: nothing to explain.")
    if result.verdict is Verdict.NOT_RUN:
        raise WhyError(f"{choice.cell.key}: was not run: {result.message}")
    return result


def explain(
    choice: Choice,
    result: Result,
    reduced: ReductionFolder | None = None,
    bisection: Bisection | None = None,
    references: Sequence[Reference] = (),
) -> Explanation:
    """Return the explanation of a failing cell, from its result and its golden, without running anything.

    Args:
        choice: The cell.
        result: The result of the cell.
        reduced: The folder in which `jaxexport reduce` reduced the cell, if there is one.
        bisection: What `jaxexport bisect` found for the cell, if it was run.
        references: Labelled evidence about whose numbers are right.

    Raises:
        ArtifactError: The artifact cannot be read.
        WhyError: The folder `reduced` is of another cell.
    """
    calendar, issues = choice.plan.calendar, known_issues(choice.options.policy.known_issues)
    reader = find_reader(choice.cell.reader.name, Terms(calendar_entries(calendar)), calendar)
    own = failing_alike_in_writer(result, [result, *choice.stored])
    issue = next((issue for issue in issues if issue.id == result.upstream), None)
    if issue and _is_refuted(result, own, references):
        issue = None
    artifact = choice.cell.golden.read_artifact()
    known = forecast(artifact, reader, result.platform, MATRIX)
    load = known.load
    calls = _not_promised(artifact, choice, reader)
    converted = _Converted.of(artifact, reader, result.platform) if load.ok is False else _Converted()
    cause, because = _cause(result, own, known, converted, calls, issue, references)
    # The command is not that of the results, which may be of another machine.
    shown = [*_evidence(result, known, calls, issue, choice.reproduce)]
    shown += [(reference.label, reference.text) for reference in references]
    if bisection:
        shown += answer(bisection)
    if reduced:
        shown += _reduction_evidence(reduced, str(choice.cell.key))
    tried: list[TriedRelease | Result] = [*(bisection.tried if bisection else ()), *choice.stored, result]
    rows = {trial.reader: InRelease(trial.reader, trial.verdict, first_line(trial.message)) for trial in tried}
    releases = tuple(sorted(rows.values(), key=lambda row: row.reader.date_order))
    against = "" if any(reference.for_stored for reference in references) else _against(references)
    is_bisected = bisection is not None and bisection.first_bad is not None
    steps = _steps(choice, result, own, cause, converted, issue, releases, against, is_bisected=is_bisected)
    return Explanation(
        cell=str(choice.cell.key),
        sentence=cell_sentence(result),
        cause=cause,
        because=because if because.endswith(".") else f"{because}.",
        evidence=tuple((label, text) for label, text in shown if text),
        releases=releases,
        steps=tuple(dict.fromkeys(with_asked(step, choice.asked) for step in steps)),
        earlier=tuple(with_asked(text, choice.asked) for text in _earlier(choice, result, cause, known)),
        bisection=bisection,
        others=choice.others,
        outside=choice.outside,
        goldens=choice.goldens,
    )


def explanation_lines(explanation: Explanation, choice: Choice, width: int) -> Iterator[str]:
    """Yield the explanation of the chosen cell as lines, wrapped to `width`."""
    cells = sum(choice.alike.values())
    counts = f"{cells:,} cells: {counts_line(choice.alike)}" if len(choice.alike) > 1 else ""
    of_all = f" It is the cause of {counts or f'{cells:,} {next(iter(choice.alike))} cells'}." if cells > 1 else ""
    if explanation.others:
        of_all += f" {choice.having_others} {plural(len(explanation.others), 'other cause')}, listed at the end."
    for text in (explanation.sentence, f"Cause: {explanation.cause}. {explanation.because}{of_all}"):
        yield from wrapped(text, width, indent=2)
    yield "\nEvidence"
    yield from labelled_paragraphs(explanation.evidence, width)
    if len(explanation.releases) > 1:
        yield "\nThe same golden in other releases"
        titles = {reader: title_of(name.in_words) for reader, name in _names(explanation.releases).items()}
        longest = max(17, *map(len, titles.values()))
        for row in explanation.releases:
            yield f"  {row.reader.built}  {titles[row.reader]:<{longest}} {row.verdict}"
    for title, texts in (("What to do", explanation.steps), ("What would have shown it earlier", explanation.earlier)):
        if texts:
            yield f"\n{title}"
        for text in texts:
            yield from wrapped(text, width, "  - ", 4)
    for title, commands in (
        ("Other causes", explanation.others),
        ("Outside the window, where nothing is promised", explanation.outside),
        ("Other goldens of this case that fail", explanation.goldens),
    ):
        if commands:
            yield f"\n{title}"
        yield from (f"  {command}" for command in commands)


def _names(rows: Sequence[InRelease]) -> dict[Release, MapRelease]:
    """Return the names of the releases in these rows; the jax is named too where a jaxlib occurs with several."""
    return map_releases([row.reader for row in rows])


def _reduction_evidence(folder: ReductionFolder, cell: str) -> Iterator[tuple[str, str]]:
    """Yield labelled evidence from a reduction of this cell: its size, and the first operation that differs.

    Raises `WhyError` if the folder has a reduction of another cell.
    """
    reduction, steps, _ = folder.read_of(cell)
    yield "reduced to", f"{plural(steps[-1].operations, 'operation')} of {reduction.operations}, in {folder.path}"
    if first := reduction.first_diverging:
        ulp = "" if first.ulp is None else f" (by up to {first.ulp} ulp)"
        yield "differs at", f"{first.operation}{ulp}"


def _not_promised(artifact: Artifact, choice: Choice, reader: Reader) -> list[str]:
    """Return a sentence for each custom call of the artifact that its writer or the reader does not promise."""
    policy, golden = choice.options.policy, choice.cell.golden
    # The manifest knows the writer, where the artifact alone leaves several.
    writer = find_writer(artifact, terms_of(policy).releases)._replace(jaxlib=golden.manifest.writer.jaxlib)
    promising = None if reader.release.runtime else reader.release.jaxlib  # other runtimes have no list of custom calls
    audited = audit_calls(artifact, writer, {**golden.compared_as.allow, **policy.allow}, promising)
    return [finding.message for finding in audited if not finding.ok and finding.standing != DISABLED]


def _is_refuted(result: Result, own: Result | None, references: Sequence[Reference]) -> bool:
    """Return whether there is evidence against a known issue of a runtime as the cause of wrong numbers.

    This is so if the golden's own writer gives the same wrong numbers, or if references contradict only the stored
    outputs.
    """
    if not result.reader.family or result.verdict is not Verdict.NUMERICS:
        return False
    sides = {reference.for_stored for reference in references}
    return (own is not None and not own.upstream) or (False in sides and True not in sides)


class _Converted(NamedTuple):
    """A forecast of why converting the artifact would not help: how the reader would fail even then.

    It is empty for a jaxlib, and if nothing is known against a conversion.
    """

    fails: str = ""  # How it fails, and why, as a sentence; "" if nothing is known against it.
    steps: tuple[str, ...] = ()  # What to do about it: a conversion alone does not help.

    @classmethod
    def of(cls, artifact: Artifact, reader: Reader, platform: str) -> "_Converted":
        """Return the forecast of how a reader fails with the artifact once converted, with its custom calls kept."""
        if not reader.release.runtime:
            return cls()
        (then,) = forecasts_when_converted(artifact, [reader], platform)
        if then.spoiled.answer != NO:
            return cls()
        calls = calls_of_jax(artifact)
        kept = " that keeps its custom calls" if calls else ""
        why = "; ".join(map(str, then.spoiled.reasons))
        steps = ["Compute with operations that need none of those custom calls, and export again."] if calls else []
        steps += [reason.todo for reason in then.spoiled.reasons if reason.todo]
        title = reader.release.title
        fails = f"A conversion{kept} does not help: afterwards {title} {then.in_words}: {why}."
        return cls(fails, tuple(steps))


def _cause(
    result: Result,
    own: Result | None,
    known: Forecast,
    converted: _Converted,
    calls: Sequence[str],
    issue: KnownIssue | None,
    references: Sequence[Reference],
) -> tuple[FailureCause, str]:
    """Return the kind of cause of a failing cell, and the cause in words.

    Evidence from the audit and the artifact comes before known issues, which only show that the failure is similar.
    `own` is the result of the golden in its own writer if it fails in the same way there; it may be `result` itself.
    """
    if result.fails_audit:
        return FailureCause.AUDIT, f"The audit stopped it, so that no release was asked: {first_line(result.message)}"
    if known.load.ok is False:
        reasons = "; ".join(known.load.reasons)
        if converted.fails:
            return FailureCause.LACKING, f"{reasons}. {converted.fails}"
        if "expired" in reasons:
            return FailureCause.EXPIRED, f"{result.reader.title} refuses it for its age: {reasons}."
        if "StableHLO" in reasons:
            return FailureCause.STABLEHLO, f"{reasons}."
        return FailureCause.FORMAT, f"{reasons}."
    if issue:
        return FailureCause.UPSTREAM, f"{issue.title}{f' ({issue.link})' if issue.link else ''}."
    if result.verdict is Verdict.TIMEOUT:
        words = "A busy machine ends a cell so too: nothing shows yet that the release cannot run it."
        return FailureCause.TIME_LIMIT, words
    if own and (doubt := _doubt(own, references)):
        too = "" if is_own_writer(result) else " too"
        words = f"The release that wrote the golden gives other numbers{too}. {stored_in_doubt(doubt)}"
        return FailureCause.STORED, words
    if own and own.processors:
        supported = any(reference.for_stored for reference in references)
        nothing = "" if supported else " No reference says whether the stored outputs are right."
        words = (
            f"The release that wrote the golden gives other numbers on another processor: {own.processors}.{nothing}"
        )
        return FailureCause.PROCESSOR, words
    if own:
        words = "The release that wrote the golden cannot replay it either: check the test first."
        return FailureCause.OWN_WRITER, words
    if result.verdict is Verdict.NUMERICS:
        words = f"It runs, and its numbers are not those of the writer: {first_line(result.message)}"
        return FailureCause.NUMBERS, words
    if lacks_registration(result):
        return FailureCause.REGISTRATION, "The reader lacks what a library registers when it is imported."
    if calls:
        return FailureCause.CUSTOM_CALL, " ".join(calls)
    if result.control is Control.ALIKE:
        return FailureCause.DEVICE, device_limit(result)
    if _way_out(result):
        return FailureCause.LACKING, f"{first_line(result.message)}."
    if result.reader.runtime and known.spoiled.answer == NO:
        reasons = "; ".join(map(str, known.spoiled.reasons))
        return FailureCause.LACKING, f"{result.reader.title} {known.in_words}: {reasons}."
    unknown = "Nothing in the artifact predicts it, and no known issue matches it."
    return FailureCause.UNKNOWN, " ".join(filter(None, (unknown, device_limit(result))))


def _doubt(result: Result, references: Sequence[Reference]) -> str:
    """Return the evidence against the stored outputs of a golden whose own writer gives other numbers; "" if none.

    References decide. If none of them supports a side, a difference too large for rounding is evidence.
    """
    if result.verdict is not Verdict.NUMERICS:
        return ""
    if against := _against(references):
        return ", and ".join(filter(None, (against, no_rounding(result))))
    return "" if any(reference.for_stored for reference in references) else no_rounding(result)


def _against(references: Sequence[Reference]) -> str:
    """Return a phrase that names the references that contradict the golden's stored outputs; "" if none does."""
    labels = [f"`{reference.label}`" for reference in references if reference.for_stored is False]
    verb = "contradicts" if len(labels) == 1 else "contradict"
    return f"{' and '.join(labels)} {verb} the stored outputs" if labels else ""


def _way_out(result: Result) -> str:
    """Return the advice in the message of a refusal by a runtime other than jaxlib; empty for any other result."""
    if not result.reader.family or result.verdict is not Verdict.REFUSED:
        return ""
    return first_line(result.message).partition(": ")[2]


def _evidence(
    result: Result, known: Forecast, calls: Sequence[str], issue: KnownIssue | None, reproduce: str
) -> Iterator[tuple[str, str]]:
    if issue:
        yield "known as", f"{issue.id}: readers {issue.readers}" if issue.readers else issue.id
    for label, text in evidence(result):
        if label == "message":
            yield label, first_line(text)
            yield "looks like", result.looks_like
        elif label not in ("foreseen", "reproduce"):
            yield label, text
    yield "allowed", result.allowed
    yield "artifact", "\n".join(known.load.reasons)
    is_foreseen = known.load.ok and known.spoiled.answer != YES and known.spoiled.reasons
    yield "forecast", f"{known.in_words}: {'; '.join(map(str, known.spoiled.reasons))}" if is_foreseen else ""
    yield "audit", "\n".join(calls)
    yield "reproduce", reproduce


def _steps(
    choice: Choice,
    result: Result,
    own: Result | None,
    cause: FailureCause,
    converted: _Converted,
    issue: KnownIssue | None,
    rows: Sequence[InRelease],
    against: str,
    *,
    is_bisected: bool,
) -> Iterator[str]:
    if cause is FailureCause.AUDIT:
        yield AUDIT_FAILED.to_do
        return
    if issue:
        golden = choice.cell.golden
        yield todo_about(issue, golden.artifact, [(golden.manifest.custom_calls, choice.cell.reader)])
    if cause is FailureCause.TIME_LIMIT:
        yield from _with_more_time(choice, result)
        return
    # Of the same runtime: nobody can take a release of another one in its place.
    known = [row for row in rows if row.reader.family == result.reader.family]
    names = [name.in_words for name in _names(known).values()]
    jaxlibs = choice.plan.calendar.jaxlib
    withdrawn = {name for name, release in jaxlibs.items() if release.yanked}
    working = [
        name
        for name, row in zip(names, known, strict=True)
        if row.verdict.works and (row.reader.runtime or row.reader.jaxlib not in withdrawn)
    ]
    if works := ranges(working, names):
        yield f"Read it with a release in which it works: {title_of(works)}."
    yield from converted.steps
    # The message knows only the runtime's first obstacle. It has advice for all programs that fail with it, and a known
    # issue for those that have what this artifact has.
    if not converted.fails and not issue and (advice := _way_out(result)):
        yield f"{advice[0].upper()}{advice[1:]}."
    if cause is FailureCause.OWN_WRITER:
        yield "`jaxexport goldens verify` checks the golden's files; export it again if they are undamaged."
        return
    if own and cause is FailureCause.STORED:
        yield from steps_in_doubt(own, choice.cell.golden.folder)
        if own.processors and not beyond_rounding(own):
            yield FAR_ON_ANOTHER_PROCESSOR
        return
    if own and cause is FailureCause.PROCESSOR:
        yield FAR_ON_ANOTHER_PROCESSOR if beyond_rounding(own) else NEAR_ON_ANOTHER_PROCESSOR
        yield HISTORY.format(shlex.quote(str(choice.cell.golden.folder)))
        return
    if cause is FailureCause.DEVICE:
        yield DEVICE_LIMIT.to_do
        return
    if cause is FailureCause.NUMBERS:
        writer = result.writer.release
        in_writer = [row.verdict for row in rows if row.reader == writer]
        if any(verdict.fails for verdict in in_writer):
            own_cell = replace(choice, cell=choice.cell_in(writer))
            yield f"Explain it in its own writer first, where it fails too: `{own_cell.command('explain')}`."
        elif against and not any(verdict.works for verdict in in_writer):
            yield (
                f"Replay it in its own writer first (`--readers {writer.name}`): {against}. If it fails there too, no "
                "release is to blame, and the golden's stored outputs are in doubt."
            )
        yield f"Find the first operation that differs: `{choice.command('reduce', '-o', 'reduced')}`."
        yield how_to_allow(result.allowed, is_garbage=result.is_garbage)
    else:
        yield from (remedy(choice.cell, choice.options) for remedy in hooks("remedy", SayRemedy))
    if cause is FailureCause.REGISTRATION:
        yield "Register: name the module that registers it in the marker (`register=`), or import it in the reader."
    if cause is FailureCause.CUSTOM_CALL:
        yield "Replace the operation by one without that custom call, or export for a release that promises it."
    if cause in (FailureCause.UNKNOWN, FailureCause.NUMBERS, FailureCause.CUSTOM_CALL):
        if result.control is Control.NOT_RUN:
            yield RUN_CONTROL.format(result.writer.jaxlib)
        if not is_bisected:
            yield f"Find the release in which it began: `{choice.command('bisect')}`."
        bundle = choice.command("explain", "--bundle", "DIR")
        whose = result.reader.family or "JAX"
        report = f"If that operation is wrong, report it to {whose}" if result.is_rounding else f"Report it to {whose}"
        yield f"{report}: `{bundle}` writes a script and the text of an issue."


def _with_more_time(choice: Choice, result: Result) -> Iterator[str]:
    """Yield the advice for a cell that timed out: first run it with a longer limit, then bisect and report it."""
    limit = longer_limit(result.reproduce or choice.reproduce)
    patient = replace(choice, run=replace(choice.run, timeout=float(limit)))
    yield f"Run it again, alone and with a longer limit: `{patient.reproduce}`."
    yield (
        "Only if it times out again on a quiet machine, find the release in which it began: "
        f"`{patient.command('bisect')}`."
    )
    bundle = patient.command("explain", "--bundle", "DIR")
    yield f"Then report it to {result.reader.family or 'JAX'}: `{bundle}` writes a script and the text of an issue."


def _earlier(choice: Choice, result: Result, cause: FailureCause, known: Forecast) -> Iterator[str]:
    if cause is FailureCause.TIME_LIMIT:
        return
    file = shlex.quote(str(choice.cell.golden.artifact))
    jaxlib, was_known = result.reader.name, result.direction is Direction.FORWARD
    since_built = f"since {result.reader.built}, when {result.reader.title} was built"
    if cause is FailureCause.AUDIT:
        yield f"`jaxexport audit {shlex.quote(result.golden)}`, without a run, on the day it was written."
        return
    if cause is FailureCause.OWN_WRITER:
        yield "`pytest --update-goldens` replays each golden in its own writer when it writes it."
        return
    if cause is FailureCause.STORED:
        yield f"A matrix in CI with `--readers {result.writer.jaxlib}` for each change of the golden's folder."
        return
    if cause is FailureCause.PROCESSOR:
        yield "A matrix on the processor that reads the golden, on the day it was written."
        return
    if cause is FailureCause.DEVICE:
        platform = f"{result.platform}:{result.mode}"
        yield f"A matrix in CI with `--platforms {platform}`, on the day it was written: its own writer shows it."
        return
    if known.load.ok is False:
        since = "on the day it was written" if was_known else since_built
        yield f"`jaxexport inspect {file} --readers {jaxlib}`, without a run, {since}."
    if cause is FailureCause.EXPIRED:
        yield f"`jaxexport forecast`: the last promised day was {result.promised_until}."
    if cause is FailureCause.CUSTOM_CALL:
        yield f"`jaxexport audit {file}`, on the day it was written: a marked test fails there."
    if result.deployed and known.spoiled.answer == NO:
        target, since = result.deployed[0], "on the day it was written" if was_known else since_built
        yield f"`jaxexport can-i-deploy {shlex.quote(result.golden)} --to {target}`, without a run, {since}."
    if was_known and not result.deployed:
        yield (
            f"`deployed:` in the policy, if {result.reader.title} is in use somewhere: a matrix then requires it, and "
            f"`jaxexport can-i-deploy {shlex.quote(result.golden)} --to NAME` says no."
        )
    elif not was_known:
        # `all` is every jaxlib, and no other runtime.
        readers = jaxlib if result.reader.runtime else "window" if result.promised else "all"
        yield f"A matrix in CI with `--readers {readers}` {since_built}."
