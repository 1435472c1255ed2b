"""The messages by which releases are known to refuse an artifact, or to say that they need a driver.

Both tables ship with this package. Each entry names the releases that are known to say it: the same words from any
other release are an error, which is judged.
"""

from __future__ import annotations

import datetime
import functools
import re
from importlib import resources

import msgspec


class KnownMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message, as a regular expression, of releases built from `since` to `until`, both days included."""

    message: str
    meaning: str
    since: datetime.date | None = None
    until: datetime.date | None = None

    def is_said(self, text: str, built: datetime.date) -> bool:
        """Whether a release built on this day is known to say this."""
        known = (self.since is None or self.since <= built) and (self.until is None or built <= self.until)
        return known and bool(re.search(self.message, text))


class Refusal(KnownMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What jax releases raise on purpose: "I do not take this artifact". Their days are those of jax."""

    stage: str
    exception: str


class NeedsDriver(KnownMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What releases say in compile mode where only a driver or a device could help. Their days are those of jaxlib."""

    platform: str
    stages: tuple[str, ...]


def find_refusal(stage: str, exception: str, message: str, jax_built: datetime.date) -> Refusal | None:
    """The table's entry for this error, or None: then it is no refusal but an error."""
    return next(
        (
            entry
            for entry in load_refusals()
            if (stage, exception) == (entry.stage, entry.exception) and entry.is_said(message, jax_built)
        ),
        None,
    )


def find_driver_need(platform: str, stage: str, message: str, built: datetime.date) -> NeedsDriver | None:
    """The table's entry for this error in compile mode, or None: then it is an error of the artifact."""
    return next(
        (
            entry
            for entry in load_driver_needs()
            if platform == entry.platform and stage in entry.stages and entry.is_said(message, built)
        ),
        None,
    )


@functools.cache
def load_refusals() -> tuple[Refusal, ...]:
    """The table of refusals."""
    return msgspec.yaml.decode(_table("refusals.yaml"), type=tuple[Refusal, ...])


@functools.cache
def load_driver_needs() -> tuple[NeedsDriver, ...]:
    """The table of what cannot be compiled without a driver."""
    return msgspec.yaml.decode(_table("driverless.yaml"), type=tuple[NeedsDriver, ...])


def _table(name: str) -> bytes:
    return resources.files("export_core.matrix").joinpath("data", name).read_bytes()
