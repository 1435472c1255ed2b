"""The findings of a measurement as data for JSON, as Markdown, and as lines of text that help to find the reasons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from export_core.numbers.noise import FACTOR
from studies.corpus.programs.planted import PROGRAMS
from studies.numbers.double import CLEARLY
from studies.numbers.findings import Cell, Findings, Planted
from studies.numbers.planted import FROM_OUTPUTS
from studies.numbers.rules import FACTORS
from studies.numbers.sets import CORPUS, HELD, HELD_NOW, LIBRARIES, NATIVE, REALS
from tools.marked import table

WIDTH = 120
"""The most characters of a line in the docs."""
TITLES = {
    CORPUS: "the corpus",
    HELD: "held out",
    HELD_NOW: "held out for the rule of terms",
    REALS: "real programs",
    LIBRARIES: "real programs of libraries",
}
KINDS = {
    "small-signs": "the sign of small elements",
    "one-element": "one element off by 1e-3 of itself",
    "bf16": "bfloat16 where float32 was",
    "dropped-term": "a dropped term",
    "off-by-one": "an index off by one",
    "swapped-axis": "a swapped axis",
    "lost-epsilon": "a lost epsilon",
    "another-seed": "another seed",
    "low-accumulation": "sums in a narrower type",
    "denormals": "denormal numbers flushed to zero",
    "constant": "a constant wrong in the sixth digit",
    "nan-to-zero": "zero in place of NaN",
    "tf32": "products in TF32",
    "table-entry": "an entry of a table off by 1e-3 to a tenth",
    "approximated": "a function off by 1e-4 to 1e-3",
    "half-activations": "activations in float16",
    "wrong-ratio": "a factor off by 1e-3 to a tenth",
}
COARSE = {
    "all-zero": "zeros",
    "halved": "half of it",
    "signs-flipped": "its sign turned",
    "ten-percent": "a tenth too large",
}
NARROW = {
    "": "no type narrower than the outputs",
    "beside": "a narrow type beside them, or stored",
    "rounded": "outputs that depend on what is rounded",
    "half": "models in half precision",
}
"""Titles for what `Program.narrow` says about narrow types in a program."""
Data = dict[str, Any]


def data(findings: Findings) -> Data:
    """Return the data of docs/evidence/numbers-measured.md, which its JSON file has."""
    here = [cell for cell in findings.cells if cell.replay.read is cell.replay.written]
    across = [cell for cell in findings.cells if cell.replay.read is not cell.replay.written]
    processor_pairs = dict.fromkeys((cell.replay.written, cell.replay.read) for cell in across)
    fine = [one for one in findings.planted if one.kind in KINDS]
    named = [one for one in fine if one.of_set == HELD_NOW and one.kind not in FROM_OUTPUTS]
    alarms = sorted((cell for cell in findings.cells if cell.judged.fails), key=lambda cell: -cell.judged.largest)
    return {
        "factor": FACTOR,
        "writers": _releases(cell.writer for cell in here),
        "readers": _releases(cell.reader for cell in here),
        "sets": [
            {"set": name, **_counts([cell for cell in here if cell.of_set == name])}
            for name in TITLES
            if any(cell.of_set == name for cell in here)
        ],
        "processors": [
            {
                "written": written.title,
                "read": read.title,
                **_counts([cell for cell in across if (cell.replay.written, cell.replay.read) == (written, read)]),
            }
            for written, read in processor_pairs
        ],
        "alarms": [_alarm(cell) for cell in alarms],
        "planted": [
            {"kind": kind, **_planted([one for one in findings.planted if one.kind == kind])} for kind in KINDS
        ],
        "planted_in_all": _planted(fine),
        "planted_by_set": {name: _caught([one for one in fine if one.of_set == name]) for name in TITLES},
        "planted_by_narrow": {
            narrow: _caught([one for one in named if PROGRAMS[one.program].narrow == narrow]) for narrow in NARROW
        },
        "coarse": [{"kind": kind, **_coarse([one for one in findings.planted if one.kind == kind])} for kind in COARSE],
        "curve": [
            {
                "times": factor,
                "cells": sum(cell.judged.largest > factor for cell in findings.correct),
                "missed": sum(one.judged.largest <= factor for one in fine),
            }
            for factor in FACTORS
        ],
        "changes": [
            {"reason": change.reason, "names": change.programs, **_counts([c for c in here if c.change is change])}
            for change in dict.fromkeys(cell.change for cell in here)
            if change
        ],
        "not_compared": dict(sorted(findings.not_compared.items())),
        "not_written": findings.not_written,
        "inputs_only": findings.inputs_only,
    }


def _counts(cells: Sequence[Cell]) -> Data:
    unchanged = [cell for cell in cells if cell.change is None and not any(one.real for one in cell.farther)]
    return {
        "programs": len({cell.program for cell in cells}),
        "cells": len(cells),
        "other_bits": sum(cell.other_bits for cell in cells),
        "numerics": sum(cell.judged.fails for cell in cells),
        "documented": sum(cell.judged.fails and cell.change is not None for cell in cells),
        "false_alarms": sum(cell.false_alarm for cell in cells),
        "largest": max((cell.judged.largest for cell in unchanged), default=0.0),
        "fixed": sum(cell.judged.fails_tolerance for cell in unchanged),
        "numpy": sum(cell.judged.fails_numpy for cell in unchanged),
    }


def _alarm(cell: Cell) -> Data:
    replay = cell.replay
    is_native = replay.written is NATIVE and replay.read is NATIVE
    processors = "" if is_native else f"{replay.written.name}-{replay.read.name}"
    return {
        "program": cell.program,
        "set": cell.of_set,
        "writer": cell.writer,
        "reader": cell.reader,
        "processors": processors,
        "times_the_noise": cell.judged.largest,
        "float64": [str(one) for one in cell.farther],
        "counts_as": "false" if cell.false_alarm else "documented" if cell.change else "real",
    }


def _caught(planted: Sequence[Planted]) -> Data:
    return {
        "errors": len(planted),
        "programs": len({one.program for one in planted}),
        "noise": sum(one.judged.fails for one in planted),
        "fixed": sum(one.judged.fails_tolerance for one in planted),
        "numpy": sum(one.judged.fails_numpy for one in planted),
    }


def _planted(planted: Sequence[Planted]) -> Data:
    """Return how many planted errors each rule catches; errors in outputs that jump are counted apart, as `jumping`."""
    return {
        **_caught([one for one in planted if not one.jumps]),
        "jumping": _caught([one for one in planted if one.jumps]),
    }


def _coarse(planted: Sequence[Planted]) -> Data:
    """Return how many coarse errors each rule catches, and the errors that this project's rule misses.

    Errors in outputs that are mostly rounding (`undecided`), and in outputs that jump (`jumping`), are counted apart.
    """
    shown = [one for one in planted if not one.undecided and not one.jumps]
    return {
        **_caught(shown),
        "undecided": _caught([one for one in planted if one.undecided and not one.jumps]),
        "jumping": _caught([one for one in planted if one.jumps]),
        "missed": sorted({f"{one.program}, output {one.output}" for one in shown if not one.judged.fails}),
    }


def markdown(found: Data) -> str:
    """Return the data as Markdown, for docs/evidence/numbers-measured.md."""
    parts = _what_ran, _cells, _alarms, _errors, _narrow, _coarse_errors, _curve, _changes
    return "\n\n".join(text for part in parts if (text := part(found)))


def _what_ran(found: Data) -> str:
    rest = ", ".join(f"{count} {verdict}" for verdict, count in found["not_compared"].items())
    missing = f" Without a golden: {', '.join(found['not_written'])}." if found["not_written"] else ""
    only = found["inputs_only"]
    inputs = f" With noise of inputs and compilations only: {', '.join(only)}." if only else ""
    cells = sum(row["cells"] for row in (*found["sets"], *found["processors"]))
    programs = sum(row["programs"] for row in found["sets"])
    return _paragraph(
        f"{programs} programs by jaxlib {', '.join(found['writers'])}. Read by {len(found['readers'])} releases from "
        f"{found['readers'][0]} to {found['readers'][-1]}: {cells:,} cells ran{f' (others: {rest})' if rest else ''}. "
        f"{found['planted_in_all']['errors'] + found['planted_in_all']['jumping']['errors']:,} errors were "
        f"planted.{missing}{inputs}"
    )


def _cells(found: Data) -> str:
    heading = "", "programs", "cells", "with other bits", "**false alarms**", f"largest, of {FACTOR:g} times the noise"
    named = [(TITLES[row["set"]], row) for row in found["sets"]]
    named += [(f"{row['written']} → {row['read']}", row) for row in found["processors"]]
    rows = [(title, *_row(row)) for title, row in named]
    return table((*heading, "fails fixed rtol and atol", "fails `assert_allclose`"), rows)


def _row(row: Data) -> tuple[str, ...]:
    counts = tuple(f"{row[name]:,}" for name in ("programs", "cells", "other_bits"))
    rules = tuple(f"{row[name]:,}" for name in ("fixed", "numpy"))
    return *counts, f"**{row['false_alarms']}**", f"{row['largest']:.2g}", *rules


def _alarms(found: Data) -> str:
    """Return a table of the alarms with their errors against float64, without documented changes."""
    shown = [one for one in found["alarms"] if one["counts_as"] != "documented"]
    if not shown:
        return _paragraph("No cell is called wrong but for the documented changes below.")
    text = _paragraph(
        f"Cells that are called wrong, and how far both sides are from float64. An alarm is no false one only where "
        f"the reader's largest error in that output is more than {CLEARLY:g} times the writer's:"
    )
    rows = [
        (
            one["program"],
            f"{one['writer']} → {one['reader']}{' ' + one['processors'] if one['processors'] else ''}",
            f"{one['times_the_noise']:.3g}",
            "; ".join(one["float64"]),
            one["counts_as"],
        )
        for one in shown
    ]
    return f"{text}\n\n{table(('program', 'cell', 'times the noise', 'float64', 'counts as'), rows)}"


def _errors(found: Data) -> str:
    """Return the table of planted errors: by kind, the share that each rule catches."""
    rows = [(KINDS[row["kind"]], *_shares(row)) for row in found["planted"]]
    rows.append(("**all**", *_shares(found["planted_in_all"])))
    heading = "caught errors", "number", f"noise, {FACTOR:g} times", "fixed rtol and atol"
    return table((*heading, "`assert_allclose`"), rows)


def _narrow(found: Data) -> str:
    """Return the table of errors planted in the last held-out set of programs, by how a program uses a narrow type."""
    rows = [(title, *_shares(found["planted_by_narrow"][narrow])) for narrow, title in NARROW.items()]
    return table(
        (
            "caught in the last held-out set",
            "errors",
            f"noise, {FACTOR:g} times",
            "fixed rtol and atol",
            "`assert_allclose`",
        ),
        rows,
    )


def _coarse_errors(found: Data) -> str:
    rows = [
        (
            COARSE[row["kind"]],
            f"{row['errors']:,}",
            _percent(row, "noise"),
            _fraction(row["undecided"]),
            _fraction(row["jumping"]),
        )
        for row in found["coarse"]
    ]
    heading = (
        "one output, wrong as a whole",
        "number",
        "caught",
        "of outputs that are mostly rounding",
        "of outputs that jump",
    )
    missed = [f"{COARSE[row['kind']]}: {'; '.join(row['missed'])}" for row in found["coarse"] if row["missed"]]
    return "\n\n".join([table(heading, rows), *(_paragraph(f"Missed, {text}.") for text in missed)])


def _fraction(row: Data) -> str:
    return f"{row['noise']:,} of {row['errors']:,}"


def _shares(row: Data) -> tuple[str, ...]:
    """Return the number of errors, and the share of them that each rule catches, as texts."""
    return f"{row['errors']:,}", *(_percent(row, rule) for rule in ("noise", "fixed", "numpy"))


def _percent(row: Data, rule: str) -> str:
    """Return the share of errors that a rule catches in percent, rounded down, so that it is 100 % only for all."""
    return f"{100 * row[rule] // row['errors']} %" if row["errors"] else "–"


def _curve(found: Data) -> str:
    rows = [(f"{row['times']}", f"{row['cells']}", f"{row['missed']}") for row in found["curve"]]
    return table(("times the noise", "cells beyond, none documented", "errors missed"), rows)


def _changes(found: Data) -> str:
    """Return a paragraph for each documented change: how many cells show it, and how many exceed the noise."""
    return "\n\n".join(
        _paragraph(
            f"Left out of the false alarms, a documented change: {row['reason']} ({', '.join(row['names'])}). Of "
            f"{row['cells']} cells {row['numerics']} are beyond {FACTOR:g} times the noise."
        )
        for row in found["changes"]
    )


def details(findings: Findings, most: int) -> list[str]:
    """Return a line for each of the `most` cells with the largest errors, and for each planted error not caught."""
    ranked = sorted(findings.cells, key=lambda cell: -cell.judged.largest)[:most]
    missed = [planted for planted in findings.planted if not planted.judged.fails]
    return [*map(_line, ranked)] + [
        f"missed, {one.judged.largest:.3g} times the noise: {one.kind} in {one.program} {one.writer}"
        f"{'' if one.output is None else f' output {one.output}'}{', which jumps' if one.jumps else ''}"
        f"{', which is undecided' if one.undecided else ''}"
        for one in sorted(missed, key=lambda one: (one.kind, one.program))
    ]


def _line(cell: Cell) -> str:
    alarm = _alarm(cell)
    why = "; ".join(alarm["float64"])
    judged = f"{', ' + alarm['counts_as'] if cell.judged.fails else ''}{': ' + why if why else ''}"
    processors = f" {alarm['processors']}" if alarm["processors"] else ""
    return (
        f"{cell.judged.largest:8.3g} times the noise: {cell.program} {cell.writer} -> {cell.reader}{processors} "
        f"({cell.verdict}{judged})"
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _releases(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=lambda name: [int(part) for part in name.split(".")])
