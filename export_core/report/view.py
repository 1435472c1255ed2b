"""A `Run` becomes a `Document`: a finding for each cause, with its cells, releases, evidence and what to do.

Media show the `sentence` and `details` of a finding as they have room for; its `text` has both.
"""

import datetime
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from export_core.base.feature import hooks
from export_core.base.text import few, plural
from export_core.goldens.store import ARTIFACT
from export_core.judge import Judgement, Result
from export_core.judge.causes import Cause, fails_in_own_writer, is_own_writer
from export_core.judge.custom_call_changes import JudgedChange
from export_core.judge.gate import BONUS_LOST
from export_core.judge.generations import first_changes
from export_core.judge.known import matching_entry
from export_core.judge.unmatched import NO_BASELINE
from export_core.knowledge import conversion_may_help
from export_core.knowledge.replaced_calls import lapack_to_replace
from export_core.matrix import Verdict
from export_core.matrix.result import Cells, Control, by_build_date
from export_core.matrix.verdicts import (
    AUDIT_FAILED,
    BROKEN_PROMISE,
    BUSY_MACHINE,
    DEVICE_LIMIT,
    FAIL_ON,
    MISSING_RESULT,
    NOT_REPLAYABLE,
    NOTHING_PROMISED,
    NUMBERS_MOVED,
    OTHER_NUMBERS,
    OTHER_PROCESSOR,
    RUN_CONTROL,
    STALE_LIST,
    VERDICTS,
    FindingKind,
    how_to_allow,
    is_expected,
)
from export_core.numbers.noise import WHAT_TO_DO
from export_core.policy import Policy
from export_core.policy.entries import ALL
from export_core.policy.known_issues import KnownIssue, source_of, todo_about
from export_core.policy.model import left_out_sentences
from export_core.readers.cell import FOR_ONE_DEVICE, has_devices_for
from export_core.readers.errors import STILL_STARTS
from export_core.readers.worker.protocol import Stage
from export_core.releases.names import title_of
from export_core.releases.runtimes import JAXLIB
from export_core.report.document import Document, Finding, MakeFindings, RunDifference, issue_of
from export_core.report.run_tables import named_among
from export_core.report.wording import (
    asked_of,
    cell_sentence,
    device_limit,
    doubts,
    error_size,
    evidence,
    first_end,
    first_lines,
    golden_folder,
    judged_as,
    more_time,
    named_folder,
    no_rounding,
    only_in_jax,
    owed_to,
    promises_nothing,
    steps_in_doubt,
    stored_in_doubt,
    unplanned_sentence,
    why_command,
    with_asked,
    writer_and_reader,
)
from export_core.run.run import Run, command_to_continue

FLAKY = FindingKind("FLAKY", 3, "bold yellow", level="warning")
CUSTOM_CALL = FindingKind("custom call", 6)
NOT_COVERED = FindingKind("NOT COVERED", 7, "bold yellow", level="warning")
NOT_CHECKED = FindingKind("NOT CHECKED", 7, "bold yellow", level="warning")
OTHER_GENERATIONS = FindingKind("GOLDENS DIFFER", 7, "bold yellow", level="warning")
NOT_DECIDED, NO_NOISE, LITTLE_NOISE = (
    FindingKind("NOT DECIDED", 8),
    FindingKind("NO NOISE", 8),
    FindingKind("LITTLE NOISE", 8),
)
ACCEPTED = FindingKind("accepted", 9)
_LOADING = (Stage.READ, Stage.DESERIALIZE, Stage.MODULE)  # Where a reader refuses the form of an artifact.
_RUN_TWICE = "Run the same command again: it runs flaky cells that work, and with `--no-cache` those that fail too."
_MEASURE_FIRST = (
    "Measure its noise first: `jaxexport goldens verify --noise`. Without it, numbers are compared within a fixed "
    "tolerance, which may not fit this program."
)
_UNDECIDED = "{} with outputs that would not show a wrong number, since rounding alone moves them as far: {}."
_WITHOUT_NOISE = "{} without noise: {}. `jaxexport goldens verify --noise` measures it."
_INPUTS_ONLY = (
    "{} with noise of inputs only: {}. A correct reader may look broken where numbers come from constants inside. "
    "`jaxexport goldens verify --noise --again` measures it again; golden.yaml says why it knows inputs only."
)
_UNFIT = "This is not a broken promise: the golden's own writer cannot replay it{}."
_OTHER_NUMBERS_TOO = "This is not a broken promise: the golden's own writer gives other numbers too. {}"
_OF_PROCESSOR = _OTHER_NUMBERS_TOO.format(
    "The reason may be the processor or its settings ({}), a test that is not deterministic, or stored outputs that "
    "were changed."
)


