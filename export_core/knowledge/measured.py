"""The operations, with element types, that runtimes other than jaxlib were seen to run, and those that fail in them."""

from __future__ import annotations

import functools
import json
import os.path
from bisect import bisect_right
from collections.abc import Mapping

from export_core.base.named_tuple import NamedTuple
from export_core.releases.names import parts_of

_NO_TYPE = ("",)  # In place of the element types of an operation that has none.
# Paths by os.path, as in knowledge_base.py: pathlib takes 5 ms to import.
MEASURED = os.path.join(os.path.dirname(__file__), "data", "measured.json")  # noqa: PTH118, PTH120


class Measured(NamedTuple):
    """The operations that releases of one runtime were seen to run.

    Sets of releases are numbers: bit 0 stands for the first of `releases`. Methods take such a set as `places`.
    """

    releases: tuple[str, ...]  # The releases that were measured, the oldest build first.
    operations: Mapping[str, Mapping[str, int]]
    """For each operation and each of its element types, the releases that ran it.

    Releases are bits of a number: bit 0 is the first of `releases`. Operations and types are named as by
    `element_types`. An operation that only passes values on has "" as its element type.
    """

    some: Mapping[str, Mapping[str, int]] = {}
    """The part of `operations` that passed in some forms and failed in others: for example, a convolution fails if it
    dilates its input.
    """

    types: Mapping[str, int] = {}
    """For each element type, the releases that ran any operation with it, as bits.

    Empty for a runtime with a kernel for each operation and element type, where one type shows nothing about another.
    """

    failed: Mapping[str, Mapping[str, int]] = {}
    """The operations and types with which each program failed, and the releases in which they did, as bits.

    For an operation that fails with every element type, the type is "*"; for an element type that every operation fails
    with, the operation is "*". A custom call has its target in place of a type.
    """

    def ran_all(self, needed: Mapping[str, frozenset[str]]) -> int:
        """Return the releases that ran all operations of an artifact, with the element types in `needed`, as bits.

        If nothing is needed, all bits are set, also those that stand for releases that were not measured.
        """
        releases, operations = -1, self.operations
        for name, types in needed.items():
            if (seen := operations.get(name)) is None:
                return 0
            for of in types or _NO_TYPE:
                releases &= seen.get(of, 0)
        for name in self.some.keys() & needed.keys():
            for of in needed[name] or _NO_TYPE:
                releases &= ~self.some[name].get(of, 0)
        return releases

    def in_some_forms(self, needed: Mapping[str, frozenset[str]], places: int) -> list[str]:
        """Return the operations of an artifact that all of the given releases run in some forms only.

        Args:
            needed: The element types of each operation of the artifact.
            places: The releases, as bits.
        """
        return [
            name
            for name, types in (needed.items() if self.some else ())
            if name in self.some and any(_has(self.some[name].get(of, 0), places) for of in types)
        ]

    def unseen(self, needed: Mapping[str, frozenset[str]], places: int) -> dict[str, frozenset[str]]:
        """Return the operations of an artifact, with the element types, that a given release was not seen to run.

        Args:
            needed: The element types of each operation of the artifact.
            places: The releases, as bits.
        """
        if self.is_outside(places):
            return {name: types or frozenset(("",)) for name, types in needed.items()}
        found = {}
        for name, types in needed.items():
            seen = self.operations.get(name, {})
            new = [of for of in types or _NO_TYPE if places & ~seen.get(of, 0) and not self._is_seen(seen, of, places)]
            if new:
                found[name] = frozenset(new)
        return found

    def failing(self, unseen: Mapping[str, frozenset[str]], places: int) -> dict[str, frozenset[str]]:
        """Return those of the operations in `unseen`, with the element types, that all of the given releases fail with.

        Args:
            unseen: Operations, each with its element types.
            places: The releases, as bits.
        """
        kinds = self.failed.get("*", {})
        found: dict[str, frozenset[str]] = {}
        if self.is_outside(places):
            return found
        for name, types in unseen.items():
            own = self.failed.get(name, {})
            if not own and not kinds:  # for most runtimes and operations
                continue
            bad = [
                of
                for of in types
                if _has(own.get("*", own.get(of, 0)), places)
                or any(_has(kinds.get(kind, 0), places) for kind in of.replace("->", ",").split(","))
            ]
            if bad:
                found[name] = frozenset(bad)
        return found

    def may_fail(self, needed: Mapping[str, frozenset[str]]) -> bool:
        """Return whether an operation of an artifact, or an element type, failed in a release: a look at names only.

        `needed` has the element types of each operation of the artifact.
        """
        if not self.failed.keys().isdisjoint(needed):
            return True
        if not (kinds := self.failed.get("*", {})):
            return False
        different: set[str] = set()
        different.update(*needed.values())  # Most operations have the same types.
        return any(kind in kinds for of in different for kind in of.replace("->", ",").split(","))

    def _is_seen(self, seen: Mapping[str, int], of: str, places: int) -> bool:
        """Return whether releases count as running an operation with an element type, though not seen to do so.

        They do if they ran the operation with another type, and other operations with this type. A runtime with `types`
        computes an operation in the same way for all element types. `seen` is the operation's entry in `operations`.
        """
        kinds = [kind for kind in of.replace("->", ",").split(",") if kind]
        return (
            any(_has(releases, places) for releases in seen.values())
            and all(_has(self.types.get(kind, 0), places) for kind in kinds)
            and bool(kinds)
        )

    def is_outside(self, places: int) -> bool:
        """Return whether `places` stand for a release that is newer or older than all that were measured."""
        return bool(places >> len(self.releases))

    def places(self, release: str) -> int:
        """Return the measured releases that stand for `release`, as bits.

        A release that was not measured has what both of its measured neighbours have, so it has the bits of both. A
        release newer or older than all of them has nothing: a bit that no operation was seen with.
        """
        if release in self.releases:
            return 1 << self.releases.index(release)
        after = bisect_right(self.releases, _numbers(release), key=_numbers)
        return 0b11 << after - 1 if 0 < after < len(self.releases) else 1 << len(self.releases)


def _has(releases: int, places: int) -> bool:
    """Return whether all the releases in `places` are among `releases`; both are given as bits."""
    return not places & ~releases


@functools.lru_cache(maxsize=1024)
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@functools.cache
def measured() -> Mapping[str, Measured]:
    """Return what each runtime other than jaxlib was seen to run, by the name of the runtime."""
    with open(MEASURED, "rb") as file:  # noqa: PTH123
        content = json.loads(file.read())
    return {
        name: Measured(tuple(own["releases"]), own["operations"], own["some"], own["types"], own["failed"])
        for name, own in content.items()
    }


@functools.lru_cache(maxsize=1024)  # of the two hundred releases that each artifact is asked about
def places_of(release: str) -> int:
    """Return what `Measured.places` returns for a release of a measured runtime, such as ``iree==3.13.0``."""
    runtime, version, _ = parts_of(release)
    return measured()[runtime].places(version)
