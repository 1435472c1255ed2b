"""The result of converting the artifact of a failing cell, as results.jsonl has it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from export_core.matrix.outcome import Verdict


class Level(StrEnum):
    """What a conversion rewrites, from the least to the most."""

    ENVELOPE = "envelope"
    """What is around the module."""
    MODULE = "module"
    """The module too, for another version of StableHLO."""
    CUSTOM_CALLS = "custom calls"
    """Custom calls too, which `--replace-custom-calls` consents to."""


class Healing(msgspec.Struct, frozen=True, gc=False):
    """The result of converting the artifact of a failing cell for its reader."""

    level: Level | None = None
    """What had to be rewritten; null where nothing was converted."""
    verdict: Verdict | None = None
    """Of the converted artifact in the same reader: `converted` where it works; null where nothing was converted."""
    message: str = ""
    """What was rewritten, why it was refused, or how the converted artifact failed."""

    @property
    def heals(self) -> bool:
        """Whether the converted artifact works where the original fails."""
        return self.verdict is Verdict.CONVERTED