def view(run: Run, comparison: RunDifference | None = None) -> Document:
    """Return a run as a document: its findings, the worst first, and its difference from an earlier run.

    Cells with the same judgement and cause share a finding. Expected refusals outside the window have none. There are
    also findings about the run, such as that nothing was promised, or that goldens have no cell.
    """
    findings = [
        _cause_finding(cause, number, group, run)
        for number, cause in enumerate(run.summary.causes)
        if not is_expected(cause.judgement, cause.verdict) and (group := run.by_cause.get((cause.judgement, cause.id)))
    ]
    for findings_of in hooks("findings", MakeFindings, (*run.policy.set_keys, *run.fact_names)):
        findings += findings_of(run)
    findings += _other_findings(run)
    if comparison is None and BONUS_LOST in run.policy.fail_on:
        findings.append(Finding(NOT_CHECKED, 1_000_000, f"fail_on: {NO_BASELINE}"))
    asked = asked_of(run)
    findings = [_with_run_options(finding, asked) for finding in findings]
    return Document(run, sorted(findings, key=lambda finding: finding.rank), comparison)


def _with_run_options(finding: Finding, asked: Mapping[str, str]) -> Finding:
    """Return a finding with the options of the run, such as its policy, added to the commands in its texts."""
    sentence, brief, fault = (with_asked(text, asked) for text in (finding.sentence, finding.brief, finding.fault))
    details = ((label, with_asked(text, asked) if label == "to do" else text) for label, text in finding.details)
    return replace(finding, sentence=sentence, brief=brief, fault=fault, details=tuple(details))


def _other_findings(run: Run) -> Iterator[Finding]:
    summary = run.summary
    if flaky := [result for result in run.results if result.flaky]:
        yield _flaky(flaky)
    yield from map(_change, summary.custom_call_changes)
    if summary.undecided:
        details = (("outputs", first_lines(summary.undecided, "summary.json")), ("to do", WHAT_TO_DO))
        goldens = [*dict.fromkeys(line.partition(": ")[0] for line in summary.undecided)]
        yield Finding(NOT_DECIDED, 0, _of_goldens(_UNDECIDED, goldens), details)
    for accepted in summary.accepted:
        yield Finding(ACCEPTED, 0, accepted.sentence, (("reason", accepted.reason),), brief=accepted.brief)
    about_the_run: dict[FindingKind, Iterable[str]] = {
        BROKEN_PROMISE: [text for change in summary.custom_call_changes for text in change.broken + change.deleted],
        FAIL_ON: [f"{text}." for text in summary.failed_on],
        MISSING_RESULT: [*summary.uncovered, unplanned_sentence(summary)],
        NOTHING_PROMISED: [summary.unpromised],
        **{kind: [sentence] for kind, sentence in doubts(run).items()},
        STALE_LIST: summary.stale,
        NOT_COVERED: [summary.without_cells, *left_out_sentences(run.policy, summary.as_of)],
        OTHER_GENERATIONS: [f"{text}." for text in first_changes(summary.other_generations)],
        NO_NOISE: [_of_goldens(_WITHOUT_NOISE, summary.unmeasured)],
        LITTLE_NOISE: [_of_goldens(_INPUTS_ONLY, summary.inputs_only)],
    }
    for kind, texts in about_the_run.items():
        for number, text in enumerate(filter(None, texts)):
            yield Finding(kind, 1_000_000 + number, text)


def _of_goldens(sentence: str, goldens: Sequence[str]) -> str:
    return sentence.format(plural(len(goldens), "golden"), few(goldens)) if goldens else ""


