"""The parts of an artifact that the reader does not know: jaxlib could run a custom call in them that no audit sees.

A dialect, operation, attribute or type that is in no table is always a finding, and never passed over.
"""

from __future__ import annotations

import functools
import os.path
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import RESOURCE_OFFSETS, RESOURCES, TEXT, Tables
from export_core.artifact.bytecode.values import MAX_ATTRIBUTES, Values
from export_core.artifact.envelope.fields import Envelope
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any


UNKNOWN = "unknown"  # of a known dialect, and in no table: a newer release may have written it
FOREIGN = "foreign"  # what jax.export never writes, and what this reader cannot look into
CONFLICT = "conflict"  # given twice: jaxlib uses one, and this reader could show the other

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
_CODES = {"attribute": {"builtin": range(RANGE_LOCATION + 1), "sdy": range(18)}, "type": {"builtin": range(20)}}


@functools.cache
def vhlo_tables() -> dict[str, Any]:
    """Return our tables of VHLO: its operations, attributes and types with the StableHLO versions that know them.

    The keys are `ops`, `types`, `attrs`, `properties` and `inherent`. The key `through` has the last StableHLO version
    that these tables cover.
    """
    import json  # 3 ms, which reading alone does not need; tests/artifact/test_light.py

    # Paths by os.path: pathlib takes 5 ms to import.
    path = os.path.join(os.path.dirname(__file__), "data", "vhlo_versions.json")  # noqa: PTH118, PTH120
    with open(path, "rb") as file:  # noqa: PTH123
        data: dict[str, Any] = json.loads(file.read())
    return data


@functools.cache
def _known_operations() -> frozenset[str]:
    operations = {**_OPERATIONS, "vhlo": vhlo_tables()["ops"]}
    return frozenset(f"{dialect}.{name}" for dialect, names in operations.items() for name in names)


@functools.cache
def _known_codes(kind: str) -> frozenset[tuple[str, int]]:
    """Return the dialect and the code of each known attribute or type; `kind` is "attribute" or "type"."""
    codes = {("vhlo", int(code)) for code in vhlo_tables()[f"{kind[:4]}s"]}
    return frozenset(codes.union((dialect, code) for dialect, known in _CODES[kind].items() for code in known))


class Unread(NamedTuple):
    """A part of an artifact that our reader does not know, with the reason why it matters."""

    name: str  # The name by which a policy's `allow` accepts it.
    kind: str  # The kind of the part, in words.
    standing: str  # One of `UNKNOWN`, `FOREIGN` and `CONFLICT`.
    why: str  # What is wrong with it, as the end of a sentence.

    def __str__(self) -> str:
        return self.name if self.kind in self.name else f"{self.kind} {self.name}"

    @property
    def can_be_allowed(self) -> bool:
        """Whether a policy may allow this part with a reason: an `UNKNOWN` part that is not a kind of custom call."""
        return self.standing == UNKNOWN and not self.name.startswith("vhlo.custom_call")


def unread_parts(modules: Sequence[Module], envelope: Envelope | None) -> Iterator[tuple[str, Unread]]:
    """Yield all unknown parts of an artifact, each as a pair: where it is, such as "the envelope", and the part.

    Raises `ArtifactError` if a module cannot be read.
    """
    levels = envelope.levels if envelope is not None else ()
    for module, level in zip_longest(modules, levels):
        of = f"the VJP of order {module.vjp_order}" if module.vjp_order else ""
        for field in level.unknown_fields if level is not None else ():  # a newer jax may take a module from one
            name = f"field {field.table}[{field.index}]"
            yield of or "the envelope", Unread(name, "field", UNKNOWN, "came with a newer format")
        for part in chain(unread_in_tables(module.tables), unread_attributes(module)):
            yield of or "the module", part


def unread_in_tables(parts: Tables) -> Iterator[Unread]:
    """Yield the unknown parts of a module that its tables list.

    The operations themselves are not read, since they can use only what is in the tables.
    """
    for dialect in dict.fromkeys(parts.dialects):
        if dialect not in DIALECTS:
            why = "is not read: jaxlib may find custom calls in it that no audit sees"
            yield Unread(dialect, "dialect", FOREIGN, why)
    if not (all(parts.op_registered) and _known_operations().issuperset(parts.op_names)):
        for name, registered in dict.fromkeys(zip(parts.op_names, parts.op_registered, strict=True)):
            if name.partition(".")[0] not in DIALECTS:
                continue  # its dialect is reported
            if name not in _known_operations():
                yield Unread(
                    name, "operation", UNKNOWN, "is unknown to this version, so nothing is known of what it calls"
                )
            if not registered:
                # The properties of such an operation are an attribute, whatever the properties section has.
                why = "is marked as unregistered, so jaxlib reads its properties in another way"
                yield Unread(name, "operation", FOREIGN, why)
    for kind, entries in (("attribute", parts.attributes), ("type", parts.types)):
        for dialect, code in sorted(parts.codes(entries) - _known_codes(kind)):
            if dialect not in DIALECTS:
                continue
            if code == TEXT:
                yield Unread(f"{dialect} text", kind, FOREIGN, "is encoded as text, which only jaxlib reads")
            else:
                yield Unread(f"{dialect} {kind} {code}", kind, UNKNOWN, "is unknown to this version")
    for number in (RESOURCES, RESOURCE_OFFSETS):
        section = parts.sections.get(number)
        # jax writes both sections, without anything in them: the offsets then are a single zero.
        if section is not None and bytes(section.data[section.at : section.end]) not in (b"", b"\x01"):
            yield Unread("resources", "section", FOREIGN, "is not empty, and is not read")
            return


def unread_attributes(module: Module) -> Iterator[Unread]:
    """Yield an unknown part for each attribute that an operation has twice, and for each unreadable dictionary.

    In MLIR, an attribute in an operation's attribute dictionary overrides the property of the same name. May raise
    `ArtifactError`.
    """
    parts, attributes_of = module.tables, module.contents.attributes_of
    values = Values(parts)
    own = frozenset(vhlo_tables()["inherent"]) if parts.version >= PROPERTIES_SINCE else frozenset()
    for index, operation in attributes_of.items():
        name = parts.op_names[operation]
        dialect, code, cursor = values.attribute_entry(index)
        if (dialect, code) != ("builtin", 1):
            yield Unread(name, "operation", FOREIGN, "has attributes that are not a dictionary")
            continue
        seen: set[bytes] = set()
        for word, _ in values.entries(cursor, MAX_ATTRIBUTES):
            parts.spend(1, cursor.at)
            dialect, code, key = values.attribute_entry(word)
            if (dialect, code) != ("builtin", 2):
                yield Unread(name, "operation", FOREIGN, "has an attribute whose name is not a string")
                continue
            raw = parts.string_bytes(key.index(len(parts.string_ends), "string"))
            text = raw.decode("utf-8", "backslashreplace")
            if raw in seen:
                yield Unread(f"{text} of {name}", "attribute", CONFLICT, "is there twice, and jaxlib takes one of them")
            elif text in own and not (text == RNG_ALGORITHM and name.startswith("vhlo.custom_call_v")):
                why = "stands beside the properties, and jaxlib uses it in place of the property of that name"
                yield Unread(f"{text} of {name}", "attribute", CONFLICT, why)
            seen.add(raw)
