"""What the page's script reads: the cells of a run as columns of numbers, places in tables of values; and addresses.

A hundred thousand cells have few different messages, windows or commands: each is in the page once.

Addresses inside the page are those of a cell, of a cause, and of the table with a filter. They can be sent on. A filter
is what the page's text field shows: ``judgement:broken writer:0.9.2 case:*cholesky* words``. A value in double quotes
is taken letter by letter; elsewhere * and ? stand for other letters, and a comma for "or".
"""

import itertools
import re
import statistics
from collections.abc import Hashable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from export_core.base.text import few, plain_text
from export_core.judge import Judgement, Result
from export_core.judge.result import WriterOf
from export_core.judge.verdicts import VERDICTS
from export_core.readers.cell import CellKey
from export_core.readers.placement import Mode
from export_core.releases import Release
from export_core.releases.runtimes import JAXLIB
from export_core.report.document import Document
from export_core.report.run_tables import grid
from export_core.report.wording import figures_line, judgement_mark, limits_line, promise_line, window_line

_MARKS = {"\0": 0, "\1": 1, "\2": 2}  # Of values in a text: `plain_text` leaves no such letter.
_ELEMENT = re.compile(r"(?m)^\s*((?:worst|first) at \[[^\]\n]*\]): expected (.+), got (.+)$")


class _Columns:
    """Columns of places, each in a table of its different values."""

    def __init__(self, *names: str) -> None:
        self.tables: dict[str, dict[Any, int]] = {name: {} for name in names}
        self.columns: dict[str, list[Any]] = {name: [] for name in names}

    def append(self, **values: Hashable) -> None:
        for name, value in values.items():
            table = self.tables[name]
            if value not in table:
                table[value] = len(table)
            self.columns[name].append(table[value])


def page_data(document: Document) -> dict[str, Any]:
    """The rows of the table in its order, and the cells of each row by build date of the reader.

    `rows` and `cells` are columns, the cells of a row from `rows["start"]` on; `tables` are what they point into.
    `files` is the address of the folder of goldens, empty if unknown. `judgements` are all there are, the worst first;
    `verdicts` have the word and the symbol of each, and whether such a cell works; `runs` are the names of those that
    are compared.
    """
    comparison, identity = document.comparison, document.run.summary.identity
    rows = _Columns("case", "writer", "platform", "calls", "cost")
    texts = ("message", "stderr", "window", "numbers", "more", "command", "history", "figures")
    cells = _Columns("reader", "state", *texts)
    rows.columns |= {"golden": [], "start": [0]}
    cells.columns |= {"seconds": [], "timings": []}
    cells.tables["reader"] = {reader: place for place, reader in enumerate(document.run.readers)}
    for name, results in itertools.chain(*grid(document.run).values()):
        rows.append(
            case=(plain_text(results[0].case), plain_text(name)),
            writer=results[0].writer,
            platform=plain_text(results[0].platform),
            calls=tuple(map(plain_text, results[0].custom_calls)),
            cost=document.row_line(results),
        )
        rows.columns["golden"].append(plain_text(results[0].golden))
        for result in results:
            history = comparison.cells.get(result.key, ()) if comparison else ()
            cells.append(**_cell(result), history=tuple(map(tuple, history)))
            cells.columns["seconds"].append(round(result.seconds, 3))
            cells.columns["timings"].append(_timings(result))
        rows.columns["start"].append(len(cells.columns["seconds"]))
    tables: dict[str, list[Any]] = {name: [*values] for name, values in (rows.tables | cells.tables).items()}
    for name in ("reader", "writer"):
        tables[name] = [_release(release) for release in tables[name]]
    return {
        "tables": tables,
        "rows": rows.columns,
        "cells": cells.columns,
        "files": file_address(identity.source_url, identity.goldens),
        "judgements": [*Judgement],
        "verdicts": {name: (facts.mark, facts.symbol, name.works) for name, facts in VERDICTS.items()},
        "runs": comparison.runs if comparison else [],
    }


