"""What in an artifact the reader does not know: jaxlib could run a custom call in it that no audit sees.

The world is closed: a dialect, operation, attribute or type that is in no table is a finding, and is never passed over.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from export_core.artifact.bytecode.sections import RESOURCE_OFFSETS, RESOURCES, TEXT, Cursor
from export_core.artifact.bytecode.values import MAX_ATTRIBUTES, Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from export_core.artifact.bytecode.module import Module
    from export_core.artifact.bytecode.sections import Entries, Tables
    from export_core.artifact.envelope.fields import Envelope


UNKNOWN = "unknown"  # of a known dialect, and in no table: a newer release may have written it
FOREIGN = "foreign"  # what jax.export never writes, and what this reader cannot look into
CONFLICT = "conflict"  # said twice: jaxlib takes one, the reader could show the other

DIALECTS = ("builtin", "vhlo", "sdy")
PROPERTIES_SINCE = 5  # the bytecode version in which an operation's own attributes left its dictionary
RNG_ALGORITHM = "rng_algorithm"  # of rng_bit_generator; jax writes it on custom calls for dynamic shapes
RANGE_LOCATION = 22  # builtin's code of a location with a range of lines and columns

# All that jaxlib 0.7.0 to 0.12.0.1 know of Shardy; none of them calls anything by name. Its codes are in its
# bytecode.td. jax itself writes a mesh, constraints and manual computations.
_OPERATIONS = {
    "builtin": frozenset({"module", "unrealized_conversion_cast"}),
    "sdy": frozenset(
        {
            "all_gather", "all_reduce", "all_slice", "all_to_all", "collective_permute", "constant", "data_flow_edge",
            "func_data_flow_edge", "manual_computation", "mesh", "named_computation", "propagation_barrier",
            "reduce_scatter", "replicated_to_unreduced", "reshard", "return", "sharded_to_unreduced",
            "sharding_constraint", "sharding_group",
        }
    ),
}  # fmt: skip
_CODES = {
    ("builtin", "attribute"): range(RANGE_LOCATION + 1),
    ("builtin", "type"): range(20),
    ("sdy", "attribute"): range(18),
}


@functools.cache
def vhlo_tables() -> dict[str, Any]:
    """Return the shipped tables of VHLO: operations, attributes and types with the StableHLO versions that know them.

    By `ops`, `types`, `attrs`, `properties` and `inherent`; `through` is the StableHLO version that they go through.
    """
    import json
    import os.path

    # Paths by os.path: pathlib takes 5 ms to import.
    path = os.path.join(os.path.dirname(__file__), "data", "vhlo_versions.json")  # noqa: PTH118, PTH120
    with open(path, "rb") as file:  # noqa: PTH123
        data: dict[str, Any] = json.loads(file.read())
    return data


class _Known(NamedTuple):
    """What is known by name, so that a module with nothing else is compared as a whole."""

    operations: frozenset[str]
    codes: dict[str, frozenset[tuple[str, int]]]
    """By kind, attribute or type: a dialect and a code."""
    inherent: frozenset[str]
    """Names of attributes that are properties of some operation."""


@functools.cache
def _known() -> _Known:
    vhlo = vhlo_tables()
    operations = {**_OPERATIONS, "vhlo": vhlo["ops"]}
    codes = {kind: {("vhlo", int(code)) for code in vhlo[f"{kind[:4]}s"]} for kind in ("attribute", "type")}
    for (dialect, kind), numbers in _CODES.items():
        codes[kind].update((dialect, code) for code in numbers)
    return _Known(
        frozenset(f"{dialect}.{name}" for dialect, names in operations.items() for name in names),
        {kind: frozenset(pairs) for kind, pairs in codes.items()},
        frozenset(vhlo["inherent"]),
    )


class Unread(NamedTuple):
    """A part of an artifact that is not known.

    `name` is what a policy's `allow` calls it, `kind` what it is in words, `standing` one of `UNKNOWN`, `FOREIGN` and
    `CONFLICT`, `why` a predicate that says what is wrong. Only what is unknown can be allowed, and never a kind of
    custom call.
    """

    name: str
    kind: str
    standing: str
    why: str

    def __str__(self) -> str:
        return self.name if self.kind in self.name else f"{self.kind} {self.name}"

    @property
    def can_be_allowed(self) -> bool:
        """Whether a policy may allow it with a reason."""
        return self.standing == UNKNOWN and not self.name.startswith("vhlo.custom_call")


def unread_module(module: Module) -> Iterator[Unread]:
    """Yield all parts of a module that are not known.

    Raises:
        ArtifactError: the module cannot be read.
    """
    yield from unread_in_tables(module.tables)
    yield from unread_attributes(module.tables, module.contents.attributes_of)


def unread_fields(envelope: Envelope) -> Iterator[Unread]:
    """Yield the fields of one envelope that are not known: a newer jax may take a module from one."""
    for field in envelope.unknown_fields:
        yield Unread(f"field {field.table}[{field.index}]", "field", UNKNOWN, "came with a newer format")


def unread_in_tables(parts: Tables) -> Iterator[Unread]:
    """Yield what a module's tables show. No operation is walked: the tables name all that one can use."""
    for dialect in dict.fromkeys(parts.dialects):
        if dialect not in DIALECTS:
            yield Unread(
                dialect, "dialect", FOREIGN, "is not read: jaxlib may find custom calls in it that no audit sees"
            )
    if not (all(parts.op_registered) and _known().operations.issuperset(parts.op_names)):
        for name, registered in dict.fromkeys(zip(parts.op_names, parts.op_registered, strict=True)):
            yield from _operation(name, registered)
    yield from _unknown_codes(parts, "attribute", parts.attributes)
    yield from _unknown_codes(parts, "type", parts.types)
    for number in (RESOURCES, RESOURCE_OFFSETS):
        section = parts.sections.get(number)
        # jax writes both sections, without anything in them: the offsets then are a single zero.
        if section is not None and bytes(section.data[section.at : section.end]) not in (b"", b"\x01"):
            yield Unread("resources", "section", FOREIGN, "is not empty, and is not read")
            return


