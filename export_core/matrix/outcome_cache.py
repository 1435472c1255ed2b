"""Outcomes of earlier runs, by the content of all that decided them: one SQLite file in the user's cache folder.

It is shared by all projects and processes, and has the last outcome of each key. What happens should depend on the
content of everything that takes part and on nothing else; where it does not, the cell is flaky, and the outcome says
so. Whether an outcome keeps the promise is judged anew every time.
"""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

import filelock
import msgspec

from export_core.matrix.outcome import Outcome, Verdict
from export_core.numbers.compare import Difference
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Cost, Stage, Timings

FILE = "outcomes.sqlite3"
LOCKS = "cells"
"""The folder of the locks of cells that are running."""
STORED_DAYS = 180
_BUSY_SECONDS = 30.0
"""How long to wait for another process that writes."""
_AT_ONCE = 500
"""Keys of one query: SQLite before 3.32 takes at most 999 parameters."""
_CHECK_BYTES = 8
"""Bytes of a row's checksum. SQLite has none: without it, a changed byte on the disk could be another verdict."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()
Value = TypeVar("Value")
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class BrokenRowError(Exception):
    """A row that is not as it was written."""


class CachedOutcome(msgspec.Struct, frozen=True, array_like=True):
    """An outcome without its cell, as it is stored, and as it travels between machines."""

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
    outputs: str = ""
    as_written: bool = False
    cost: Cost | None = None
    timings: Timings | None = None

    @classmethod
    def from_outcome(cls, outcome: Outcome) -> CachedOutcome:
        """The outcome, without its cell."""
        return cls(*(getattr(outcome, name) for name in cls.__struct_fields__))

    def for_cell(self, cell: Cell) -> Outcome:
        """The outcome of this cell, in the mode in which it was run."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "mode"}
        return Outcome(replace(cell, mode=self.mode), **values)


