"""Which cells have been run before, with the same content, and what happened to them then?

One SQLite file in the user's cache folder, for all projects and processes, with the last outcome of each. What happens should depend
on the content of everything that takes part and on nothing else; where it does not, the cell is flaky, and that is said. Whether it keeps
the promise is judged anew every time.
"""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import filelock
import msgspec

from export_core.comparing.compare import Difference
from export_core.environments.placement import Mode
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.worker.protocol import Stage

FILE = "outcomes.sqlite3"
KEPT_DAYS = 180
_BUSY_SECONDS = 30.0
_AT_ONCE = 500
_CHECK_BYTES = 8
_EPOCH = datetime.date(1970, 1, 1).toordinal()
Found = TypeVar("Found")
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class BrokenRowError(Exception):
    """A row that is not as it was written."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """An outcome without its cell."""

    stage: Stage
    verdict: Verdict
    message: str
    signal: int | None
    stderr: str
    difference: Difference | None
    seconds: float
    flaky: str = ""
    device: str = ""
    driver: str = ""
    mode: Mode = Mode.RUN

    def of(self, cell: Cell) -> Outcome:
        """The outcome of this cell, in the mode in which it was run."""
        told = {name: getattr(self, name) for name in self.__struct_fields__ if name != "mode"}
        return Outcome(replace(cell, mode=self.mode), **told)


class OutcomeCache:
    """Outcomes by key. Never a reason for a run to fail: what goes wrong is told to `notify`, and the run goes on without it."""

    def __init__(self, folder: Path, notify: Callable[[str], None] = lambda text: None) -> None:
        self._path = folder / FILE
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self._guarded(self._open)

    def get(self, keys: Sequence[str]) -> dict[str, Kept]:
        """What is known of these keys. A timeout says more of the moment than of the cell: it is never taken for known."""
        found = self._guarded(lambda: self._get(keys)) or {}
        return {key: kept for key, (kept, _) in found.items() if kept.verdict is not Verdict.TIMEOUT}

    def put(self, key: str, outcome: Outcome) -> Outcome:
        """Keep an outcome in the place of the last one. Answers it with what was otherwise then. What was not run is not kept."""
        if outcome.verdict is Verdict.NOT_RUN:
            return outcome
        if last := (self._guarded(lambda: self._get([key])) or {}).get(key):
            outcome = replace(outcome, flaky=_otherwise(outcome, *last))
        kept = Kept(*(getattr(outcome, name) for name in Kept.__struct_fields__))
        self._guarded(lambda: self._put(key, msgspec.msgpack.encode(kept)))
        return outcome

    def close(self) -> None:
        """Close the file."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _guarded(self, do: Callable[[], Found]) -> Found | None:
        """Do something with the database. One that is broken is set aside, and a new one begun."""
        try:
            return do()
        except (sqlite3.Error, OSError, BrokenRowError) as error:
            self.close()
            broken = isinstance(error, BrokenRowError) or getattr(error, "sqlite_errorname", "").startswith(_BROKEN)
            if not (broken and self._set_aside(error)):
                self._notify(f"outcomes are not kept, and those of earlier runs not used: {self._path}: {error}")
            return None

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        self._file = self._path.stat().st_ino
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, kept BLOB NOT NULL, day INTEGER NOT NULL) WITHOUT ROWID"
        )
        connection.execute("CREATE INDEX IF NOT EXISTS by_day ON outcomes (day)")
        connection.execute("DELETE FROM outcomes WHERE day < ?", (_today() - KEPT_DAYS,))

    def _set_aside(self, error: Exception) -> bool:
        """Rename a broken file, unless another process has done so since, and begin anew."""
        aside = self._path.with_name(f"{FILE}.broken-{int(time.time())}")
        try:
            with filelock.FileLock(f"{self._path}.lock"):
                if self._path.stat().st_ino == self._file:
                    self._path.rename(aside)
                    for more in ("-wal", "-shm"):
                        self._path.with_name(FILE + more).unlink(missing_ok=True)
                    self._notify(f"the file of kept outcomes was broken ({error}): it was set aside as {aside}")
                self._open()
        except (sqlite3.Error, OSError):
            self.close()
            return False
        return True

    def _get(self, keys: Sequence[str]) -> dict[str, tuple[Kept, int]]:
        found: dict[str, tuple[Kept, int]] = {}
        if self._connection is None:
            return found
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._connection.execute(f"SELECT key, kept, day FROM outcomes WHERE key IN ({marks})", some)
            found.update((key, (_decoded(key, data), day)) for key, data, day in rows)
        return found

    def _put(self, key: str, data: bytes) -> None:
        if self._connection is not None:
            row = (key, _checksum(key, data) + data, _today())
            self._connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", row)


def _decoded(key: str, data: bytes) -> Kept:
    if data[:_CHECK_BYTES] != _checksum(key, data[_CHECK_BYTES:]):
        raise BrokenRowError(f"the outcome {key[:12]} is not as it was written")
    return msgspec.msgpack.decode(data[_CHECK_BYTES:], type=Kept)


def _otherwise(outcome: Outcome, last: Kept, day: int) -> str:
    """Which other verdict there was on that day; empty where it was this one, or had another time to get there."""
    if last.verdict is outcome.verdict:
        return ""
    # What ended after longer than the other was given says nothing against it.
    if last.verdict is Verdict.TIMEOUT and outcome.seconds > last.seconds:
        return ""
    if outcome.verdict is Verdict.TIMEOUT and last.seconds > outcome.seconds:
        return ""
    return f"was {last.verdict} on {datetime.date.fromordinal(_EPOCH + day)}"


def _checksum(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()[:_CHECK_BYTES]


def _today() -> int:
    return int(time.time() // 86400)
