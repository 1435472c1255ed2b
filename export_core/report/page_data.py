"""What the page's script reads: the cells of a run as columns of indexes into tables of values; and addresses.

A hundred thousand cells have few different messages, windows or commands: each is in the page once.

Addresses inside the page are those of a cell, of a cause, and of the table with a filter. They can be sent on. A filter
is what the page's text field shows: ``judgement:broken writer:0.9.2 case:*cholesky* words``. A value in double quotes
is taken letter by letter; elsewhere * and ? stand for other letters, and a comma for "or".
"""

import contextlib
import itertools
import os
import re
import statistics
from collections.abc import Hashable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from export_core.base.facts import labelled_facts
from export_core.base.text import few, plain_text
from export_core.goldens.store import JAXPR_TEXT, MANIFEST, MODULE_TEXT
from export_core.judge import Judgement, Result
from export_core.judge.cost import cost_of
from export_core.matrix.verdicts import VERDICTS, WORKING
from export_core.policy.known_issues import shipped_issues, source_of
from export_core.readers.cell import CellKey
from export_core.readers.placement import Mode
from export_core.releases.runtimes import JAXLIB
from export_core.report.document import Document
from export_core.report.run_tables import MapRelease, grid, map_releases
from export_core.report.wording import figures_line, judgement_mark, promise_line, window_line
from export_core.run.run import Run

_MARKS = {"\0": 0, "\1": 1, "\2": 2}  # Marks of values in a text: `plain_text` leaves no such letter.
_STATE = ("judgement", "verdict", "stage", "promised", "cause")
_SHOWN_APART = {
    *("case", "golden", "writer", "reader", "platform", "test", "custom_calls"),  # of a row, or of a column
    *_STATE,
    *("message", "stderr", "mode", "seconds", "cost", "timings", "reproduce", "facts"),
    *("direction", "days", "promised_until"),  # the window
    *("max_abs_error", "max_rel_error", "max_noise_error", "error_grid"),
}
_NOT_SHOWN = {
    *("outputs", "as_written", "looks_like", "processors", "signal", "converted", "devices", "upstream"),
    "must_be_refused",
}
_MORE = tuple(name for name in Result.__struct_fields__ if name not in _SHOWN_APART | _NOT_SHOWN)
"""The other fields of a result, which the page shows by their names: so a new field is shown without further work."""
_FIELDS = {
    "case": ("case", "name"),
    "state": (*_STATE, "phrase", "mark", "mode"),
    "numbers": ("max_abs_error", "max_rel_error", "max_noise_error", "elements"),
    "more": (*_MORE, "facts"),
}
"""The names of the values in each table: fields of a result, and texts that are made of several fields."""
COSTS = ("temp_bytes", "flops", "bytes_accessed")
"""The figures of the compiler that pictures show: memory, work, and the bytes that are moved for it."""
MOST_GRIDS = 2_000  # The most different error grids in a page; cells with further grids have only their numbers.
_FILES = (JAXPR_TEXT, MODULE_TEXT, MANIFEST)  # The files of a golden that people can read.
_TIMES = ("deserialize", "lower", "compile", "run", "runs", "peak_bytes")
_state_of, _more_of, _errors_of = attrgetter(*_STATE), attrgetter(*_MORE), attrgetter(*_FIELDS["numbers"][:3])
_ELEMENT = re.compile(
    r"(?m)^\s*((?:largest error(?: in units of the noise)?|first) at \[[^\]\n]*\]): expected (.+), got (.+)$"
)
_ENTRY = re.compile(
    r"\(([a-z0-9][a-z0-9.-]*)\)"
)  # The id of an entry of the knowledge base, behind a reason of a forecast.


