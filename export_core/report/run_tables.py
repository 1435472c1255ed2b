"""The tables of a run that media draw: every cell by golden and reader; a square for each writer and reader."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from export_core.judge import Judgement, Result, Summary
from export_core.judge.forecast_types import Generation
from export_core.judge.result import ReaderOf, WriterOf
from export_core.judge.retention import leaves_window_on
from export_core.readers.cell import CellKey
from export_core.releases import Direction, Windows
from export_core.report.links import release_term


@dataclass(frozen=True)
class GridRow:
    """One golden on one platform; `name` is its case as the table shows it, `cells` are by reader."""

    name: str
    case: str
    platform: str
    cells: dict[ReaderOf, Result]


@dataclass(frozen=True)
class GridBlock:
    """The goldens of one writer; `head` names it and its build date."""

    head: str
    writer: WriterOf
    rows: list[GridRow]


@dataclass(frozen=True)
class Grid:
    """The table. `titles` are the lines above each reader: jaxlib, build date, and jax where one jaxlib has several."""

    readers: list[ReaderOf]
    titles: dict[ReaderOf, tuple[str, ...]]
    blocks: list[GridBlock]


def grid(results: Sequence[Result]) -> Grid:
    """Rows by writer, oldest build first, then by case and platform."""
    heads = {result.writer: _head(result.writer) for result in results}
    rows: dict[tuple[datetime.date, str, str, str, str], tuple[WriterOf, dict[ReaderOf, Result]]] = {}
    for result in results:
        place = (result.writer.built, heads[result.writer], result.case, result.platform, result.golden)
        rows.setdefault(place, (result.writer, {}))[1][result.reader] = result
    readers = sorted({result.reader for result in results}, key=lambda reader: reader.date_order)
    # Where one jaxlib is read with several jax, only the jax tells its columns apart.
    paired = {jaxlib for jaxlib, count in Counter(reader.jaxlib for reader in readers).items() if count > 1}
    names = _short_names([case for _, _, case, *_ in sorted(rows)])
    several_platforms = len({platform for *_, platform, _ in rows}) > 1
    blocks: list[GridBlock] = []
    for place in sorted(rows):
        _, head, case, platform, _ = place
        writer, cells = rows[place]
        if not blocks or blocks[-1].head != head:
            blocks.append(GridBlock(head, writer, []))
        name = f"{names[case]} {platform}" if several_platforms else names[case]
        blocks[-1].rows.append(GridRow(name, case, platform, cells))
    titles = {
        reader: (reader.jaxlib, f"{reader.built:%y-%m-%d}", *([f"jax {reader.jax}"] if reader.jaxlib in paired else ()))
        for reader in readers
    }
    return Grid(readers, titles, blocks)


def _head(writer: WriterOf) -> str:
    """The writer, as it is named in the line above its goldens."""
    jax = "" if writer.jax == writer.jaxlib else f" with jax {writer.jax}"
    return f"{writer.jaxlib}{jax}  built {writer.built}"


def _short_names(cases: Sequence[str]) -> dict[str, str]:
    """Case ids without the folders that all of them share."""
    parts = [case.split(".") for case in dict.fromkeys(cases)]
    shared = 0
    # At least the last part stays: a name is never empty.
    while len(parts) > 1 and all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return {case: ".".join(case.split(".")[shared:]) for case in cases}


@dataclass(frozen=True)
class MapRelease:
    """A writer or a reader. `name` says its jax too where one jaxlib has several, `term` is how a filter names it."""

    name: str
    term: str
    built: datetime.date


@dataclass(frozen=True)
class Square:
    """The cells of a writer and a reader on one platform: how many there are of each judgement, the worst first.

    `pale`: the map shows what changed since an earlier run, and none of these cells did.
    """

    promised: bool
    counts: dict[Judgement, int]
    pale: bool = False

    @property
    def worst(self) -> Judgement:
        """What the square is coloured by."""
        return next(iter(self.counts))

    @property
    def look(self) -> str:
        """The judgement as it is drawn: what is not promised and works in part is neither `bonus` nor `outside`."""
        partly = self.worst is Judgement.OUTSIDE and Judgement.BONUS in self.counts
        return "partly" if partly else str(self.worst)


@dataclass(frozen=True)
class MapRow:
    """A writer on one platform, with the days of its window. `squares` are by reader."""

    writer: MapRelease
    platform: str
    since: datetime.date
    until: datetime.date
    goldens: int
    squares: dict[MapRelease, Square]


@dataclass(frozen=True)
class ReleaseMap:
    """Rows by platform, in each the newest writer first; readers by build date, the oldest first."""

    readers: tuple[MapRelease, ...]
    rows: tuple[MapRow, ...]
    as_of: datetime.date
    generations: tuple[Generation, ...]

    @property
    def platforms(self) -> tuple[str, ...]:
        """Every platform once."""
        return tuple(dict.fromkeys(row.platform for row in self.rows))


def release_map(results: Sequence[Result], summary: Summary, changed: Collection[CellKey] | None = None) -> ReleaseMap:
    """The map of all results of a run. Where it is to show what `changed`, all other squares are pale."""
    writers = _releases(result.writer for result in results)
    readers = _releases(result.reader for result in results)
    windows = _windows(results)
    counts: dict[tuple[str, MapRelease], dict[MapRelease, Counter[Judgement]]] = defaultdict(dict)
    goldens: dict[tuple[str, MapRelease], set[str]] = defaultdict(set)
    promised, vivid = set(), set()
    for result in results:
        place = result.platform, writers[_pair(result.writer)]
        reader = readers[_pair(result.reader)]
        counts[place].setdefault(reader, Counter())[result.judgement] += 1
        goldens[place].add(result.golden)
        if result.promised:
            promised.add((place, reader))
        if changed is None or result.key in changed:
            vivid.add((place, reader))
    rows = [
        MapRow(
            writer,
            platform,
            since=writer.built - datetime.timedelta(days=windows.forward_days),
            until=writer.built + datetime.timedelta(days=windows.backward_days),
            goldens=len(goldens[platform, writer]),
            squares={
                reader: Square(
                    ((platform, writer), reader) in promised,
                    _worst_first(counter),
                    pale=((platform, writer), reader) not in vivid,
                )
                for reader, counter in by_reader.items()
            },
        )
        for (platform, writer), by_reader in counts.items()
    ]
    generations = tuple(_generations(results, writers, windows))
    return ReleaseMap(_by_date(readers.values()), _in_order(rows), summary.as_of, generations)


def aligned(one: ReleaseMap, other: ReleaseMap) -> tuple[ReleaseMap, ReleaseMap]:
    """The two maps, each with the rows and readers of both: what only the other one has is empty."""
    readers = _by_date({*one.readers, *other.readers})

    def filled(own: ReleaseMap, rows: Iterable[MapRow]) -> ReleaseMap:
        places = {(row.platform, row.writer) for row in own.rows}
        empty = [replace(row, squares={}) for row in rows if (row.platform, row.writer) not in places]
        return replace(own, readers=readers, rows=_in_order([*own.rows, *empty]))

    return filled(one, other.rows), filled(other, one.rows)


def _by_date(readers: Iterable[MapRelease]) -> tuple[MapRelease, ...]:
    return tuple(sorted(set(readers), key=lambda reader: (reader.built, reader.name)))


def _in_order(rows: Iterable[MapRow]) -> tuple[MapRow, ...]:
    """By platform, in each the newest writer first."""
    newest_first = sorted(rows, key=lambda row: (row.writer.built, row.writer.name), reverse=True)
    return tuple(sorted(newest_first, key=lambda row: row.platform))


def _generations(
    results: Iterable[Result], writers: dict[tuple[str, str], MapRelease], windows: Windows
) -> Iterator[Generation]:
    """The windows of all writers. A golden is replayed on several platforms, and counts once."""
    goldens = Counter(pair for pair, _ in {(_pair(result.writer), result.golden) for result in results})
    for pair, writer in writers.items():
        yield Generation(writer.name, writer.built, leaves_window_on(writer.built, windows), goldens[pair])


def _pair(release: WriterOf | ReaderOf) -> tuple[str, str]:
    return release.jaxlib, release.jax


def _releases(releases: Iterable[WriterOf | ReaderOf]) -> dict[tuple[str, str], MapRelease]:
    """The releases by jaxlib and jax. Writers on several platforms are one."""
    different = {_pair(release): release for release in releases}
    paired = Counter(jaxlib for jaxlib, _ in different)
    return {
        pair: MapRelease(f"{release.jaxlib} · {release.jax}", release_term(release), release.built)
        if paired[release.jaxlib] > 1
        else MapRelease(release.jaxlib, release.jaxlib, release.built)
        for pair, release in different.items()
    }


def _windows(results: Iterable[Result]) -> Windows:
    """The lengths of the windows, from the dates: a result contains no lengths."""
    lengths = {(result.direction, abs((result.promised_until - result.writer.built).days)) for result in results}
    forward = [days for direction, days in lengths if direction is Direction.FORWARD]
    backward = [days for direction, days in lengths if direction is not Direction.FORWARD]
    return Windows(max(backward, default=0), max(forward, default=0))


def _worst_first(counter: Counter[Judgement]) -> dict[Judgement, int]:
    return {judgement: counter[judgement] for judgement in Judgement if counter[judgement]}
