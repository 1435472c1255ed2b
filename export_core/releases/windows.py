"""The windows of the promise: whether a pair of build dates is inside, and until when."""

from __future__ import annotations

import datetime
import functools
from enum import StrEnum

from export_core.base.named_tuple import NamedTuple
from export_core.releases.errors import ReleaseError

_LONGEST = 36_500  # Days: a century, as in a policy, so that no date leaves the range of those of Python.


class Direction(StrEnum):
    """Whether a reader was built after the writer of an artifact, before it, or on the same day."""

    BACKWARD = "backward"  # The reader was built after the writer.
    FORWARD = "forward"  # The reader was built before the writer.
    SAME = "same"  # Both were built on the same day: they promise each other everything.


class Windows(NamedTuple):
    """The windows of JAX's promise, in days between the build dates of both jaxlibs.

    Source: the jax.export documentation, "6 months backward compatibility" and "3 weeks forward compatibility",
    counted in jaxlib release builds.
    """

    backward_days: int = 180  # How long after the writer a reader may be built.
    forward_days: int = 21  # How long before the writer a reader may be built.


class Promise(NamedTuple):
    """The answer to whether a reader is promised to run an artifact, and until when."""

    direction: Direction  # Whether the reader was built after the writer, before it, or on the same day.
    days: int  # Their distance, never negative.
    promised: bool  # Whether the reader is inside the window.
    until: datetime.date
    """The last build date of a reader in this direction that is promised: the later end of the window for backward and
    same, the earlier end for forward."""


@functools.lru_cache(maxsize=1 << 14)  # a run needs the same few hundred pairs again and again
def promise(writer_built: datetime.date, reader_built: datetime.date, windows: Windows | None) -> Promise:
    """Return whether a reader is promised to run an artifact, by the build dates of both.

    Windows include their ends; without windows, nothing is promised. Raises `ReleaseError` for a wrong argument.
    """
    # Only days: a time of day would make the distance depend on the clock.
    for name, built in (("writer_built", writer_built), ("reader_built", reader_built)):
        if type(built) is not datetime.date:
            expected = "expected the build date of a jaxlib, a datetime.date, such as load_calendar().built('0.12.0')"
            raise ReleaseError(f"promise: {name}: {expected}, found {built!r}.")
    if windows is not None and not (isinstance(windows, tuple) and len(windows) == len(Windows._fields)):
        raise ReleaseError(f"promise: windows: expected Windows(180, 21) or None, found {windows!r}.")
    windows = windows and Windows(*windows)
    for name, days in windows._asdict().items() if windows else ():
        if type(days) is not int or not 0 <= days <= _LONGEST:
            expected = f"expected a whole number of days from 0 to {_LONGEST}, such as Windows(180, 21)"
            raise ReleaseError(f"promise: windows: {name}: {expected}, found {days!r}.")
    days = (reader_built - writer_built).days
    if windows is None:
        direction = Direction.FORWARD if days < 0 else Direction.BACKWARD if days else Direction.SAME
        return Promise(direction, abs(days), False, writer_built)
    backward_end = writer_built + datetime.timedelta(days=windows.backward_days)
    if days < 0:
        forward_end = writer_built - datetime.timedelta(days=windows.forward_days)
        return Promise(Direction.FORWARD, -days, -days <= windows.forward_days, forward_end)
    # Two releases of one day promise each other everything: no window is shorter than 0 days.
    direction = Direction.BACKWARD if days else Direction.SAME
    return Promise(direction, days, days <= windows.backward_days, backward_end)


def parse_day(text: str) -> datetime.date:
    """Return the day that the value of --as-of names, such as ``2026-10-25``.

    Raises `ReleaseError` for text that is not a date.
    """
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ReleaseError(f"--as-of: expected a date such as 2026-10-25, found {text!r}.") from None