class _Columns:
    """A table stored by columns: for each column, its distinct values and, row by row, the index of a value."""

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
    """Return the data for the page's script: the rows of its table in order, and the cells of each row.

    `rows` and `cells` are columns of indices into `tables`. The cells of a row begin at `rows["start"]`, ordered by the
    reader's build date. `timings` are columns of numbers, each empty if no cell has a number for it. Fields have the
    names of a result's fields.

    `goldens` is the path of the folder of goldens, and `files` its address, "" if no link can lead there. The table
    `names` has the names of a golden's files that people can read. `judgements` are all judgements, the worst first.
    `verdicts` has the word and the symbol of each verdict, and whether a cell with it works. `runs` are the names of
    the runs that are compared.
    """
    comparison, identity = document.comparison, document.run.summary.identity
    rows = _Columns("case", "writer", "platform", "calls", "cost", "names")
    goldens, files = identity.goldens, file_address(identity.source_url, identity.goldens, document.folder)
    texts = ("message", "stderr", "window", "numbers", "more", "command", "history", "figures")
    cells = _Columns("reader", "state", *texts, "needs", "grid", "measured")
    rows.columns |= {"golden": [], "start": [0]}
    cells.columns |= {"seconds": []}
    timings: dict[str, list[float | None]] = {name: [] for name in _TIMES}
    cells.tables["grid"] = {None: 0}
    cells.tables["reader"] = {reader: place for place, reader in enumerate(document.run.readers)}
    for name, results in itertools.chain(*grid(document.run).values()):
        rows.append(
            case=(plain_text(results[0].case), plain_text(name)),
            writer=results[0].writer,
            platform=plain_text(results[0].platform),
            calls=tuple(map(plain_text, results[0].custom_calls)),
            cost=document.row_line(results),
            names=_names(goldens, results[0].golden, is_online=bool(web_address(identity.source_url))),
        )
        rows.columns["golden"].append(plain_text(results[0].golden))
        for result in results:
            history = comparison.cells.get(result.key, ()) if comparison else ()
            measured = comparison.measured.get(result.key, ()) if comparison else ()
            pictures = cells.tables["grid"]
            errors = result.error_grid if result.error_grid in pictures or len(pictures) <= MOST_GRIDS else None
            cells.append(**_cell(result), grid=errors, history=tuple(map(tuple, history)), measured=tuple(measured))
            cells.columns["seconds"].append(round(result.seconds, 3))
            for name, number in zip(_TIMES, _timings(result), strict=True):
                timings[name].append(number)
        rows.columns["start"].append(len(cells.columns["seconds"]))
    tables: dict[str, list[Any]] = {name: [*values] for name, values in (rows.tables | cells.tables).items()}
    readers, writers = map_releases(document.run.readers), map_releases(document.run.writers)
    tables["reader"] = [_release(readers[reader]) for reader in tables["reader"]]
    tables["writer"] = [_release(writers[writer.release], writer.platform) for writer in tables["writer"]]
    for name, fields in _FIELDS.items():
        tables[name] = [dict(zip(fields, map(_shown, values), strict=True)) for values in tables[name]]
    return {
        "tables": tables,
        "rows": rows.columns,
        "cells": cells.columns,
        "timings": {name: column if any(map(_is_known, column)) else [] for name, column in timings.items()},
        "goldens": plain_text(goldens),
        "files": files,
        "judgements": [*Judgement],
        "verdicts": {
            name: {"word": facts.mark, "symbol": facts.symbol, "works": name in WORKING}
            for name, facts in VERDICTS.items()
        },
        "runs": comparison.runs if comparison else [],
        "figures": COSTS,
        "entries": _entries(document.run),
        "issues": {cause.id: cause.upstream for cause in document.run.summary.causes if cause.upstream},
        "as_of": str(document.run.summary.as_of),
    }


def _cell(result: Result) -> dict[str, Hashable]:
    mode = "compiled only: nothing ran" if result.mode is Mode.COMPILE else ""
    state = *_state_of(result), VERDICTS[result.verdict].phrase, judgement_mark(result), mode
    values = (result.case, result.writer.jaxlib, result.reader.name)
    facts = tuple((label, plain_text("\n".join(lines))) for label, lines in labelled_facts(result.facts))
    return {
        "reader": result.reader,
        "state": state,
        "message": plain_text(result.message).strip(),
        "stderr": plain_text(result.stderr).strip(),
        "window": window_line(result),
        "numbers": _numbers(result),
        "figures": figures_line(result),
        "needs": measured_in(result)[1:],
        "more": (*_more_of(result), facts),
        "command": _pieces(plain_text(result.reproduce), tuple(map(plain_text, values))),
    }


def _numbers(result: Result) -> Hashable:
    """Return a cell's errors, then the elements in its message as (place, expected value, found value, difference)."""
    elements = _ELEMENT.findall(plain_text(result.message)) if "expected" in result.message else []
    return *_errors_of(result), tuple((*element, _distance(*element[1:])) for element in elements)


def measured_in(result: Result | None) -> tuple[float | None, ...]:
    """Return a cell's error in units of noise, then its `COSTS`; an empty tuple if there is no cell."""
    if result is None:
        return ()
    return result.max_noise_error, *(cost_of(result, figure) for figure in COSTS)


