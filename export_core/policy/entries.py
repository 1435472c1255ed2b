"""The tables and entries inside of a policy's keys: windows, known failures, quirks and others."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from export_core.base.tolerances import PLATFORMS
from export_core.releases import JaxlibRelease, JaxRelease, Windows

ALL = "all"
"""What a deployment target is never called: it stands for every deployment target."""

# What a file may have in several forms, or what its schema knows more of than mypy needs to.
if TYPE_CHECKING:
    Days = int
    Platform = str
else:
    Days = int | Annotated[str, Meta(pattern=r"^\d+ (days?|weeks?)$(?!\n)", examples=["180 days"])]
    Platform = Literal[PLATFORMS]

WRITTEN = r"^(?!\s*[tT][oO][dD][oO])\s*\S"
"""What a person has written: `jaxexport judge --propose` leaves texts that begin with TODO."""
Text = Annotated[str, Meta(pattern=WRITTEN)]

Names = tuple[Annotated[str, Meta(pattern=r"\S")], ...]
"""Names or globs, maybe none."""
Patterns = Annotated[Names, Meta(min_length=1)]
"""Names or globs, at least one: ``["*"]`` is all."""
Platforms = Annotated[tuple[Platform, ...], Meta(min_length=1)]

FailingVerdict = Literal["numerics", "refused", "error", "crash", "timeout"]
FailingStage = Literal["read", "audit", "deserialize", "module", "lower", "compile", "run", "compare"]
Amount = float | dict[str, float] | None
"""A tolerance for every dtype, or one for each that it names; None leaves it to others."""
Ulps = int | dict[str, int] | None
"""Likewise, in units of the last place."""

# What several tables have in common.
_REASON = Meta(description="Why this is accepted, in a sentence that a report can repeat.")
_OWNER = Meta(description="Who is responsible for it.")
_ISSUE = Meta(description="The issue that tracks it: a link or a number.")
_ADDED = Meta(description="The day on which the entry was added.")
_EXPIRES = Meta(description="The last day on which the entry is in force, at most 90 days after `added`.")
_PERMANENT = Meta(description="It never expires. Needs an approver.")
_APPROVER = Meta(description="Who approved that it never expires.")


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches a name. One that is the name itself does, although an id may have brackets."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


class WindowDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths of the two windows in days: `180`, `180 days` or `3 weeks`. JAX promises 180 backward and 21 forward."""

    backward: Annotated[
        Days, Meta(description="How long after a writer's build readers are built that must run its artifacts.")
    ] = Windows().backward_days
    forward: Annotated[
        Days, Meta(description="How long before a writer's build readers were built that must run its artifacts.")
    ] = Windows().forward_days

    def __post_init__(self) -> None:
        """``180 days`` is 180, and ``3 weeks`` is 21."""
        for name in ("backward", "forward"):
            # The type has checked the pattern: the text begins with digits.
            if isinstance(text := getattr(self, name), str):
                number, unit = text.split()
                msgspec.structs.force_setattr(self, name, int(number) * (7 if unit.startswith("week") else 1))


