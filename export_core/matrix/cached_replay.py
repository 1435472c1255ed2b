"""The replay of cells on this machine: by outcomes of earlier runs if they may be used, else in cold processes.

Outcomes are stored under a hash of everything that decided them, in one SQLite file in the user's cache folder. All
projects and processes share it, and it has the last outcome of each key. A cell is flaky if its verdict differs from
the last one under the same key, and its outcome says so. Whether an outcome keeps the promise is judged anew every
time.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import filelock
import msgspec
from msgspec import structs

from export_core.base.cache_folder import STORED_DAYS
from export_core.base.text import plural
from export_core.matrix.cache_keys import OutcomeKeys, runs_code_outside_the_key
from export_core.matrix.replay import EnvironmentProvider, Notify, Replayed, ignore, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import Result, for_cell, without_cell
from export_core.matrix.verdicts import Verdict
from export_core.readers.build import cache_folder
from export_core.readers.cell import Cell
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.hardware import resolve_mode
from export_core.readers.placement import Mode, Placement
from export_core.releases import Release

FILE = "outcomes.sqlite3"
_BUSY_SECONDS = 30.0  # How long to wait for another process that writes.
_AT_ONCE = 500  # The most keys of one query: SQLite before 3.32 takes at most 999 parameters.
_CHECK_BYTES = 8
"""Bytes of a row's checksum. SQLite has no checksums: a byte that changed on the disk could turn one verdict into
another."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
Value = TypeVar("Value")
Replay = Callable[[Sequence[Cell], EnvironmentProvider], Generator[Replayed, None, None]]
"""A function that runs cells, in environments that it requests from the provider."""


class Environments(Protocol):
    """The environments of a run's readers, which can be found or built."""

    def find(self, placement: Placement) -> Environment | None:
        """Return the environment of a placement if it exists already, else None; return at once in either case."""

    def build(self, placement: Placement) -> Environment:
        """Return the environment of a placement, and build it if necessary; raise `EnvironmentFailed` if that fails."""


def replay_unknown(
    cells: Sequence[Cell],
    cache: OutcomeCache,
    environments: Environments,
    options: ReplayOptions,
    replay: Replay,
    notify: Notify = ignore,
) -> Generator[Replayed, None, None]:
    """Yield each cell with its outcome: first the outcomes that the cache has, then those of a replay.

    The outcomes of the replay are stored in the cache. An environment is built only if the cache lacks the outcome of
    one of its cells. If `options.cache` is false, every cell is run, and its outcome is stored.
    """
    known = _KnownOutcomes(cells, cache, environments, options)
    unknown = sorted(cells, key=lambda cell: not cell.decides)  # in the order of a replay
    if options.cache:
        unknown = yield from known.stored(unknown, notify)
    if not unknown:
        return
    with contextlib.closing(replay(unknown, known.build)) as outcomes:
        for cell, outcome in outcomes:
            # Asked for only now: before the replay, the environment may not have been built.
            key = known.key(cell)
            if options.forecast:
                outcome = structs.replace(outcome, forecast=options.forecast(cell))
            yield cell, cache.put(key, outcome) if key else outcome


class _KnownOutcomes:
    """The cached outcomes of a replay's cells, and the keys under which new outcomes are stored."""

    def __init__(
        self, cells: Sequence[Cell], cache: OutcomeCache, environments: Environments, options: ReplayOptions
    ) -> None:
        self._cache = cache
        self._build = environments.build
        self._keys = OutcomeKeys(options)
        self._builds: Counter[Placement] = Counter()
        # Only what is built already: a key needs the hash of what is installed, and cached cells need no environment.
        self._environments = {
            placement: environments.find(placement) for placement in dict.fromkeys(cell.placement for cell in cells)
        }
        goldens = {cell.golden.id: cell.golden for cell in cells}
        self._not_cached = {name for name, golden in goldens.items() if runs_code_outside_the_key(golden)}

    def stored(self, cells: Sequence[Cell], notify: Notify) -> Generator[Replayed, None, list[Cell]]:
        """Yield each cell whose outcome is in the cache, with that outcome; return a list of all other cells."""
        keys = {cell.key: key for cell in cells if (key := self.key(cell))}
        # One request for all: a run in which nothing has changed has a budget of 1 ms a cell (nox -s bench).
        cached = self._cache.get(tuple(keys.values()))
        if cached:
            count = sum(key in cached for key in keys.values())
            notify(f"{count} of {plural(len(cells), 'cell')} ran before with the same content: not run again")
        unknown = []
        for cell in cells:
            if outcome := cached.get(keys.get(cell.key, "")):
                yield _in_mode(cell, outcome.mode), for_cell(outcome, cell)
            else:
                unknown.append(cell)
        return unknown

    def build(self, placement: Placement) -> Environment:
        """Build an environment, and return it; its cells can have keys from then on."""
        self._builds[placement] += 1
        self._environments[placement] = environment = self._build(placement)
        return environment

    def key(self, cell: Cell) -> str:
        """Return the key of a cell's outcome; empty if it must not be stored, or if its environment is not built yet.

        An outcome must not be stored if its environment broke and was built again, since it may come from the broken
        one. Nor may one from an accelerator, since no key has the version of its driver.
        """
        environment = self._environments[cell.placement]
        if environment is None or not environment.content_hash or self._builds[cell.placement] > 1:
            return ""
        if cell.golden.id in self._not_cached or cell.placement.shares_device:
            return ""
        return self._keys.of(cell, environment)


