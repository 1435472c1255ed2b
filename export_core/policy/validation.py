"""The rules of a policy that its types do not express: amounts in range, dates in order, names that exist."""

import contextlib
import datetime
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, is_normalized_name

from export_core.base import tolerances
from export_core.base.platforms import PLATFORMS, similar_platform
from export_core.base.text import plural
from export_core.base.tolerances import AMOUNTS
from export_core.policy.entries import (
    ALL,
    LONGEST_DAYS,
    CustomCallChange,
    DeploymentTarget,
    KnownFailure,
    NumbersRule,
    Quirk,
)
from export_core.policy.feature_keys import Key, Problems, feature_keys
from export_core.policy.model import Policy
from export_core.releases import Calendar, JaxRelease, ReleaseError, load_calendar
from export_core.releases.calendar import version_key
from export_core.releases.jaxlib_settings import jaxlib_settings
from export_core.releases.names import title_of
from export_core.releases.project_releases import contradiction
from export_core.releases.runtimes import built_on, names_runtime, runtime_named, runtime_readers

LONGEST_WINDOW = 36_500  # The most days of a window: a century, so that no date leaves the range of Python's dates.

DAYS = {
    "deployed": ("since", "until"),
    "quirks": ("added",),
    "known_failures": ("added",),
    "custom_call_changes": ("introduced", "release"),
}
"""The names of the fields of entries that hold a day, by table."""


def problems(policy: Policy) -> Problems:
    """Yield a pair of key and message for each mistake in a policy, except wrong types."""
    yield from _simple_keys(policy)
    yield from problems_of_targets(policy.deployed, policy.platforms or ("cpu",))
    for table, names in DAYS.items():
        for number, entry in enumerate(getattr(policy, table)):
            for name in names:
                yield from _day((table, number, name), getattr(entry, name))
    yield from _amounts((), policy, ("rtol", "atol"))
    for path, message in tolerances.problems_of_tolerances(policy.tolerances):
        yield ("tolerances", *path), message
    yield from _releases(policy)
    rules: dict[Key, tuple[Iterable[Any], Callable[[Key, Any], Problems]]] = {
        ("numbers",): (policy.numbers, _numbers_rule),
        ("quirks",): (policy.quirks, _quirk),
        ("known_failures",): (policy.known_failures, _expiry),
        ("custom_call_changes",): (policy.custom_call_changes, _change),
        ("retention", "deployed"): (policy.retention.deployed, _version),
        ("reader_packages",): (policy.reader_packages, _package),
        ("backfill_install",): (policy.backfill_install, _installed),
        ("reader_packages_from_source",): (policy.reader_packages_from_source, _package_name),
        **{(added.name,): (added.of(policy), added.problems) for added in feature_keys()},
    }
    for key, (entries, rule) in rules.items():
        for number, entry in enumerate(entries):
            yield from rule((*key, number), entry)
    changing: dict[str, int] = {}
    for number, change in enumerate(policy.custom_call_changes):
        if (first := changing.setdefault(change.old, number)) != number:
            yield (
                ("custom_call_changes", number, "old"),
                f"{change.old!r} already changes in custom_call_changes[{first}].",
            )


def _simple_keys(policy: Policy) -> Problems:
    if not policy.goldens.strip():
        yield ("goldens",), "expected a folder, found none."
    for name in ("goldens", "known_issues"):
        if "\0" in (getattr(policy, name) or ""):
            yield (name,), f"expected a path without null characters, found {getattr(policy, name)!r}."
    for name in ("backward", "forward"):
        if not 0 <= (days := getattr(policy.windows, name)) <= LONGEST_WINDOW:
            yield ("windows", name), f"expected 0 to {LONGEST_WINDOW} days, found {days}."
    if not any(reader.strip() for reader in policy.readers.split(",")):
        yield ("readers",), "expected window, all, newest, deployed or jaxlib versions, found none."
    if policy.platforms is not None:
        unknown = {repr(name): similar_platform(name) for name in policy.platforms if name not in PLATFORMS}
        for name, similar in (unknown if policy.platforms else {"none": ""}).items():
            yield ("platforms",), f"expected some of {', '.join(PLATFORMS)}, found {name}.{similar}"


def _package(key: Key, text: str) -> Problems:
    try:
        if canonicalize_name(Requirement(text).name) in ("jax", "jaxlib"):
            yield (
                key,
                f"expected another package than jax and jaxlib, of which each reader has its own, found {text!r}.",
            )
    except InvalidRequirement:
        yield key, problem_of_requirement(text)


def _installed(key: Key, text: str) -> Problems:
    if problem := problem_of_requirement(text):
        yield key, problem