class Required(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run must cover: one that does not is incomplete. `readers` and `writers` are jaxlib versions or globs."""

    readers: Annotated[
        Names, Meta(description="jaxlib versions or globs; for each, such a reader must have run a cell.")
    ] = ()
    writers: Annotated[
        Names, Meta(description="jaxlib versions or globs; for each, a golden by such a writer must have run.")
    ] = ()
    platforms: Annotated[
        tuple[Platform, ...], Meta(description="Platforms on each of which a cell must have run.")
    ] = ()
    cells: Annotated[int, Meta(ge=0, description="The least number of cells that must have run.")] = 0
    outside: Annotated[
        bool,
        Meta(
            description="Whether a cell outside the window that was not run makes the run incomplete. Cells of the "
            "readers and writers named here always do."
        ),
    ] = True


class ExtraReleases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Releases that the shipped calendar does not have yet, such as a nightly."""

    jaxlib: Annotated[dict[str, JaxlibRelease], Meta(description="By version: when it was built.")] = {}
    jax: Annotated[dict[str, JaxRelease], Meta(description="By version: when it was built, the jaxlib it needs.")] = {}


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cells whose promise is broken and that must fail in exactly this way.

    `cases`, `writers` and `readers` take globs; versions are of jaxlib. The entry ends on the day `expires`, at most 90
    days after `added`, unless it is permanent and somebody approved that.
    """

    cases: Annotated[Patterns, Meta(description="Case ids or globs.")]
    writers: Annotated[Patterns, Meta(description="jaxlib versions or globs.")]
    readers: Annotated[Patterns, Meta(description="jaxlib versions or globs.")]
    verdict: Annotated[FailingVerdict, Meta(description="The verdict that each cell must have.")]
    stage: Annotated[FailingStage, Meta(description="The stage in which each cell must end.")]
    message: Annotated[Text, Meta(description="A part of the message that each cell must have.")]
    reason: Annotated[Text, _REASON]
    owner: Annotated[Text, _OWNER]
    issue: Annotated[Text, _ISSUE]
    added: Annotated[datetime.date, _ADDED]
    # A failure on one platform says nothing about another, so an entry that names none does not cover all.
    platforms: Annotated[Platforms, Meta(description="Platforms of the cells.")] = ("cpu",)
    expires: Annotated[datetime.date | None, _EXPIRES] = None
    permanent: Annotated[bool, _PERMANENT] = False
    approver: Annotated[Text | None, _APPROVER] = None
    at_most: Annotated[
        int,
        Meta(ge=1, description="The most cells that it may excuse. A larger number needs an explanation in `reason`."),
    ] = 50
    # The JSON form of a policy, in summary.json, calls it `place`: earlier runs have to stay readable.
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class Quirk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A relaxation for the goldens of one case by one writer: looser tolerances, or custom calls that they may make.

    `writer` may be a glob. It ends as a known failure does.
    """

    case: Annotated[Text, Meta(description="The case id of the golden.")]
    writer: Annotated[
        Text,
        Meta(
            description="Its writer: a jaxlib version, or the name of the golden's folder, such as 0.12.0.1-cpu; or a "
            "glob, which relaxes the case's goldens by all those writers."
        ),
    ]
    reason: Annotated[Text, _REASON]
    owner: Annotated[Text, _OWNER]
    issue: Annotated[Text, _ISSUE]
    added: Annotated[datetime.date, _ADDED]
    rtol: Annotated[Amount, Meta(description="Relative tolerance, instead of the golden's own.")] = None
    atol: Annotated[Amount, Meta(description="Absolute tolerance, instead of the golden's own.")] = None
    ulp: Annotated[Ulps, Meta(description="Tolerance in units of the last place, instead of the golden's own.")] = None
    allow: Annotated[
        Names, Meta(description="Custom-call targets that this one artifact may call, in addition to the stable list.")
    ] = ()
    expires: Annotated[datetime.date | None, _EXPIRES] = None
    permanent: Annotated[bool, _PERMANENT] = False
    approver: Annotated[Text | None, _APPROVER] = None
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class CustomCallChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A custom-call target that changes: the lowering calls `new` instead of `old`, or nothing (None).

    `introduced` (D) is the build date of the first jaxlib that can run the new lowering, `release` (RELEASE) that of
    the first one published with it, None while nobody knows. Source: the jax.export documentation, "Ensuring forward
    and backward compatibility".
    """

    old: Annotated[Text, Meta(description="The target that is replaced or removed.")]
    new: Annotated[Text | None, Meta(description="The new target; null if `old` is removed without a replacement.")]
    introduced: Annotated[datetime.date, Meta(description="D: the build date of the first jaxlib that can run both.")]
    release: Annotated[
        datetime.date | None,
        Meta(description="RELEASE: the build date of the first one published with it; null while nobody knows."),
    ]
    reason: Annotated[Text, Meta(description="Why it changes.")]
    owner: Annotated[Text, _OWNER]
    issue: Annotated[Text, _ISSUE]


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Goldens that are never pruned, and why."""

    goldens: Annotated[Patterns, Meta(description="Ids of goldens, ``case/writer``, or globs.")]
    reason: Annotated[Text, Meta(description="Why they stay.")]


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Goldens that stay although no release built today would have to run them."""

    deployed: Annotated[
        tuple[str, ...],
        Meta(
            description="jaxlib versions that are in use and owe nothing, unlike those of the policy's `deployed`: "
            "goldens in their windows stay, and the forecast covers them."
        ),
    ] = ()
    pinned: Annotated[tuple[Pin, ...], Meta(description="Goldens that are never pruned.")] = ()


class NumbersRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the goldens of some cases by some writers are compared, instead of what they recorded themselves.

    The first entry that matches a golden counts, as a whole: one without tolerances gives it the default back.
    """

    cases: Annotated[Patterns, Meta(description="Case ids or globs.")]
    reason: Annotated[Text, Meta(description="Why these goldens are compared so, in a sentence a report can repeat.")]
    writers: Annotated[
        Patterns, Meta(description="jaxlib versions, names of goldens' folders such as 0.12.0.1-cpu, or globs.")
    ] = ("*",)
    compare: Annotated[
        str, Meta(description="The comparator, as in the marker: allclose, exact, eigh and so on, or module:function.")
    ] = "allclose"
    rtol: Annotated[Amount, Meta(description="Relative tolerance: a number, or by dtype.")] = None
    atol: Annotated[Amount, Meta(description="Absolute tolerance: a number, or by dtype.")] = None
    ulp: Annotated[Ulps, Meta(description="Tolerance in units of the last place: a number, or by dtype.")] = None
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class DeploymentTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where artifacts run, such as a server: every generation of its cases has to run there.

    A cell of it that works is judged as any other. One that fails outside its window is `owed`, which fails a run as a
    broken promise does; inside the window it is `broken`.
    """

    name: Annotated[
        str,
        Meta(
            description="What reports call the deployment target: a letter, then letters, digits, `.`, `_` and `-`.",
            pattern=r"^[A-Za-z][A-Za-z0-9._-]*$(?!\n)",
            max_length=60,
            examples=["serving"],
        ),
    ]
    jaxlib: Annotated[str, Meta(description="The jaxlib release that runs there.")]
    platform: Annotated[str, Meta(description="The platform on which it runs: one of the policy's `platforms`.")] = (
        "cpu"
    )
    since: Annotated[
        datetime.date | None, Meta(description="The first day of the obligation; without it, since that release.")
    ] = None
    until: Annotated[
        datetime.date | None, Meta(description="The last day of the obligation; without it, there is no end.")
    ] = None
    cases: Annotated[Patterns, Meta(description="The cases that have to run there: ids or globs.")] = ("*",)
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read

    def in_force(self, day: datetime.date | None) -> bool:
        """Whether artifacts have to run there on a day; without a day, whether they ever have to."""
        return day is None or ((self.since or day) <= day <= (self.until or day))

    def runs(self, case: str, jaxlib: str, platform: str) -> bool:
        """Whether a cell with this case, reader and platform is one of this deployment target."""
        return (jaxlib, platform) == (self.jaxlib, self.platform) and self.has_case(case)

    def has_case(self, case: str) -> bool:
        """Whether artifacts of a case have to run there."""
        return any(matches(case, pattern) for pattern in self.cases)

    def __str__(self) -> str:
        return f"{self.name} (jaxlib {self.jaxlib}{'' if self.platform == 'cpu' else f', {self.platform}'})"


def names_of(
    targets: Iterable[DeploymentTarget], case: str, jaxlib: str, platform: str, day: datetime.date | None
) -> tuple[str, ...]:
    """The names of the deployment targets in force on a day in which a cell has to run."""
    return tuple(target.name for target in targets if target.in_force(day) and target.runs(case, jaxlib, platform))
