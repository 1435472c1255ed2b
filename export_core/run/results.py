"""The files of a run beside its plan: results.jsonl, with one judged cell per line; and summary.json.

A result is appended when its cell ends, so a run can be killed at any moment. Then its folder has the plan and the
results so far, the last line of which may be torn. `--resume` continues from there, with the same plan only: results
that still count stay, and cells without a result are run.

`read_run` checks that the files of a finished run belong together. This finds accidents and edits by hand. It is not a
signature, since somebody who can write one file of the folder can write all of them.
"""

import contextlib
import hashlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

import filelock
import msgspec

from export_core.base.atomic import open_to_append, refuse_link, remove_staged, write_new, write_whole
from export_core.base.checked_arguments import path_of
from export_core.base.errors import ExportCompatError, Problem
from export_core.base.facts import check_facts
from export_core.base.json_text import decode_json, safe_json
from export_core.base.text import first_line, plural, schema_problem
from export_core.base.untrusted import LARGEST, read_named, read_regular
from export_core.goldens.store import check_output_folder
from export_core.judge.gate import Summary, broken_changes, calendar_facts, exit_code_of, summarize
from export_core.judge.judgement import judge_again
from export_core.matrix import Plan, Verdict
from export_core.matrix.result import Result, is_of_cell, shared_result
from export_core.policy import Policy
from export_core.policy.run_options import RESULTS as USUAL_FOLDER
from export_core.readers.cell import CellKey
from export_core.releases import ReleaseError
from export_core.releases.runtimes import known_runtimes
from export_core.run.errors import AGAIN, IncompleteResults, ResultsNotWritten, RunError, not_as_written, not_readable
from export_core.run.plan_record import (
    PLAN,
    Evidence,
    PlanRecord,
    by_another_tool,
    has_whole_run,
    hash_of,
    is_narrower,
    plan_of,
    policy_hash,
    recorded_plan,
)
from export_core.run.run import Run

RESULTS = "results.jsonl"
SUMMARY = "summary.json"
LOCK = ".lock"
GIT_IGNORE = ".gitignore"
WHOLE = "whole"  # The folder, inside a results folder, into which a partial run moves the last whole run.
FINISHED = "finished"  # The folder, inside the folder of an unfinished run, for the finished run that was there before.
_FILES = PLAN, RESULTS, SUMMARY
# In this order: a plan that can be resumed is never in one folder with the results of another plan.
_IGNORE = "# jaxexport made this folder: results of a run are not committed.\n*\n"


class _Finished(msgspec.Struct):
    """The part of summary.json that `--resume` reads: the SHA-256 of results.jsonl."""

    results_sha256: str


