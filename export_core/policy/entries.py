"""The tables and entries inside of a policy's keys: windows, known failures, quirks and others."""

import datetime
import fnmatch
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from export_core.base.platforms import PLATFORMS
from export_core.releases import JaxlibRelease, JaxRelease, Windows
from export_core.releases.calendar import RuntimeRelease
from export_core.releases.names import title_of

ALL = "all"  # The name that stands for all deployment targets; no single target can have it.
LONGEST_DAYS = 90  # The most days that a known failure or a quirk is in force, unless it is permanent and was approved.

# For mypy, the single form to which a value is converted; for the schema, every form that a file may have.
if TYPE_CHECKING:
    Days = int
    Platform = str
else:
    Days = int | Annotated[str, Meta(pattern=r"^\d+ (days?|weeks?)$(?!\n)", examples=["180 days"])]
    Platform = Literal[PLATFORMS]

WRITTEN = r"^(?!\s*[tT][oO][dD][oO])\s*\S"
"""A pattern of text that a person has written, and not the TODO that `jaxexport judge --propose` writes instead."""
Text = Annotated[str, Meta(pattern=WRITTEN)]

Names = tuple[Annotated[str, Meta(pattern=r"\S")], ...]  # Names or globs, maybe none.
Patterns = Annotated[Names, Meta(min_length=1)]  # Names or globs, at least one: ``["*"]`` is all.
Platforms = Annotated[tuple[Platform, ...], Meta(min_length=1)]

FailingVerdict = Literal["numerics", "refused", "error", "crash", "timeout"]
FailingStage = Literal["read", "audit", "deserialize", "module", "lower", "compile", "run", "compare"]
Amount = float | dict[str, float] | None
"""A tolerance for every dtype, or a tolerance by dtype; None if this entry sets none."""
Ulps = int | dict[str, int] | None  # Such a tolerance in units of the last place.


def matches(name: str, pattern: str) -> bool:
    """Return whether a glob pattern matches a name.

    A pattern that is equal to the name always matches, even if it has brackets, as the id of a parametrized test has.
    ``[*]`` in a pattern matches any parameters of a test, such as ``[akima]``.
    """
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[*]", "[[]*]"))


def names_golden(pattern: str, names: Iterable[str]) -> bool:
    """Return whether a pattern matches one of a golden's names (`Golden.names`) other than that of its case alone."""
    return any("/" in name and matches(name, pattern) for name in names)


class WindowDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths of the two windows in days: `180`, `180 days` or `3 weeks`. JAX promises 180 backward and 21 forward."""

    backward: Days = Windows().backward_days
    """A reader built at most so long after a writer must run its artifacts."""
    forward: Days = Windows().forward_days
    """A reader built at most so long before a writer must run its artifacts."""

    def __post_init__(self) -> None:
        """Convert texts to numbers of days: ``180 days`` to 180, and ``3 weeks`` to 21."""
        for name in ("backward", "forward"):
            # The type has checked the pattern: the text begins with digits.
            if isinstance(text := getattr(self, name), str):
                number, unit = text.split()
                msgspec.structs.force_setattr(self, name, int(number) * (7 if unit.startswith("week") else 1))


class Required(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cells that a run must cover; a run that does not cover them is incomplete."""

    readers: Names = ()
    """jaxlib versions, releases of other runtimes such as tensorflow==2.21.0, or globs; for each, such a reader
    must have run a cell."""
    writers: Names = ()  # jaxlib versions or globs; for each, a golden by such a writer must have run.
    platforms: tuple[Platform, ...] = ()  # Platforms on each of which a cell must have run.
    cells: Annotated[int, Meta(ge=0)] = 0  # The least number of cells that must have run.
    outside: bool = True
    """Whether a cell outside the window that was not run makes the run incomplete. Cells of the readers and writers
    named here always do."""


