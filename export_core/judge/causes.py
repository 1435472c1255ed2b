"""The causes of a run: what cells that fail have in common, and their failure signature.

Causes, bisection, reduction and baselines all take two failures for one by the failure signature; causes, and with them
baselines, leave out its signal.

A message says what went wrong, except that of a crash, of a timeout, and of different numbers: there the release in
which it began says more. Timeouts are one cause wherever they began: a busy machine gives them too. A known upstream
issue is one cause, whatever the message.
"""

from __future__ import annotations

import bisect
import datetime
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from export_core.base.leaf_names import without_paths
from export_core.base.processes import signal_name
from export_core.base.text import whole_first_line
from export_core.base.tolerances import ROUNDING
from export_core.matrix import Verdict
from export_core.matrix.result import Cells, Control, Result, by_build_date, release_name
from export_core.matrix.verdicts import VERDICTS, Judgement
from export_core.readers.cell import CellKey
from export_core.readers.worker.protocol import Stage
from export_core.releases import Calendar, Release
from export_core.releases.runtimes import known_runtimes

_OWN = re.compile(r"https?://\S+|'[^']*'|0x[0-9a-f]+|\d+|(?<=Function )\S+|(?<=function )\S+|(?<=custom call to )\S+")
"""The parts of a message that belong to one case."""


class FailureSignature(NamedTuple):
    """How a cell failed, without the details that differ between cells of the same cause, such as names and figures."""

    verdict: Verdict  # What happened.
    stage: Stage  # How far it got.
    message: str  # `message_class` of its message; empty for numbers, whose message has only figures.
    signal: int | None  # The number of the signal that ended its process, which not every message names; else None.

    def __str__(self) -> str:
        name = signal_name(self.signal) if self.signal else ""
        signal = "" if message_class(name) in self.message else name
        return ": ".join(filter(None, (f"{self.verdict} in stage {self.stage}", self.message, signal)))


_REGISTRATION = re.compile(
    r"no registered implementation|custom call target .* (?:not found|was not found)|unregistered|not registered"
    r"|register_pytree|No FFI handler registered",
    re.IGNORECASE,
)
"""Messages of jax and XLA about a custom call's target, a pytree node or an FFI handler that a process lacks."""


def lacks_registration(failed: Result) -> bool:
    """Return whether a cell failed because its process lacks a registration: then no release is to blame."""
    return bool(_REGISTRATION.search(f"{failed.message}\n{failed.stderr}"))


def failure_signature(failed: Result) -> FailureSignature:
    """Return how a cell failed: its verdict, stage and signal, and the class of its message, "" for numbers."""
    message = "" if failed.verdict is Verdict.NUMERICS else message_class(failed.message)
    return FailureSignature(failed.verdict, failed.stage, message, failed.signal)


def message_class(message: str) -> str:
    """Return the first line of a message with its links, quotations, figures and names replaced by ``_``.

    Paths of outputs are removed, so that messages of the same failure in different cases are equal.
    """
    return _OWN.sub("_", without_paths(_first_line(message)))


def _first_line(message: str) -> str:
    """Return the first line of a message after leading blank lines; "" if the message is blank."""
    return next(iter(message.strip().splitlines()), "")