class Journal:
    """A context manager for the results folder of a run, which it locks against every other run.

    Raises `RunError` if another run uses the folder, if the folder cannot be written to, or if the run to be resumed
    had a different plan.
    """

    def __init__(self, folder: Path, record: PlanRecord, *, resume: bool = False) -> None:
        self._folder = folder
        self._lock = filelock.FileLock(folder / LOCK)
        check_output_folder(folder, "--results")
        _refuse_linked(folder)
        try:
            make_folder(folder)
            refuse_link(folder / LOCK)
            # A lock of the system, which ends with the process: a run that was killed leaves nobody locked out.
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            advice = "Wait for it, or choose another folder."
            problem = Problem(f"--results {folder}", "another run is writing its results there.", advice=advice)
            raise RunError.about(problem) from None
        except OSError as error:
            raise RunError.about(_not_written(folder, error)) from error
        for name in _FILES:  # the run that staged them held the lock, or was killed
            remove_staged(folder / name)
        try:
            self.resumed = resume and self._take_up(record)
            if not self.resumed:
                selection = record.selection
                is_part = bool(record.shard) or not selection.get("whole")
                is_part |= is_narrower(str(selection.get("readers", "")), folder)
                self._clear(folder / WHOLE if is_part and is_whole_run_moved(folder) else None)
                write_whole(folder / PLAN, [safe_json(record, indent=2), b"\n"])
            self._file = self._opened()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise RunError.about(_not_written(folder, error)) from error
            raise

    def retain(self, is_wanted: Callable[[bytes], bool]) -> list[bytes]:
        """Keep only the complete lines of results.jsonl that `is_wanted` accepts, without duplicates; return them."""
        *lines, rest = read_regular(self._folder / RESULTS).split(b"\n")
        # A torn last line would run into the next result: then the file is written again.
        wanted = list(dict.fromkeys(line for line in lines if is_wanted(line)))
        if rest or wanted != lines:
            self._replace(wanted)
        return wanted

    def append(self, line: bytes) -> None:
        """Append a result to results.jsonl, unbuffered, so that it survives if the process is killed next.

        `line` has no line break. Raises `ResultsNotWritten` if the line cannot be written.
        """
        data = line + b"\n"
        try:
            while data:  # on a disk that is nearly full, a write may take a part only
                data = data[self._file.write(data) :]
        except OSError as error:
            raise ResultsNotWritten.about(_not_written(self._folder, error)) from error

    def finish(self, lines: Iterable[bytes]) -> str:
        """Write the results in their final order, all or nothing. Returns the SHA-256 of the file."""
        digest = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for line in lines:
                digest.update(line + b"\n")
                yield line

        self._replace(hashed())
        return digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Now other runs may use the folder.
        self._file.close()
        self._lock.release()

    def _take_up(self, record: PlanRecord) -> bool:
        """Prepare to continue the last run in this folder, and return whether there was a run.

        If the run had finished, its files are first copied into the folder `FINISHED`.
        """
        before = recorded_plan(self._folder)
        if before is None:
            return False
        difference = before.differs_in(record)
        if not difference and before.shard != record.shard:
            difference = f"--shard {before.shard or 'not given'}, now {record.shard or 'not given'}"
        if not difference and before != msgspec.structs.replace(record, options=before.options):
            difference = f"other cells in its {PLAN}, which was changed since"
        if difference:
            problem = f"the last run in {self._folder} had another plan: {difference}."
            own = before.command(self._folder)
            advice = "Give the options it had, or start again without --resume."
            # Then its own command is refused too.
            if before.has_changed_until(record) or (own and own == record.command(self._folder)):
                advice = "Start again without --resume."
            elif own:
                advice = f"Continue it by `{own}`, or start again without --resume."
            raise RunError.about(Problem("--resume", problem, advice=advice))
        summary, results = self._folder / SUMMARY, self._folder / RESULTS
        if summary.exists():  # a finished run, unless its results were changed since
            try:
                finished: _Finished = decode_json(read_regular(summary), _Finished)
            except msgspec.MsgspecError as error:
                raise RunError.about(_not_resumed(summary, f"{schema_problem(error)}.")) from None
            digest = hashlib.sha256(read_regular(results)).hexdigest() if results.exists() else ""
            if not digest or digest != finished.results_sha256:
                problem = f"expected the file whose SHA-256 is in {SUMMARY}, found another or none."
                raise RunError.about(_not_resumed(results, problem))
            for name in _FILES:
                write_whole(self._make_unlinked(self._folder / FINISHED) / name, [read_regular(self._folder / name)])
            summary.unlink()  # it does not cover the results that will be appended
        return True

    def _clear(self, whole: Path | None) -> None:
        """Move the files of the last run into the folder `whole`, in place of those of an earlier run.

        If `whole` is None, they move into the folder `FINISHED` if the run has finished, and else are deleted.
        """
        into = whole or (self._folder / FINISHED if (self._folder / SUMMARY).exists() else None)
        if into:
            self._make_unlinked(into)
            for name in _FILES:
                (into / name).unlink(missing_ok=True)
        for name in _FILES:
            with contextlib.suppress(FileNotFoundError):
                path = self._folder / name
                path.replace(into / name) if into else path.unlink()

    @staticmethod
    def _make_unlinked(folder: Path) -> Path:
        """Make a folder for the files of an earlier run, and return it; an error is raised for a symbolic link."""
        refuse_link(folder)
        folder.mkdir(exist_ok=True)
        return folder

    def forget_finished(self) -> None:
        """Remove the earlier finished run from the folder `FINISHED`, once the new run has finished."""
        kept = self._folder / FINISHED
        with contextlib.suppress(OSError):
            refuse_link(kept)
            for name in _FILES:
                (kept / name).unlink(missing_ok=True)
            kept.rmdir()  # the folder stays where it holds something else

    def _replace(self, lines: Iterable[bytes]) -> None:
        self._file.close()
        try:
            write_whole(self._folder / RESULTS, (line + b"\n" for line in lines))
            self._file = self._opened()
        except OSError as error:
            raise ResultsNotWritten.about(_not_written(self._folder, error)) from error

    def _opened(self) -> io.FileIO:
        """Open results.jsonl to append to, unbuffered.

        A buffer that a full disk has taken in part would be written again later, and leave a torn line.
        """
        return open_to_append(self._folder / RESULTS)