def broken_cell(result: Result, issues: Iterable[KnownIssue] = (), goldens: str = Policy().goldens) -> Finding:
    """Return the finding about one cell that fails its run.

    The kind of the finding is a broken promise unless another kind fits better: a failure in the golden's own writer
    breaks no promise. `issues` are known upstream issues that may explain the cell, and `goldens` is the folder of
    goldens.
    """
    kind = result.judgement.facts.kind or BROKEN_PROMISE
    if result.judgement.facts.works:
        return Finding(kind, 0, cell_sentence(result), tuple(evidence(result)), (result,))
    issue = next((issue for issue in issues if issue.id == result.upstream), None)
    timed_out = result.verdict is Verdict.TIMEOUT
    unfit = is_own_writer(result) and issue is None and not (result.fails_audit or timed_out)
    because = _OF_PROCESSOR.format(result.processors) if result.processors else _UNFIT.format("")
    doubt = no_rounding(result) if unfit else ""
    if doubt:
        because = _OTHER_NUMBERS_TOO.format(stored_in_doubt(doubt))
    sentence = " ".join(filter(None, (cell_sentence(result), because if unfit else "")))
    details = (
        ("known as", _issue_text(issue)),
        *evidence(result),
        ("to do", _todo_of(issue, result, goldens, [result]) if issue else more_time(result) if timed_out else ""),
    )
    if result.fails_audit:
        kind, details = AUDIT_FAILED, (*evidence(result), ("to do", AUDIT_FAILED.to_do))
    elif unfit and result.judgement.is_breach:
        kind = OTHER_PROCESSOR if result.processors and not doubt else NOT_REPLAYABLE
        todo = _in_doubt_advice(result, goldens) if doubt else kind.to_do
        todo = _processor_advice(result, goldens) if kind is OTHER_PROCESSOR else todo
        details = (*evidence(result), ("to do", todo))
    elif kind is BROKEN_PROMISE and result.is_rounding and issue is None:
        kind, details = NUMBERS_MOVED, (*evidence(result), ("to do", _rounding_advice(result)))
    elif kind is BROKEN_PROMISE and result.verdict is Verdict.NUMERICS and not result.promised:
        kind = OTHER_NUMBERS
    return Finding(kind, 0, sentence, details, (result,))


def _cause_finding(cause: Cause, number: int, group: Sequence[Result], run: Run) -> Finding:
    example = next((result for result in group if result.key == cause.example), group[0])
    kind = cause.judgement.facts.kind or BROKEN_PROMISE
    if example.fails_audit:
        kind = AUDIT_FAILED
    elif cause.judgement is Judgement.BROKEN and cause.not_replayable:
        kind = NOT_REPLAYABLE
    elif cause.judgement is Judgement.BROKEN and cause.is_rounding:
        kind = NUMBERS_MOVED
    elif cause.judgement is Judgement.BROKEN and cause.verdict is Verdict.NUMERICS and not cause.promised:
        kind = OTHER_NUMBERS
    elif cause.judgement is Judgement.OUTSIDE and example.control is Control.ALIKE:
        kind = DEVICE_LIMIT
    issue = issue_of(cause, run.summary)
    fault, doubted = device_limit(example), None
    own = _own_writer_cells(group, run) if kind is NOT_REPLAYABLE else []
    if kind is NOT_REPLAYABLE:
        fault = _UNFIT.format("" if any(map(is_own_writer, group)) else " either")
        doubted = max((one for one in own if one.is_beyond_rounding), key=_noise_error, default=None)
        if doubted:
            fault = _OTHER_NUMBERS_TOO.format(stored_in_doubt(no_rounding(doubted)))
        elif both := _processors(own):
            kind, fault = OTHER_PROCESSOR, _OF_PROCESSOR.format(both)
    elif cause.change:
        fault = ""
    because = fault or (f"{cause.change}." if cause.change else "")
    whole = cell_sentence(example) if cause.cells == 1 else _sentence(cause, run, f"{cause.cells:,} cells")
    sentence, brief = (" ".join(filter(None, (text, because))) for text in (whole, _sentence(cause, run)))
    todo = _rounding_advice(example) if kind is NUMBERS_MOVED else _to_do(cause, example, issue, run)
    is_numbers, no_noise = cause.verdict is Verdict.NUMERICS, example.max_noise_error is None
    if is_numbers and no_noise and example.golden in run.summary.unmeasured:
        todo = _MEASURE_FIRST
    if kind in (AUDIT_FAILED, DEVICE_LIMIT):
        todo = kind.to_do
    if kind is OTHER_PROCESSOR:
        todo = _processor_advice(max(own, key=_noise_error), run.policy.goldens)
    if doubted:
        todo = _in_doubt_advice(doubted, run.policy.goldens)
    # The outputs of these goldens that jump or would not show a wrong number, each with its leaf.
    goldens = tuple({f"{result.golden}: " for result in group})
    undecided = [line for line in run.summary.undecided if line.startswith(goldens)]
    details = [
        ("known as", _issue_text(issue)),
        ("listed", entry_text(example, run.policy, run.summary.as_of)),
        ("cases", f"{len(cause.cases)}: {few(cause.cases)}" if len(cause.cases) > 1 else ""),
        *(_number_details(group, run.folder) if is_numbers and cause.cells > 1 else ()),
        ("outputs", first_lines(undecided, "summary.json") if is_numbers else ""),
        ("example", writer_and_reader(example) if cause.cells > 1 else ""),
        *evidence(example),
        ("to do", todo),
    ]
    texts = tuple((label, text) for label, text in details if text.strip())
    return Finding(kind, number, sentence, texts, tuple(group), cause, brief, fault)


