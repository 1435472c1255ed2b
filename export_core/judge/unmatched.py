"""The names in a policy that match nothing in the whole project: a misspelled name looks just like a rule that holds.

`PATTERNS` has every key that can match nothing. A test compares it with the keys of the policy: a new one is in it, or
in `OTHER_KEYS`.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from export_core.base.platforms import PLATFORMS
from export_core.goldens import Golden, cases_meant, similar_cases
from export_core.judge.gate import BONUS_LOST
from export_core.judge.known import entry_name
from export_core.matrix.comparisons import quirks_of, rule_matches, rule_of
from export_core.matrix.selection import problem_of_reader
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import DeploymentTarget, Quirk, matches, names_golden
from export_core.policy.feature_keys import Key, feature_keys
from export_core.policy.model import LOCATED
from export_core.policy.run_options import comma_separated
from export_core.policy.source import dotted
from export_core.releases import Calendar, load_calendar
from export_core.releases.runtimes import known_runtimes
from export_core.releases.stable_targets import stable_targets

_UNPUBLISHED = re.compile(r"dev|rc|\+")
"""In a pattern of readers: releases of --index and --wheels, which only a run with those options knows."""

READERS: Key = ("readers",)
"""The key whose unknown names are an error of `jaxexport policy check`; a matrix with --readers only warns of them."""

PINNED: Key = ("retention", "pinned")
"""The beginning of the keys whose patterns are an error of `jaxexport policy check`: `goldens prune` refuses them."""

_NAMED_IN_ENTRIES = ("cases", "writers", "readers", "platforms")
"""The fields of an entry that mean the same in every table, also in that of a feature."""
PATTERNS = (
    *("readers", "platforms", "tolerances", "allow", "fail_on", "retention.deployed", "retention.pinned.goldens"),
    *("required.readers", "required.writers", "required.platforms", "deployed.cases", "deployed.platform"),
    *("quirks.case", "quirks.writer", "quirks.allow", "numbers.cases", "numbers.writers", "custom_call_changes.old"),
    *(f"known_failures.{field}" for field in _NAMED_IN_ENTRIES),
    *(f"{key.name}.{field}" for key in feature_keys() for field in _NAMED_IN_ENTRIES),
)
"""The keys of a policy with names or patterns of what a project has, each of which is reported where it matches
nothing. Those of a feature are named alike in each feature, and may be missing there."""
OTHER_KEYS = (
    # A release that does not exist is an error where the policy is read.
    *("deployed.jaxlib", "deployed.reader", "releases.jaxlib", "releases.jax", "releases.runtimes"),
    # What a name is given to, what a number or a day is, and what people read.
    *("goldens", "windows.backward", "windows.forward", "deployed.name", "deployed.since", "deployed.until"),
    "deployed.settings",
    *("calendar_days", "required.cells", "required.outside", "unpromised", "changed_module", "retention.pinned.reason"),
    *("changed_inputs", "unused_goldens"),
    # A dtype that does not exist is an error where the policy is read, and so is a comparator in a plan.
    *("rtol", "atol", "numbers.compare", "numbers.rtol", "numbers.atol", "numbers.ulp", "numbers.reason"),
    *("quirks.rtol", "quirks.atol", "quirks.ulp"),
    *(f"{table}.{field}" for table in ("quirks", "known_failures") for field in ("reason", "owner", "issue", "added")),
    *(f"{table}.{field}" for table in ("quirks", "known_failures") for field in ("expires", "permanent", "approver")),
    # A known failure whose cells end otherwise is stale, which is an exit code of its own.
    *("known_failures.verdict", "known_failures.stage", "known_failures.message", "known_failures.at_most"),
    # Nobody calls the new target before the change.
    *(f"custom_call_changes.{field}" for field in ("new", "introduced", "release", "reason", "owner", "issue")),
    # Of an installation, or of a machine.
    *("known_issues", "reader_packages", "reader_packages_from_source", "environment", "backfill_install"),
)
"""All other keys: nothing in them is compared with the names of a project's goldens, readers or runs."""


