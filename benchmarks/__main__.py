"""The command of the benchmarks: it prints one table of ratios, with the numbers behind them and the machine."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    again,
    cells,
    cold_machine,
    cost,
    daily,
    from_nothing,
    gate,
    growth,
    inventory,
    limits,
    page,
    peers,
    plugin_load,
    reading,
    runtimes,
    throughput,
    weights,
    writing,
)
from benchmarks.budgets import budgets_table
from benchmarks.line import Line
from benchmarks.page_table import COLUMNS, PageTable, columns, mark

ROOT = Path(__file__).parents[1]


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
        help="some of them: "
        "plugin,daily,reading,inventory,cells,environments,cost,again,throughput,gate,from_nothing,peers,growth,limits,page,weights,writing,runtimes",
    )
    parser.add_argument(
        "--goldens", type=Path, default=ROOT / "golden", help="the goldens that the archive of an inventory is made of"
    )
    parser.add_argument(
        "--docs", type=Path, help="write the lines into the table of this page too: docs/explanation/performance.md"
    )
    parser.add_argument("--budgets", action="store_true", help="print all budgets, and measure nothing")
    options = parser.parse_args()
    if options.budgets:
        print(budgets_table(), end="")
        return 0
    kinds: dict[str, Callable[[], list[Line]]] = {
        "plugin": lambda: plugin_load.measure(options.runs),
        "daily": daily.measure,
        "reading": lambda: reading.measure(options.runs),
        "inventory": lambda: inventory.measure(options.goldens.resolve()),
        "cells": lambda: cells.measure(options.rounds),
        "environments": cold_machine.measure,
        "cost": lambda: cost.measure(options.rounds),
        "again": lambda: again.measure(options.readers),
        "throughput": throughput.measure,
        "gate": gate.measure,
        "from_nothing": lambda: from_nothing.measure(options.rounds),
        "peers": peers.measure,
        "growth": growth.measure,
        "limits": limits.measure,
        "page": page.measure,
        "weights": weights.measure,
        "writing": lambda: writing.measure(options.rounds),
        "runtimes": lambda: runtimes.measure(options.rounds),
    }
    try:
        # Before a quarter of an hour of measuring, so that a wrong page is reported at once.
        docs = PageTable.of(options.docs) if options.docs else None
    except (OSError, ValueError) as error:
        parser.error(f"--docs: {error}")
    # With this variable every process would compile the bytecode anew, which a user's processes do not.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    chosen = options.only.split(",") if options.only else list(kinds)
    if unknown := set(chosen) - set(kinds):
        parser.error(f"--only: expected some of {', '.join(kinds)}, found {', '.join(sorted(unknown))}")
    measured: dict[str, list[Line]] = {}
    for kind in chosen:
        lines = measured[kind] = kinds[kind]()
        for line in lines:  # printed at once, since a later kind may fail
            print(f"{kind}: {line.what}: {line.measured}, {line.against}: {line.result} {mark(line)}", flush=True)
    machine = f"{platform.platform()}, {processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table(*COLUMNS, title="budgets")
    for line in (every := [line for lines in measured.values() for line in lines]):
        table.add_row(*columns(line))
    Console(width=150).print(table)
    print(machine)
    if docs:
        docs.write(measured, machine)
    return 0 if all(line.ok for line in every) else 1


def processor() -> str:
    """Return the processor's name by /proc/cpuinfo, or else its architecture."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


sys.exit(main())
