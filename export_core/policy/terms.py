"""The terms for describing an artifact, which a project's policy sets: releases, windows, allowed custom calls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.releases.calendar_entries import CalendarEntry
from export_core.releases.windows import Windows

if TYPE_CHECKING:
    from export_core.artifact.writers import WrittenBy


class Terms(NamedTuple):
    """The part of a project's policy that decides what is promised for an artifact.

    It has all releases, oldest build first, the windows, and the allowed custom-call targets with reasons.
    """

    releases: tuple[CalendarEntry, ...]
    windows: Windows = Windows()
    allow: Mapping[str, str] = {}


class PromisedDays(NamedTuple):
    """The first and last build dates of readers that are promised to read an artifact.

    If its writer is not known exactly, each date is given for the earliest and for the latest possible writer.
    """

    backward_days: int  # The length of the backward window.
    forward_days: int  # The length of the forward window.
    since: tuple[str, str]  # The first day, by the earliest and by the latest writer.
    until: tuple[str, str]  # The last day, by the earliest and by the latest writer.


def promised_days(writer: WrittenBy, terms: Terms) -> PromisedDays | None:
    """Return the first and last build dates of readers promised to read an artifact; None without a possible writer."""
    built = sorted(date.fromisoformat(x.built) for x in terms.releases if x.jaxlib in writer.possible)
    if not built:
        return None
    backward, forward = (timedelta(days=days) for days in terms.windows)
    first, last = built[0], built[-1]  # with several possible writers the promise is a range
    since, until = (str(first - forward), str(last - forward)), (str(first + backward), str(last + backward))
    return PromisedDays(*terms.windows, since, until)
