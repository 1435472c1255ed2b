"""Which error messages are a release saying "I do not take this artifact", rather than breaking on it?"""

from __future__ import annotations

import datetime
import functools
import re
from importlib import resources

import msgspec


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message that jax releases built from `since` to `until` (both included) raise on purpose."""

    stage: str
    exception: str
    message: str
    meaning: str
    since: datetime.date | None = None
    until: datetime.date | None = None

    def matches(self, stage: str, exception: str, message: str, jax_built: datetime.date) -> bool:
        """Whether this is what was said, by a release that is known to say it."""
        known = (self.since is None or self.since <= jax_built) and (self.until is None or jax_built <= self.until)
        return known and (stage, exception) == (self.stage, self.exception) and bool(re.search(self.message, message))


def find_refusal(stage: str, exception: str, message: str, jax_built: datetime.date) -> Refusal | None:
    """The table's entry for this error, or None: then it is no refusal but an error."""
    return next((entry for entry in load_refusals() if entry.matches(stage, exception, message, jax_built)), None)


@functools.cache
def load_refusals() -> tuple[Refusal, ...]:
    """The table that ships with this package."""
    text = resources.files("export_core.matrix").joinpath("data/refusals.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=tuple[Refusal, ...])
