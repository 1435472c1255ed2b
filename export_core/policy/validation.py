"""The rules of a policy that its types do not express: amounts in range, dates in order, no placeholder left."""

import contextlib
import datetime
import re
from collections.abc import Collection, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from export_core.base import tolerances
from export_core.base.phrases import did_you_mean
from export_core.policy.entries import ALL, CustomCallChange, DeploymentTarget, KnownFailure, NumbersRule, Quirk
from export_core.policy.feature_keys import Key, Problems, feature_keys
from export_core.policy.model import Policy
from export_core.releases import Calendar, JaxRelease, ReleaseError, load_calendar
from export_core.releases.calendar import version_key
from export_core.releases.project_releases import contradiction
from export_core.releases.runtimes import built_on, names_runtime, runtime_named, runtime_readers

LONGEST_DAYS = 90  # How many days an entry may be in force, unless it is permanent and was approved.

LONGEST_WINDOW = 36_500  # Days of a window: a century, so that no date leaves the range of Python's dates.

DAYS = {
    "deployed": ("since", "until"),
    "quirks": ("added",),
    "known_failures": ("added",),
    "custom_call_changes": ("introduced", "release"),
}
"""The days in entries, by table."""


def problems(policy: Policy) -> Problems:
    """Everything that is wrong, each with its key, in the order of the keys."""
    if not policy.goldens.strip():
        yield ("goldens",), "expected a folder, found none."
    for name in ("goldens", "known_issues"):
        if "\0" in (getattr(policy, name) or ""):
            yield (name,), f"expected a path that a file can have, found {getattr(policy, name)!r}."
    for name in ("backward", "forward"):
        if not 0 <= (days := getattr(policy.windows, name)) <= LONGEST_WINDOW:
            yield ("windows", name), f"expected 0 to {LONGEST_WINDOW} days, found {days}."
    if not any(reader.strip() for reader in policy.readers.split(",")):
        yield ("readers",), "expected window, all, newest, deployed or jaxlib versions, found none."
    if policy.platforms is not None:
        known = ", ".join(tolerances.PLATFORMS)
        for name in policy.platforms.keys() - {*tolerances.PLATFORMS}:
            similar = tolerances.similar_platform(name)
            yield ("platforms",), f"expected some of {known}, found {name!r}.{similar}"
        if not policy.platforms:
            yield ("platforms",), f"expected some of {known}, found none."
    yield from problems_of_targets(policy.deployed, policy.platforms or ("cpu",))
    for table, names in DAYS.items():
        for number, entry in enumerate(getattr(policy, table)):
            for name in names:
                yield from _day((table, number, name), getattr(entry, name))
    yield from _amounts((), policy, ("rtol", "atol"))
    if problem := tolerances.problem_of_tolerances(policy.tolerances):
        # "tpu: float32: message": the path to the tolerance comes before its message.
        *path, message = problem.split(": ")
        yield ("tolerances", *path), message
    for number, rule in enumerate(policy.numbers):
        key: Key = ("numbers", number)
        if problem := tolerances.problem_of_name(rule.compare):
            yield (*key, "compare"), problem
        elif ":" in rule.compare and not all(rule.compare.partition(":")):
            yield (*key, "compare"), f"expected module:function, found {rule.compare!r}."
        yield from _amounts(key, rule, tolerances.AMOUNTS)
        for name in () if tolerances.takes_tolerances(rule.compare) else tolerances.AMOUNTS:
            if getattr(rule, name) is not None:
                advice = f"{rule.compare!r} takes no tolerances. Leave it out, or choose another."
                yield (*key, name), f"expected none: {advice}"
    yield from _releases(policy)
    for number, quirk in enumerate(policy.quirks):
        key = ("quirks", number)
        yield from _amounts(key, quirk, tolerances.AMOUNTS)
        if not quirk.allow and all(getattr(quirk, name) is None for name in tolerances.AMOUNTS):
            yield key, "expected at least one of rtol, atol, ulp and allow, found none."
        yield from _expiry(key, quirk)
    for number, failure in enumerate(policy.known_failures):
        yield from _expiry(("known_failures", number), failure)
    for number, change in enumerate(policy.custom_call_changes):
        yield from _change(("custom_call_changes", number), change, policy.custom_call_changes[:number])
    for number, version in enumerate(policy.retention.deployed):
        yield from _version(("retention", "deployed", number), version)
    for number, text in enumerate(policy.reader_packages):
        problem = ""
        try:
            if canonicalize_name(Requirement(text).name) in ("jax", "jaxlib"):
                problem = f"another package than jax and jaxlib, of which each reader has its own, found {text!r}."
        except InvalidRequirement as error:
            why = str(error).partition("\n")[0]
            problem = f"a requirement as pip takes it, such as optax==0.2.5, found {text!r}: {why}."
        if problem:
            yield ("reader_packages", number), f"expected {problem}"
    for added in feature_keys():
        for number, entry in enumerate(added.of(policy)):
            yield from added.problems((added.name, number), entry)


