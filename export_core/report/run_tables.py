"""The tables of a run that media draw: every cell by golden and reader; a square for each writer and reader."""

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from export_core.base.text import ranges
from export_core.judge import Judgement, Result
from export_core.releases import Release
from export_core.releases.calendar import with_several_jax
from export_core.run.run import Run


def grid(run: Run) -> dict[Release, list[tuple[str, list[Result]]]]:
    """Return the rows of the table of cells for each writer, the newest writer first.

    A row is the short name of a case, and the cells of one golden on one platform, ordered by the readers' build dates.
    """
    names = short_names({result.case for result in run.results})
    rows: dict[Release, list[tuple[str, list[Result]]]] = {writer: [] for writer in reversed(run.writers)}
    for cells in sorted(run.by_golden.values(), key=lambda cells: (cells[0].case, cells[0].platform, cells[0].golden)):
        by_reader = {result.reader: result for result in sorted(cells, key=lambda result: result.reader.date_order)}
        rows[cells[0].writer.release].append((names[cells[0].case], [*by_reader.values()]))
    return rows


def short_names(cases: Collection[str]) -> dict[str, str]:
    """Return a short name for each case id: the id without the leading parts that are the same in all ids."""
    parts = [case.split(".") for case in cases]
    shared = 0
    # At least the last part stays: a name is never empty.
    while len(parts) > 1 and all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return {case: ".".join(case.split(".")[shared:]) for case in cases}


@dataclass(frozen=True)
class MapRelease:
    """A writer or a reader of a map, on any platform.

    `several` is whether the run has the jaxlib of this release with several releases of jax.
    """

    release: Release
    several: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The name in tables, maps and sentences, with the version of jax only if `several` is true."""
        return self.in_words.replace("==", " ")

    @property
    def column(self) -> str:
        """The name above a column of the map; only the version for a runtime, whose name is above its columns."""
        return self.release.runtime.partition("==")[2] or self.name

    @property
    def in_words(self) -> str:
        """The name in the form for `ranges`, such as ``iree==3.13.0``, with the version of jax if `several` is true."""
        # In brackets: "0.10.1 with jax 0.10.2 to 0.11.1" would be a range of jax.
        return f"{self.release.name} (jax {self.release.jax})" if self.several else self.release.name

    @property
    def term(self) -> str:
        """The name in the filter of the page's table: the jaxlib, with the version of jax if `several` is true."""
        return self.release.pair if self.several else self.release.name


PARTLY = "partly"
"""The look of a square that is not promised, and in which only some of the cells work."""


@dataclass(frozen=True)
class Square:
    """A square of the map: the number of cells of each judgement, the worst first.

    The cells are those of one writer, one reader and one platform.
    """

    promised: bool
    counts: Mapping[Judgement, int]

    @property
    def worst(self) -> Judgement:
        """The worst judgement of the square's cells."""
        return next(iter(self.counts))

    @property
    def look(self) -> str:
        """The look of the square: its worst judgement, but `PARTLY` if the worst is `outside` and some cells work."""
        partly = self.worst is Judgement.OUTSIDE and any(judgement.facts.works for judgement in self.counts)
        return PARTLY if partly else str(self.worst)

    @property
    def counted_judgements(self) -> tuple[Judgement, ...]:
        """The judgements of the cells that the number in the square counts: those that fail the run, or else the worst.

        Empty if the colour alone says enough, since all cells are kept or bonus, or all are outside.
        """
        if self.look in (Judgement.KEPT, Judgement.BONUS, Judgement.OUTSIDE):
            return ()
        return tuple(judgement for judgement in self.counts if judgement.fails_run) or (self.worst,)

    @property
    def counted(self) -> int | None:
        """The number in the square, which counts the cells with `counted_judgements`; None for no number."""
        return sum(self.counts[judgement] for judgement in self.counted_judgements) or None


@dataclass(frozen=True)
class MapRow:
    """A row of the map, for a writer on one platform: its window, number of goldens, and squares by reader.

    `since` and `until` are the first and the last day of the window.
    """

    writer: MapRelease
    platform: str
    since: datetime.date
    until: datetime.date
    goldens: int
    squares: Mapping[MapRelease, Square]


@dataclass(frozen=True)
class ReleaseMap:
    """The map of a run: a row for each writer on each platform, and the readers, which are the columns.

    Rows are sorted by platform, then the newest writer first. Readers are sorted by build date: those of jaxlib first,
    then those of each other runtime.
    """

    readers: tuple[MapRelease, ...]
    rows: tuple[MapRow, ...]
    as_of: datetime.date

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the rows, each once, in their order."""
        return tuple(dict.fromkeys(row.platform for row in self.rows))


def release_map(run: Run) -> ReleaseMap:
    """Return the map of a run, with every result in one of its squares."""
    writers, readers = map_releases(run.writers), map_releases(run.readers)
    windows = run.policy.window_lengths()
    rows = [
        MapRow(
            writers[writer],
            platform,
            since=writer.built - datetime.timedelta(days=windows.forward_days),
            until=writer.built + datetime.timedelta(days=windows.backward_days),
            goldens=len(cells.by_golden),
            squares={
                readers[reader]: Square(
                    any(result.promised for result in square.results),
                    {judgement: len(results) for judgement, results in square.by_judgement.items()},
                )
                for (reader, _), square in cells.by_reader.items()
            },
        )
        for (writer, platform), cells in run.by_writer.items()
    ]
    rows.sort(key=lambda row: row.writer.release.date_order, reverse=True)
    rows.sort(key=lambda row: row.platform)
    return ReleaseMap(tuple(readers.values()), tuple(rows), run.summary.as_of)


def map_releases(releases: Sequence[Release]) -> dict[Release, MapRelease]:
    """Return each release in the form in which maps show it, with its jax if its jaxlib occurs with several jax."""
    several = with_several_jax(releases)
    return {release: MapRelease(release, release.name in several) for release in releases}


def named_among(releases: Collection[Release], among: Sequence[Release]) -> str:
    """Return releases in words, as ranges such as ``0.9.2 to 0.11.0, 0.12.0.1`` if they are neighbours in `among`.

    A jaxlib that is in `among` with several jax is named with its jax: ``0.10.0, 0.10.1 (jax 0.10.2) to 0.11.1``.
    """
    names = {release: named.in_words for release, named in map_releases(among).items()}
    ordered = [name for release, name in names.items() if release in releases]
    return ranges(list(dict.fromkeys(ordered)), list(dict.fromkeys(names.values())))