class OutcomeCache:
    """Outcomes by key; use it as a context manager.

    It is never a reason for a run to fail: `notify` reports what goes wrong, and the run continues without the cache.
    `given` is how many outcomes it has given so far.
    """

    def __init__(self, folder: Path, notify: Callable[[str], None] = lambda text: None) -> None:
        self._path = folder / FILE
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self.given = 0
        self._guarded(self._open)

    def get(self, keys: Sequence[str]) -> dict[str, CachedOutcome]:
        """The outcomes of these keys. A timeout says more of the moment than of the cell, and is left out."""
        rows = self._guarded(lambda: self._get(keys)) or {}
        found = {key: cached for key, (cached, _) in rows.items() if cached.verdict is not Verdict.TIMEOUT}
        self.given += len(found)
        return found

    def put(self, key: str, outcome: Outcome) -> Outcome:
        """Store an outcome in the place of the last one, and return it, marked as flaky where the last one differs.

        What was not run is not stored.
        """
        if outcome.verdict is Verdict.NOT_RUN:
            return outcome
        # Flaky also against a timeout, which `get` leaves out.
        if last := (self._guarded(lambda: self._get([key])) or {}).get(key):
            outcome = replace(outcome, flaky=_other_verdict(outcome, *last))
        self._guarded(lambda: self._put(key, msgspec.msgpack.encode(CachedOutcome.from_outcome(outcome))))
        return outcome

    @contextmanager
    def claimed(self, keys: Sequence[str]) -> Iterator[None]:
        """Hold a lock for each of these keys, for which another process that claims the same waits."""
        # One lock for many keys: a file for each would stay behind. In order: two processes cannot wait for each other.
        names = sorted({key[:2] for key in keys})
        with ExitStack() as stack:
            try:
                (self._path.parent / LOCKS).mkdir(parents=True, exist_ok=True)
                for name in names:
                    stack.enter_context(filelock.FileLock(self._path.parent / LOCKS / f"{name}.lock"))
            except OSError as error:  # then the same cell may run twice
                self._notify(f"cells are not claimed: {self._path.parent / LOCKS}: {error}")
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _guarded(self, do: Callable[[], Value]) -> Value | None:
        """Do something with the database. One that is broken is renamed, and a new one begun."""
        try:
            return do()
        except (sqlite3.Error, OSError, BrokenRowError, UnicodeEncodeError) as error:
            self.close()
            broken = isinstance(error, BrokenRowError) or getattr(error, "sqlite_errorname", "").startswith(_BROKEN)
            if not (broken and self._set_aside(error)):
                self._notify(f"outcomes are not cached, and those of earlier runs are not used: {self._path}: {error}")
            return None

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Each statement is a transaction of its own: what is stored stays, whenever the process is killed.
        self._connection = connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        self._file = self._path.stat().st_ino
        # Several processes share the file: with a write-ahead log, none that reads waits for one that writes. NORMAL
        # does not wait for the disk; a power failure may cost the last outcomes, and never breaks the file.
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS cached_outcomes (key TEXT PRIMARY KEY, outcome BLOB NOT NULL, day INTEGER NOT "
            "NULL) WITHOUT ROWID"
        )
        connection.execute("CREATE INDEX IF NOT EXISTS cached_by_day ON cached_outcomes (day)")
        connection.execute("DELETE FROM cached_outcomes WHERE day < ?", (_today() - STORED_DAYS,))

    def _set_aside(self, error: Exception) -> bool:
        """Rename a broken file, unless another process has done so since, and begin anew."""
        aside = self._path.with_name(f"{FILE}.broken-{int(time.time())}")
        try:
            with filelock.FileLock(f"{self._path}.lock"):
                if self._path.stat().st_ino == self._file:
                    self._path.rename(aside)
                    # Beside a new file, SQLite would take them for its own.
                    for more in ("-wal", "-shm"):
                        self._path.with_name(FILE + more).unlink(missing_ok=True)
                    self._notify(f"the cache of outcomes was broken ({error}): it was renamed to {aside}")
                self._open()
        except (sqlite3.Error, OSError):
            self.close()
            return False
        return True

    def _get(self, keys: Sequence[str]) -> dict[str, tuple[CachedOutcome, int]]:
        outcomes: dict[str, tuple[CachedOutcome, int]] = {}
        if self._connection is None:
            return outcomes
        for start in range(0, len(keys), _AT_ONCE):
            batch = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(batch))
            rows = self._connection.execute(
                f"SELECT key, outcome, day FROM cached_outcomes WHERE key IN ({marks})", batch
            )
            outcomes.update((key, (_decode(key, data), day)) for key, data, day in rows)
        return outcomes

    def _put(self, key: str, data: bytes) -> None:
        if self._connection is not None:
            row = (key, _checksum(key, data) + data, _today())
            self._connection.execute("INSERT OR REPLACE INTO cached_outcomes VALUES (?, ?, ?)", row)


def _decode(key: str, data: bytes) -> CachedOutcome:
    if data[:_CHECK_BYTES] != _checksum(key, data[_CHECK_BYTES:]):
        raise BrokenRowError(f"the outcome {key[:12]} is not as it was written")
    try:
        return msgspec.msgpack.decode(data[_CHECK_BYTES:], type=CachedOutcome)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokenRowError(f"the outcome {key[:12]} cannot be decoded: {error}") from None


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log. Where two processes make the file at once, SQLite does not wait for the other itself."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _other_verdict(outcome: Outcome, last: CachedOutcome, day: int) -> str:
    """Which other verdict there was on that day; empty where it was this one, or where the limits explain it."""
    if last.verdict is outcome.verdict:
        return ""
    # A cell that ended after more seconds than the earlier run gave it does not contradict that timeout.
    if last.verdict is Verdict.TIMEOUT and outcome.seconds > last.seconds:
        return ""
    if outcome.verdict is Verdict.TIMEOUT and last.seconds > outcome.seconds:
        return ""
    return f"was {last.verdict} on {datetime.date.fromordinal(_EPOCH + day)}"


def _checksum(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()[:_CHECK_BYTES]


def _today() -> int:
    return int(time.time() // 86400)
