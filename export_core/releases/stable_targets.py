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
    """Return the release whose list of stable targets is used for this release: itself if it was measured.

    For any other release it is the nearest earlier one that was measured, by build date, or by version if the date is
    unknown. If there is no earlier one, or the text is not a version, it is the first, whose list is the shortest.
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
    """Return the custom-call targets that a release of jax guarantees to be stable in what it exports.

    Source: `_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE` of the installed releases. The list is in jax, so the version is
    that of jax if jaxlib has a different one. `measured_release` chooses the list for a release that was not measured.
    """
    return _lists()[measured_release(version)]


def promised_by(jax: str, jaxlib: str) -> tuple[frozenset[str], str]:
    """Return the custom-call targets that a pair of jax and jaxlib guarantees, and the pair's name for messages."""
    return stable_targets(jax), f"jaxlib {jaxlib}" if jax == jaxlib else f"jax {jax} on jaxlib {jaxlib}"
