"""The maker of the short calendars that `jaxexport inspect` reads: `python -m tools.calendar_entries`.

Run it after every change of export_core/releases/data/releases.yaml or export_core/runtimes/NAME_releases.yaml.
"""

from __future__ import annotations

import json
from pathlib import Path

from export_core import runtimes
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import FILE, RUNTIMES, RuntimeEntries, calendar_entries, runtime_entries
from export_core.releases.runtimes import load_runtime
from tools import renew


def entries_of_shipped_runtimes() -> dict[str, RuntimeEntries]:
    """Return the releases of each runtime that this package comes with, by the runtime's name."""
    folder = Path(runtimes.__file__).parent
    shipped = (load_runtime(path) for path in sorted(folder.glob("*.yaml")) if not path.stem.endswith("_releases"))
    in_order = sorted(shipped, key=lambda runtime: (runtime.releases_of, runtime.name))
    return {runtime.name: runtime_entries(runtime) for runtime in in_order}


def main() -> None:
    """Write data/entries.json with an entry on each line, and data/runtimes.json with a runtime on each line."""
    lines = ",\n".join(f" {json.dumps(entry.row)}" for entry in calendar_entries(load_calendar()))
    renew(Path(FILE), f"[\n{lines}\n]\n")
    runtimes = entries_of_shipped_runtimes().items()
    rows = {name: own if isinstance(own, str) else [entry.row for entry in own] for name, own in runtimes}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(own)}" for name, own in rows.items())
    renew(Path(RUNTIMES), f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