def _operation(name: str, registered: bool) -> Iterator[Unread]:
    if name.partition(".")[0] not in DIALECTS:
        return  # its dialect is reported
    if name not in _known().operations:
        yield Unread(name, "operation", UNKNOWN, "is in no table, so nothing is known of what it calls")
    if not registered:
        # The properties of such an operation are an attribute, whatever the properties section has.
        yield Unread(
            name, "operation", FOREIGN, "is marked as unregistered, so jaxlib reads its properties in another way"
        )


def _unknown_codes(parts: Tables, kind: str, entries: Entries) -> Iterator[Unread]:
    for dialect, code in sorted(parts.codes(entries) - _known().codes[kind]):
        if dialect not in DIALECTS:
            continue
        if code == TEXT:
            yield Unread(f"{dialect} text", kind, FOREIGN, "is encoded as text, which only jaxlib reads")
        else:
            yield Unread(f"{dialect} {kind} {code}", kind, UNKNOWN, "is in no table")


def unread_attributes(parts: Tables, attributes_of: Mapping[int, int]) -> Iterator[Unread]:
    """Yield attributes of operations that are said twice: in MLIR the dictionary overrides a property of that name.

    `attributes_of` is what the walk over the operations gives.

    Raises:
        ArtifactError: a dictionary cannot be read.
    """
    values = Values(parts)
    own = _known().inherent if parts.version >= PROPERTIES_SINCE else frozenset()
    for index, operation in attributes_of.items():
        name = parts.op_names[operation]
        dialect, code, cursor = values.attribute_entry(index)
        if (dialect, code) != ("builtin", 1):
            yield Unread(name, "operation", FOREIGN, "has attributes that are not a dictionary")
            continue
        seen: set[bytes] = set()
        for key in _keys(parts, values, cursor):
            if key is None:
                yield Unread(name, "operation", FOREIGN, "has an attribute whose name is not a string")
                continue
            text = key.decode("utf-8", "backslashreplace")
            if key in seen:
                yield Unread(f"{text} of {name}", "attribute", CONFLICT, "is there twice, and jaxlib takes one of them")
            elif text in own and not (text == RNG_ALGORITHM and name.startswith("vhlo.custom_call_v")):
                why = "is beside the properties, and in jaxlib overrides the one of that name"
                yield Unread(f"{text} of {name}", "attribute", CONFLICT, why)
            seen.add(key)


def _keys(parts: Tables, values: Values, cursor: Cursor) -> Iterator[bytes | None]:
    """Yield the names in a dictionary, None for one that is not a string of builtin."""
    for name, _ in values.entries(cursor, MAX_ATTRIBUTES):
        parts.spend(1, cursor.at)
        dialect, code, key = values.attribute_entry(name)
        is_string = (dialect, code) == ("builtin", 2)
        yield parts.string_bytes(key.index(len(parts.string_ends), "string")) if is_string else None
