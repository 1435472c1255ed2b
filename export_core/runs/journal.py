"""The journal of a run: its plan, written before it starts, and its results, appended as they come.

A run can be killed at any moment. Then its folder has the plan, and the results so far, the last line of which may be
torn. `--resume` continues from there, and only with the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path
from typing import Any, Self

import filelock
import msgspec

from export_core.atomic import write_whole
from export_core.escaping import safe_json
from export_core.matrix.content_keys import tool
from export_core.matrix.limits import Limits
from export_core.matrix.plan import Plan
from export_core.runs.errors import ResultsNotWritten, RunError
from export_core.untrusted import decode_json

PLAN = "plan.json"
RESULTS = "results.jsonl"
SUMMARY = "summary.json"
LOCK = ".lock"


_DIFFERENCES = {
    "tool": "another version of pytest-jaxexport",
    "as_of": "another --as-of",
    "selection": "another selection",
    "goldens": "other goldens",
    "cells": "other cells",
    "policy": "another policy",
    "limits": "another --timeout or --memory",
}
_HASHED = ("goldens", "cells", "policy")
"""What a person could not read: a message says only that it is another one."""


class PlanRecord(msgspec.Struct, frozen=True):
    """plan.json: what decides the results of a run.

    `tool` is our version and a hash of our code; `goldens` are hashes by golden, `cells` and `policy` are hashes, and
    `limits` are those of one cell. `cells` covers the content of wheel files too. Of a shard, `cells` and `planned` are
    those of the plan that it is a part of.
    """

    tool: str
    as_of: str
    selection: dict[str, Any]
    goldens: dict[str, str]
    cells: str
    planned: int
    policy: str
    limits: dict[str, float]
    shard: str = ""

    @property
    def digest(self) -> str:
        """A hash of all that decides the results, whichever shards they come from."""
        return _hash(msgspec.structs.replace(self, shard=""))

    def differs_in(self, other: PlanRecord) -> str:
        """What is not the same in another plan, in words; empty if nothing is. Shards are not compared."""
        for name, words in _DIFFERENCES.items():
            before, now = getattr(self, name), getattr(other, name)
            if before != now:
                return words if name in _HASHED else f"{words}: {before}, now {now}"
        return ""


def record_of(plan: Plan, policy: Any, limits: Limits, shard: str = "") -> PlanRecord:
    """What decides the results of this plan, or of a shard of it."""
    # As it is read back: tuples are lists then.
    selection = msgspec.json.decode(msgspec.json.encode(plan.selection.described()))
    return PlanRecord(
        tool=tool(),
        as_of=str(plan.as_of),
        selection=selection,
        goldens={golden.id: _hash(golden.manifest) for golden in plan.goldens},
        cells=_hash([[cell.key for cell in plan.cells], [plan.sources.content(reader) for reader in plan.readers]]),
        planned=len(plan.cells),
        policy=_hash(policy),
        limits={"timeout": limits.timeout, "memory": float(limits.memory)},  # as it is read back
        shard=shard,
    )


def recorded_plan(folder: Path) -> PlanRecord | None:
    """The plan of the last run in a results folder, or None if there is none that can be read."""
    try:
        record: PlanRecord = decode_json((folder / PLAN).read_bytes(), PlanRecord)
        return record
    except (OSError, msgspec.MsgspecError):
        return None


class Journal:
    """The results folder of one run, which no other run may use meanwhile; a context manager.

    Raises `RunError` if another run uses it, if it cannot be written to, and if the plan to be resumed is another one.
    """

    def __init__(self, folder: Path, record: PlanRecord, *, resume: bool = False) -> None:
        self._folder = folder
        self._lock = filelock.FileLock(folder / LOCK)
        try:
            folder.mkdir(parents=True, exist_ok=True)
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
                self._begin(record)
            self._file = self._opened()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise RunError(_cannot_write(folder, error)) from error
            raise

    def retain(self, is_wanted: Callable[[bytes], bool]) -> list[bytes]:
        """Drop all results so far but the complete lines that are wanted, once each, and return those."""
        lines, rest = _complete_lines(self._folder / RESULTS)
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

    def finish(self, lines: Iterable[bytes]) -> None:
        """Write the results in their final order, all or nothing."""
        self._replace(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other runs use the folder."""
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
        if difference:
            raise RunError(
                f"--resume: the last run in {self._folder} had another plan: {difference}. "
                "Give the options it had, or start again without --resume."
            )
        return True

    def _begin(self, record: PlanRecord) -> None:
        # In this order: a plan that can be resumed is never in one folder with the results of another plan.
        for name in (PLAN, RESULTS, SUMMARY):
            (self._folder / name).unlink(missing_ok=True)
        write_whole(self._folder / PLAN, [safe_json(record, indent=2), b"\n"])

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


def _complete_lines(path: Path) -> tuple[list[bytes], bytes]:
    """The lines that end with a line break, and what comes after the last of them."""
    *lines, rest = path.read_bytes().split(b"\n")
    return lines, rest


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"--results {folder}: cannot write there: {error.strerror or error}."


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
