"""What can a release not compile without a driver? Such a message says nothing of the artifact."""

from __future__ import annotations

import datetime
import functools
import re
from importlib import resources

import msgspec


class Driverless(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What releases with a jaxlib built from `since` to `until` (both included) say where only a driver or a device could help."""

    platform: str
    stages: tuple[str, ...]
    message: str
    meaning: str
    since: datetime.date | None = None
    until: datetime.date | None = None

    def matches(self, platform: str, stage: str, message: str, built: datetime.date) -> bool:
        """Whether this is what was said, by a release that is known to say it."""
        known = (self.since is None or self.since <= built) and (self.until is None or built <= self.until)
        return known and platform == self.platform and stage in self.stages and bool(re.search(self.message, message))


def find_driverless(platform: str, stage: str, message: str, built: datetime.date) -> Driverless | None:
    """The table's entry for this error in compile mode, or None: then it is one of the artifact."""
    return next((entry for entry in load_driverless() if entry.matches(platform, stage, message, built)), None)


@functools.cache
def load_driverless() -> tuple[Driverless, ...]:
    """The table that ships with this package."""
    text = resources.files("export_core.matrix").joinpath("data/driverless.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=tuple[Driverless, ...])