def _own_writer_cells(group: Sequence[Result], run: Run) -> list[Result]:
    """Return the cells of a run in which a golden fails in its own writer, for the goldens of the cells in `group`."""
    goldens = {result.golden for result in group}
    return [one for one in run.results if one.golden in goldens and fails_in_own_writer(one)]


def _noise_error(result: Result) -> float:
    return result.max_noise_error or 0.0


def _processors(own: Sequence[Result]) -> str:
    """Return in words which processors wrote and read the goldens of these cells, which fail in their own writer.

    The text is "" if any of them was written and read on the same processor.
    """
    texts = dict.fromkeys(result.processors for result in own)
    return "" if "" in texts else "; ".join(texts)


def _sentence(cause: Cause, run: Run, subject: str = "") -> str:
    """Return a sentence that says what happened to the cells of a cause, in which stage and in which releases.

    The sentence begins with `subject`, or if that is "", with the number of cells and their cases.
    """
    cells = Cells(run.by_cause[cause.judgement, cause.id])
    # The phrases are in the singular: "was refused" becomes "were refused".
    phrase = VERDICTS[cause.verdict].phrase.replace("was ", "were " if cause.cells > 1 else "was ")
    platform = f" on {cause.platform}" if cause.platform != "cpu" else ""
    written, read = named_among(cells.writers, run.writers), named_among(cells.readers, run.readers)
    where = f"written by {written}, read by {read}"
    cases = cause.cases[0] if len(cause.cases) == 1 else f"{len(cause.cases):,} cases"
    subject = subject or (cases if cause.cells == 1 else f"{cause.cells:,} cells of {cases}")
    # Before the verb: a terminal may show only the first line.
    which = owed_to(cells.results)
    # Numbers are broken inside the window and outside, and the headline counts the two apart.
    if cause.judgement is Judgement.BROKEN and cause.stage is not Stage.AUDIT and cause.promised < cause.cells > 1:
        which = f"{cause.promised:,} of them promised" if cause.promised else "none of them promised"
    return f"{subject}{f', {which},' if which else ''} {phrase} in stage {cause.stage}{platform}: {where}."


def _issue_text(issue: KnownIssue | None) -> str:
    if issue is None:
        return ""
    title = issue.title
    if issue.consumer != JAXLIB:
        # No release of jax is to blame: which one of the runtime has it, and who measured that, is the evidence.
        since = f" since {issue.consumer} {issue.since}" if issue.since else ""
        title = f"{issue.id}{since}: {title}"
    source = issue.link or (source_of(issue) if issue.consumer != JAXLIB else "")
    return ", ".join(filter(None, (title, source, issue.mended_in and f"fixed in {issue.mended_in}")))


