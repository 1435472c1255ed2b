"""Whether a conversion fixes a failing cell: a fact of its result."""

from enum import StrEnum

import msgspec

from export_core.base.facts import Fact
from export_core.matrix import Verdict
from export_core.matrix.verdicts import VERDICTS


class Level(StrEnum):
    """What a conversion rewrites, from the least to the most."""

    ENVELOPE = "envelope"  # Only the envelope, which is around the module.
    MODULE = "module"  # The module too, for another version of StableHLO.
    CUSTOM_CALLS = "custom calls"  # Custom calls too, which needs `--replace-custom-calls`.


FIXED_BY = {
    Level.ENVELOPE: "its envelope only",
    Level.MODULE: "its module, rewritten",
    Level.CUSTOM_CALLS: "its custom calls, replaced",
}
"""What a conversion rewrote, as the cause of a fixed cell."""


class FixByConversion(msgspec.Struct, frozen=True, gc=False):
    """The result of converting the artifact of a failing cell for its reader."""

    level: Level | None = None  # What had to be rewritten; null if nothing was converted.
    verdict: Verdict | None = None
    """The verdict of the converted artifact in the same reader, `converted` if it works; null if nothing was
    converted."""
    message: str = ""  # What was rewritten, why it was refused, or how the converted artifact failed.

    @property
    def fixes(self) -> bool:
        """Whether the converted artifact works in the reader in which the original fails."""
        return self.verdict is Verdict.CONVERTED


def _lines(fix: FixByConversion) -> list[str]:
    """Return a line that says whether a conversion fixes the cell, and how; no line if nothing had to be rewritten."""
    if fix.fixes:
        return [f"fixes it, by {FIXED_BY[fix.level]}: {fix.message}"] if fix.level else []
    if fix.verdict is None:
        return [f"does not fix it: {fix.message}"]
    return [f"does not fix it: the converted artifact {VERDICTS[fix.verdict].phrase} in {fix.message}"]


FIX = Fact(
    "fixed_by_conversion",
    FixByConversion,
    "Whether a conversion fixes a cell that fails; absent where that was not tried (`--convert`).",
    "conversion",
    _lines,
)