class Cause(msgspec.Struct, frozen=True):
    """The cells of a run that fail alike and have the same judgement. Lists of releases are in order of build date."""

    id: str  # The same in every run, and for cells of another judgement that fail alike.
    judgement: Judgement  # The judgement of its cells.
    verdict: Verdict  # Their verdict.
    stage: Stage  # How far they got.
    platform: str  # Their platform.
    message: str  # The message of one of them.
    cells: int  # How many cells.
    promised: int  # How many of them are inside their window.
    goldens: int  # How many goldens.
    cases: tuple[str, ...]  # The ids of the cases.
    writers: tuple[str, ...]  # The jaxlib versions that wrote.
    readers: tuple[str, ...]  # The names of the readers: jaxlib versions, or such as `tensorflow==2.21.0`.
    first_reader: Release  # The reader that was built first.
    last_reader: Release  # The reader that was built last.
    example: CellKey  # The name of one cell.
    reproduce: str  # The shell command that runs that cell again.
    change: str = ""  # In which release it began and ended, in words, without a full stop.
    since: str = ""  # The reader in which it began; empty where the run does not show it, or shows several.
    mended_in: str = ""  # The reader in which it ended; empty where the run does not show it, or shows several.
    upstream: str = ""  # The id of a known upstream issue; empty for none.
    not_replayable: bool = False  # The own writers of all these goldens fail too, for no known reason.
    before: str = ""
    """The last release before `since` that was run, where releases between the two were not; else empty."""
    looks_like: str = ""
    """What the difference of numbers of that cell looks like; empty if it fits no known pattern."""

    @property
    def is_rounding(self) -> bool:
        """Whether the wrong numbers look like rounding, and neither a known issue nor the own writer explains them."""
        return self.looks_like.startswith(ROUNDING) and not (self.upstream or self.not_replayable)


def find_causes(results: Iterable[Result], calendar: Calendar | None = None) -> tuple[list[Result], list[Cause]]:
    """Return the results of a whole run or shard, with the id of its cause in each failing one, and the causes.

    If a known issue blames a runtime for wrong numbers, but another runtime gives the same numbers, the issue is
    removed from the result. Releases are known from the run's readers and from `calendar`, if it is given.
    """
    results = _without_refuted_issues(list(results))
    changes = _changes(results)
    own: dict[str, list[Result]] = {}
    for result in filter(fails_in_own_writer, results):
        own.setdefault(result.golden, []).append(result)
    for place, result in enumerate(results):
        if not result.verdict.works:
            # Their own writer fails alike: no release is to blame, and it is not the cause of other goldens.
            unfit = failing_alike_in_writer(result, own.get(result.golden, ())) is not None
            results[place] = replace(result, cause=_cause_id(result, changes.get(result.key), not_replayable=unfit))
    return results, causes_in(results, calendar, changes)


def causes_in(
    results: Sequence[Result], calendar: Calendar | None = None, changes: Mapping[CellKey, FailingStretch] | None = None
) -> list[Cause]:
    """Return the causes of failing results, each of which already has the id of its cause.

    The causes are sorted by judgement; within one judgement, wrong numbers come last, and causes with more cells first.

    Args:
        results: The results of a whole run or shard.
        calendar: Further releases: a change is "between" two readers if a release was built between them.
        changes: What `_changes` returns for these results; None to compute it.
    """
    changes = _changes(results) if changes is None else changes
    not_replayable = {result.golden for result in results if fails_in_own_writer(result)}
    readers = {result.reader for result in results}
    days = {family: _build_dates(family, calendar) if calendar else [] for family in {one.family for one in readers}}
    for reader in readers:
        days[reader.family].append(reader.built)
    groups = [group for (_, cause), group in Cells(results).by_cause.items() if cause]
    causes = [_cause(group, changes, not_replayable, sorted(days[group[0].reader.family])) for group in groups]
    return sorted(
        causes,
        key=lambda cause: (
            *([*Judgement].index(cause.judgement), cause.verdict is Verdict.NUMERICS),
            *(-cause.cells, -cause.promised, cause.example, cause.id),
        ),
    )


def _build_dates(family: str, calendar: Calendar) -> list[datetime.date]:
    """Return the build dates of all known releases of a runtime, or of jaxlib if `family` is empty."""
    if not family:
        return [calendar.jaxlib[version].built for version in calendar.versions()]
    runtime = known_runtimes().get(family)
    return [release.built for release in runtime.known(calendar).values()] if runtime else []


class Point(NamedTuple):
    """The result of a golden in one release. Results that agree have the same `group`.

    `result` is None for the golden's writer if it is known only by the outputs stored in the golden.
    """

    reader: Release
    group: str
    result: Result | None