def _cell(result: Result) -> dict[str, Hashable]:
    mode = "compiled only: nothing ran" if result.mode is Mode.COMPILE else ""
    state = (
        *(str(result.judgement), str(result.verdict), str(result.stage), VERDICTS[result.verdict].phrase),
        *(judgement_mark(result), result.promised, plain_text(result.cause), mode),
    )
    values = (result.case, result.writer.jaxlib, result.reader.name)
    more = result.device, result.driver, result.foreseen, result.flaky, result.allowed, few(result.deployed)
    return {
        "reader": result.reader,
        "state": state,
        "message": plain_text(result.message).strip(),
        "stderr": plain_text(result.stderr).strip(),
        "window": window_line(result),
        "numbers": _numbers(result),
        "figures": figures_line(result),
        "more": tuple(map(plain_text, (*more, limits_line(result)))),
        "command": _pieces(plain_text(result.reproduce), tuple(map(plain_text, values))),
    }


def _numbers(result: Result) -> Hashable:
    """The errors, and the elements that the message shows: which one, expected, found, their difference."""
    errors = (result.max_abs_error, result.max_rel_error, result.max_noise_error)
    elements = _ELEMENT.findall(plain_text(result.message)) if "expected" in result.message else []
    return errors, tuple((*element, _distance(*element[1:])) for element in elements)


def _timings(result: Result) -> list[float | None]:
    """Milliseconds of each stage and the median of the repetitions, then the peak in MB: cell.js names them."""
    if not (timings := result.timings):
        return []
    again = statistics.median(timings.runs) if timings.runs else None
    stages = (timings.deserialize, timings.lower, timings.compile, timings.run, again)
    milliseconds = [None if seconds is None else round(seconds * 1e3, 2 if seconds < 0.01 else 0) for seconds in stages]
    return [*milliseconds, timings.peak_bytes and round(timings.peak_bytes / 1e6)]


def _distance(expected: str, found: str) -> str:
    try:
        return f"{abs(complex(found) - complex(expected)):.3g}"
    except ValueError:
        return ""


def _pieces(text: str, values: Sequence[str]) -> tuple[str | int, ...]:
    """The text, with the number of a value wherever that value is in it: many cells have the same pieces."""
    for mark, value in zip(_MARKS, values, strict=True):
        text = text.replace(value, mark) if value else text
    return tuple(_MARKS.get(piece, piece) for piece in re.split("([\0-\2])", text))


def _release(release: WriterOf | Release) -> dict[str, str]:
    named = release.release if isinstance(release, WriterOf) else release
    return {
        "jaxlib": plain_text(named.name),
        "jax": plain_text(named.jax),
        "built": str(named.built),
        "name": plain_text(named.pair),
        "runtime": plain_text(named.family or JAXLIB),
        "promise": plain_text(promise_line(named)),
        "platform": plain_text(release.platform) if isinstance(release, WriterOf) else "",
    }


def filter_link(**terms: str) -> str:
    """The table with the cells for which all of this holds: ``filter_link(judgement="broken", writer="0.9.2")``."""
    return f"#filter={_quoted(' '.join(term(name, value) for name, value in terms.items()))}"


def term(name: str, value: str) -> str:
    """One term of a filter."""
    plain = re.fullmatch(r'[^\s",*?]+', value)
    return f"{name}:{value}" if plain else '{}:"{}"'.format(name, value.replace('"', ""))


def cell_link(key: CellKey) -> str:
    """All details of a cell."""
    return f"#cell={_quoted(f'{key.golden} {key.pair} {key.platform}')}"


def cause_link(cause: str, judgement: str = "") -> str:
    """A cause among the findings; without a judgement the worst one."""
    return f"#cause={_quoted(f'{cause}={judgement}' if judgement else cause)}"


def web_address(url: str) -> str:
    """An address that a browser may follow; empty for everything but http and https."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def file_address(source_url: str, folder: str) -> str:
    """Where the files of a folder are, with a slash at the end; relative to the page if no web address is known."""
    if web := web_address(source_url):
        return f"{web.rstrip('/')}/{quote(folder.strip('/'))}/"
    # A path that leads elsewhere, or a scheme, is no folder of this project.
    plain = folder and not folder.startswith("/") and ".." not in folder.split("/")
    return f"{quote(folder.rstrip('/'))}/" if plain else ""


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
