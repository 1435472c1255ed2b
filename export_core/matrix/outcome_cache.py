"""Outcomes of earlier runs, by the content of all that decided them: one SQLite file in the user's cache folder.

It is shared by all projects and processes, and has the last outcome of each key. What happens should depend on the
content of everything that takes part and on nothing else; where it does not, the cell is flaky, and the outcome says
so. Whether an outcome keeps the promise is judged anew every time.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
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
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
Value = TypeVar("Value")


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
    A row that is not as it was written is none; a file that is broken is removed, and a new one begun. `given` is how
    many outcomes it has given so far.
    """

    def __init__(self, folder: Path, notify: Callable[[str], None] = lambda text: None) -> None:
        self._path = folder / FILE
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self._begun_anew = False
        self.given = 0
        self._open()

    def get(self, keys: Sequence[str]) -> dict[str, CachedOutcome]:
        """The outcomes of these keys. A timeout says more of the moment than of the cell, and is left out."""
        rows = self._guarded(lambda database: _rows(database, keys)) or {}
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
        if last := (self._guarded(lambda database: _rows(database, [key])) or {}).get(key):
            outcome = replace(outcome, flaky=_other_verdict(outcome, *last))

        def store(database: sqlite3.Connection) -> None:
            data = msgspec.msgpack.encode(CachedOutcome.from_outcome(outcome))
            row = key, _checksum(key, data) + data, _today()
            database.execute("INSERT OR REPLACE INTO cached_outcomes VALUES (?, ?, ?)", row)

        self._guarded(store)
        return outcome

    @contextlib.contextmanager
    def claimed(self, keys: Sequence[str]) -> Iterator[None]:
        """Hold a lock for each of these keys, for which another process that claims the same waits."""
        # One lock for many keys: a file for each would stay behind. In order: two processes cannot wait for each other.
        names = sorted({key[:2] for key in keys})
        with contextlib.ExitStack() as stack:
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

    def _guarded(self, do: Callable[[sqlite3.Connection], Value]) -> Value | None:
        """Do something with the database; None without one, and where it fails."""
        if self._connection is None:
            return None
        try:
            return do(self._connection)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            self._failed(error)
            return None

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Each statement is a transaction of its own: what is stored stays, whenever the process is killed.
            self._connection = database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._file = self._path.stat().st_ino
            # Nobody waits for the disk: after a power failure the file may be broken, and is begun anew.
            database.execute("PRAGMA synchronous = OFF")
            database.execute(
                "CREATE TABLE IF NOT EXISTS cached_outcomes (key TEXT PRIMARY KEY, outcome BLOB NOT NULL, day INTEGER "
                "NOT NULL) WITHOUT ROWID"
            )
            database.execute("CREATE INDEX IF NOT EXISTS cached_by_day ON cached_outcomes (day)")
            database.execute("DELETE FROM cached_outcomes WHERE day < ?", (_today() - STORED_DAYS,))
        except (sqlite3.Error, OSError) as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Continue without the cache, or with a new one in the place of one that is broken."""
        self.close()
        if getattr(error, "sqlite_errorname", "").startswith(_BROKEN) and not self._begun_anew:
            self._begun_anew = True
            with contextlib.suppress(OSError), filelock.FileLock(f"{self._path}.lock"):
                if self._path.stat().st_ino == self._file:  # else another process has begun it anew
                    for more in ("", "-journal", "-wal", "-shm"):
                        Path(f"{self._path}{more}").unlink(missing_ok=True)
                self._notify(f"the cache of outcomes was broken ({error}): a new one is begun in {self._path}")
                self._open()
                return
        self._notify(f"outcomes are not cached, and those of earlier runs are not used: {self._path}: {error}")


def _rows(database: sqlite3.Connection, keys: Sequence[str]) -> dict[str, tuple[CachedOutcome, int]]:
    """The outcomes that are stored under these keys, each with its day."""
    outcomes: dict[str, tuple[CachedOutcome, int]] = {}
    for start in range(0, len(keys), _AT_ONCE):
        batch = keys[start : start + _AT_ONCE]
        marks = ",".join("?" * len(batch))
        rows = database.execute(f"SELECT key, outcome, day FROM cached_outcomes WHERE key IN ({marks})", batch)
        outcomes.update((key, (outcome, day)) for key, data, day in rows if (outcome := _decoded(key, data)))
    return outcomes


def _decoded(key: str, data: bytes) -> CachedOutcome | None:
    """The outcome of a row; None where it is not as it was written, or an older version wrote it otherwise."""
    if data[:_CHECK_BYTES] != _checksum(key, data[_CHECK_BYTES:]):
        return None
    try:
        return msgspec.msgpack.decode(data[_CHECK_BYTES:], type=CachedOutcome)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


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