class FailingStretch(NamedTuple):
    """Failing results of a golden in readers that follow each other by build date.

    `before` and `after` are the releases just before and just after these readers in which the golden works; None if
    there is no such release.
    """

    results: tuple[Result, ...]
    before: Release | None
    after: Release | None


def failing_stretches(results: Sequence[Result]) -> Iterator[FailingStretch]:
    """Yield each unbroken series of failing readers, by build date, for a golden on one platform and kind of device."""
    parts = stretches(results, lambda result: "works" if result.verdict.works else "fails", "works")
    for before, stretch, after in zip([None, *parts], parts, [*parts[1:], None], strict=False):
        if stretch[0].group == "fails":
            around = before[-1].reader if before else None, after[0].reader if after else None
            yield FailingStretch(tuple(point.result for point in stretch if point.result), *around)


def stretches(results: Sequence[Result], group: Callable[[Result], str], written: str) -> list[list[Point]]:
    """Return the results of a golden in the order of build dates, split wherever neighbouring releases disagree.

    Args:
        results: The results of one golden on one platform and kind of device.
        group: Returns a text for a result; results agree if their texts are equal.
        written: The group of the outputs stored in the golden, which count as its writer's result if no cell has one.
    """
    points = [Point(result.reader, group(result), result) for result in results]
    points.sort(key=lambda point: point.reader.date_order)
    writer = results[0].writer.release
    # On another platform it has not run, and its outputs are no point there.
    reader = results[0].reader
    is_alike = results[0].platform == results[0].writer.platform and not (reader.runtime or reader.with_settings)
    if is_alike and all(point.reader != writer for point in points):
        place = sum(point.reader.date_order < writer.date_order for point in points)
        around = {point.group for point in points[max(place - 1, 0) : place + 1]}
        # Releases before and after it agree with each other and not with it: no release changed the numbers and
        # changed them back. The writer ran on another processor.
        if not (0 < place < len(points) and len(around) == 1 and written not in around):
            points.insert(place, Point(writer, written, None))
    return [list(stretch) for _, stretch in itertools.groupby(points, lambda point: point.group)]


def is_own_writer(result: Result) -> bool:
    """Return whether the reader of a cell is the writer of its golden: the same release on the same platform."""
    writer, reader = result.writer, result.reader
    is_same = (writer.jax, writer.jaxlib, writer.platform) == (reader.jax, reader.jaxlib, result.platform)
    return is_same and not reader.with_settings


def fails_in_own_writer(result: Result) -> bool:
    """Return whether a cell shows that the writer of its golden cannot replay the golden.

    A failed audit does not show this, since the artifact was not replayed; nor does a timeout, which may come from a
    busy machine.
    """
    shows_nothing = result.fails_audit or result.verdict is Verdict.TIMEOUT
    return result.verdict.fails and is_own_writer(result) and not shows_nothing


def failing_alike_in_writer(result: Result, results: Iterable[Result]) -> Result | None:
    """Return the result among `results` of the same golden in its own writer, if it fails there in the same way.

    Two cells fail in the same way if they have the same `cell_signature`, or if their numbers differ in the same way
    from the stored outputs (`differs_alike`). A runtime other than jaxlib never has the signature of the writer's cell.
    Return None if there is no such result.
    """
    signature = cell_signature(result)
    own = (one for one in results if one.golden == result.golden and fails_in_own_writer(one))
    return next((one for one in own if cell_signature(one) == signature or differs_alike(result, one)), None)


_ALIKE = 0.1
"""The largest relative difference between the errors of two cells that differ alike: each has rounding of its own."""


def differs_alike(result: Result, other: Result) -> bool:
    """Return whether the numbers of two cells of the same golden differ from its stored outputs in the same way.

    Return False if a known issue or rounding may explain the numbers of `other`: rounding differs in each release.
    """
    if result.verdict is not Verdict.NUMERICS or not other.is_beyond_rounding or other.upstream:
        return False
    if result.outputs and result.outputs == other.outputs:
        return True
    errors = [math.inf if one.max_abs_error is None else one.max_abs_error for one in (result, other)]
    return all(map(math.isfinite, errors)) and math.isclose(*errors, rel_tol=_ALIKE)