def problem_of_requirement(text: str) -> str:
    """Return why an installer does not take a text for one package; "" if it takes it.

    A folder, a file or a URL is taken, and an option such as ``-e.``; whether a path exists is not checked.
    """
    if text.startswith((".", "-")) or "/" in text or "\\" in text:
        return ""
    try:
        Requirement(text)
    except InvalidRequirement as error:
        why = str(error).partition("\n")[0]
        several = " Give each package separately." if "," in text else ""
        return f"expected a requirement as pip takes it, such as optax==0.2.5, found {text!r}: {why}.{several}"
    return ""


def _package_name(key: Key, text: str) -> Problems:
    if not is_normalized_name(canonicalize_name(text)) or canonicalize_name(text) in ("jax", "jaxlib"):
        yield key, f"expected the name of a package other than jax and jaxlib, such as optax, found {text!r}."


def _numbers_rule(key: Key, rule: NumbersRule) -> Problems:
    if problem := tolerances.problem_of_name(rule.compare):
        yield (*key, "compare"), problem
    elif ":" in rule.compare and not all(rule.compare.partition(":")):
        yield (*key, "compare"), f"expected module:function, found {rule.compare!r}."
    yield from _amounts(key, rule, AMOUNTS)
    for name in () if tolerances.takes_tolerances(rule.compare) else AMOUNTS:
        if getattr(rule, name) is not None:
            why = f"{rule.compare!r} takes no tolerances"
            yield (*key, name), f"expected none: {why}. Leave it out, or choose another `compare`."


def _quirk(key: Key, quirk: Quirk) -> Problems:
    yield from _amounts(key, quirk, AMOUNTS)
    if not quirk.allow and all(getattr(quirk, name) is None for name in AMOUNTS):
        yield key, "expected at least one of rtol, atol, ulp and allow, found none."
    yield from _expiry(key, quirk)


def _expiry(key: Key, entry: KnownFailure | Quirk) -> Problems:
    """Yield a pair of key and message unless an entry expires within 90 days, or is permanent with an approver."""
    if entry.permanent:
        if entry.expires is not None:
            yield (*key, "expires"), "expected no date, since the entry has permanent: true. Keep one of the two."
        if entry.approver is None:
            yield key, "permanent: true needs an approver."
    elif entry.expires is None:
        expected = f"expected expires (at most {LONGEST_DAYS} days after added), or permanent: true with an approver"
        yield key, f"{expected}, found neither."
    elif not 0 <= (days := (entry.expires - entry.added).days) <= LONGEST_DAYS:
        expected = f"expected a date 0 to {LONGEST_DAYS} days after added, or permanent: true with an approver"
        found = f"{plural(days, 'day')} after it" if days > 0 else f"before {entry.added} (added)"
        yield (*key, "expires"), f"{expected}, found {entry.expires}, {found}."


def _change(key: Key, change: CustomCallChange) -> Problems:
    if change.new == change.old:
        why = "If the meaning of a target changes, give it a new name: existing artifacts call the old one."
        yield (*key, "new"), f"expected a name other than old, found {change.new!r} twice. {why}"
    if change.release is not None and change.release < change.introduced:
        expected = f"expected {change.introduced} (introduced) or later, or null while it is not known"
        yield (*key, "release"), f"{expected}, found {change.release}."


def _releases(policy: Policy) -> Problems:
    for package in ("jaxlib", "jax"):
        shipped = getattr(load_calendar(), package)
        for version, entry in getattr(policy.releases, package).items():
            key: Key = ("releases", package, version)
            yield from _version(key, version)
            if isinstance(entry, JaxRelease):
                yield from _version((*key, "minimum_jaxlib"), entry.minimum_jaxlib)
            yield from _day((*key, "built"), entry.built)
            with contextlib.suppress(ReleaseError):  # text that is no version, which is reported as that
                if problem := contradiction(shipped, version, entry):
                    yield key, problem
                elif version in shipped and shipped[version].yanked != entry.yanked:
                    expected = f"expected {shipped[version].yanked!r}, as in the calendar of this package"
                    advice = "A project adds releases, and changes none: delete the line."
                    other = "`jaxexport releases refresh` reads from the index what was withdrawn."
                    yield (*key, "yanked"), f"{expected}, found {entry.yanked!r}. {advice} {other}"
    for name, releases in policy.releases.runtimes.items():
        try:
            runtime = runtime_named(name)
        except ReleaseError as error:
            yield ("releases", "runtimes", name), str(error)
            continue
        if runtime.releases_of:
            why = f"{name} has the releases of {runtime.releases_of}. Add them there."
            yield ("releases", "runtimes", name), f"expected a runtime with releases of its own: {why}"
        for version, release in releases.items():
            key = ("releases", "runtimes", name, version)
            yield from _version(key, version)
            yield from _day((*key, "built"), release.built)
            if version in runtime.releases:
                expected = "expected only releases that are not in the calendar of this package"
                yield key, f"{expected}, found {version}, which is. Delete the line."


