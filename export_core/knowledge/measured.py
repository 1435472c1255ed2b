"""The operations that other runtimes were seen to run, with their element types, in releases whose cells passed."""

import functools
import json
import os.path
from collections.abc import Mapping
from typing import NamedTuple

# Paths by os.path, as in knowledge_base.py: pathlib takes 5 ms to import.
MEASURED = os.path.join(os.path.dirname(__file__), "data", "measured.json")  # noqa: PTH118, PTH120


class Measured(NamedTuple):
    """The operations that releases of one runtime were seen to run."""

    releases: tuple[str, ...]  # Those that ran, oldest build first.
    operations: Mapping[str, Mapping[str, list[int]]]
    """For each operation, as `element_types` names it, and for its element types the places of the releases that ran
    it. An operation that only passes values on has no types."""

    some: Mapping[str, Mapping[str, list[int]]] = {}
    """What of it fails in other forms, such as a convolution that dilates its input."""

    types: Mapping[str, list[int]] = {}
    """The element types that any operation was seen with; none of a runtime that has a kernel for each of them."""

    def in_some_forms(self, needed: Mapping[str, frozenset[str]], places: frozenset[int]) -> list[str]:
        """Return the operations of an artifact that the releases at these places take in some forms only."""
        return [
            name
            for name, types in needed.items()
            if any(places.issubset(self.some.get(name, {}).get(of, ())) for of in types)
        ]

    def unseen(self, needed: Mapping[str, frozenset[str]], places: frozenset[int]) -> dict[str, frozenset[str]]:
        """Return the operations of an artifact, with element types, that no release at these places was seen to run."""
        found = {}
        for name, types in needed.items():
            if new := frozenset(of for of in types or ("",) if not self._is_seen(name, of, places)):
                found[name] = new
        return found

    def _is_seen(self, name: str, of: str, places: frozenset[int]) -> bool:
        seen = self.operations.get(name, {})
        if places.issubset(seen.get(of, ())):
            return True
        # Such a runtime computes an operation alike for all types that it has.
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
    """Return the operations that each runtime other than jaxlib was seen to run, by its name."""
    with open(MEASURED, "rb") as file:  # noqa: PTH123
        content = json.loads(file.read())
    return {
        name: Measured(tuple(own["releases"]), own["operations"], own["some"], own["types"])
        for name, own in content.items()
    }
