"""What a module needs: the smallest StableHLO that can read it, what sets that, and what else a reader must know.

It comes from the content, not from the producer's name: jaxlib never checks that name when it reads.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from export_core.artifact.unread import RANGE_LOCATION, codes_of, unread_in_tables
from export_core.artifact.vhlo_tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from export_core.artifact.bytecode.module import Module
    from export_core.artifact.bytecode.sections import Entries, Tables

OLDEST = (0, 9)  # the oldest version that StableHLO promises to read


class Needs(NamedTuple):
    """The smallest StableHLO that reads the module."""

    stablehlo: str
    """Its version."""
    exact: bool
    """Whether that is exact; where it is false, at least that version is needed."""
    set_by: tuple[str, ...]
    """The operations and attributes that need it."""
    unknown: tuple[str, ...]
    """Operations and attributes that this reader does not know."""
    dialects: tuple[str, ...]
    """Other dialects in the module."""
    range_locations: bool
    """Whether it has locations that older releases cannot read."""


@functools.lru_cache(maxsize=1024)  # the tables name few; an artifact may name any
def version_pair(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version; the patch never matters to what can be read.

    Raises:
        InvalidVersion: it is not a version; a `ValueError`.
    """
    version = Version(text)
    return version.major, version.minor


def needs(module: Module) -> Needs:
    """Return what a module needs. Reads the tables, and the operations only if there are custom calls.

    The rule of 0.17 for reductions whose element types differ is not checked: every jaxlib with `jax.export` is
    newer.

    Raises:
        ArtifactError: the module cannot be read.
    """
    # A writer puts nothing into the tables that the module does not use, so the walk would find nothing more.
    parts = module.tables
    features = _Features()
    features.add_operations(parts)
    features.add_codes(parts, "attrs", parts.attributes)
    features.add_codes(parts, "types", parts.types)
    features.add_custom_calls(module)
    foreign = tuple(name for name in dict.fromkeys(parts.dialects) if name not in ("builtin", "vhlo"))
    unknown = dict.fromkeys(str(part) for part in unread_in_tables(parts))
    newest = max(features.by_version, default=OLDEST)
    return Needs(
        stablehlo=".".join(map(str, newest)),
        exact=not unknown and not _is_newer(module, version_pair(tables()["through"])),
        set_by=tuple(sorted(features.by_version.get(newest, ()))) if newest > OLDEST else (),
        unknown=tuple(unknown),
        dialects=foreign,
        range_locations=features.range_locations,
    )


@functools.cache
def _since(kind: str) -> dict[Any, tuple[tuple[int, int], str]]:
    """The version that something came with, and its name, of all that came after `OLDEST`.

    Operations (`kind` is ops) by their name with the dialect; attributes (attrs) and types by dialect and code.
    """
    known = tables()[kind]
    named: dict[Any, tuple[str, str]]
    if kind == "ops":
        named = {f"vhlo.{name}": (name, since) for name, (since, _) in known.items()}
    else:
        named = {("vhlo", int(code)): (name, since) for code, (name, since, _) in known.items()}
    return {key: (version_pair(since), name) for key, (name, since) in named.items() if version_pair(since) > OLDEST}


class _Features:
    """The names in a module by the StableHLO version that they came with, but for those that `OLDEST` has."""

    def __init__(self) -> None:
        self.by_version: dict[tuple[int, int], list[str]] = {}
        self.range_locations = False

    def add_operations(self, parts: Tables) -> None:
        self._add("ops", parts.op_names)

    def add_codes(self, parts: Tables, kind: str, entries: Entries) -> None:
        """Add attributes (`kind` is attrs) or types (types)."""
        codes = codes_of(parts, entries)
        self._add(kind, codes)
        self.range_locations |= kind == "attrs" and ("builtin", RANGE_LOCATION) in codes

    def add_custom_calls(self, module: Module) -> None:
        """Add what custom calls require without a name in the tables: rules of VhloToVersion.cpp for one operation."""
        if not any(name.startswith("vhlo.custom_call") for name in module.op_names):
            return
        if module.has_typed_ffi:
            self.by_version.setdefault((1, 3), []).append("custom_call with a dictionary of arguments")
        if any("future_v1" in names for names in self.by_version.values()):
            self.by_version.setdefault((1, 17), []).append("custom_call with a future")

    def _add(self, kind: str, keys: Iterable[Any]) -> None:
        since = _since(kind)
        for key in keys:
            if key in since:
                version, name = since[key]
                names = self.by_version.setdefault(version, [])
                if name not in names:
                    names.append(name)


def _is_newer(module: Module, through: tuple[int, int]) -> bool:
    """Whether the writer's version is above the tables': a rule that came without a new name would not show in them."""
    version = module.stablehlo_version
    try:
        return version is not None and version_pair(version) > through
    except ValueError:
        return False
