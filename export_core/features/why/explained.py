"""What an explanation of a failing cell says, as data."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from export_core.features.why.bisection.bisected import Bisection
from export_core.judge.result import ReaderOf
from export_core.matrix import Verdict


class FailureCause(StrEnum):
    """What is behind a failing cell, as far as is known without running anything else."""

    OWN_WRITER = "fails in its own writer"
    """No release is to blame."""
    UPSTREAM = "known upstream issue"
    """One of the table of known issues (`jaxexport policy known`)."""
    EXPIRED = "expired"
    """The reader refuses artifacts of this age by what is in them."""
    STABLEHLO = "newer StableHLO"
    """The module has what the reader's StableHLO does not know."""
    FORMAT = "another format"
    """The reader does not read the envelope as it was written."""
    CUSTOM_CALL = "a custom call that is not promised"
    """The writer or the reader does not promise one of its custom calls."""
    REGISTRATION = "missing registration"
    """The process lacks a custom call's target or a pytree node, which a library registers."""
    NUMBERS = "different numbers"
    """It runs, and the outputs differ by more than the writer's noise allows."""
    UNKNOWN = "not known"
    """None of these."""


class InRelease(msgspec.Struct, frozen=True):
    """What became of the same golden in one release."""

    reader: ReaderOf
    """The release."""
    verdict: Verdict
    """What happened."""
    message: str
    """The first line of its message."""


class Explanation(msgspec.Struct, frozen=True):
    """Why a cell fails."""

    cell: str
    """The cell, as `bisect` and `reduce` take it."""
    sentence: str
    """What happened, with both releases and their dates."""
    cause: FailureCause
    """The kind of cause."""
    because: str
    """The cause in a sentence or two."""
    evidence: tuple[tuple[str, str], ...]
    """What shows it: labels and texts."""
    releases: tuple[InRelease, ...]
    """The same golden in all releases of the stored run and of the bisection, by build date."""
    steps: tuple[str, ...]
    """What to do now."""
    earlier: tuple[str, ...]
    """What would have shown it earlier."""
    bisection: Bisection | None = None
    """Since which release it fails; null where that was not asked."""