def replay_here(
    cells: Sequence[Cell],
    options: ReplayOptions,
    *,
    notify: Notify = ignore,
    ready: Callable[[Release], None] = ignore,
) -> Generator[Replayed, None, None]:
    """Yield each cell with its outcome, from the cache or from a replay on this machine.

    A cell of mode `auto` is run if this machine has its device, and compiled otherwise: its outcome has the mode that
    was used. If modules are dumped, every cell is run, and no outcome is stored. `ready` is called, from several
    threads, with each reader whose environment is found or built.
    """
    cells = [_in_mode(cell, resolve_mode(cell.mode, cell.platform)) for cell in cells]
    # One event for both: when the replay ends early, so do the environments that are being built for it.
    stopping = threading.Event()
    run = functools.partial(replay, options=options, notify=notify, stopping=stopping)
    # Its locks are released when the replay has ended, and with it every process that runs in one of the environments.
    with ReaderEnvironments.of(
        options.policy,
        options.calendar,
        options.sources,
        for_workers=True,
        stopping=stopping,
        notify=notify,
        ready=ready,
    ) as environments:
        if options.dump:
            yield from run(cells, environments.build)
            return
        with contextlib.closing(OutcomeCache(cache_folder(), notify)) as cache:
            yield from replay_unknown(cells, cache, environments, options, run, notify)


def _in_mode(cell: Cell, mode: Mode) -> Cell:
    """Return a cell with this mode: the same object if it has the mode already, which saves memory."""
    return cell if cell.mode is mode else replace(cell, mode=mode)


class OutcomeCache:
    """A file of outcomes by key, which is open until `close`.

    An error never fails the run: it is reported to `notify`, and the run continues without the cache. A damaged row
    counts as missing, and a broken file is replaced. `given` is the number of outcomes that `get` has returned.
    """

    def __init__(self, folder: Path, notify: Notify = ignore) -> None:
        self._path = folder / FILE
        self._notify = notify
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self._begun_anew = False
        self.given = 0
        self._open()

    def get(self, keys: Sequence[str]) -> dict[str, Result]:
        """Return the stored outcomes of these keys, by key, except those whose cells should run again.

        These are timeouts, which depend on how busy the machine was, and flaky cells that worked the last time.
        """
        rows = self._guarded(lambda database: _rows(database, keys)) or {}
        outcomes = {key: cached for key, (cached, _) in rows.items() if not _runs_again(cached)}
        self.given += len(outcomes)
        return outcomes

    def put(self, key: str, outcome: Result) -> Result:
        """Store the outcome of a cell, unless the cell was not run, and return it.

        The returned outcome is marked as flaky if the previous outcome under this key has a different verdict.
        """
        if outcome.verdict is Verdict.NOT_RUN:
            return outcome
        # Flaky also against an outcome that `get` leaves out.
        if last := (self._guarded(lambda database: _rows(database, [key])) or {}).get(key):
            outcome = structs.replace(outcome, flaky=_other_verdict(outcome, *last))

        def store(database: sqlite3.Connection) -> None:
            data = msgspec.msgpack.encode(without_cell(outcome))
            row = key, _checksum(key, data) + data, _today()
            database.execute("INSERT OR REPLACE INTO cached_outcomes VALUES (?, ?, ?)", row)

        self._guarded(store)
        return outcome

    def close(self) -> None:
        """Close the file."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _guarded(self, do: Callable[[sqlite3.Connection], Value]) -> Value | None:
        """Return what `do` returns for the database; None if there is no database, or if the database fails."""
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
        """Report an error of the database, and stop using the cache, or begin a new file in place of a broken one."""
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


def _rows(database: sqlite3.Connection, keys: Sequence[str]) -> dict[str, tuple[Result, int]]:
    """Return the stored outcomes by key, each with the day on which it was stored, in days since 1970."""
    outcomes: dict[str, tuple[Result, int]] = {}
    for start in range(0, len(keys), _AT_ONCE):
        batch = keys[start : start + _AT_ONCE]
        marks = ",".join("?" * len(batch))
        rows = database.execute(f"SELECT key, outcome, day FROM cached_outcomes WHERE key IN ({marks})", batch)
        outcomes.update((key, (outcome, day)) for key, data, day in rows if (outcome := _decoded(key, data)))
    return outcomes


def _decoded(key: str, data: bytes) -> Result | None:
    """Return the outcome of a row; None if it is damaged, or was written by a version with another form of outcomes."""
    if data[:_CHECK_BYTES] != _checksum(key, data[_CHECK_BYTES:]):
        return None
    try:
        return msgspec.msgpack.decode(data[_CHECK_BYTES:], type=Result)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _runs_again(outcome: Result) -> bool:
    """Return whether a cell must run again although its outcome is cached: it timed out, or is flaky and worked."""
    return outcome.verdict is Verdict.TIMEOUT or (bool(outcome.flaky) and outcome.verdict.works)


def _other_verdict(outcome: Result, last: Result, day: int) -> str:
    """Return the verdict of a cell's previous outcome as text, such as ``was crash on 2026-11-20``, if it differs.

    The text is empty if the verdicts are equal, or if different time limits explain the difference. `day` is the day
    of the outcome `last`, in days since 1970.
    """
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
