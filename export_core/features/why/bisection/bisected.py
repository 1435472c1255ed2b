"""What a bisection finds, as data: each release that was run, the edge, and what is to blame."""

from __future__ import annotations

import datetime

import msgspec

from export_core.features.why.bisection.changes import ChangedPart, CommitsLink
from export_core.features.why.bisection.likeness import BisectBy
from export_core.features.why.bisection.search import Answer
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Verdict
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage

FOUND, NOT_REPRODUCED, NO_ANSWER = 0, 1, 3
"""Exit codes; 2 is bad input."""


class TriedRelease(msgspec.Struct, frozen=True):
    """A release in which the cell was run."""

    reader: ReaderOf
    """The release."""
    stage: Stage
    """How far the cell got."""
    verdict: Verdict
    """What happened."""
    message: str
    """What happened in words."""
    label: str
    """The class of what happened: releases with the same one are alike."""
    size: float | None
    """The error in units of noise, or the figure of the cost, by which it was bisected."""
    is_bad: Answer
    """Whether it is like the reader that was asked about; null where it says nothing."""


class MixedPair(msgspec.Struct, frozen=True):
    """A jax on a jaxlib that it was not released for."""

    jax: str
    """The version of jax."""
    jaxlib: str
    """The version of jaxlib."""
    is_bad: Answer
    """Whether it fails as the first bad release does; null for no answer."""
    why: str
    """What happened there; of no answer, why it is none."""


class Bisection(msgspec.Struct, frozen=True):
    """What `jaxexport bisect --json` prints."""

    case: str
    """The id of the case."""
    golden: str
    """The golden, `case/writer`."""
    writer: WriterOf
    """The release that exported it."""
    reader: ReaderOf
    """The release that was asked about."""
    platform: str
    """The platform of the cells."""
    mode: Mode
    """run; or compile, where only that was done."""
    by: BisectBy
    """By what results are alike."""
    as_of: datetime.date
    """The day: later releases are ignored."""
    exit_code: int
    """0 an edge was found, 1 the reader does not fail here, 3 no answer."""
    message: str
    """Why no edge was found; of one that was found, what is doubtful about it."""
    figure: str = ""
    """The figure, where it was bisected by cost."""
    threshold: float | None = None
    """The size above which a release is bad, where it was bisected by numbers or cost."""
    releases: int = 0
    """How many releases there are between the two ends, with them."""
    tried: tuple[TriedRelease, ...] = ()
    """The releases in which the cell was run, by build date."""
    last_good: ReaderOf | None = None
    """The last release on the good side of the edge."""
    first_bad: ReaderOf | None = None
    """The first release on the bad side of it. Where it is the older one, the failure ended with `last_good`."""
    changes: tuple[ChangedPart, ...] = ()
    """What is not the same in these two."""
    blame: str = ""
    """Which of jax and jaxlib brings the failure: jax, jaxlib, either, both; empty where that is not known."""
    pairs: tuple[MixedPair, ...] = ()
    """What the two mixed pairs say of that."""
    commits: tuple[CommitsLink, ...] = ()
    """Links to the commits in between."""