class ExtraReleases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Releases to add to the calendar that is shipped with this package, such as a nightly."""

    jaxlib: dict[str, JaxlibRelease] = {}  # By version: when it was built.
    jax: dict[str, JaxRelease] = {}  # By version: when it was built, the jaxlib it needs.
    runtimes: dict[str, dict[str, RuntimeRelease]] = {}  # Of other runtimes, such as `tensorflow`, by version.


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cells that are broken or owed, and that must fail in exactly this way.

    `cases`, `writers` and `readers` may be globs. The entry ends on the day `expires`, at most 90 days after `added`,
    unless it is permanent and has an approver.
    """

    cases: Patterns  # Case ids or globs.
    writers: Patterns  # jaxlib versions or globs.
    readers: Patterns  # jaxlib versions, releases of other runtimes such as tensorflow==2.21.0, or globs.
    verdict: FailingVerdict  # The verdict that each cell must have.
    stage: FailingStage  # The stage in which each cell must end.
    message: Text  # A part of the message that each cell must have.
    reason: Text  # Why this is accepted, in a sentence that a report can repeat.
    owner: Text  # Who is responsible for it.
    issue: Text  # The issue that tracks it: a link, a number in quotes, or the id of a known issue.
    added: datetime.date  # The day on which the entry was added.
    # A failure on one platform says nothing about another, so an entry that names none does not cover all.
    platforms: Platforms = ("cpu",)  # Platforms of the cells.
    expires: datetime.date | None = None  # The last day on which the entry is in force, at most 90 days after `added`.
    permanent: bool = False  # It never expires. Needs an approver.
    approver: Text | None = None  # Who approved that it never expires.
    at_most: Annotated[int, Meta(ge=1)] = 50
    """The most cells that it may excuse. A larger number needs an explanation in `reason`."""
    # The JSON form of a policy, in summary.json, calls it `place`: earlier runs have to stay readable.
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class Quirk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An exception for the goldens of one case by one writer: looser tolerances, or further allowed custom calls.

    `writer` may be a glob. A quirk ends on the day `expires`, as a known failure does.
    """

    case: Text  # The case id of the golden.
    writer: Text
    """Its writer: a jaxlib version, or the name of the golden's folder, such as 0.12.0.1-cpu; or a glob, which relaxes
    the case's goldens by all those writers."""
    reason: Text  # Why this is accepted, in a sentence that a report can repeat.
    owner: Text  # Who is responsible for it.
    issue: Text  # The issue that tracks it: a link, a number in quotes, or the id of a known issue.
    added: datetime.date  # The day on which the entry was added.
    rtol: Amount = None  # Relative tolerance, instead of the golden's own.
    atol: Amount = None  # Absolute tolerance, instead of the golden's own.
    ulp: Ulps = None  # Tolerance in units of the last place, instead of the golden's own.
    allow: Names = ()  # Custom-call targets that this one artifact may call, in addition to the stable list.
    expires: datetime.date | None = None  # The last day on which the entry is in force, at most 90 days after `added`.
    permanent: bool = False  # It never expires. Needs an approver.
    approver: Text | None = None  # Who approved that it never expires.
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class CustomCallChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A custom-call target that changes: the lowering calls `new` instead of `old`, or nothing (None).

    `introduced` (D) is the build date of the first jaxlib that can run the new lowering, `release` (RELEASE) that of
    the first one published with it, None while nobody knows. Source: the jax.export documentation, "Ensuring forward
    and backward compatibility".
    """

    old: Text  # The target that is replaced or removed.
    new: Text | None  # The new target; null if `old` is removed without a replacement.
    introduced: datetime.date  # D: the build date of the first jaxlib that can run both.
    release: datetime.date | None
    """RELEASE: the build date of the first one published with it; null while it is not known."""
    reason: Text  # Why it changes.
    owner: Text  # Who is responsible for it.
    issue: Text  # The issue that tracks it: a link, or a number in quotes.


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Goldens that are never pruned, and why."""

    goldens: Patterns  # Goldens as ``case/writer`` or ``case/jaxlib``, or globs.
    reason: Text  # Why they stay.


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Goldens that must not be pruned although no release built today has to run them."""

    deployed: tuple[str, ...] = ()
    """jaxlib versions that are in use, for which goldens in their windows stay and which the forecast covers. Unlike
    those of the policy's `deployed`, they have to run nothing."""
    pinned: tuple[Pin, ...] = ()  # Goldens that are never pruned.

    def reasons_for(self, names: Collection[str]) -> list[str]:
        """Return the reasons of all pins of a golden, by its names (`Golden.names`); empty if it is not pinned."""
        return [pin.reason for pin in self.pinned if any(names_golden(pattern, names) for pattern in pin.goldens)]


class NumbersRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison that replaces the one recorded in the goldens of some cases and writers.

    The first entry that matches a golden replaces its whole comparison, with the default tolerances if it has none.
    """

    cases: Patterns  # Case ids or globs.
    reason: Text  # Why these goldens are compared so, in a sentence a report can repeat.
    writers: Patterns = ("*",)  # jaxlib versions, names of goldens' folders such as 0.12.0.1-cpu, or globs.
    compare: str = "allclose"  # The comparator, as in the marker: allclose, exact, eigh and so on, or module:function.
    rtol: Amount = None  # Relative tolerance: a number, or by dtype.
    atol: Amount = None  # Absolute tolerance: a number, or by dtype.
    ulp: Ulps = None  # Tolerance in units of the last place: a number, or by dtype.
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read


class DeploymentTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place where artifacts run, such as a server; all goldens of its cases have to run there.

    A cell that fails there is `broken` inside its window and `owed` outside; both fail the run. A cell that works is
    judged as any other.
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z][A-Za-z0-9._-]*$(?!\n)",
            max_length=60,
            examples=["serving"],
            description="Letters, digits, ., _ and -, beginning with a letter.",
        ),
    ]
    """What reports call the deployment target: a letter, then letters, digits, `.`, `_` and `-`."""
    jaxlib: str = ""  # The jaxlib release that runs there.
    reader: str = ""
    """The release of another runtime that runs there, such as `tensorflow==2.21.0`: this or `jaxlib`."""
    platform: str = "cpu"  # The platform on which it runs: one of the policy's `platforms`.
    settings: Names = ()
    """The settings of its release: flags of jax and XLA, exact versions of packages (`scipy=1.14.1`); of another
    runtime its own."""
    since: datetime.date | None = None  # The first day of the obligation; without it, since that release.
    until: datetime.date | None = None  # The last day of the obligation; without it, there is no end.
    cases: Patterns = ("*",)  # The cases that have to run there: ids or globs.
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read

    def in_force(self, day: datetime.date | None) -> bool:
        """Return whether artifacts have to run on this deployment target on a day; True if `day` is None."""
        return day is None or ((self.since or day) <= day <= (self.until or day))

    def out_of_force(self, day: datetime.date) -> str:
        """Return why this deployment target is not in force on a day, such as ``its obligation ended on 2027-03-31``.

        The text is empty if the target is in force.
        """
        if self.since and day < self.since:
            return f"its obligation begins on {self.since}"
        return f"its obligation ended on {self.until}" if self.has_ended(day) else ""

    def has_ended(self, day: datetime.date) -> bool:
        """Return whether the obligation of this deployment target ended before a day."""
        return self.until is not None and self.until < day

    @property
    def release(self) -> str:
        """The name of the reader that runs on this deployment target, as --readers takes it."""
        settings = f"[{';'.join(sorted(self.settings))}]" if self.settings else ""
        return f"{self.reader or self.jaxlib}{settings}"

    def has_case(self, case: str) -> bool:
        """Return whether a case matches one of this deployment target's patterns for cases."""
        return any(matches(case, pattern) for pattern in self.cases)

    def must_run(self, case: str, runs_on: Collection[str]) -> bool:
        """Return whether a golden of a case, which runs on the platforms `runs_on`, has to run on this target."""
        return self.platform in runs_on and self.has_case(case)

    def __str__(self) -> str:
        return f"{self.name} ({title_of(self.release)}{'' if self.platform == 'cpu' else f', {self.platform}'})"


def names_of(
    targets: Iterable[DeploymentTarget],
    case: str,
    reader: str,
    platform: str,
    day: datetime.date | None,
    *,
    runs_on: Collection[str],
) -> tuple[str, ...]:
    """Return the names of the deployment targets in force on a day that have to run a case in a reader on a platform.

    If `day` is None, every target is in force. `runs_on` are platforms on which the golden runs: on another it must be
    refused, and no target has to run it there.
    """
    there = (target for target in targets if (target.release, target.platform) == (reader, platform))
    return tuple(target.name for target in there if target.in_force(day) and target.must_run(case, runs_on))
