"""Making of the calendar's short form, which `jaxexport inspect` reads: `python -m tools.calendar_entries`.

Run it after every change of export_core/releases/data/releases.yaml.
"""

from __future__ import annotations

import json
from pathlib import Path

from export_core.releases import load_calendar
from export_core.releases.entries import FILE, calendar_entries


def main() -> None:
    """Write data/entries.json, an entry a line."""
    lines = ",\n".join(f" {json.dumps(entry)}" for entry in calendar_entries(load_calendar()))
    Path(FILE).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
