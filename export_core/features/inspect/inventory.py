"""The inventory of an archive: a row for each file, and the lines that count them.

A row is a line of `jaxexport inspect DIR --json`, and of `--csv`: its type is the published schema
(schema/inventory.schema.json).
"""

from __future__ import annotations

import bisect
import datetime
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact import ArtifactError
from export_core.artifact.archive import artifact_in
from export_core.base.escaping import printable
from export_core.base.phrases import plural
from export_core.features.inspect.facts import describe
from export_core.features.inspect.screen import WIDTH, joined, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from export_core.artifact.archive import Found
    from export_core.features.inspect.facts import Inspection
    from export_core.policy.terms import Terms

MOST = 12  # lines of one kind
NAMED = 8  # files that are named for one reason
SOON = {30: "for 30 days at most", 90: "for 31 to 90 days"}
"""Days ahead: what leaves the window within them is counted, and the first of it is named."""
COUNT = 9  # the width of a number


class InventoryRow(NamedTuple):
    """A file of an archive. Of one that cannot be read, only `file` and `error` are known."""

    file: str
    """The file, below the folder as it was named."""
    error: str | None = None
    """Why it cannot be read; null for one that was read."""
    kind: str | None = None
    """What it is: an artifact of jax.export, or bare StableHLO."""
    nbytes: int | None = None
    """Its size in bytes."""
    sha256: str | None = None
    """The SHA-256 of the file."""
    function: str | None = None
    """The name of the function."""
    jax: str | None = None
    """The jax that the artifact names, null where it names none."""
    writers: tuple[str, ...] = ()
    """The jaxlibs that can have written it."""
    formats: tuple[int, ...] = ()
    """The oldest and the newest format that the envelope can have; none for a bare module."""
    platforms: tuple[str, ...] = ()
    """The platforms that it was exported for."""
    nr_devices: int | None = None
    """The number of devices; null for a bare module."""
    custom_calls: tuple[str, ...] = ()
    """The targets of its custom calls."""
    unpromised: tuple[str, ...] = ()
    """Those that the writer or the newest release does not promise, and parts that are not known."""
    promised_until: str | None = None
    """The last build date of a jaxlib that is promised to load it, by the oldest possible writer; null if unknown."""
    readers: int = 0
    """How many releases load it."""
    unknown_readers: int = 0
    """For how many releases that is not known."""
    newest_reader: str | None = None
    """The last built release that loads it; null where none does."""


def read_row(terms: Terms, found: Found) -> InventoryRow | str:
    """The row of a file, or why it is left out."""
    try:
        artifact = artifact_in(found)
        return artifact if isinstance(artifact, str) else _row(describe(artifact, terms, whole=False))
    except ArtifactError as error:
        return InventoryRow(found.path, str(error).removeprefix(f"{found.path}: "))
    except MemoryError:
        return InventoryRow(found.path, "expected memory to read it, found too little.")


def _row(facts: Inspection) -> InventoryRow:
    writer, promise, calls = facts.writer, facts.promise, facts.custom_calls
    loading = [reader.jaxlib for reader in facts.readers if reader.loads]
    return InventoryRow(
        facts.file,
        kind=facts.kind,
        nbytes=facts.nbytes,
        sha256=facts.sha256,
        function=facts.signature.name,
        jax=writer.jax,
        writers=writer.candidates,
        formats=writer.formats or (),
        platforms=facts.platforms,
        nr_devices=facts.nr_devices,
        custom_calls=tuple(call.target for call in calls if call.count),
        unpromised=tuple(call.target for call in calls if not call.ok),
        promised_until=promise.until[0] if promise else None,
        readers=len(loading),
        unknown_readers=sum(reader.loads is None for reader in facts.readers),
        newest_reader=loading[-1] if loading else None,
    )