class ReportedBy(Enum):
    """The runs that report an unmatched pattern at their end. The command `policy check` always reports it."""

    NO_RUN = auto()
    WHOLE_RUNS = auto()  # Those of all cells: of a part of them, most patterns match nothing.
    ALL_RUNS = auto()


class Unmatched(NamedTuple):
    """A sentence about patterns of a policy entry that match nothing, and the runs in which it is reported."""

    text: str
    reported_by: ReportedBy = ReportedBy.NO_RUN
    target: str = ""  # The name of the deployment target whose cells it decides; empty for none.
    pattern: str = ""  # Of a deployment target: the pattern itself.
    problem: str = ""  # Of a pin: the sentence without its name.
    key: Key = ()  # The path to the pattern in the policy; empty if the text names file and line already.

    def located(self, location: Callable[[Key], str]) -> str:
        """Return the sentence with the location of its key in front, such as ``export_compat.yaml:12``.

        `location` returns the location of a key, or "" if it is not known.
        """
        place = location(self.key) if self.key else ""
        return f"{place}: {self.text}" if place else self.text

    def is_reported(self, *, whole: bool) -> bool:
        """Return whether a run reports the sentence at its end; `whole` is whether the run has all cells."""
        return self.reported_by is ReportedBy.ALL_RUNS or (whole and self.reported_by is ReportedBy.WHOLE_RUNS)


NO_BASELINE = (
    f"{BONUS_LOST}: no baseline was given, so a lost bonus is not found. Name one: `jaxexport judge --baseline OLD`."
)
"""The sentence for a run without a baseline, where the policy asks whether a bonus is lost."""


@dataclass(frozen=True)
class _AllReaders:
    """An iterable of the names of all known readers, the jaxlibs first, since loading other runtimes takes 100 ms."""

    calendar: Calendar
    targets: Sequence[DeploymentTarget] = ()

    def __iter__(self) -> Iterator[str]:
        yield from self.calendar.versions()
        yield from (target.release for target in self.targets)  # with the settings that their names have
        for runtime in known_runtimes().values():
            yield from (f"{runtime.name}=={version}" for version in runtime.known(self.calendar))


def unmatched_patterns(policy: Policy, goldens: Sequence[Golden], calendar: Calendar) -> list[Unmatched]:
    """Return every pattern and name in a policy that matches no golden, reader or custom-call target.

    `goldens` must be all goldens of the project, since most patterns match nothing in a part of them. If there are
    none, or if all of them are converted, only names of releases are checked.
    """
    of_releases = [*_unknown_releases(policy, calendar)]
    # The policy is about the originals, which are in another folder.
    if all(golden.manifest.converted_from for golden in goldens):
        return of_releases
    return [*_unmatched_by_goldens(policy, goldens, calendar), *of_releases]


def keys_without_goldens(policy: Policy) -> list[str]:
    """Return the keys set in a policy whose names cannot be checked before there is a golden."""
    of_goldens = dict.fromkeys(key.partition(".")[0] for key in PATTERNS if key not in ("readers", "fail_on"))
    default = Policy()
    return [key for key in of_goldens if getattr(policy, key, None) != getattr(default, key, None)]


