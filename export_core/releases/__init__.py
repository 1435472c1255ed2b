"""Dates: the calendar of releases, and the windows of the promise.

A name is imported from its module when it is first used: `jaxexport inspect` needs only `releases.calendar_entries`,
and the calendar's libraries take longer to load than an artifact takes to read.
"""

from __future__ import annotations

from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from export_core.releases import calendar, errors, windows

        # All names at once: each later import finds its name here, and does not ask again.
        modules = (calendar, errors, windows)
        globals().update({one: getattr(module, one) for module in modules for one in __all__ if hasattr(module, one)})
        return globals()[name]
