"""Run every benchmark and print one table of ratios, with the numbers behind them and the machine."""

from __future__ import annotations

import argparse
import os
import platform
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import again, cells, plugin_load, reading


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="runs of each pytest process (the fastest counts)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all goldens that this jaxlib reads")
    parser.add_argument(
        "--readers", type=int, default=25, help="readers of the matrix that is run again; 80 goldens in each"
    )
    options = parser.parse_args()
    measured = [
        *plugin_load.measure(options.runs),
        *reading.measure(options.runs),
        *cells.measure(options.rounds),
        *again.measure(options.readers),
    ]
    table = Table("what", "measured", "against", "result", "budget", "", title="budgets")
    for line in measured:
        table.add_row(line.what, line.measured, line.against, line.result, line.budget, "ok" if line.ok else "MISSED")
    Console(width=150).print(table)
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    return 0 if all(line.ok for line in measured) else 1


sys.exit(main())
