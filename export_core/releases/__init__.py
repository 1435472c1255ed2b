"""What dates: the calendar of releases, and the windows of the promise."""

from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, Release, load_calendar
from export_core.releases.errors import ReleaseError
from export_core.releases.windows import Direction, Promise, Windows, parse_day, promise

__all__ = [
    "Calendar",
    "Direction",
    "JaxRelease",
    "JaxlibRelease",
    "Promise",
    "Release",
    "ReleaseError",
    "Windows",
    "load_calendar",
    "parse_day",
    "promise",
]