@dataclass
class Inventory:
    """Counters, and the few files that are named. It does not grow with the number of files."""

    as_of: datetime.date
    newest: str
    """The newest release."""
    artifacts: int = 0
    nbytes: int = 0
    writers: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    platforms: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    unpromised: Counter[str] = field(default_factory=Counter)
    promised: Counter[str | None] = field(default_factory=Counter)
    readers: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    leaving: list[str] = field(default_factory=list)
    stranded: list[str] = field(default_factory=list)

    def add(self, row: InventoryRow | str) -> None:
        """Count a file, or why it is left out."""
        if isinstance(row, str):
            self.left_out[row] += 1
        elif row.error is not None:
            self.unread += 1
        else:
            self._add(row)

    def _add(self, row: InventoryRow) -> None:
        self.artifacts += 1
        self.nbytes += row.nbytes or 0
        self.writers[_writer(row)] += 1
        self.formats[" to ".join(dict.fromkeys(map(str, row.formats))) or f"none: {row.kind}"] += 1
        self.platforms[joined(row.platforms) or "not named"] += 1
        self.calls.update(row.custom_calls or ["none"])
        self.unpromised.update(row.unpromised)
        until = row.promised_until
        self.promised[until] += 1
        if until is not None and 0 <= self._days_to(until) <= max(SOON):
            _keep_first(self.leaving, f"{until}  {row.file}")
        readers = self._readers(row)
        self.readers[readers] += 1
        if readers == NO_RELEASE:
            _keep_first(self.stranded, row.file)

    def _readers(self, row: InventoryRow) -> str:
        if row.newest_reader == self.newest:
            return f"{self.newest}, the newest release"
        if row.newest_reader is not None:
            return f"older releases, {row.newest_reader} the newest of them"
        return "not known" if row.unknown_readers else NO_RELEASE

    def _days_to(self, until: str) -> int:
        return (datetime.date.fromisoformat(until) - self.as_of).days

    def lines(self) -> Iterator[str]:
        """The screen."""
        yield f"{plural(self.artifacts, 'artifact')}, {size(self.nbytes)}, as of {self.as_of}"
        yield from _counted("written by", self.writers)
        yield from _counted("format", self.formats)
        yield from _counted("platforms", self.platforms)
        yield from _counted("custom calls", self.calls)
        yield from _counted("not promised", self.unpromised)
        yield from _counted("promised", self._promised(), by_count=False)
        yield from _named("leave first", self.leaving)
        yield from _counted("loads in", self.readers)
        yield from _named("in none", self.stranded)
        yield from _counted("left out", self.left_out)
        if self.unread:
            yield from _counted("not read", {"damaged, or no artifacts": self.unread})

    def _promised(self) -> dict[str, int]:
        counts = dict.fromkeys(("no longer", *SOON.values(), "longer", "not known"), 0)
        for until, number in self.promised.items():
            counts[self._how_long(until)] += number
        return {name: number for name, number in counts.items() if number or name in SOON.values()}

    def _how_long(self, until: str | None) -> str:
        if until is None:
            return "not known"
        days = self._days_to(until)
        if days < 0:
            return "no longer"
        return next((words for most, words in SOON.items() if days <= most), "longer")


NO_RELEASE = "no release"


def _writer(row: InventoryRow) -> str:
    who = row.writers
    if row.formats and len(who) == 1:
        return f"jaxlib {who[0]}"
    if not row.formats:
        return "not known, since it is bare StableHLO"
    return f"jaxlib {who[0]} to {who[-1]}, one of {len(who)}" if who else "not known"


def _keep_first(names: list[str], name: str) -> None:
    bisect.insort(names, name)  # sorted, so that the same archive gives the same screen
    del names[NAMED:]


def _counted(title: str, counts: Mapping[str, int], *, by_count: bool = True) -> Iterator[str]:
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0])) if by_count else list(counts.items())
    for number, (name, count) in enumerate(rows[:MOST]):
        yield f"{'' if number else title:<{WIDTH}}{count:>{COUNT},}  {printable(name)}"
    if len(rows) > MOST:
        rest = sum(count for _, count in rows[MOST:])
        yield f"{'':<{WIDTH}}{rest:>{COUNT},}  {len(rows) - MOST} others; --json has all"


def _named(title: str, names: list[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        yield f"{'' if number else title:<{WIDTH}}{printable(name)}"
