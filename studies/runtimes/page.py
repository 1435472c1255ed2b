"""The tables of docs/explanation/runtimes.md, made from the record, the files of the runtimes and explained.yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from export_core.base.text import plural
from export_core.matrix import Verdict
from export_core.releases.runtimes import known_runtimes
from studies.runtimes.record import SEVERAL_DEVICES, Explained, Record
from tools.marked import filled, table

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "runtimes.md"
REASONS = (
    (
        "a calling convention",
        "a newer calling convention",
        "export with `jax_export_calling_convention_version=9`, or convert",
    ),
    ("Shardy's dialect", "Shardy's dialect", "export with `jax_use_shardy_partitioner=False`, or convert"),
    ("StableHLO", "newer StableHLO", "take a newer release, or convert"),
    ("a LAPACK call|(a|the) custom call", "a custom call", "export with functions of `lax` that need none"),
    ("a check of symbolic|symbolic shapes", "symbolic shapes", "export with fixed shapes"),
    ("a dtype|4-bit|an array of 4-bit|a function that IREE", "a dtype", "export with another dtype"),
    (SEVERAL_DEVICES, "several devices", "export for one device"),
    ("tokens", "ordered effects", "export without ordered effects"),
    ("a choice between branches", "branches by platform", "export for one platform"),
    ("an operation|a loop|a transposed convolution|a reduction", "an operation", "write it with others"),
)
"""The reasons of refusals, each with a pattern for the beginning of the refusal's meaning, a name, and what to do."""


def page_text(text: str, record: Record, explained: Sequence[Explained]) -> str:
    """Return `text`, the page, with its tables replaced by new ones."""
    tables = {
        "table": verdict_table(record),
        "promises": promise_table(record),
        "refused": refusal_table(record),
        "numerics": numerics_table(record, explained),
        "fault": first_fault(explained),
    }
    return filled(text, tables)


def verdict_table(record: Record) -> str:
    """Return a table with a row for each reader, which counts the verdicts of the goldens."""
    writers = sorted({re.sub(r"-.*", "", golden.rpartition("/")[2]) for golden in record.goldens}, key=Version)
    shown = (Verdict.PASS, Verdict.NUMERICS, Verdict.REFUSED)
    rows = []
    for name, reader in record.readers.items():
        counts = [reader.count(verdict) for verdict in shown]
        others = reader.cells - sum(counts) - reader.count(Verdict.NOT_RUN)
        rows.append([name.replace("==", " "), *counts, others, reader.promised, reader.broken])
    head = ("reader", *shown, "other failures", "promised", "broken")
    goldens = plural(len(record.goldens), "golden")
    return f"{goldens} by jaxlib {', '.join(writers)}, as of {record.as_of}:\n\n{table(head, rows)}"


def newest_readers(record: Record) -> list[str]:
    """Return the newest release of each runtime in the record, without settings."""
    return list({name.partition("==")[0]: name for name in record.readers if "[" not in name}.values())


def promise_table(record: Record) -> str:
    """Return a table of the runtimes' promises, each with its source; runtimes with the same promise share a row."""
    runtimes = known_runtimes()
    named = [runtimes[name] for name in dict.fromkeys(reader.partition("==")[0] for reader in record.readers)]
    rows = []
    for own in dict.fromkeys(runtime.promise for runtime in named):
        names = ", ".join(runtime.name for runtime in named if runtime.promise == own)
        days = f"{own.backward_days} days after, {own.forward_days} before" if own else "nothing that was found"
        rows.append([names, days, f"[source]({own.source})" if own else ""])
    return table(("runtime", "built up to … the writer's jaxlib", ""), rows)


def refusal_table(record: Record) -> str:
    """Return a table of reasons to refuse: how many cells of each runtime's newest release have it, and what to do."""
    newest = newest_readers(record)
    rows = []
    for pattern, words, remedy in REASONS:
        counts = [
            sum(count for meaning, count in record.readers[name].refusals.items() if re.match(pattern, meaning))
            for name in newest
        ]
        if any(counts):
            rows.append([words, *(count or "" for count in counts), remedy])
    return table(("what stands in the way", *(name.replace("==", " ") for name in newest), "what to do"), rows)


def numerics_table(record: Record, explained: Sequence[Explained]) -> str:
    """Return a table with a row for each explanation of wrong numbers: its readers, and the number of cells."""
    rows = []
    for one in explained:
        found = [
            (golden, name)
            for name, reader in record.readers.items()
            for golden in reader.numerics
            if one.is_about(golden, name)
        ]
        if not found:  # in a record of some readers
            continue
        readers = ", ".join(dict.fromkeys(name.replace("==", " ") for _, name in found))
        rows.append([readers, len(found), one.why])
    return table(("in", "cells", "what is wrong"), rows)


def first_fault(explained: Sequence[Explained]) -> str:
    """Return the command that shows the first explained fault by means of its runtime alone, as a block of Markdown."""
    cell = next(one.show for one in explained if one.show)
    return f"```sh\njaxexport explain '{cell}' --bundle bundle\n```"