def is_whole_run_moved(folder: Path) -> bool:
    """Return whether a partial run must move the last whole run in this folder aside.

    An unfinished whole run is not moved if it would replace a finished whole run.
    """
    return has_whole_run(folder) and ((folder / SUMMARY).exists() or not (folder / WHOLE / SUMMARY).exists())


def finished_before(folder: Path) -> str:
    """Return a sentence that says where the earlier finished run of a folder is; empty if there is no such run."""
    kept = folder / FINISHED
    return f" The finished run that was there before is in {kept}." if (kept / SUMMARY).exists() else ""


def results_written(folder: Path) -> int:
    """Return the number of results in the folder of a run, which may still be running."""
    path = folder / RESULTS
    return read_regular(path).count(b"\n") if path.exists() else 0


def make_folder(folder: Path) -> None:
    """Make a folder and its parents. The outermost new folder gets a .gitignore, by which git ignores all of it.

    A folder below one that has this file already gets none.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if new and not any(map(_is_ignored, new[-1].absolute().parents)):
        write_new(new[-1] / GIT_IGNORE, [_IGNORE.encode()])


def _is_ignored(folder: Path) -> bool:
    """Return whether a folder has the .gitignore that `make_folder` writes."""
    with contextlib.suppress(OSError):
        return read_regular(folder / GIT_IGNORE) == _IGNORE.encode()
    return False


def _refuse_linked(folder: Path) -> None:
    """Raise `RunError` if a folder of results is a symbolic link, or is below a `.jaxexport` that is a link.

    A run replaces and removes files there. Links in other parts of the path are the user's own choice.
    """
    for path in (folder, *folder.parents):
        if path.is_symlink() and (path == folder or path.name == USUAL_FOLDER.name):
            advice = "Name the folder that it leads to, if a run may replace and remove files there."
            problem = f"expected a folder, found the symbolic link {path}."
            raise RunError.about(Problem(f"--results {folder}", problem, advice=advice))


def _not_written(folder: Path, error: OSError) -> Problem:
    problem = f"cannot write there: {error.strerror or error}."
    return Problem(f"--results {folder}", problem, advice="Choose another folder with --results.")


def _not_resumed(path: Path, text: str) -> Problem:
    return Problem(f"--resume: {path}", text, advice="Start again without --resume.")


def results_so_far(journal: Journal, plan: Plan, policy: Policy) -> list[Result]:
    """Return the results in the journal that still count, one for each cell, and drop all others from the journal.

    The results are judged again, since no summary has their hash yet.
    """
    planned = {cell.key: cell for cell in plan.cells}
    results: dict[CellKey, Result] = {}

    def is_wanted(line: bytes) -> bool:
        try:
            result = _decoded(line)
        except msgspec.MsgspecError:
            return False
        cell = planned.get(result.key)
        # A cell that was not run is run now: what failed around it may work today.
        if cell is None or result.verdict is Verdict.NOT_RUN or result.key in results:
            return False
        # The cell and the dates of a result must be those of the plan.
        if not is_of_cell(result, cell):
            return False
        results[result.key] = result
        return True

    journal.retain(is_wanted)
    return [judge_again(result, policy, plan.as_of) for result in results.values()]


def finish_run(journal: Journal, folder: Path, run: Run) -> Run:
    """Write the results of a run that has ended, and its summary with their hash; return the run with that summary."""
    digest = journal.finish(map(safe_json, run.results))
    summary = msgspec.structs.replace(run.summary, results_sha256=digest)
    write_summary(folder, summary)
    journal.forget_finished()
    return replace(run, summary=summary, folder=folder)


def write_summary(folder: Path, summary: Summary) -> None:
    """Write summary.json, all or nothing. Raises `ResultsNotWritten` if the file cannot be written."""
    try:
        write_whole(folder / SUMMARY, [safe_json(summary, indent=2), b"\n"])
    except OSError as error:
        problem = Problem(folder / SUMMARY, f"cannot be written: {error.strerror or error}.")
        raise ResultsNotWritten.about(problem) from error


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Return a finished run whose plan, results and summary belong together.

    Raises:
        IncompleteResults: A planned cell has more than one result, or none. Cells of a shard in `missing_shards` of
            the summary do not count.
        RunError: Anything else is wrong: a result of an unplanned cell, a file that was changed, a policy or a calendar
            that is not the plan's.
    """
    folder = path_of(folder, "read_run", "a folder of results", RunError)
    summary, plan = read_summary(folder), plan_of(folder)
    _check_summary(folder / SUMMARY, summary, plan)
    path = folder / RESULTS
    data = bytes_of_results(path)
    results = list(results_in(path, data))
    plan.check_keys((result.key for result in results), str(path))
    if not results:
        problem = "Nothing was planned: expected at least one cell."
        raise IncompleteResults.about(Problem(path, problem, advice=AGAIN))
    if hashlib.sha256(data).hexdigest() != summary.results_sha256:
        raise not_as_written(path, f"expected the file whose SHA-256 is in {SUMMARY}, found a changed one.")
    for result in results:
        works = result.verdict.works
        if works != result.judgement.facts.works or (works and result.cause):
            found = f"{result.judgement}{' with the cause of a failure' if result.cause else ''}"
            problem = f"expected a judgement that {result.verdict} can have, found {found}."
            raise not_as_written(path, problem, str(result.key))
    run = Run(results, summary, plan, folder)
    # Dates first: counts are those of the promised plan, which follows from the calendar.
    _check_dates(folder, run)
    _check_counts(folder / SUMMARY, run)
    return run


