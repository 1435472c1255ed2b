"""The operations, with element types, that runtimes other than jaxlib were seen to run in cells that passed."""

import functools
import json
import os.path
from collections.abc import Mapping
from typing import NamedTuple

# Paths by os.path, as in knowledge_base.py: pathlib takes 5 ms to import.
MEASURED = os.path.join(os.path.dirname(__file__), "data", "measured.json")  # noqa: PTH118, PTH120


class Measured(NamedTuple):
    """The operations that releases of one runtime were seen to run."""

    releases: tuple[str, ...]  # The releases that were measured, the oldest build first.
    operations: Mapping[str, Mapping[str, list[int]]]
    """For each operation and each of its element types, the indexes in `releases` of the releases that ran it.

    Both are named as by `element_types`. An operation that only passes values on has "" as its element type.
    """

    some: Mapping[str, Mapping[str, list[int]]] = {}
    """The part of `operations` that passed in some forms and failed in others: for example, a convolution fails if it
    dilates its input.
    """

    types: Mapping[str, list[int]] = {}
    """For each element type, the indexes in `releases` of the releases that ran any operation with it.

    Empty for a runtime with a kernel for each operation and element type, where one type shows nothing about another.
    """

    def in_some_forms(self, needed: Mapping[str, frozenset[str]], places: frozenset[int]) -> list[str]:
        """Return the operations of an artifact that releases run in some forms only.

        Args:
            needed: The element types of each operation of the artifact.
            places: The indexes of the releases in `releases`.
        """
        return [
            name
            for name, types in needed.items()
            if any(places.issubset(self.some.get(name, {}).get(of, ())) for of in types)
        ]

    def unseen(self, needed: Mapping[str, frozenset[str]], places: frozenset[int]) -> dict[str, frozenset[str]]:
        """Return the operations of an artifact, with element types, that not all of some releases were seen to run.

        Args:
            needed: The element types of each operation of the artifact.
            places: The indexes of the releases in `releases`.
        """
        found = {}
        for name, types in needed.items():
            if new := frozenset(of for of in types or ("",) if not self._is_seen(name, of, places)):
                found[name] = new
        return found

    def _is_seen(self, name: str, of: str, places: frozenset[int]) -> bool:
        seen = self.operations.get(name, {})
        if places.issubset(seen.get(of, ())):
            return True
        # A runtime with `types` computes an operation in the same way for all element types that it has.
        kinds = [kind for kind in of.replace("->", ",").split(",") if kind]
        return (
            any(map(places.issubset, seen.values()))
            and all(places.issubset(self.types.get(kind, ())) for kind in kinds)
            and bool(kinds)
        )

    def places(self, release: str) -> frozenset[int]:
        """Return the indexes in `releases` of the measured releases that stand for `release`.

        A release that was not measured has what both of its measured neighbours have, so the indexes are those of both.
        A release newer or older than all of them has nothing: -1, an index that no operation was seen with.
        """
        if release in self.releases:
            return frozenset((self.releases.index(release),))
        older = [place for place, other in enumerate(self.releases) if _numbers(other) < _numbers(release)]
        if not older or older[-1] + 1 == len(self.releases):
            return frozenset((-1,))
        return frozenset((older[-1], older[-1] + 1))


@functools.lru_cache(maxsize=1024)
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@functools.cache
def measured() -> Mapping[str, Measured]:
    """Return what each runtime other than jaxlib was seen to run, by the name of the runtime."""
    with open(MEASURED, "rb") as file:  # noqa: PTH123
        content = json.loads(file.read())
    return {
        name: Measured(tuple(own["releases"]), own["operations"], own["some"], own["types"])
        for name, own in content.items()
    }
