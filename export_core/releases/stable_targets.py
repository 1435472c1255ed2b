"""The custom-call targets that each release promises to keep, from a data file of their own, without the calendar."""

from __future__ import annotations

import functools
import json
import os.path

from export_core.base.named_tuple import TYPE_CHECKING
from export_core.releases.names import version_numbers

if TYPE_CHECKING:
    from typing import Any


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
    """Return the release whose list of targets is used for this release: itself if measured, else an earlier one.

    It is the nearest earlier one by build date, or by number if the date is not known, as for a nightly or a release to
    come. Before the first measured release, and for text that is not a version, it is the first, whose list is the
    shortest.
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

    Source: `_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE` of the installed releases. The list is in jax: if jax and jaxlib
    have different numbers, the version of jax counts. For a release that was not measured, it is the list of
    `measured_release`.
    """
    return _lists()[measured_release(version)]


def promised_by(jax: str, jaxlib: str) -> tuple[frozenset[str], str]:
    """Return the custom-call targets that a jax with a jaxlib guarantees, and the name of this pair in messages."""
    return stable_targets(jax), f"jaxlib {jaxlib}" if jax == jaxlib else f"jax {jax} on jaxlib {jaxlib}"