def entry_text(example: Result, policy: Policy, as_of: datetime.date) -> str:
    """Return in words the policy's entry for a known failure: reason, owner, issue, end; "" if the cell has none."""
    entry = matching_entry(example, policy.known_failures) if example.judgement is Judgement.KNOWN else None
    if entry is None:
        return ""
    return f"{entry.reason} (owner {entry.owner}, {entry.issue}, {first_end([entry], as_of)})"


def _todo_of(
    issue: KnownIssue, example: Result, goldens: str, group: Sequence[Result], allow: Collection[str] = ()
) -> str:
    """Return the advice about the known issue that explains a group of cells.

    It ends with a command that converts an artifact, if the cells fail before they are lowered and that may help.
    `goldens` is the folder of goldens, and `allow` has the custom-call targets that the project accepts.
    """
    failing = [(result.custom_calls, result.reader) for result in group]
    todo = todo_about(issue, f"{goldens}/{example.golden}/{ARTIFACT}", failing)
    if "jaxexport convert" in todo:
        return todo
    for one in (example, *group):
        may_help = conversion_may_help(one.forecast, one.reader, one.custom_calls, allow)
        if one.stage in _LOADING and may_help and not one.converted:
            return f"{todo} Or try `{_converting_command(one, goldens, allow)}`."
    return todo


def _converting_command(result: Result, goldens: str, allow: Collection[str]) -> str:
    """Return the command that converts the golden of a cell for the cell's reader."""
    calls = () if result.reader.runtime else lapack_to_replace(result.custom_calls, result.reader, allow)
    option = ("--replace-custom-calls",) if calls else ()
    golden = f"{goldens}/{result.golden}"
    return shlex.join(["jaxexport", "convert", golden, "--for", result.reader.name, *option, "-o", "converted"])


def _to_do(cause: Cause, example: Result, issue: KnownIssue | None, run: Run) -> str:
    group = run.by_cause[cause.judgement, cause.id]
    if issue:
        return _todo_of(issue, example, asked_of(run).get("--goldens", run.policy.goldens), group, run.policy.allow)
    if not cause.judgement.is_urgent:
        return ""
    if cause.verdict is Verdict.TIMEOUT:  # whatever its judgement: nothing shows yet that the release cannot run it
        return more_time(example)
    if cause.not_replayable:
        return NOT_REPLAYABLE.to_do
    if not any(has_devices_for(one.reader, one.devices) for one in group):
        return FOR_ONE_DEVICE
    if advice := only_in_jax(group):
        return advice
    step = cause.judgement.facts.next_step or VERDICTS[cause.verdict].next_step
    if STILL_STARTS in example.message:
        step = BUSY_MACHINE
    whose = cause.first_reader.family or "JAX"
    # A proposal takes no baseline.
    judged = named_folder(run.folder) if "--baseline" in run.options else judged_as(run)
    target = shlex.quote(example.deployed[0] if len(example.deployed) == 1 else ALL)
    may_help = any(conversion_may_help(one.forecast, one.reader, one.custom_calls, run.policy.allow) for one in group)
    words = {
        "judged": judged,
        "again": _run_again(run),
        "target": target,
        "convert": ", convert it" if may_help else "",
    }
    step = step.format(named_folder(run.folder), **words)
    step = step.replace("report it to JAX", f"report it to {whose}")
    if cause.verdict is Verdict.NUMERICS:
        step = OTHER_NUMBERS.to_do.format(why_command("explain", example)) if promises_nothing(example.reader) else step
        return f"{step} {how_to_allow(example.allowed, is_garbage=example.is_garbage)}"
    if example.control is Control.NOT_RUN:
        # Checked before a release is blamed: it may be the device that cannot do it.
        every = ",".join(cause.writers)
        return f"{RUN_CONTROL.format(every)} {step}"
    return step