def _check_dates(folder: Path, run: Run) -> None:
    """Raise `RunError` if a writer or reader of a result has a build date that differs from the calendar's."""
    try:
        calendar = run.policy.calendar()
    except ReleaseError as error:
        raise not_as_written(folder / SUMMARY, str(error), "policy") from None
    used = {release for result in run.results for release in (result.writer.release, result.reader)}
    for release in sorted(used, key=lambda release: release.date_order):
        if release.runtime and release.family not in known_runtimes():  # of a package that is not installed here
            continue
        dated = known_runtimes()[release.family].known(calendar) if release.runtime else calendar.jaxlib
        known = dated.get(release.version)
        if known and known.built != release.built:
            problem = f"expected built: {known.built}, as in the calendar, found {release.built}."
            raise not_as_written(folder / RESULTS, problem, release.title)


def read_summary(folder: Path) -> Summary:
    """Return the summary.json of a run.

    Raises `RunError` if there is no summary, or if this version cannot read the summary or the policy in it.
    """
    path = folder / SUMMARY
    try:
        summary: Summary = decode_json(read_named(path, LARGEST), Summary)
    except OSError:
        problem, advice = "expected the summary of a finished matrix run, found", ""
        found = unfinished_run(folder)
        if not found:
            advice = f"Run `jaxexport matrix` first, or name the folder of a run.{finished_before(folder)}"
        raise RunError.about(Problem(path, f"{problem} {found or 'none.'}", advice=advice)) from None
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


def unfinished_run(folder: Path) -> str:
    """Return the part of a message after "found" for a folder whose run has not finished; "" if there is no such run.

    The text names the command that continues the run, or says that the run is not over. It also says where the
    folder's earlier finished run is.
    """
    if (folder / SUMMARY).exists() or not (folder / PLAN).exists():
        return ""
    if _is_being_written(folder):
        so_far = plural(results_written(folder), "result")
        return f"a run that another process is writing, with {so_far} so far. Wait for it.{finished_before(folder)}"
    return f"a run that has not finished{_continued(folder)}.{finished_before(folder)}"


def _is_being_written(folder: Path) -> bool:
    """Return whether a run writes its results into a folder now: it holds the lock of the folder until it ends."""
    if not (folder / LOCK).exists():
        return False
    try:
        with filelock.FileLock(folder / LOCK, timeout=0):
            return False
    except filelock.Timeout:
        return True
    except OSError:  # of a folder that can only be read
        return False


def _continued(folder: Path) -> str:
    """Return the end of a sentence about an unfinished run: the command that continues it, or that none does."""
    if made := by_another_tool(folder):
        return f", made by {made}: run `jaxexport matrix` again"
    from export_core.run.outdated import changed_since_plan  # it reads goldens, which few readers of results need

    try:
        record = plan_of(folder)
    except RunError:
        return ""
    try:
        changed = changed_since_plan(record)
    except ExportCompatError as error:
        problem = first_line(str(error)).removesuffix(".")
        return f", and no command continues it before this is corrected: {problem}"
    if changed:
        again = record.command(folder, resume=False) or "jaxexport matrix"
        return f", made with {changed}: no command continues it, run `{again}` again"
    command = record.command(folder)
    return f": `{command}` continues it" if command else ": the same command with --resume continues it"


