"""What a module needs: the smallest StableHLO that can read these bytes, what sets it, and what else a reader must know.

The answer comes from the content, not from the producer's name: jaxlib never checks that name when it reads.
"""

from __future__ import annotations

from export_core.artifact.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from export_core.artifact.bytecode.module import Module
    from export_core.artifact.bytecode.sections import Entries, Tables

OLDEST = (0, 9)  # the oldest version that StableHLO promises to read
RANGE_LOCATION = 22  # builtin's code of a location with a range of lines and columns
KNOWN_DIALECTS = ("builtin", "vhlo", "sdy")
# builtin's codes of attributes (and locations) and of types that every jaxlib since 0.4.18 reads; 22 is looked at by itself.
_BUILTIN_ATTRIBUTES = range(22)
_BUILTIN_TYPES = range(20)
_cache: dict[str, Any] = {}


class Needs(Record):
    """What a reader must know to load a module.

    `stablehlo` is the smallest (major, minor) that has everything seen; `exact` is False where something was seen that the tables do
    not have (`unknown` names it), or where the writer's version is newer than the tables: then it is "at least". `set_by` names what
    asks for `stablehlo`; `dialects` are foreign ones, `range_locations` tells of locations that jaxlib reads from 0.4.36 on.
    """

    stablehlo: tuple[int, int]
    exact: bool
    set_by: tuple[str, ...]
    unknown: tuple[str, ...]
    dialects: tuple[str, ...]
    range_locations: bool
    bytecode_version: int
    producer: str

    def __str__(self) -> str:
        version = f"StableHLO {self.stablehlo[0]}.{self.stablehlo[1]}"
        if not self.exact:
            why = (
                f" ({', '.join(self.unknown)} not in the tables)"
                if self.unknown
                else " (the writer is newer than the tables)"
            )
            return f"unknown, at least {version}{why}"
        return f"{version}, because of {', '.join(self.set_by)}" if self.set_by else version


def tables_through() -> str:
    """Return the newest StableHLO version that the shipped tables know."""
    return str(tables()["through"])


def version_pair(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version; the patch never matters to what can be read.

    Raises:
        ValueError: it is not a version.
    """
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def needs(module: Module) -> Needs:
    """Return what a module needs. Reads the tables, and the operations only where a custom call asks for it.

    The rule of 0.17 for reductions whose element types differ is not looked at: every jaxlib with `jax.export` is newer.

    Raises:
        ArtifactError: the module cannot be read.
    """
    parts, known = module.tables, tables()
    seen: dict[tuple[int, int], list[str]] = {}
    unknown: list[str] = []
    for name in parts.op_names:
        dialect, _, rest = name.partition(".")
        if dialect == "vhlo":
            _note(known["ops"].get(rest), rest, seen, unknown, f"operation {name}")
    range_locations = False
    for kind, entries in (("attrs", parts.attributes), ("types", parts.types)):
        for dialect, code in _codes(parts, entries):
            if dialect == "vhlo":
                entry = known[kind].get(str(code))
                label = entry[0] if entry else ""
                _note(entry and entry[1:], label, seen, unknown, f"{kind[:-1]} code {code}")
            elif dialect == "builtin":
                range_locations = range_locations or (kind == "attrs" and code == RANGE_LOCATION)
                if code not in (_BUILTIN_ATTRIBUTES if kind == "attrs" else _BUILTIN_TYPES) and code not in (
                    -1,
                    RANGE_LOCATION,
                ):
                    unknown.append(f"builtin {kind[:-1]} code {code}")
    if any(name.startswith("vhlo.custom_call") for name in parts.op_names):
        if module.has_typed_ffi:
            seen.setdefault((1, 3), []).append("custom_call with a dictionary of arguments")
        if "future_v1" in {name for names in seen.values() for name in names}:
            seen.setdefault((1, 17), []).append("custom_call with a future")
    dialects = tuple(name for name in dict.fromkeys(parts.dialects) if name not in ("builtin", "vhlo"))
    unknown += [f"dialect {name}" for name in dialects if name not in KNOWN_DIALECTS]
    newest = max(seen, default=OLDEST)
    return Needs(
        stablehlo=newest,
        exact=not unknown and not _is_newer(module, version_pair(known["through"])),
        set_by=tuple(sorted(seen.get(newest, ()))) if newest > OLDEST else (),
        unknown=tuple(dict.fromkeys(unknown)),
        dialects=dialects,
        range_locations=range_locations,
        bytecode_version=parts.version,
        producer=parts.producer,
    )


def _note(
    entry: Any, label: str, seen: dict[tuple[int, int], list[str]], unknown: list[str], unknown_label: str
) -> None:
    if entry is None:
        unknown.append(unknown_label)
    else:
        names = seen.setdefault(version_pair(entry[0]), [])
        if label not in names:
            names.append(label)


def _codes(parts: Tables, entries: Entries) -> set[tuple[str, int]]:
    """Return the different (dialect, code) of attributes or types; the code of text is -1."""
    from export_core.artifact.bytecode.cursor import Cursor

    data, ends = parts.data, entries.ends
    found: set[tuple[str, int]] = set()
    start = entries.first
    for dialect, first, last in entries.groups:
        name = parts.dialects[dialect]
        codes = set()
        for index in range(first, last):
            end = ends[index]
            head = data[start] if start < end >> 1 else 0
            if not end & 1:
                codes.add(-1)
            elif head & 1:
                codes.add(head >> 1)
            else:
                codes.add(Cursor(data, start, end >> 1, parts.name).varint("an attribute's or type's code"))
            start = end >> 1
        found.update((name, code) for code in codes)
    return found


def _is_newer(module: Module, through: tuple[int, int]) -> bool:
    """Whether the writer's version is one that the tables do not reach: a rule without a new name cannot be seen in them."""
    version = module.stablehlo_version
    try:
        return version is not None and version_pair(version) > through
    except ValueError:
        return False


def tables() -> dict[str, Any]:
    """Return the shipped tables: `ops`, `types`, `attrs` and the version they go `through`."""
    if not _cache:
        import json
        import os.path

        with open(os.path.join(os.path.dirname(__file__), "data", "vhlo_versions.json"), "rb") as file:  # noqa: PTH118, PTH120, PTH123
            _cache.update(json.loads(file.read()))
    return _cache
