"""The custom-call targets that each release promises to keep, in a data file of its own, without the calendar."""

import functools
import json
import os.path
from typing import Any

from export_core.releases.names import version_numbers

# Paths by os.path: pathlib takes 5 ms to import.
TABLE = os.path.join(os.path.dirname(__file__), "data", "stable_targets.json")  # noqa: PTH118, PTH120


@functools.cache
def _data() -> dict[str, Any]:
    with open(TABLE, "rb") as file:  # noqa: PTH123
        data: dict[str, Any] = json.loads(file.read())
    return data


@functools.cache
def _lists() -> dict[str, frozenset[str]]:
    lists: dict[str, frozenset[str]] = {}
    current: frozenset[str] = frozenset()
    for version, entry in _data()["releases"].items():
        # The file has the first list whole, then what each release added and removed.
        current = frozenset(entry["all"]) if "all" in entry else (current | set(entry["added"])) - set(entry["removed"])
        lists[version] = current
    return lists


def measured_release(jaxlib_version: str) -> str:
    """Return the release whose list stands for this one: itself if measured, else the nearest earlier measured one.

    Build dates say what is earlier; a version without a known date (a nightly, a release to come) goes by its number. A
    version before the first measured one gets the first, as does text that is no version: that list is the shortest.
    """
    releases: dict[str, dict[str, Any]] = _data()["releases"]
    first = next(iter(releases))
    if jaxlib_version in releases:
        return jaxlib_version
    built = _data()["unmeasured"].get(jaxlib_version)
    if built is not None:
        earlier = [version for version, entry in releases.items() if entry["built"] <= built]
        return max(earlier, key=lambda version: str(releases[version]["built"]), default=first)
    try:
        number = version_numbers(jaxlib_version)  # a nightly counts as the release that it becomes
    except ValueError:
        return first
    earlier = [version for version in releases if version_numbers(version) <= number]
    return max(earlier, key=version_numbers, default=first)


def stable_targets(version: str) -> frozenset[str]:
    """Return the custom-call targets that this release guarantees stable when it exports.

    Source: `_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE` of the installed releases. It is in jax: of a jax on a jaxlib of
    another number, the version of jax counts. A release that was not measured gets the list that `measured_release`
    names.
    """
    return _lists()[measured_release(version)]


def promised_by(jax: str, jaxlib: str) -> tuple[frozenset[str], str]:
    """Return the targets that a pair guarantees, and what messages call it."""
    return stable_targets(jax), f"jaxlib {jaxlib}" if jax == jaxlib else f"jax {jax} on jaxlib {jaxlib}"
