"""The command of the benchmarks: one table of ratios, with the numbers behind them and the machine."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    again,
    cells,
    cold_machine,
    gate,
    growth,
    limits,
    page,
    peers,
    plugin_load,
    reading,
    throughput,
    writing,
)
from benchmarks.line import Line
from export_core.atomic import write_whole

BEGIN, END = "<!-- nox -s bench: begin -->\n", "<!-- nox -s bench: end -->\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=31, help="runs of each process; five times as many pairs of pytest runs"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds over all goldens that this jaxlib reads, and of writing"
    )
    parser.add_argument("--readers", type=int, default=8, help="readers of the matrix that is run again")
    parser.add_argument(
        "--only",
        help="some of them: plugin,reading,cells,environments,again,throughput,gate,peers,growth,limits,page,writing",
    )
    parser.add_argument(
        "--docs", type=Path, help="write the table into this page too, such as docs/explanation/performance.md"
    )
    options = parser.parse_args()
    kinds: dict[str, Callable[[], list[Line]]] = {
        "plugin": lambda: plugin_load.measure(options.runs),
        "reading": lambda: reading.measure(options.runs),
        "cells": lambda: cells.measure(options.rounds),
        "environments": cold_machine.measure,
        "again": lambda: again.measure(options.readers),
        "throughput": throughput.measure,
        "gate": gate.measure,
        "peers": peers.measure,
        "growth": growth.measure,
        "limits": limits.measure,
        "page": page.measure,
        "writing": lambda: writing.measure(options.rounds),
    }
    # With this variable every process would compile anew what a user's processes find compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    chosen = options.only.split(",") if options.only else list(kinds)
    if unknown := set(chosen) - set(kinds):
        parser.error(f"--only: expected some of {', '.join(kinds)}, found {', '.join(sorted(unknown))}")
    measured = [line for kind in chosen for line in kinds[kind]()]
    machine = f"{platform.platform()}, {processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table("what", "measured", "against", "result", "budget", "", title="budgets")
    for line in measured:
        table.add_row(line.what, line.measured, line.against, line.result, line.budget, mark(line))
    Console(width=150).print(table)
    print(machine)
    if options.docs:
        write_table(options.docs, measured, machine)
    return 0 if all(line.ok for line in measured) else 1


def mark(line: Line) -> str:
    """``ok`` or ``MISSED``; nothing where there is no budget."""
    return "" if not line.budget else "ok" if line.ok else "MISSED"


def processor() -> str:
    """What /proc/cpuinfo calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def write_table(page: Path, measured: Sequence[Line], machine: str) -> None:
    """Replace the table of a page, all or nothing."""
    rows = [(line.what, line.measured, line.against, line.result, line.budget, mark(line)) for line in measured]
    table = "".join(
        f"| {' | '.join(row)} |\n"
        for row in (("what", "measured", "against", "result", "budget", ""), ("-",) * 6, *rows)
    )
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    write_whole(page, [f"{before}{BEGIN}{table}\n{machine}\n{END}{after}".encode()])


sys.exit(main())