def _without_refuted_issues(results: list[Result]) -> list[Result]:
    """Return the results, with a runtime's known issue removed where another runtime gives the same wrong numbers.

    The fault is then not in the first runtime, but in the golden's stored outputs or its writer.
    """
    known = {result.golden for result in results if _is_runtimes_issue(result)}
    others: dict[str, list[Result]] = {}
    for result in results:
        if result.golden in known and result.is_beyond_rounding:
            others.setdefault(result.golden, []).append(result)

    def is_refuted(result: Result) -> bool:
        alike = (one for one in others.get(result.golden, ()) if one.reader.family != result.reader.family)
        return _is_runtimes_issue(result) and any(differs_alike(result, one) for one in alike)

    return [replace(result, upstream="") if is_refuted(result) else result for result in results]


def _is_runtimes_issue(result: Result) -> bool:
    """Return whether a known issue of a runtime other than jaxlib explains the wrong numbers of a cell."""
    return bool(result.upstream and result.reader.family) and result.verdict is Verdict.NUMERICS


def cell_signature(result: Result) -> tuple[str, ...]:
    """Return texts that are equal in all failing cells of a cause; cells with equal texts may have different causes.

    They are the id of a known issue, or else the platform, device, runtime, verdict, stage and class of the message.
    """
    if result.upstream:
        return ("upstream", result.upstream)
    # Two runtimes have no fault in common, whatever their messages; nor has a jaxlib with settings one with others.
    runtime = tuple(filter(None, (result.reader.family, result.reader.with_settings)))
    # Without the signal: the ids of causes are compared with those of stored runs.
    return result.platform, result.device, *runtime, *failure_signature(result)[:-1]


def _cause_id(result: Result, change: FailingStretch | None, *, not_replayable: bool) -> str:
    if result.upstream:
        return result.upstream
    key: list[object] = [*cell_signature(result), not_replayable]
    # A busy machine decides which cells time out, so that the releases around them tell no causes apart.
    if change and result.verdict is not Verdict.TIMEOUT:
        began, ended = change.before and change.results[0].reader, change.after
        key += (around := [release_name(reader) if reader else "" for reader in (began, ended)])
        # Each golden that no reader agrees with has a fault of its own; another runtime computes a case in its own way.
        if result.verdict is Verdict.NUMERICS and (not_replayable or not any(around)):
            key.append(result.case if result.reader.family and not not_replayable else result.golden)
    # What looks like rounding is separated from wrong numbers that began in the same release.
    if result.is_rounding and not not_replayable:
        key.append(ROUNDING)
    # What a device's compiler cannot do in any release is separated from what only looks alike.
    if result.control is Control.ALIKE:
        key.append(str(result.control))
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).hexdigest()[:8]
    return f"{result.verdict}-{result.stage}-{digest}".replace("_", "-")


def _changes(results: Sequence[Result]) -> dict[CellKey, FailingStretch]:
    """Return, for each failing cell, the unbroken series of readers, by build date, in which its golden fails alike.

    Cells with a verdict that explains itself, such as a refusal, are left out.
    """
    changes: dict[CellKey, FailingStretch] = {}
    for cells in Cells(results).by_series.values():
        for kind in {cell_signature(result) for result in cells if not VERDICTS[result.verdict].is_explained}:
            # A cell that was only compiled has no numbers to agree with.
            compared = Verdict.NUMERICS in kind
            alike = [
                result
                for result in cells
                if (result.verdict.works and (result.verdict.is_compared or not compared))
                or cell_signature(result) == kind
            ]
            for stretch in failing_stretches(alike):
                changes |= {result.key: stretch for result in stretch.results}
    return changes


