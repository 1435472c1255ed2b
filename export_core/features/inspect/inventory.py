"""The inventory of an archive: a row for each file, and the lines that count them.

A row is a line of `jaxexport inspect DIR --json`: its type is the published schema (schema/inventory.schema.json).
"""

import bisect
import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from export_core.artifact import Artifact
from export_core.artifact.envelope.formats import format_in_words
from export_core.artifact.folders import LeftOut
from export_core.base.text import plural, printable
from export_core.features.inspect.artifact_facts import describe
from export_core.features.inspect.screen import WIDTH, joined, size
from export_core.policy.terms import Terms

MOST = 12  # the most lines of one kind
NAMED = 8  # the most files that are named for one reason
SOON = {30: "for 30 days at most", 90: "for 31 to 90 days"}
"""The periods, in days from now, by which artifacts that leave their window are counted. The first ones are named."""
COUNT = 9  # the width of a number


class InventoryRow(NamedTuple):
    """The facts about one file of an archive. If the file cannot be read, only `file` and `error` are set."""

    file: str  # The file, below the folder as it was named.
    error: str | None = None  # Why it cannot be read; null if it was read.
    kind: str | None = None  # What it is: an artifact of jax.export, bare StableHLO, or a SavedModel.
    nbytes: int | None = None  # Its size in bytes.
    sha256: str | None = None  # The SHA-256 of the file.
    function: str | None = None  # The name of the function.
    jax: str | None = None  # The jax that the artifact names; null if it names none.
    writers: tuple[str, ...] = ()  # The jaxlibs that can have written it.
    formats: tuple[int, ...] = ()
    """The oldest and the newest format that the envelope can have; empty for a bare module."""
    platforms: tuple[str, ...] = ()  # The platforms that it was exported for.
    nr_devices: int | None = None  # The number of devices; null for a bare module.
    custom_calls: tuple[str, ...] = ()  # The targets of its custom calls.
    unpromised: tuple[str, ...] = ()
    """The custom-call targets that the writer or the newest release does not promise, and parts that are not known."""
    promised_until: str | None = None
    """The last build date of a jaxlib that is promised to load it, by the oldest possible writer; null if unknown."""
    readers: int = 0  # How many releases load it.
    unknown_readers: int = 0  # For how many releases it is not known whether they load it.
    newest_reader: str | None = None  # The last built release that loads it; null if no release does.


def inventory_row(terms: Terms, artifact: Artifact) -> InventoryRow:
    """Return the facts about an artifact that an inventory counts.

    Raises `ArtifactError` for a module that cannot be read.
    """
    facts = describe(artifact, terms, whole=False, runtimes=False)
    loading = [reader.jaxlib for reader in facts.readers if reader.loads]
    return InventoryRow(
        facts.file,
        kind=facts.kind,
        nbytes=facts.nbytes,
        sha256=facts.sha256,
        function=facts.signature.name,
        jax=facts.writer.jax,
        writers=facts.writer.candidates,
        formats=facts.writer.formats or (),
        platforms=facts.platforms,
        nr_devices=facts.nr_devices,
        custom_calls=tuple(call.target for call in facts.custom_calls if call.count),
        unpromised=tuple(call.target for call in facts.custom_calls if not call.ok),
        promised_until=facts.promise.until[0] if facts.promise else None,
        readers=len(loading),
        unknown_readers=sum(reader.loads is None for reader in facts.readers),
        newest_reader=loading[-1] if loading else None,
    )


class Inventory:
    """The counts of the artifacts in an archive, and the names of a few files that need attention.

    `as_of` is the day from which the remaining days of a promise are counted, and `newest` is the newest release. The
    memory that it takes does not grow with the number of files.
    """

    def __init__(self, as_of: datetime.date, newest: str) -> None:
        self.as_of, self.newest = as_of, newest
        self.artifacts = self.nbytes = self.unread = 0
        self.left_out = LeftOut()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._leaving: list[str] = []
        self._stranded: list[str] = []

    def add(self, row: InventoryRow) -> None:
        """Add the facts about one file to the counts."""
        if row.error is not None:
            self.unread += 1
            return
        self.artifacts += 1
        self.nbytes += row.nbytes or 0
        counts = self._counts
        counts["written by"][_writer(row)] += 1
        counts["format"][format_in_words(*row.formats) if row.formats else f"none: {row.kind}"] += 1
        counts["platforms"][joined(row.platforms) or "not named"] += 1
        counts["custom calls"].update(row.custom_calls or ["none"])
        counts["not promised"].update(row.unpromised)
        if row.promised_until is None:
            counts["promised"]["not known"] += 1
        elif (days := (datetime.date.fromisoformat(row.promised_until) - self.as_of).days) < 0:
            counts["promised"]["no longer"] += 1
        else:
            counts["promised"][next((words for most, words in SOON.items() if days <= most), "longer")] += 1
            if days <= max(SOON):
                _keep_first(self._leaving, f"{row.promised_until}  {row.file}")
        if row.newest_reader == self.newest:
            counts["loads in"][f"{self.newest}, the newest release"] += 1
        elif row.newest_reader is not None:
            counts["loads in"][f"older releases, {row.newest_reader} the newest of them"] += 1
        else:
            counts["loads in"]["not known" if row.unknown_readers else "no release"] += 1
            if not row.unknown_readers:
                _keep_first(self._stranded, row.file)

    def lines(self) -> Iterator[str]:
        """Yield the lines that `jaxexport inspect DIR` prints: the counts and the named files."""
        counts, promised = self._counts, self._counts["promised"]
        yield f"{plural(self.artifacts, 'artifact')}, {size(self.nbytes)}, as of {self.as_of}"
        for title in ("written by", "format", "platforms", "custom calls", "not promised"):
            yield from _counted(title, counts[title])
        promised.update(dict.fromkeys(SOON.values(), 0))  # shown also where there is none
        yield from _counted("promised", promised, ("no longer", *SOON.values(), "longer", "not known"))
        yield from _named("ends first", self._leaving)
        yield from _counted("loads in", counts["loads in"])
        yield from _named("in none", self._stranded)
        yield from _counted("left out", self.left_out)
        yield from _counted("not read", {"damaged, or no artifacts": self.unread} if self.unread else {})


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


def _counted(title: str, counts: Mapping[str, int], names: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line for each count, the largest first, or in the order of `names` if there are any."""
    order = names or sorted(counts, key=lambda name: (-counts[name], name))
    rows = [(name, counts[name]) for name in order if name in counts]
    for number, (name, count) in enumerate(rows[:MOST]):
        yield f"{'' if number else title:<{WIDTH}}{count:>{COUNT},}  {printable(name)}"
    if len(rows) > MOST:
        rest = sum(count for _, count in rows[MOST:])
        yield f"{'':<{WIDTH}}{rest:>{COUNT},}  {plural(len(rows) - MOST, 'other')}; --json has all"


def _named(title: str, names: Iterable[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        yield f"{'' if number else title:<{WIDTH}}{printable(name)}"