def _run_again(run: Run) -> str:
    """Return advice on how to run the missing cells of a run, as a part of a sentence that begins with a verb."""
    if shards := run.summary.not_run_shards:
        which = f"shard {shards[0]}" if len(shards) == 1 else f"shards {few([*map(str, shards)])}"
        return f"run {which} again with --resume (in CI, its job), and join all shards again"
    command = command_to_continue(run)
    return f"run `{command}`" if command else "run the same `jaxexport matrix` command with --resume"


def _in_doubt_advice(result: Result, goldens: str) -> str:
    """Return the advice about a golden whose stored outputs are in doubt, given its cell in its own writer."""
    steps = steps_in_doubt(result, golden_folder(result, goldens))
    return " ".join([*steps, f"`{why_command('explain', result)}` compares both sides with double precision."])


def _processor_advice(result: Result, goldens: str) -> str:
    """Return the advice about numbers that may depend on the processor, given the golden's cell in its own writer."""
    folder = shlex.quote(str(golden_folder(result, goldens)))
    return OTHER_PROCESSOR.to_do.format(why_command("explain", result), folder)


def _rounding_advice(example: Result) -> str:
    """Return the advice about a cell whose difference looks like rounding."""
    commands = why_command("reduce", example, "-o", "reduced"), why_command("explain", example)
    return NUMBERS_MOVED.to_do.format(*commands)


def _number_details(group: Sequence[Result], folder: Path | None) -> list[tuple[str, str]]:
    """Return two details about cells with wrong numbers: the largest error of each golden, and whether readers agree.

    The first names the readers of a golden if they are not those of the whole group. The second says whether the
    readers of a golden have the same bits; it is "" if a result has no digest of its outputs.
    """
    lines, changing, bits = [], 0, "the same in all these readers of a golden"
    every = {result.reader for result in group}
    for results in Cells(group).by_golden.values():
        own = {result.reader for result in results}
        where = "" if own == every else f" in {title_of(few(by_build_date(own)))}"
        worst = max(results, key=lambda result: (result.max_noise_error or 0.0, result.max_abs_error or 0.0))
        lines.append(f"{worst.golden}{where}: {error_size(worst.max_noise_error, worst.max_abs_error)}")
        changing += len({result.outputs for result in results}) > 1
    if changing:
        see = f"see `jaxexport report{named_folder(folder)} --trend numbers`"
        bits = f"those of {plural(changing, 'golden')} change again among these readers: {see}"
    return [("goldens", first_lines(lines)), ("bits", bits if all(result.outputs for result in group) else "")]


def _flaky(results: Sequence[Result]) -> Finding:
    """Return the finding about these flaky cells, which had another verdict last time: a line for each."""
    sentence = (
        f"{plural(len(results), 'cell')} had another verdict last time, with the same content. The judgement "
        "uses the verdict of this run."
    )
    cells = [
        f"{result.golden} in {result.reader.title} on {result.platform}: {result.verdict}, {result.flaky}"
        for result in results
    ]
    details = ("cells", first_lines(cells)), ("to do", _RUN_TWICE)
    return Finding(FLAKY, 0, sentence, details, tuple(results))


def _change(change: JudgedChange) -> Finding:
    """Return the finding about a declared change of a custom-call target.

    It says the phase of the change, what must hold, which cells measure that, and when the old target may be deleted.
    """
    measured = f"nothing: no promised reader that has the change ran a golden of {change.old}"
    if change.measured:
        passed = (
            f"{change.passed} of {change.cells} promised cells "
            f"{'passes' if change.passed == 1 else 'pass'} in readers that have the change"
        )
        measured = f"{few(change.measured)}: {passed}"
    day = f"from {change.delete_from} on" if change.delete_from else "on a day that depends on the release"
    goldens = few(change.goldens) or "none"
    details = (
        ("must hold", "\n".join(change.must)),
        ("measured", measured),
        ("delete", f"{change.old} {day}, and the goldens that call it: {goldens}"),
    )
    return Finding(CUSTOM_CALL, 0, f"{change.old} → {change.new or 'nothing'}: {change.phase} ({change.why}).", details)