def _unmatched_by_goldens(policy: Policy, goldens: Sequence[Golden], calendar: Calendar) -> list[Unmatched]:
    names: dict[str, Iterable[str]] = {
        "cases": dict.fromkeys(golden.manifest.case for golden in goldens),
        "writers": {golden.manifest.writer.jaxlib for golden in goldens},
        "readers": _AllReaders(calendar, policy.deployed),
        "platforms": {platform for golden in goldens for platform in golden.manifest.replayed_on},
    }
    targets = {target for golden in goldens for target in golden.manifest.custom_calls}
    platforms = names["platforms"]
    unmatched = _lacking(
        ("platforms",),
        "platforms: no golden was exported for {}.",
        policy.platforms or (),
        platforms,
        ReportedBy.ALL_RUNS,
    )
    for key, noun in (("readers", "reader"), ("writers", "writer"), ("platforms", "golden's platform")):
        for pattern in _matching_none(key, getattr(policy.required, key), names):
            text = f"required.{key}: {pattern!r} matches no {noun}."
            unmatched.append(Unmatched(text, ReportedBy.ALL_RUNS, key=("required", key)))
    if BONUS_LOST in policy.fail_on:
        # Only commands on stored results have a baseline, and no policy knows of one.
        unmatched.append(Unmatched(f"fail_on: {NO_BASELINE}", ReportedBy.ALL_RUNS, key=("fail_on",)))
    unmatched += _lacking(
        ("tolerances",), "tolerances.{0}: no golden was exported for {0}.", policy.tolerances, platforms
    )
    unmatched += _lacking(("allow",), "allow: no golden calls {!r}.", policy.allow, targets)
    for number, quirk in enumerate(policy.quirks):
        unmatched += _quirk(entry_name("quirks", number, quirk), quirk, goldens)
    writers = {name for golden in goldens for name in (golden.manifest.writer.jaxlib, golden.manifest.writer.id)}
    of_rules = {**names, "writers": writers}
    for table in LOCATED:
        for number, entry in enumerate(getattr(policy, table)):
            known = of_rules if table == "numbers" else names
            name = entry_name(table, number, entry)
            unmatched += [*_in_entry(table, name, entry, known)] or _together(table, name, entry, goldens)
    for number, rule in enumerate(policy.numbers):
        own = [golden.manifest for golden in goldens if rule_matches(rule, golden.manifest)]
        name = entry_name("numbers", number, rule)
        if own and all(rule_of(manifest, policy.numbers[:number]) for manifest in own):
            unmatched.append(Unmatched(f"{name}: has no effect: an earlier entry matches each of its goldens."))
    for number, change in enumerate(policy.custom_call_changes):
        path: Key = ("custom_call_changes", number, "old")
        text = f"{dotted(path)}: no golden calls {{!r}}."
        unmatched += _lacking(path, text, [change.old], targets, ReportedBy.ALL_RUNS)
    return unmatched + unmatched_pins(goldens, policy)


def unknown_readers(policy: Policy, calendar: Calendar) -> list[str]:
    """Return a sentence for each name under `readers` of a policy that is not a known reader.

    Names of unpublished releases, such as ``0.13.0.dev20270101``, are left out: a run can get them from --index or
    --wheels.
    """
    names = [name for name in comma_separated(policy.readers) if not _UNPUBLISHED.search(name)]
    return [problem for name in names if (problem := problem_of_reader(name, calendar))]


def _unknown_releases(policy: Policy, calendar: Calendar) -> Iterator[Unmatched]:
    for problem in unknown_readers(policy, calendar):
        yield Unmatched(f"readers: {problem}", key=READERS)
    text = "retention.deployed: {!r} is no release of the calendar that can be installed."
    yield from _lacking(("retention", "deployed"), text, policy.retention.deployed, calendar.versions())
    # An index can withdraw a release after this package was made, so a project may say so; no reader is chosen then.
    shipped = load_calendar()
    withdrawn = (version for version in shipped.versions() if calendar.jaxlib[version].yanked)
    text = (
        "The project's releases say that jaxlib {} (built {}) was withdrawn: `--readers window` and `newest` no longer "
        "choose it. Where it is named, it runs."
    )
    yield from (Unmatched(text.format(version, shipped.built(version))) for version in withdrawn)


def _lacking(
    key: Key, text: str, names: Iterable[str], known: Iterable[str], reported_by: ReportedBy = ReportedBy.NO_RUN
) -> list[Unmatched]:
    """Return an `Unmatched` for each name under `key` that is not in `known`; its sentence is `text` with the name."""
    return [Unmatched(text.format(name), reported_by, key=(*key, name)) for name in names if name not in known]


