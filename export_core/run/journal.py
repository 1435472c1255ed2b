"""The journal of a run: its plan, written before it starts, and its results, appended as they come.

A run can be killed at any moment. Then its folder has the plan, and the results so far, the last line of which may be
torn. `--resume` continues from there, and only with the same plan: results that still count stay, and cells without one
are run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Self

import filelock
import msgspec

from export_core.base.atomic import write_whole
from export_core.base.escaping import safe_json
from export_core.base.phrases import schema_problem
from export_core.base.untrusted import decode_json, read_regular
from export_core.judge.judgement import judge_again
from export_core.judge.result import Result, reader_of, writer_of
from export_core.matrix import Plan, Verdict
from export_core.policy import Policy
from export_core.readers.cell import CellKey
from export_core.run.errors import ResultsNotWritten, RunError
from export_core.run.plan_record import PLAN, PlanRecord, recorded_plan

RESULTS = "results.jsonl"
SUMMARY = "summary.json"
LOCK = ".lock"
_IGNORE = "# jaxexport made this folder: results of a run are not committed.\n*\n"


class _Finished(msgspec.Struct):
    """What of a summary says which results it is about."""

    results_sha256: str


class Journal:
    """The results folder of one run, which no other run may use meanwhile; a context manager.

    Raises `RunError` if another run uses it, if it cannot be written to, and if the plan to be resumed is another one.
    """

    def __init__(self, folder: Path, record: PlanRecord, *, resume: bool = False) -> None:
        self._folder = folder
        self._lock = filelock.FileLock(folder / LOCK)
        try:
            make_folder(folder)
            # A lock of the system, which ends with the process: a run that was killed leaves nobody locked out.
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            raise RunError(
                f"--results {folder}: another run is writing its results there. Wait for it, or choose another folder."
            ) from None
        except OSError as error:
            raise RunError(_cannot_write(folder, error)) from error
        try:
            self.resumed = resume and self._continues(record)
            if not self.resumed:
                # In this order: a plan that can be resumed is never in one folder with the results of another plan.
                for name in (PLAN, RESULTS, SUMMARY):
                    (folder / name).unlink(missing_ok=True)
                write_whole(folder / PLAN, [safe_json(record, indent=2), b"\n"])
            self._file = self._opened()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise RunError(_cannot_write(folder, error)) from error
            raise

    def retain(self, is_wanted: Callable[[bytes], bool]) -> list[bytes]:
        """Drop all results so far but the complete lines that are wanted, once each, and return those."""
        *lines, rest = read_regular(self._folder / RESULTS).split(b"\n")
        # A torn last line would run into the next result: then the file is written again.
        wanted = list(dict.fromkeys(line for line in lines if is_wanted(line)))
        if rest or wanted != lines:
            self._replace(wanted)
        return wanted

    def append(self, line: bytes) -> None:
        """Write a result, without a line break in it, to the file: it is there even if the process is killed next.

        Raises `ResultsNotWritten`, as `finish` does, if there is no room for it.
        """
        data = line + b"\n"
        try:
            while data:  # on a disk that is nearly full, a write may take a part only
                data = data[self._file.write(data) :]
        except OSError as error:
            raise ResultsNotWritten(_cannot_write(self._folder, error)) from error

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

    def _continues(self, record: PlanRecord) -> bool:
        """Whether the last run here is to be continued. False if none had begun."""
        before = recorded_plan(self._folder)
        if before is None:
            return False
        difference = before.differs_in(record)
        if not difference and before.shard != record.shard:
            difference = f"--shard {before.shard or 'not given'}, now {record.shard or 'not given'}"
        if not difference and before != record:
            difference = f"other cells in its {PLAN}, which was changed since"
        if difference:
            raise RunError(
                f"--resume: the last run in {self._folder} had another plan: {difference}. "
                "Give the options it had, or start again without --resume."
            )
        summary, results = self._folder / SUMMARY, self._folder / RESULTS
        if summary.exists():  # a finished run, unless its results were changed since
            try:
                finished: _Finished = decode_json(read_regular(summary), _Finished)
            except msgspec.MsgspecError as error:
                raise RunError(f"--resume: {summary}: {schema_problem(error)}. Start again without --resume.") from None
            digest = hashlib.sha256(read_regular(results)).hexdigest() if results.exists() else ""
            if not digest or digest != finished.results_sha256:
                raise RunError(
                    f"--resume: {results}: expected the file whose SHA-256 is in {SUMMARY}, found another or none. "
                    "Start again without --resume."
                )
            summary.unlink()  # it is not the summary of what will be appended
        return True

    def _replace(self, lines: Iterable[bytes]) -> None:
        self._file.close()
        try:
            write_whole(self._folder / RESULTS, (line + b"\n" for line in lines))
            self._file = self._opened()
        except OSError as error:
            raise ResultsNotWritten(_cannot_write(self._folder, error)) from error

    def _opened(self) -> FileIO:
        """The results to append to, unbuffered: a buffer that did not fit on the disk would be written again, torn."""
        return (self._folder / RESULTS).open("ab", buffering=0)


def results_written(folder: Path) -> int:
    """The number of results in the folder of a run, which need not have ended."""
    path = folder / RESULTS
    return read_regular(path).count(b"\n") if path.exists() else 0


def make_folder(folder: Path) -> None:
    """Make the folder, and its parents. The outermost one that is new has a .gitignore: git then ignores all of it."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if new:
        (new[-1] / ".gitignore").write_text(_IGNORE)


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"--results {folder}: cannot write there: {error.strerror or error}."


def results_so_far(journal: Journal, plan: Plan, policy: Policy) -> list[Result]:
    """The results of the run, one for a cell; the journal has only these from now on. What was not run is left out.

    They are judged again: no summary has a hash of them yet.
    """
    planned = {cell.key: cell for cell in plan.cells}
    results: dict[CellKey, Result] = {}

    def is_wanted(line: bytes) -> bool:
        try:
            result = decode_json(line, Result)
        except msgspec.MsgspecError:
            return False
        cell = planned.get(result.key)
        # A cell that was not run is run now: what failed around it may work today.
        if cell is None or result.verdict is Verdict.NOT_RUN or result.key in results:
            return False
        # What a result says of its cell, and of its dates, must be what the plan says.
        manifest = cell.golden.manifest
        of_plan = manifest.case, writer_of(manifest.writer), reader_of(cell.reader), manifest.custom_calls
        if (result.case, result.writer, result.reader, result.custom_calls) != of_plan:
            return False
        results[result.key] = result
        return True

    journal.retain(is_wanted)
    return [judge_again(result, policy, plan.as_of) for result in results.values()]
