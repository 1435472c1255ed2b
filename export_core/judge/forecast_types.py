"""What a forecast is made of: days, events, obligations; what `jaxexport forecast --json` prints."""

from __future__ import annotations

import datetime
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What happens on a day."""

    LEAVES = "leaves"
    """Goldens of a writer: no jaxlib built from this day on is promised to run them."""
    CLOSES = "closes"
    """A reader: no jaxlib built from this day on is promised to be read by it."""
    RETIRES = "retires"
    """A reader: no new jaxlib must run what its release exports, nor a golden that it must run."""
    PRUNABLE = "prunable"
    """Goldens that nothing requires from this day on."""
    EXPIRES = "expires"
    """A known failure or a quirk: its last day."""
    TARGET = "deployment target"
    """A deployment target of the policy: its obligation begins, or has ended."""
    CUSTOM_CALL = "custom_call"
    """A declared change of a custom call: its next phase begins."""


class Event(msgspec.Struct, frozen=True):
    """One thing that happens."""

    kind: Kind
    """What happens. `kind` and `subject` stay the same where a later forecast moves the event to another day."""
    subject: str
    """A jaxlib, a known failure, a deployment target or a custom call."""
    text: str
    """What happens, in words."""
    goldens: tuple[str, ...] = ()
    """The goldens that it is about."""


class Generation(msgspec.Struct, frozen=True):
    """The goldens of a writer with their window."""

    writer: str
    """The jaxlib that wrote them."""
    built: datetime.date
    """The day on which it was built."""
    leaves: datetime.date
    """No jaxlib built from this day on is promised to run them."""
    goldens: int
    """How many goldens."""


class Obligations(msgspec.Struct, frozen=True):
    """What a jaxlib built on a day must do, given the goldens and releases that exist."""

    runs: tuple[str, ...]
    """The writers whose goldens it must run."""
    goldens: int
    """How many goldens those are."""
    readers: tuple[str, ...]
    """The published readers in which its own exports must run."""
    cases: int
    """How many cases it has goldens to write of."""
    unwritten: dict[str, int]
    """For each published writer whose artifacts it must run: the number of cases without a golden by it."""


class DeployedReader(msgspec.Struct, frozen=True):
    """A reader in use."""

    jaxlib: str
    """Its jaxlib."""
    built: datetime.date
    """The day on which that was built."""
    promised_until: datetime.date
    """It is promised to run what jaxlibs built until this day export."""
    writer: str
    """The newest published release."""
    writer_built: datetime.date
    """The day on which that was built."""
    promised: bool
    """Whether it is promised to run what the newest release exports."""
    days: int
    """The days from the build of the newest release to `promised_until`; negative where that day has passed."""
    last_writer: str
    """The newest release whose exports it is promised to run."""
    targets: tuple[str, ...] = ()
    """The deployment targets of the policy in which it runs."""


class ForecastDay(msgspec.Struct, frozen=True):
    """A day on which something happens."""

    day: datetime.date
    """The day."""
    in_days: int
    """The days until then, from `as_of`."""
    events: tuple[Event, ...]
    """What happens."""
    release: Obligations
    """What a jaxlib built on that day must do."""


class Forecast(msgspec.Struct, frozen=True):
    """What `jaxexport forecast --json` prints: the days ahead on which something happens."""

    as_of: datetime.date
    """The first day."""
    until: datetime.date
    """The last day."""
    goldens: int
    """How many goldens there are."""
    cases: int
    """How many cases there are."""
    generations: tuple[Generation, ...]
    """All writers by build date, also those whose goldens have left the window."""
    deployed: tuple[DeployedReader, ...]
    """The readers in use."""
    release: Obligations
    """What a jaxlib built on `as_of` must do."""
    prunable: tuple[str, ...]
    """Goldens that nothing requires on that day."""
    days: tuple[ForecastDay, ...]
    """The days, in order."""