def targets_without_golden(
    patterns: Sequence[str], goldens: Sequence[Golden], calendar: Calendar, as_of: datetime.date
) -> list[str]:
    """Return a sentence for each stable custom-call target that matches a pattern, but that no golden calls.

    The stable list is that of the newest release on that day. Raises `PolicyError` if a pattern matches no target in
    that list.
    """
    release = calendar.release(calendar.as_of(as_of).newest())
    stable = stable_targets(release.jax)
    for pattern in patterns:
        if not any(matches(target, pattern) for target in stable):
            raise PolicyError(
                f"{pattern}: expected a name or pattern of custom calls on the stable list of jax {release.jax}; "
                "none of them matches: correct it, or use '*' for all."
            )
    called = {target for golden in goldens for target in golden.manifest.custom_calls}
    asked = {target for target in stable if any(matches(target, pattern) for pattern in patterns)}
    text = "{} is on the stable list of jax {}, and no golden calls it: write a case for it."
    return [text.format(target, release.jax) for target in sorted(asked - called)]


def unmatched_pins(goldens: Sequence[Golden], policy: Policy) -> list[Unmatched]:
    """Return an `Unmatched` for each pattern under `retention.pinned` that matches no golden.

    Such a pattern is misspelled, or its goldens have been deleted.
    """
    cases = dict.fromkeys(golden.manifest.case for golden in goldens)

    def problem(pattern: str) -> str:
        case, slash, writer = pattern.partition("/")
        similar = [] if slash and case in cases else similar_cases(case, cases, globs=True)
        meant = " or ".join(repr(f"{name}/{writer or '*'}") for name in similar)
        return f"{pattern!r} matches no golden.{meant and f' Did you mean {meant}?'}"

    return [
        Unmatched(
            f"retention.pinned[{number}] ({pin.reason}): {problem(pattern)}",
            problem=problem(pattern),
            key=(*PINNED, number),
        )
        for number, pin in enumerate(policy.retention.pinned)
        for pattern in pin.goldens
        if not any(names_golden(pattern, golden.names) for golden in goldens)
    ]


def _quirk(name: str, quirk: Quirk, goldens: Sequence[Golden]) -> Iterator[Unmatched]:
    if not (writers := [golden.manifest.writer for golden in goldens if golden.manifest.case == quirk.case]):
        hint = cases_meant([quirk.case], dict.fromkeys(golden.manifest.case for golden in goldens))
        yield Unmatched(f"{name}: no golden is of case {quirk.case!r}.{hint}", ReportedBy.WHOLE_RUNS)
        return
    if not (own := [golden for golden in goldens if quirks_of(golden.manifest, [quirk])]):
        known = ", ".join(dict.fromkeys(writer.id for writer in sorted(writers, key=lambda writer: writer.built)))
        text = f"{name}: writer {quirk.writer!r} matches no golden of its case, which has {known}."
        yield Unmatched(text, ReportedBy.WHOLE_RUNS)
        return
    targets = {target for golden in own for target in golden.manifest.custom_calls}
    for target in quirk.allow:
        if target not in targets:
            yield Unmatched(f"{name}: allow: its goldens do not call {target!r}.")