def _expiry(key: Key, entry: KnownFailure | Quirk) -> Problems:
    """An entry expires within 90 days, or somebody has approved that it is permanent."""
    if entry.permanent:
        if entry.expires is not None:
            yield (*key, "expires"), "expected no date, since it is permanent: true. Keep one of the two."
        if entry.approver is None:
            yield key, "permanent: true needs an approver."
    elif entry.expires is None:
        yield key, f"expected expires (at most {LONGEST_DAYS} days after added), or permanent: true with an approver."
    elif not 0 <= (days := (entry.expires - entry.added).days) <= LONGEST_DAYS:
        yield (
            (*key, "expires"),
            f"expected a date 0 to {LONGEST_DAYS} days after added, or permanent: true with an approver, found "
            f"{entry.expires}, {days} days after it.",
        )


def _change(key: Key, change: CustomCallChange, before: tuple[CustomCallChange, ...]) -> Problems:
    if change.new == change.old:
        yield (
            (*key, "new"),
            f"expected a name other than old, found {change.new!r} twice. If the meaning of a target changes, give it "
            "a new name: existing artifacts call the old one.",
        )
    if change.release is not None and change.release < change.introduced:
        yield (
            (*key, "release"),
            f"expected {change.introduced} (introduced) or later, or null while it is not known, found "
            f"{change.release}.",
        )
    for number, other in enumerate(before):
        if other.old == change.old:
            yield (*key, "old"), f"{change.old!r} already changes in custom_call_changes[{number}]."


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
                    yield (
                        (*key, "yanked"),
                        f"expected {shipped[version].yanked!r}, as in the calendar of this package, found "
                        f"{entry.yanked!r}. A project adds releases, and changes none: delete the line. `jaxexport "
                        "releases refresh` reads from the index what was withdrawn.",
                    )
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
                yield key, "expected a release that this package lacks. A project changes none: delete the line."


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
    """What is wrong with targets beside their types, each problem with its key. `platforms` are those of the policy."""
    for number, target in enumerate(targets):
        key: Key = ("deployed", number)
        if target.name == ALL:
            yield (*key, "name"), f"expected another name than {ALL!r}, which stands for every deployment target."
        for earlier, other in enumerate(targets[:number]):
            if other.name == target.name:
                yield (*key, "name"), f"expected another name than deployed[{earlier}], found {target.name!r} again."
        if target.platform not in platforms:
            yield (
                (*key, "platform"),
                f"expected one of the policy's platforms ({', '.join(platforms)}), found {target.platform!r}."
                f"{did_you_mean(target.platform, platforms)} No run would have such a cell: add it to `platforms`.",
            )
        if target.since and target.until and target.until <= target.since:
            yield (*key, "until"), f"expected a day after {target.since} (since), found {target.until}."


def problems_of_releases(targets: Sequence[DeploymentTarget], calendar: Calendar) -> Problems:
    """What is wrong with the releases of targets, with the calendar that has all releases of the project."""
    for number, target in enumerate(targets):
        key: Key = ("deployed", number)
        if bool(target.jaxlib) == bool(target.reader):
            yield (
                (*key, "jaxlib"),
                "expected either jaxlib or reader (such as tensorflow==2.21.0), found "
                + ("both." if target.jaxlib else "neither."),
            )
            continue
        if target.reader and not re.fullmatch(r"[^=<>!~\s]+==[^,*=\s]+", target.reader):
            yield (
                (*key, "reader"),
                f"expected one release of a runtime, such as tensorflow==2.21.0, found {target.reader!r}. A jaxlib "
                "stands under `jaxlib`.",
            )
            continue
        if target.jaxlib and names_runtime(target.jaxlib):
            yield (
                (*key, "jaxlib"),
                f"expected a release of jaxlib, such as 0.12.0.1, found {target.jaxlib!r}. A release of a runtime "
                "stands under `reader`.",
            )
            continue
        if target.reader:
            try:
                runtime_readers(target.reader, calendar)
            except ReleaseError as error:
                yield (*key, "reader"), str(error)
                continue
            if target.platform != "cpu":
                yield (
                    (*key, "platform"),
                    f"expected cpu, the platform of {target.title} here, found {target.platform!r}.",
                )
        built = built_on(target.release, calendar)
        if built is None:
            hint = did_you_mean(target.jaxlib, calendar.versions())
            yield (
                (*key, "jaxlib"),
                f"expected a jaxlib of the release calendar, found {target.jaxlib!r}.{hint} `jaxexport releases list` "
                "shows all.",
            )
            continue
        for name in ("since", "until"):
            if (day := getattr(target, name)) and day < built:
                yield (
                    (*key, name),
                    f"expected {built} or later, the day on which {target.title} was built, found {day}.",
                )