def _version(key: Key, version: str) -> Problems:
    try:
        version_key(version)
    except ReleaseError as error:
        message = str(error)
        yield key, f"{message[0].lower()}{message[1:]}"


def _amounts(key: Key, table: Policy | Quirk | NumbersRule, names: tuple[str, ...]) -> Problems:
    for name in names:
        if (value := getattr(table, name)) is not None:
            try:
                tolerances.read_amount(value, whole=name == "ulp")
            except ValueError as error:
                yield (*key, name), str(error)


def _day(key: Key, day: datetime.date | None) -> Problems:
    if day is not None and not 2000 <= day.year < 2200:  # so that adding a window stays in the range of Python's dates
        yield key, f"expected a date between 2000-01-01 and 2199-12-31, found {day}."


def problems_of_targets(targets: Sequence[DeploymentTarget], platforms: Collection[str]) -> Problems:
    """Yield a pair of key and message for each mistake in deployment targets, except wrong types and releases.

    `platforms` are the platforms of the policy.
    """
    for number, target in enumerate(targets):
        key: Key = ("deployed", number)
        if target.name == ALL:
            yield (*key, "name"), f"expected another name than {ALL!r}, which stands for every deployment target."
        for earlier, other in enumerate(targets[:number]):
            if other.name == target.name:
                expected = f"expected another name than that of deployed[{earlier}]"
                yield (*key, "name"), f"{expected}, found {target.name!r} again."
        if target.platform not in PLATFORMS:
            expected = f"expected one of {', '.join(PLATFORMS)}, found {target.platform!r}"
            yield (*key, "platform"), f"{expected}.{similar_platform(target.platform)}"
        elif target.platform not in platforms:
            expected = f"expected one of the policy's platforms ({', '.join(platforms)}), found {target.platform!r}"
            yield (*key, "platform"), f"{expected}. No run would have a cell on it: add it to `platforms`."
        if target.since and target.until and target.until <= target.since:
            yield (*key, "until"), f"expected a day after {target.since} (since), found {target.until}."


def problems_of_releases(targets: Sequence[DeploymentTarget], calendar: Calendar) -> Problems:
    """Yield a pair of key and message for each mistake about the release of a deployment target.

    `calendar` has all known releases, including those that the project adds.
    """
    for number, target in enumerate(targets):
        key: Key = ("deployed", number)
        if problem := _wrong_release(target, calendar):
            yield (*key, problem[0]), problem[1]
            continue
        if target.reader and target.platform != "cpu":
            expected = f"expected cpu, the only platform on which {title_of(target.release)} is run"
            yield (*key, "platform"), f"{expected}, found {target.platform!r}."
        built = built_on(target.release, calendar)
        for name in ("since", "until"):
            if built and (day := getattr(target, name)) and day < built:
                on = f"the day on which {title_of(target.release)} was built"
                yield (*key, name), f"expected {built} or later, {on}, found {day}."


def _wrong_release(target: DeploymentTarget, calendar: Calendar) -> tuple[str, str] | None:
    """Return the key of a deployment target that should name a release but does not, and why; None if all is right."""
    if bool(target.jaxlib) == bool(target.reader):
        which = "both" if target.jaxlib else "neither"
        return "jaxlib", f"expected either jaxlib or reader (such as tensorflow==2.21.0), found {which}."
    if target.reader and not re.fullmatch(r"[^=<>!~\s]+==[^,*=\s\[]+(\[[^\[\],\s]*\])?", target.release):
        expected = f"expected one release of a runtime, such as tensorflow==2.21.0, found {target.release!r}"
        return "reader", f"{expected}. A jaxlib stands under `jaxlib`."
    if target.reader:
        try:
            runtime_readers(target.release, calendar)
        except ReleaseError as error:
            return "settings" if target.settings else "reader", str(error)
    elif names_runtime(target.jaxlib):
        expected = f"expected a release of jaxlib, such as 0.12.0.1, found {target.jaxlib!r}"
        return "jaxlib", f"{expected}. A release of a runtime stands under `reader`."
    elif target.jaxlib not in calendar.jaxlib:
        expected = f"expected a jaxlib of the release calendar, found {target.jaxlib!r}"
        return "jaxlib", f"{expected}.{calendar.about_unknown(target.jaxlib)}"
    else:
        try:
            jaxlib_settings(target.settings)
        except ReleaseError as error:
            return "settings", str(error)
    return None
