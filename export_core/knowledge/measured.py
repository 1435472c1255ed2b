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
    """A table of the operations that each measured release of a runtime runs, and of those with which it fails.

    A set of releases is an integer in which bit 0 stands for the first of `releases`. Methods take one as `stand_ins`.
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

    def in_some_forms(self, needed: Mapping[str, frozenset[str]], stand_ins: int) -> list[str]:
        """Return the operations of an artifact that all of the given releases run only in some forms.

        Args:
            needed: The element types of each operation of the artifact.
            stand_ins: The releases, as bits.
        """
        return [
            name
            for name, types in (needed.items() if self.some else ())
            if name in self.some and any(_has(self.some[name].get(of, 0), stand_ins) for of in types)
        ]

    def unseen(self, needed: Mapping[str, frozenset[str]], stand_ins: int) -> dict[str, frozenset[str]]:
        """Return the operations of an artifact, with element types, that at least one given release did not run.

        Args:
            needed: The element types of each operation of the artifact.
            stand_ins: The releases, as bits.
        """
        if self.is_outside(stand_ins):
            return {name: types or frozenset(("",)) for name, types in needed.items()}
        found = {}
        for name, types in needed.items():
            seen = self.operations.get(name, {})
            new = [
                of
                for of in types or _NO_TYPE
                if stand_ins & ~seen.get(of, 0) and not self._is_seen(seen, of, stand_ins)
            ]
            if new:
                found[name] = frozenset(new)
        return found

    def failing(self, unseen: Mapping[str, frozenset[str]], stand_ins: int) -> dict[str, frozenset[str]]:
        """Return those operations in `unseen`, with element types, with which all of the given releases always fail.

        Args:
            unseen: Operations, each with its element types.
            stand_ins: The releases, as bits.
        """
        kinds = self.failed.get("*", {})
        found: dict[str, frozenset[str]] = {}
        if self.is_outside(stand_ins):
            return found
        for name, types in unseen.items():
            own = self.failed.get(name, {})
            if not own and not kinds:  # for most runtimes and operations
                continue
            bad = [
                of
                for of in types
                if _has(own.get("*", own.get(of, 0)), stand_ins)
                or any(_has(kinds.get(kind, 0), stand_ins) for kind in of.replace("->", ",").split(","))
            ]
            if bad:
                found[name] = frozenset(bad)
        return found

    def may_fail(self, needed: Mapping[str, frozenset[str]]) -> bool:
        """Return whether any release failed with the name of one of an artifact's operations, or with an element type.

        This is a quick check without the combinations. `needed` has the element types of each operation.
        """
        if not self.failed.keys().isdisjoint(needed):
            return True
        if not (kinds := self.failed.get("*", {})):
            return False
        different: set[str] = set()
        different.update(*needed.values())  # Most operations have the same types.
        return any(kind in kinds for of in different for kind in of.replace("->", ",").split(","))

    def _is_seen(self, seen: Mapping[str, int], of: str, stand_ins: int) -> bool:
        """Return whether releases can be assumed to run an operation with an element type that they did not run.

        This is so if they ran the operation with another type, and other operations with this type, in a runtime whose
        operations do not depend on the type. `seen` is the operation's entry in `operations`.
        """
        kinds = [kind for kind in of.replace("->", ",").split(",") if kind]
        return (
            any(_has(releases, stand_ins) for releases in seen.values())
            and all(_has(self.types.get(kind, 0), stand_ins) for kind in kinds)
            and bool(kinds)
        )

    def is_outside(self, stand_ins: int) -> bool:
        """Return whether `stand_ins` is for a release that is newer or older than all measured releases."""
        return bool(stand_ins >> len(self.releases))

    def stand_ins(self, release: str) -> int:
        """Return the set of measured releases that stand in for `release`, as bits.

        That is the release itself, or if it was not measured, its two measured neighbours: it can do what both can. A
        release newer or older than all measured ones gets a bit of its own, which no operation has.
        """
        if release in self.releases:
            return 1 << self.releases.index(release)
        after = bisect_right(self.releases, _numbers(release), key=_numbers)
        return 0b11 << after - 1 if 0 < after < len(self.releases) else 1 << len(self.releases)


def _has(releases: int, stand_ins: int) -> bool:
    """Return whether all the releases in `stand_ins` are among `releases`; both are given as bits."""
    return not stand_ins & ~releases


@functools.lru_cache(maxsize=1024)
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@functools.cache
def measured() -> Mapping[str, Measured]:
    """Return the table of measured operations of each runtime other than jaxlib, by the name of the runtime."""
    with open(MEASURED, "rb") as file:  # noqa: PTH123
        content = json.loads(file.read())
    return {
        name: Measured(tuple(own["releases"]), own["operations"], own["some"], own["types"], own["failed"])
        for name, own in content.items()
    }


@functools.lru_cache(maxsize=1024)  # of the two hundred releases that each artifact is asked about
def stand_ins_of(release: str) -> int:
    """Return the set of measured releases that stand in for a release such as ``iree==3.13.0``, as bits."""
    runtime, version, _ = parts_of(release)
    return measured()[runtime].stand_ins(version)
