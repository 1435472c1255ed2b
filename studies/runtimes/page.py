"""Writes the tables of docs/explanation/runtimes.md out of the record, the runtimes' own files and explained.yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from export_core.base.phrases import plural
from export_core.matrix import Verdict
from export_core.releases.runtimes import known_runtimes
from studies.runtimes.record import LETTERS, SEVERAL_DEVICES, Explained, Record

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "runtimes.md"
MARKED = re.compile(r"(<!-- nox -s runtimes, (\w+): begin -->\n).*?(<!-- nox -s runtimes, \2: end -->)", re.DOTALL)
REASONS = (
    (
        "a calling convention",
        "a newer calling convention",
        "export with `jax_export_calling_convention_version=9`, or convert",
    ),
    ("Shardy's dialect", "Shardy's dialect", "export with `jax_use_shardy_partitioner=False`, or convert"),
    ("StableHLO", "newer StableHLO", "take a newer release, or convert"),
    ("a LAPACK call|a custom call", "a custom call", "export with functions of `lax` that need none"),
    ("a check of symbolic|symbolic shapes", "symbolic shapes", "export with fixed shapes"),
    ("a dtype|4-bit", "a dtype", "export with another dtype"),
    (SEVERAL_DEVICES, "several devices", "export for one device"),
    ("tokens", "ordered effects", "export without ordered effects"),
    ("an operation|a loop", "an operation", "write it with others"),
)
"""How what a refusal means begins, as a regular expression; the same in few words; and what to do about it."""
WHOSE = {"runtime": "the runtime's", "caller": "the caller's", "project": "this project's"}


def page_text(text: str, record: Record, explained: Sequence[Explained]) -> str:
    """The page with its tables written anew."""
    tables = {
        "table": verdict_table(record),
        "promises": promise_table(record),
        "refused": refusal_table(record),
        "numerics": numerics_table(record, explained),
        "faults": fault_list(explained),
    }
    return MARKED.sub(lambda found: f"{found[1]}{tables[found[2]]}\n{found[3]}", text)


def table_of(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [[str(cell).replace("|", "\\|") for cell in row] for row in (head, ["-"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict_table(record: Record) -> str:
    """How many goldens ended how, in each reader."""
    writers = sorted({re.sub(r"-.*", "", golden.rpartition("/")[2]) for golden in record.goldens}, key=Version)
    rows = [
        [name.replace("==", " "), reader.cells, *map(reader.count, LETTERS), reader.promised, reader.broken]
        for name, reader in record.readers.items()
    ]
    head = ("reader", "cells", *(verdict.replace("_", " ") for verdict in LETTERS), "promised", "broken")
    goldens = plural(len(record.goldens), "golden")
    return f"{goldens} by jaxlib {', '.join(writers)}, as of {record.as_of}:\n\n{table_of(head, rows)}"


def newest_readers(record: Record) -> list[str]:
    """The newest release of each runtime in the record."""
    return list({name.partition("==")[0]: name for name in record.readers}.values())


def promise_table(record: Record) -> str:
    """What each runtime promises, and where it says so."""
    rows = []
    for name in dict.fromkeys(reader.partition("==")[0] for reader in record.readers):
        own = known_runtimes()[name].promise
        days = f"{own.backward_days} days after, {own.forward_days} before" if own else "nothing that was found"
        rows.append([name, days, f"[source]({own.source})" if own else ""])
    return table_of(("runtime", "built up to … the writer's jaxlib", ""), rows)


def refusal_table(record: Record) -> str:
    """Why artifacts are refused by the newest release of each runtime, and what to do."""
    newest = newest_readers(record)
    rows = []
    for pattern, words, remedy in REASONS:
        counts = [
            sum(count for meaning, count in record.readers[name].refusals.items() if re.match(pattern, meaning))
            for name in newest
        ]
        rows.append([words, *(count or "" for count in counts), remedy])
    return table_of(("what stands in the way", *(name.replace("==", " ") for name in newest), "what to do"), rows)


def numerics_table(record: Record, explained: Sequence[Explained]) -> str:
    """Whose fault it is that numbers differ."""
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
        rows.append([readers, len(found), WHOSE[one.whose], one.why, one.evidence])
    total = sum(reader.count(Verdict.NUMERICS) for reader in record.readers.values())
    head = ("in", "cells", "whose fault", "what is wrong", "what shows it")
    return f"{plural(total, 'cell')} of all:\n\n{table_of(head, rows)}"


def fault_list(explained: Sequence[Explained]) -> str:
    """The commands that show the faults of runtimes with these alone."""
    commands = [
        f"jaxexport explain '{one.show}' --bundle bundle-{number}"
        for number, one in enumerate((one for one in explained if one.show), 1)
    ]
    return "\n".join(["```sh", *commands, "```"])
