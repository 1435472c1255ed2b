"""The two files that a run leaves beside its plan: results.jsonl, a judged cell on each line, and summary.json.

Whoever reads them again checks that they belong together, see `read_run`. This shows accidents and edits by hand; it is
no signature, since whoever can write the folder can write all of it.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from export_core.base.atomic import write_whole
from export_core.base.escaping import safe_json
from export_core.base.phrases import schema_problem
from export_core.base.untrusted import LARGEST, decode_json, read_named
from export_core.judge.gate import Summary, broken_changes, exit_code_of, summarize
from export_core.judge.result import Result, shared_result
from export_core.policy import Policy
from export_core.releases import ReleaseError
from export_core.run.errors import AGAIN, IncompleteResults, ResultsNotWritten, RunError, not_readable
from export_core.run.journal import RESULTS, SUMMARY, Journal
from export_core.run.plan_record import PLAN, PlanRecord, hash_of, plan_of, policy_hash
from export_core.run.run import Run


def result_line(result: Result) -> bytes:
    """A result as its line of results.jsonl, without the line break."""
    return safe_json(result)


def finish_run(journal: Journal, folder: Path, run: Run) -> Run:
    """Write the files of a run that has ended: its results in order, and its summary with their hash."""
    digest = journal.finish(map(result_line, run.results))
    summary = msgspec.structs.replace(run.summary, results_sha256=digest)
    write_summary(folder, summary)
    return replace(run, summary=summary, folder=folder)


def write_summary(folder: Path, summary: Summary) -> None:
    """Write summary.json, all or nothing. Raises `ResultsNotWritten` where there is no room for it."""
    try:
        write_whole(folder / SUMMARY, [safe_json(summary, indent=2), b"\n"])
    except OSError as error:
        raise ResultsNotWritten(f"{folder / SUMMARY}: cannot be written: {error.strerror or error}.") from error


def read_results(folder: Path) -> Iterator[Result]:
    """The results of a results.jsonl, unchecked: also of a run that has not finished. `read_run` checks them.

    Raises `RunError` for a line that is not a result, and names it.
    """
    yield from _results_in(folder / RESULTS, _bytes_of(folder / RESULTS))


def read_run(folder: Path) -> Run:
    """A finished run whose plan, results and summary belong together.

    Raises `IncompleteResults` where planned cells have no result or more than one, and `RunError` for all else: a
    result of an unplanned cell, a file that was changed, a policy or a calendar that is not the plan's.
    """
    summary, plan = read_summary(folder), plan_of(folder)
    _check_summary(folder / SUMMARY, summary, plan)
    path = folder / RESULTS
    data = _bytes_of(path)
    results = list(_results_in(path, data))
    plan.check_keys((result.key for result in results), str(path))
    if not results:
        raise IncompleteResults(f"{path}: Nothing was planned: expected at least one cell. {AGAIN}")
    if hashlib.sha256(data).hexdigest() != summary.results_sha256:
        raise RunError(f"{path}: expected the file whose SHA-256 is in {SUMMARY}, found a changed one. {AGAIN}")
    for result in results:
        works = result.verdict.works
        if works != result.judgement.facts.works or (works and result.cause):
            raise RunError(
                f"{path}: {result.key}: expected a judgement that {result.verdict} can have, found "
                f"{result.judgement}{' with the cause of a failure' if result.cause else ''}. {AGAIN}"
            )
    run = Run(results, summary, plan, folder)
    _check_counts(folder / SUMMARY, run)
    try:
        calendar = run.policy.calendar()
    except ReleaseError as error:
        raise RunError(f"{folder / SUMMARY}: policy: {error} {AGAIN}") from None
    releases = {(release.jaxlib, release.built) for result in results for release in (result.writer, result.reader)}
    for jaxlib, built in sorted(releases):
        known = calendar.jaxlib.get(jaxlib)
        if known and known.built != built:
            raise RunError(
                f"{path}: jaxlib {jaxlib}: expected built: {known.built}, as in the calendar, found {built}. {AGAIN}"
            )
    return run


def read_summary(folder: Path) -> Summary:
    """The summary.json of a run, whose policy this version reads.

    Raises `RunError` if there is none, or if another version wrote it in another form.
    """
    path = folder / SUMMARY
    try:
        summary: Summary = decode_json(read_named(path, LARGEST), Summary)
    except OSError:
        found = (
            "a run that has not finished: `jaxexport matrix --resume` continues it"
            if (folder / PLAN).exists()
            else "none. Run `jaxexport matrix` first, or name the folder of a run"
        )
        raise RunError(f"{path}: expected the summary of a finished matrix run, found {found}.") from None
    except msgspec.MsgspecError as error:
        raise not_readable(path, "a summary", schema_problem(error)) from None
    # All that a later command will use is checked here, where the message can name the file.
    try:
        msgspec.convert(summary.policy, Policy)
    except msgspec.MsgspecError as error:
        raise not_readable(path, "a summary", f"policy: {schema_problem(error)}") from None
    if not isinstance(whole := summary.selection.get("whole"), bool):
        raise not_readable(path, "a summary", f"`selection.whole`: expected true or false, found {whole!r}")
    return summary


def _bytes_of(path: Path) -> bytes:
    try:
        return read_named(path, LARGEST)
    except OSError:
        raise RunError(f"{path}: expected the results of a matrix run, found none.") from None


def _results_in(path: Path, data: bytes) -> Iterator[Result]:
    # As bytes: a str would also be split at U+2028 and others, which JSON leaves as they are in a message.
    for number, line in enumerate(io.BytesIO(data), 1):
        try:
            yield shared_result(decode_json(line, Result))
        except msgspec.MsgspecError as error:
            raise RunError(f"{path}:{number}: not a result: {schema_problem(error)}. {AGAIN}") from None


def _check_summary(path: Path, summary: Summary, plan: PlanRecord) -> None:
    """Raise `RunError` for a summary of another run than its plan, and for one whose facts were changed."""
    shard = f"{summary.shard.index}/{summary.shard.count}" if summary.shard else ""
    # A merged run with a gap has not all cells of its plan, and is not whole where its plan is.
    has_gap = not shard and summary.results < summary.planned
    selection = {**summary.selection, "whole": plan.selection.get("whole")} if has_gap else summary.selection
    same = {
        "plan": summary.plan == plan.digest,
        "shard": shard == plan.shard,
        "as_of": str(summary.as_of) == plan.as_of,
        "selection": selection == plan.selection,
        "planned": bool(shard) or summary.planned == plan.planned,
        "policy": policy_hash(summary.policy) == plan.policy,
        "calendar": summary.calendar == plan.calendar,
        "cells": bool(shard) or has_gap or hash_of(plan.own_cells) == plan.cells,
    }
    if changed := [name for name, is_same in same.items() if not is_same]:
        raise RunError(
            f"{path}: {', '.join(changed)}: expected what {PLAN} beside it has, found something else: they are of "
            f"different runs, or one was changed. {AGAIN}"
        )


def _check_counts(path: Path, run: Run) -> None:
    """Raise `RunError` for a summary that does not follow from its results and its policy."""
    summary = run.summary
    again = summarize(run.results, run.policy, summary)
    # Whether there is something to say, and not its words: another version may say it in other ones.
    same = {
        **{
            name: getattr(summary, name) == getattr(again, name)
            for name in ("results", "verdicts", "judgements", "promised", "deployed")
        },
        "causes": _cause_counts(summary) == _cause_counts(again),
        **{name: bool(getattr(summary, name)) == bool(getattr(again, name)) for name in ("uncovered", "unpromised")},
        # What was added in the future is stale only until that day has come.
        "stale": bool(summary.stale) or not again.stale,
        "failed_on": bool(summary.failed_on) == bool(again.failed_on),
        "custom_call_changes": broken_changes(summary) == broken_changes(again),
        "exit_code": summary.exit_code == exit_code_of(summary),
    }
    if changed := [name for name, is_same in same.items() if not is_same]:
        raise RunError(f"{path}: {', '.join(changed)}: expected what {RESULTS} says, found something else. {AGAIN}")


def _cause_counts(summary: Summary) -> Counter[str]:
    """How many failing cells of each judgement have a cause; the words of a cause may be those of another version."""
    counts: Counter[str] = Counter()
    for cause in summary.causes:
        counts[cause.judgement] += cause.cells
    return counts