def _cause(
    group: Sequence[Result],
    changes: Mapping[CellKey, FailingStretch],
    not_replayable: set[str],
    days: Sequence[datetime.date],
) -> Cause:
    # Of numbers, the worst error; of everything else the first cell of a promise, by case.
    example = min(group, key=lambda one: (-(one.max_noise_error or 0.0), not one.promised, one.golden_order))
    readers = sorted({result.reader for result in group}, key=lambda reader: reader.date_order)
    around = {_change(stretch, days) for result in group if (stretch := changes.get(result.key))}
    change, since, before, mended_in = around.pop() if len(around) == 1 else ("", "", "", "")
    return Cause(
        id=example.cause,
        judgement=example.judgement,
        verdict=example.verdict,
        stage=example.stage,
        platform=example.platform,
        message=whole_first_line(example.message) or str(example.verdict),
        cells=len(group),
        promised=sum(result.promised for result in group),
        goldens=len({result.golden for result in group}),
        cases=tuple(sorted({result.case for result in group})),
        writers=tuple(by_build_date(result.writer for result in group)),
        readers=tuple(by_build_date(readers)),
        first_reader=readers[0],
        last_reader=readers[-1],
        example=example.key,
        reproduce=example.reproduce,
        change=change,
        since=since,
        mended_in=mended_in,
        upstream=example.upstream,
        not_replayable=not example.upstream and all(result.golden in not_replayable for result in group),
        before=before,
        looks_like=example.looks_like,
    )


def _change(stretch: FailingStretch, days: Sequence[datetime.date]) -> tuple[str, str, str, str]:
    """Return the fields `change`, `since`, `before` and `mended_in` of a cause, from a stretch of its failing readers.

    `days` are the build dates of all known releases, in order.
    """
    first, last = stretch.results[0].reader, stretch.results[-1].reader
    before, after = stretch.before, stretch.after
    began, ended = _between(before, first, days), _between(last, after, days)
    if stretch.results[0].verdict is Verdict.NUMERICS:
        if before:
            when = began or f"in {release_name(first)}, after {release_name(before)}"
            back = f", and changed back {ended or f'in {release_name(after)}'}" if after else ""
            words = f"Numbers changed {when}{back}"
        elif after:
            words = f"Numbers changed {ended or f'in {release_name(after)}'}: older readers differ from the writer"
        else:
            words = _by_this_family_alone(stretch)
    elif before and began:
        words = f"Began to fail {began}" + (f"; works again in {release_name(after)}" if after else "")
    elif before:
        again = f", and again in {release_name(after)}" if after else ""
        words = f"Fails since {release_name(first)}; {_works_in(before, stretch)}{again}"
    else:
        words = _works_in(after, stretch) if after else ""
        words = f"{words[:1].upper()}{words[1:]}"
    since, skipped_from = first.name if before else "", before.name if before and began else ""
    return words, since, skipped_from, after.name if after else ""


def _by_this_family_alone(stretch: FailingStretch) -> str:
    """Return a sentence for a stretch without a working reader before or after: all its readers differ from the writer.

    The sentence is about one runtime, with its settings, and one platform, since cells of others may have passed.
    """
    first, last = stretch.results[0].reader, stretch.results[-1].reader
    family = f"{first.family or 'jaxlib'}{' with such settings' if first.with_settings else ''}"
    platform = stretch.results[0].platform
    ran = "ran it" if platform == stretch.results[0].writer.platform else f"ran it on {platform}"
    if first == last:
        return f"Of {family}, only {release_name(first)} {ran}: whether another release agrees is not known"
    return f"None of the {len(stretch.results)} releases of {family} that {ran} agrees with the writer"


def _works_in(release: Release, stretch: FailingStretch) -> str:
    # Its writer ran the function; whether it can replay the artifact is another question, which often no cell answers.
    is_writer = release == stretch.results[0].writer.release
    return f"{'ran when it was exported by' if is_writer else 'works in'} {release_name(release)}"


def _between(earlier: Release | None, later: Release | None, days: Sequence[datetime.date]) -> str:
    """Return "between EARLIER and LATER" if another known release was built between the two; else ""."""
    if earlier and later and bisect.bisect_right(days, earlier.built) < bisect.bisect_left(days, later.built):
        return f"between {release_name(earlier)} and {release_name(later)}"
    return ""
