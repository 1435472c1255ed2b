"""What the cells of a plan are forecast to do, from artifacts and from what is known of their readers."""

import functools
from collections.abc import Iterable, Iterator, Sequence

from export_core.artifact import ArtifactError
from export_core.artifact.readers import Reader
from export_core.goldens import GoldenError
from export_core.knowledge import YES, Answer, forecasts
from export_core.knowledge.forecasting import MATRIX
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.readers.cell import Cell, CellKey
from export_core.readers.placement import Mode
from export_core.releases import Calendar, Release
from export_core.releases.calendar_entries import calendar_entries


class CellForecasts:
    """The forecasts of cells as texts; those of a golden's cells are all computed when the first is requested."""

    def __init__(self, cells: Iterable[Cell], calendar: Calendar) -> None:
        self._calendar = calendar
        self._cells: dict[str, list[Cell]] = {}  # by golden
        for cell in cells:
            self._cells.setdefault(cell.golden.id, []).append(cell)
        self._readers: dict[Release, Reader] = {}
        # By golden, in the order of its cells. A large plan has 100,000 of them: no keys, and equal texts only once.
        self._texts: dict[str, list[str]] = {}
        self._shared: dict[str, str] = {}

    @functools.cached_property
    def _terms(self) -> Terms:
        return Terms(calendar_entries(self._calendar))

    def of(self, cell: Cell) -> str:
        """Return whether a cell is forecast to work: ``yes``, or another answer with its reasons.

        The text is empty if the golden must be refused on the cell's platform, or if its artifact cannot be read.
        """
        golden, here = cell.golden.id, (cell.reader, cell.platform)
        cells = self._cells.get(golden, [])
        if golden not in self._texts:
            texts: dict[CellKey, str] = {}
            for platform in dict.fromkeys(each.platform for each in cells):
                texts |= self._of_golden([each for each in cells if each.platform == platform])
            self._texts[golden] = [
                self._shared.setdefault(text, text) for text in (texts.get(c.key, "") for c in cells)
            ]
        places = (number for number, each in enumerate(cells) if (each.reader, each.platform) == here)
        return next((self._texts[golden][number] for number in places), "")

    def _of_golden(self, cells: Sequence[Cell]) -> Iterator[tuple[CellKey, str]]:
        """Yield the key and the forecast of each of these cells, which are of one golden on one platform.

        Nothing is yielded if the golden must be refused on that platform, or if its artifact cannot be read.
        """
        golden, platform = cells[0].golden, cells[0].platform
        if platform in golden.manifest.options.refused_on:
            return
        try:
            artifact = golden.read_artifact()
            known = forecasts(artifact, map(self._reader, (cell.reader for cell in cells)), platform, MATRIX)
            for cell, each in zip(cells, known, strict=True):
                yield cell.key, in_words(each.compiles if cell.mode is Mode.COMPILE else each.numbers)
        except (GoldenError, ArtifactError):  # the cell reports it
            return

    def _reader(self, release: Release) -> Reader:
        if release not in self._readers:
            reader = find_reader(release.name, self._terms, self._calendar)
            # One jaxlib may be read with several jax.
            self._readers[release] = reader._replace(release=reader.release._replace(jax=release.jax))
        return self._readers[release]


def in_words(answer: Answer) -> str:
    """Return an answer with its reasons: ``no: it runs artifacts for one device, and this one is for 2``."""
    reasons = "; ".join(map(str, answer.reasons))
    return answer.answer if answer.answer == YES or not reasons else f"{answer.answer}: {reasons}"
