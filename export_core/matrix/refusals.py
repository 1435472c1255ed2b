"""What counts as refused: messages by which releases are known to refuse an artifact, or to need a driver.

They are in data/, each with the releases that say it: the same words from any other release are an error, which is
judged.
"""

import datetime
import functools
import re
from pathlib import Path

import msgspec

_DATA = Path(__file__).with_name("data")


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
    entries = (entry for entry in load_refusals() if (entry.stage, entry.exception) == (stage, exception))
    return next((entry for entry in entries if entry.is_said(message, jax_built)), None)


def find_driver_need(platform: str, stage: str, message: str, built: datetime.date) -> NeedsDriver | None:
    """The table's entry for this error in compile mode, or None: then it is an error of the artifact."""
    entries = (entry for entry in load_driver_needs() if platform == entry.platform and stage in entry.stages)
    return next((entry for entry in entries if entry.is_said(message, built)), None)


@functools.cache
def load_refusals() -> tuple[Refusal, ...]:
    """The table of refusals."""
    return msgspec.yaml.decode((_DATA / "refusals.yaml").read_bytes(), type=tuple[Refusal, ...])


@functools.cache
def load_driver_needs() -> tuple[NeedsDriver, ...]:
    """The table of what cannot be compiled without a driver."""
    return msgspec.yaml.decode((_DATA / "driverless.yaml").read_bytes(), type=tuple[NeedsDriver, ...])
