"""The shipped calendar, and the one before its last three releases."""

from pathlib import Path

import msgspec

from export_core.releases import Calendar, load_calendar
from export_core.releases.calendar import CalendarFile, StableHloVersions

SHIPPED = Path(__file__).parents[2] / "export_core" / "releases" / "data" / "releases.yaml"
LAST = ("0.11.2", "0.12.0", "0.12.0.1")
CALENDAR = load_calendar()


def shortened() -> str:
    """Return the text of the shipped calendar without its last three releases."""
    gone = tuple(f'  "{version}": ' for version in LAST)
    return "".join(line for line in SHIPPED.read_text().splitlines(keepends=True) if not line.startswith(gone))


def calendar_of(text: str) -> Calendar:
    file = msgspec.yaml.decode(text, type=CalendarFile)
    return Calendar(file.jaxlib, file.jax, file.requirements)


def measured(calendar: Calendar, jaxlib: str) -> StableHloVersions:
    """Return a jaxlib's StableHLO versions from the shipped calendar, which a matrix test measures again."""
    return CALENDAR.jaxlib[jaxlib].stablehlo