def _entries(run: Run) -> dict[str, dict[str, str]]:
    """Return, by id, title and source of the entries of the knowledge base that forecasts or causes of a run name."""
    named = {cause.upstream for cause in run.summary.causes if cause.upstream}
    for text in {result.forecast for result in run.results}:
        named |= {*_ENTRY.findall(text)}
    if not named:
        return {}
    issues = {issue.id: issue for issue in (*shipped_issues(), *run.summary.known_issues)}
    return {
        name: {"title": plain_text(issues[name].title), "source": plain_text(source_of(issues[name])).strip("`")}
        for name in sorted(named & issues.keys())
    }


def _is_known(value: float | None) -> bool:
    return value is not None


def _shown(value: object) -> object:
    """Return a value for the page's table: text without control characters, and long lists shortened."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        return plain_text(few(value))
    return value


def _timings(result: Result) -> list[float | None]:
    """Return a cell's time of each stage and the median of the repetitions in ms, then the peak of memory in MB."""
    if not (timings := result.timings):
        return [None] * len(_TIMES)
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
    """Return a text in pieces, with each of `values` replaced by its index, so that many cells share their pieces."""
    for mark, value in zip(_MARKS, values, strict=True):
        text = text.replace(value, mark) if value else text
    return tuple(_MARKS.get(piece, piece) for piece in re.split("([\0-\2])", text))


def _release(named: MapRelease, platform: str = "") -> dict[str, str]:
    release = named.release
    return {
        "title": plain_text(named.name),
        "jaxlib": plain_text(release.name),
        "jax": plain_text(release.jax),
        "built": str(release.built),
        "name": plain_text(release.pair),
        "runtime": plain_text(release.family or JAXLIB),
        "promise": plain_text(promise_line(release)),
        "platform": plain_text(platform),
    }


def filter_link(**terms: str | Sequence[str]) -> str:
    """Return a link to the page's table that shows only the cells with these values, such as ``writer="0.9.2"``.

    A term may have several values, any of which is enough; these may not have special characters.
    """
    words = (term(name, of) if isinstance(of, str) else f"{name}:{','.join(of)}" for name, of in terms.items())
    return f"#filter={_quoted(' '.join(words))}"


def term(name: str, value: str) -> str:
    """Return a term for the filter of the page's table: ``writer:0.9.2``. A value with special characters is quoted."""
    plain = re.fullmatch(r'[^\s",*?]+', value)
    return f"{name}:{value}" if plain else '{}:"{}"'.format(name, value.replace('"', ""))


def cell_link(key: CellKey) -> str:
    """Return a link to the page's view of all details of a cell."""
    return f"#cell={_quoted(f'{key.golden} {key.pair} {key.platform}')}"


def cause_link(cause: str, judgement: str = "") -> str:
    """Return a link to the page's finding about a cause, either that with this judgement or the worst one."""
    return f"#cause={_quoted(f'{cause}={judgement}' if judgement else cause)}"


def web_address(url: str) -> str:
    """Return `url` if it is an http or https address, which a browser may follow; otherwise ""."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def file_address(source_url: str, goldens: str, folder: Path | None) -> str:
    """Return the address at which the page links the folder of goldens, with a final slash; "" if no link can work.

    The address is below `source_url` if that is a web address, else a path relative to the page's `folder`. A relative
    path needs goldens in the working folder, and a page that is written to a file.
    """
    if not _is_inside(goldens):
        return ""
    if web := web_address(source_url):
        return f"{web.rstrip('/')}/{quote(goldens.strip('/'))}/"
    if folder is None:
        return ""
    with contextlib.suppress(OSError, ValueError):  # it is not here, is no path at all, or is on another drive
        path = os.path.relpath(os.path.realpath(goldens, strict=True), os.path.realpath(folder))
        return f"{quote(Path(path).as_posix())}/"
    return ""


def _names(goldens: str, golden: str, *, is_online: bool) -> tuple[str, ...]:
    """Return the names of a golden's files that people can read: the present ones, or all if they are only online."""
    folder = f"{goldens}/{golden}"
    with contextlib.suppress(OSError, ValueError):  # a results folder may hold any text
        here = {file.name for file in Path(folder).iterdir()} if _is_inside(folder) else set()
        return tuple(name for name in _FILES if name in here)
    return _FILES if is_online else ()


def _is_inside(path: str) -> bool:
    """Return whether a path is relative and stays inside the working folder."""
    return bool(path) and not Path(path).is_absolute() and not path.startswith("/") and ".." not in Path(path).parts


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