def bytes_of_results(path: Path) -> bytes:
    """Return the content of a file of results. Raises `RunError` if the file cannot be read."""
    try:
        return read_named(path, LARGEST)
    except OSError:
        raise RunError.about(Problem(path, "expected the results of a matrix run, found none.")) from None


def results_in(path: Path, data: bytes) -> Iterator[Result]:
    """Yield the results in `data`, the content of `path`. Raises `RunError` that names a line that is not a result."""
    # As bytes: a str would also be split at U+2028 and others, which JSON leaves as they are in a message.
    for number, line in enumerate(io.BytesIO(data), 1):
        try:
            yield shared_result(_decoded(line))
        except msgspec.MsgspecError as error:
            raise not_as_written(path, f"not a result: {schema_problem(error)}.", line=number) from None


def _decoded(line: bytes) -> Result:
    """Return a line of results.jsonl as a result.

    Raises `msgspec.MsgspecError` if the line is not a result.
    """
    result: Result = decode_json(line, Result)
    if result.facts:
        check_facts(result.facts)
    return result


def _check_summary(path: Path, summary: Summary, plan: PlanRecord) -> None:
    """Raise `RunError` if a summary and a plan are not of the same run, or if either was changed."""
    shard = f"{summary.shard.index}/{summary.shard.count}" if summary.shard else ""
    # A merged run with a gap has not all cells of its plan, and is not whole where its plan is.
    has_gap = not shard and summary.results < summary.planned
    selection = {**summary.selection, "whole": plan.selection.get("whole")} if has_gap else summary.selection
    same = {
        "plan": summary.plan == plan.digest,
        "evidence": not isinstance(plan.evidence, Evidence) or plan.evidence == Evidence.of(plan.evidence.parts),
        "shard": shard == plan.shard,
        "as_of": str(summary.as_of) == plan.as_of,
        "selection": selection == plan.selection,
        "planned": bool(shard) or summary.planned == plan.planned,
        "policy": policy_hash(summary.policy) == plan.policy,
        "calendar": summary.calendar == plan.calendar,
        "cells": bool(shard) or has_gap or hash_of(plan.own_cells) == plan.cells,
    }
    if changed := [name for name, is_same in same.items() if not is_same]:
        problem = (
            f"expected the values in {PLAN} beside it, found others: they are of different runs, or one was changed."
        )
        raise not_as_written(path, problem, ", ".join(changed))


def _check_counts(path: Path, run: Run) -> None:
    """Raise `RunError` if the summary of a run does not follow from its results and its policy."""
    summary = run.summary
    again = summarize(run.results, run.policy, summary)
    # Only whether there is a text is compared: another version may word it differently.
    same = {
        **{
            name: getattr(summary, name) == getattr(again, name)
            for name in ("results", "verdicts", "judgements", "promised", "deployed")
        },
        "causes": _cause_counts(summary) == _cause_counts(again),
        **{name: bool(getattr(summary, name)) == bool(getattr(again, name)) for name in ("uncovered", "unpromised")},
        # An entry that was added in the future is stale only until that day.
        "stale": bool(summary.stale) or not again.stale,
        "failed_on": bool(summary.failed_on) == bool(again.failed_on),
        "custom_call_changes": broken_changes(summary) == broken_changes(again),
        # A newer calendar may show more unplanned releases, which the new judgement reports.
        "unplanned": bool(summary.unplanned) == bool(again.unplanned)
        or summary.calendar != calendar_facts(run.policy.calendar(), summary.as_of),
        "exit_code": summary.exit_code == exit_code_of(summary),
    }
    if changed := [name for name, is_same in same.items() if not is_same]:
        raise not_as_written(path, f"expected values that follow from {RESULTS}, found others.", ", ".join(changed))


def _cause_counts(summary: Summary) -> Counter[str]:
    """Return the number of failing cells with a cause, by judgement.

    The texts of causes are not compared, since a different version may word them differently.
    """
    counts: Counter[str] = Counter()
    for cause in summary.causes:
        counts[cause.judgement] += cause.cells
    return counts