def _in_entry(table: str, name: str, entry: Any, names: Mapping[str, Iterable[str]]) -> Iterator[Unmatched]:
    """Yield sentences about the patterns of one policy entry that match nothing.

    A deployment target gets a sentence for each such pattern, any other entry one sentence for all of them. Platforms
    are left out if the entry covers all, of which few projects have every one.
    """
    target = entry.name if isinstance(entry, DeploymentTarget) else ""
    # The name of an entry has its reason, which may be long: it is said once.
    lines: dict[ReportedBy, list[str]] = {}
    for key in (key for key in names if getattr(entry, key, PLATFORMS) != PLATFORMS):
        patterns = getattr(entry, key)
        unmatched = _matching_none(key, patterns, names)
        noun = "reader" if key == "readers" else "golden"
        # A known failure without one pattern that matches is about no cell at all: a run says so of all its cells.
        is_void = table == "known_failures" and len(unmatched) == len(patterns)
        reported_by = ReportedBy.WHOLE_RUNS if is_void else ReportedBy.NO_RUN
        if target:  # each of its patterns has an answer of its own
            for pattern in unmatched:
                hint = cases_meant([pattern], names[key], globs=True) if key == "cases" else ""
                yield Unmatched(f"{name}: {key}: {pattern!r} matches no {noun}.{hint}", reported_by, target, pattern)
        elif unmatched:
            verb = "matches" if len(unmatched) == 1 else "match"
            line = f"{key}: {', '.join(map(repr, unmatched))} {verb} no {noun}."
            line += cases_meant(unmatched, names[key], globs=True) if key == "cases" else ""
            lines.setdefault(reported_by, []).append(line)
    for reported_by, of_entry in lines.items():
        yield Unmatched(f"{name}: {' '.join(of_entry)}", reported_by)


def _together(table: str, name: str, entry: Any, goldens: Sequence[Golden]) -> Iterator[Unmatched]:
    """Yield sentences about patterns of two keys of an entry that no golden matches together, though each matches one.

    These keys are `cases` and `writers`, or in a deployment target `cases` and `platform`.
    """
    own = [golden.manifest for golden in goldens if _any_matches([golden.manifest.case], getattr(entry, "cases", "*"))]
    if isinstance(entry, DeploymentTarget):
        here = [manifest.case for manifest in own if entry.platform in manifest.runs_on]
        exported = f"was exported for {entry.platform}."
        if not here:
            text = f"{name}: platform: no golden of its cases {exported}"
            yield Unmatched(text, ReportedBy.WHOLE_RUNS, entry.name, entry.platform)
            return
        for pattern in entry.cases:
            if not _any_matches(here, [pattern]):
                yield Unmatched(f"{name}: cases: no golden of {pattern!r} {exported}", ReportedBy.WHOLE_RUNS)
        return
    writers = getattr(entry, "writers", ("*",))
    if not any(_any_matches([manifest.writer.jaxlib, manifest.writer.id], writers) for manifest in own):
        reported_by = ReportedBy.WHOLE_RUNS if table == "known_failures" else ReportedBy.NO_RUN
        yield Unmatched(f"{name}: none of its writers has a golden of its cases.", reported_by)


def _any_matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(matches(name, pattern) for name in names for pattern in patterns)


def _matching_none(key: str, patterns: Sequence[str], names: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the patterns that match none of `names[key]`, such as the names of all cases for `cases`."""
    return [
        pattern
        for pattern in patterns
        if not (key == "readers" and _UNPUBLISHED.search(pattern))
        and not any(matches(name, pattern) for name in names[key])
    ]


def entries_that_name(policy: Policy, old: str, new: str, writers: Sequence[str]) -> Iterator[str]:
    """Yield the names of the policy's entries that match the old name of a renamed case, but not its new name.

    `writers` are the ids of the writers of the case's goldens.
    """

    def loses(pattern: str, before: str, after: str) -> bool:
        return matches(before, pattern) and not matches(after, pattern)

    for table in LOCATED:
        for number, entry in enumerate(getattr(policy, table)):
            patterns = getattr(entry, "cases", ())
            if getattr(entry, "case", None) == old or any(loses(pattern, old, new) for pattern in patterns):
                yield entry_name(table, number, entry)
    for number, pin in enumerate(policy.retention.pinned):
        if any(loses(pattern, f"{old}/{by}", f"{new}/{by}") for pattern in pin.goldens for by in writers):
            yield f"retention.pinned[{number}] ({pin.reason})"
