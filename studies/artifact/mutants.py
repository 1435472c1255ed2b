"""Mutants of real modules and artifacts, made to find what jaxlib reads in a different way than our reader.

Each mutant has one to four changes, which its seed and its number decide. Most change the structure of a module in ways
that jaxlib may still load; some change bytes.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable

from forge import varint

from export_core.artifact import ArtifactError, Envelope
from export_core.artifact.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan
from studies.artifact.fuzz import damaged
from studies.artifact.taken_apart import ATTRS, PROPS, Operation, TakenApart, take_apart

EVIL = b"evil_target"
TARGETS = (
    EVIL,
    b"lapack_spotrf_ffi",
    b"lapack_spotrf_ffi\0evil",
    b"Sharding",
    b"xla.sdy.evil",
    b"",
    "évil".encode(),
    b"\xff",
)
OWN = (
    b"call_target_name", b"api_version", b"backend_config", b"called_computations", b"has_side_effect", b"sym_name",
    b"callee", b"name", b"decomposition", b"value", b"mhlo.backend_config", b"mhlo.frontend_attributes",
    b"call_target_name\0", b"Call_target_name", b"vhlo.call_target_name", b"properties", b"dimension",
)  # fmt: skip
NAMES = (
    (b"stablehlo", b"custom_call"), (b"mhlo", b"custom_call"), (b"vhlo", b"custom_call_v1"),
    (b"vhlo", b"custom_call_v2"), (b"vhlo", b"custom_call_v3"), (b"vhlo", b"custom_call"), (b"func", b"call"),
    (b"vhlo", b"call_v1"), (b"vhlo.custom_call_v1", b""), (b"", b"vhlo.custom_call_v1"), (b"vhlo.custom_call_v1", b"x"),
    (b"vhlo", b"composite_v1"), (b"builtin", b"module"), (b"builtin", b"unrealized_conversion_cast"),
    (b"sdy", b"named_computation"), (b"chlo", b"top_k"), (b"mpmd", b"call"), (b"VHLO", b"custom_call_v1"),
    (b"vhlo\0", b"custom_call_v1"), (b"vhlo", b"custom_call_v1\0"), (b"vhlo", b"optimization_barrier_v1"),
)  # fmt: skip
DIALECTS = (b"vhlo", b"builtin", b"sdy", b"stablehlo", b"mhlo", b"func", b"chlo", b"arith")
TEXTS = (
    b'"evil_target"', b'#vhlo.string_v1<"evil_target">', b'#vhlo<string_v1<"evil_target">>', b"unit", b"@evil_target",
    b'{call_target_name = "evil_target"}', b'{call_target_name = #vhlo.string_v1<"evil_target">}', b"[]", b"1 : i32",
    b'#sdy.sharding<@mesh, [{}]>', b"tensor<4xf32>", b"loc(unknown)",
)  # fmt: skip
Change = Callable[[TakenApart, random.Random], None]


def evil(parts: TakenApart, choose: random.Random) -> int:
    """Return the index of an attribute, most often a new one, that a reader may take for a custom call's target."""
    words = choose.choice(TARGETS) if choose.random() < 0.5 else EVIL
    kind = choose.randrange(8)
    if kind < 3:
        return parts.target(words)
    if kind < 5:
        return parts.text(words)
    if kind == 5:  # a symbol, which consists of its name
        return parts.attribute(b"builtin", varint(4) + varint(parts.text(words)))
    if kind == 6:
        return parts.attribute(choose.choice(DIALECTS[:3]), choose.choice(TEXTS) + b"\0", custom=False)
    return choose.randrange(len(parts.attributes))


def any_of(parts: TakenApart, choose: random.Random) -> Operation:
    """Return a random operation of a module, most often an operation that calls something by name."""
    operations = parts.operations()
    calls = [
        op for op in operations if op.name < len(parts.names) and b"c" in parts.strings[parts.names[op.name].string]
    ]
    custom = [op for op in calls if b"custom_call" in parts.strings[parts.names[op.name].string]]
    pool = choose.choice((custom, custom, calls, operations))
    return choose.choice(pool or operations)


def another_name(parts: TakenApart, choose: random.Random) -> None:
    number = choose.randrange(len(parts.names))
    if choose.random() < 0.6:
        dialect, operation = choose.choice(NAMES)
        number = parts.name(dialect, operation, registered=choose.random() < 0.8)
    any_of(parts, choose).name = number


def unregistered(parts: TakenApart, choose: random.Random) -> None:
    name = choose.choice(parts.names)
    name.registered = not name.registered


def more_attributes(parts: TakenApart, choose: random.Random) -> None:
    """Add one or two entries to the attribute dictionary of an operation, or change entries that it has."""
    op = any_of(parts, choose)
    entries = parts.entries(op.attributes) if op.mask & ATTRS else []
    for _ in range(choose.choice((1, 1, 2))):
        name = choose.choice(OWN) if choose.random() < 0.8 else choose.choice(parts.strings)
        key = parts.text(name) if choose.random() < 0.9 else evil(parts, choose)
        entry = key, evil(parts, choose)
        if entries and choose.random() < 0.3:
            index = choose.randrange(len(entries))
            entries[index] = (entries[index][0], entry[1]) if choose.random() < 0.7 else entry
        else:
            entries.insert(choose.randrange(len(entries) + 1), entry)
    op.attributes = parts.dictionary(entries)
    op.mask |= ATTRS


def other_attributes(parts: TakenApart, choose: random.Random) -> None:
    op = any_of(parts, choose)
    op.attributes = choose.randrange(len(parts.attributes))
    op.mask ^= ATTRS if op.mask & ATTRS and choose.random() < 0.3 else 0


def other_properties(parts: TakenApart, choose: random.Random) -> None:
    """Give an operation different properties: those of another operation, or its own after a change.

    Properties are a list of indexes of attributes. The change sets, adds or deletes an index, or shuffles the list.
    """
    op = any_of(parts, choose)
    if not parts.properties or op.properties >= len(parts.properties):
        return
    numbers = _numbers(parts.properties[op.properties])
    kind = choose.randrange(7)
    if kind == 0 or not numbers:
        op.properties = choose.randrange(len(parts.properties))
        op.mask ^= choose.choice((0, 0, PROPS))
        return
    if kind < 4:
        index = choose.randrange(len(numbers))
        targets = [n for n, number in enumerate(numbers) if _is_target(parts, number)]
        numbers[choose.choice(targets) if targets and kind < 3 else index] = evil(parts, choose)
    elif kind == 4:
        numbers.insert(choose.randrange(len(numbers) + 1), evil(parts, choose))
    elif kind == 5:
        choose.shuffle(numbers)
    else:
        del numbers[choose.randrange(len(numbers))]
    parts.properties.append(b"".join(map(varint, numbers)))
    op.properties = len(parts.properties) - 1


def _numbers(content: bytes) -> list[int]:
    from export_core.artifact.bytecode.sections import Cursor

    cursor = Cursor(content, 0, len(content), "")
    numbers = []
    while cursor.at < cursor.end:
        numbers.append(cursor.varint("number"))
    return numbers


def _is_target(parts: TakenApart, number: int) -> bool:
    content = parts.attributes[number].content if number < len(parts.attributes) else b""
    return content[:1] == varint(14) and parts.strings[_numbers(content)[1]] not in (b"", b"public", b"private")


def as_text(parts: TakenApart, choose: random.Random) -> None:
    entry = choose.choice(parts.attributes if choose.random() < 0.8 or not parts.types else parts.types)
    entry.content, entry.custom = choose.choice(TEXTS) + b"\0", False


def other_code(parts: TakenApart, choose: random.Random) -> None:
    """Change the dialect, the code, the content, or a single byte of an attribute or type."""
    entry = choose.choice(parts.attributes if choose.random() < 0.7 or not parts.types else parts.types)
    kind = choose.randrange(4)
    if kind == 0:
        entry.dialect = parts.dialect(choose.choice(DIALECTS))
    elif kind == 1:
        entry.content = varint(choose.randrange(48)) + entry.content[1:]
    elif kind == 2:
        entry.content = choose.choice(parts.attributes).content
    elif entry.content:
        at = choose.randrange(len(entry.content))
        entry.content = entry.content[:at] + bytes([choose.randrange(256)]) + entry.content[at + 1 :]


def other_string(parts: TakenApart, choose: random.Random) -> None:
    index = choose.randrange(len(parts.strings))
    targets = [n for n, text in enumerate(parts.strings) if b"lapack" in text or b"mhlo." in text or b"assert" in text]
    if targets and choose.random() < 0.5:
        index = choose.choice(targets)
    parts.strings[index] = choose.choice((*TARGETS, *OWN, choose.choice(parts.strings), parts.strings[index] + b"\0"))


def other_dialect(parts: TakenApart, choose: random.Random) -> None:
    if choose.random() < 0.3:
        parts.dialects.append(choose.choice(parts.dialects))
    index = choose.randrange(len(parts.dialects))
    string, _ = parts.dialects[index]
    if choose.random() < 0.5:
        string = parts.string(choose.choice(DIALECTS))
    parts.dialects[index] = string, choose.choice((b"", b"", varint(1) * 3, varint(0) * 3, b"\0"))
    if choose.random() < 0.3:
        choose.choice(parts.names).dialect = index


def other_version(parts: TakenApart, choose: random.Random) -> None:
    parts.version = choose.choice((parts.version - 1, parts.version + 1, choose.randrange(8))) % 8


def other_sections(parts: TakenApart, choose: random.Random) -> None:
    kind = choose.randrange(4)
    if kind == 0:
        choose.shuffle(parts.order)
    elif kind == 1:
        parts.order.insert(choose.randrange(len(parts.order) + 1), choose.choice(parts.order))
    elif kind == 2:
        parts.others[choose.choice((5, 6))] = choose.choice((b"", b"\1", choose.randbytes(choose.randrange(12))))
    else:
        parts.producer = choose.choice((b"", b"MLIR20", b"StableHLO_v0.9.0", b"StableHLO_v9.9.9", EVIL))


def moved(parts: TakenApart, choose: random.Random) -> None:
    """Copy, move or delete a random operation of a module."""
    blocks = [parts.block, *(block for op in parts.operations() for region in op.regions for block in region)]
    block, to = choose.choice(blocks), choose.choice(blocks)
    if not block.operations:
        return
    op = choose.choice(block.operations)
    kind = choose.randrange(3)
    if kind == 0 or (kind == 1 and op.regions):
        block.operations.remove(op)
    if kind and not op.regions:
        to.operations.insert(choose.randrange(len(to.operations) + 1), pickle.loads(pickle.dumps(op)))


CHANGES: tuple[tuple[int, Change], ...] = (
    (4, another_name), (1, unregistered), (6, more_attributes), (2, other_attributes), (6, other_properties),
    (2, as_text), (3, other_code), (3, other_string), (1, other_dialect), (1, other_version), (1, other_sections),
    (2, moved),
)  # fmt: skip
_WEIGHTED = [change for weight, change in CHANGES for _ in range(weight)]


def shifted(data: bytes, choose: random.Random) -> bytes:
    """Return an artifact's bytes with one to three offsets or numbers of the flatbuffer changed a little."""
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 3))):
        size = choose.choice((2, 4))
        at = choose.randrange(len(data) // size) * size
        if any(data.find(b"ML\xefR", at - back, at) >= 0 for back in (64, 1024) if at > back):
            at = choose.randrange(min(len(data), 400) // size) * size  # not in the module, which other changes are for
        number = int.from_bytes(changed[at : at + size], "little") + choose.choice(
            (-16, -8, -4, -2, -1, 1, 2, 4, 8, 16)
        )
        changed[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


class Mutants:
    """A maker of mutants, from the bytes of modules and of whole artifacts."""

    def __init__(self, modules: list[bytes], artifacts: list[bytes]) -> None:
        self._modules = modules
        self._parts = [pickle.dumps(take_apart(data)) for data in modules]
        self._artifacts = artifacts
        self._envelopes = [read_bytes(data).envelope for data in artifacts]

    def make(self, seed: str, number: int) -> tuple[bool, bytes]:
        """Make the mutant of this number; return whether it is a whole artifact (not a module), and its bytes.

        The bytes depend on seed and number alone.
        """
        choose = random.Random(f"{seed} {number}")
        kind = choose.random()
        if kind < 0.05:
            return True, damaged(self._artifacts, choose)
        if kind < 0.09:
            return True, shifted(choose.choice(self._artifacts), choose)
        if kind < 0.16:
            return True, self._artifact(choose)
        return False, self._module(choose)

    def _module(self, choose: random.Random) -> bytes:
        if choose.random() < 0.1:
            return damaged(self._modules, choose)
        parts = pickle.loads(choose.choice(self._parts))
        try:
            for _ in range(choose.choice((1, 1, 1, 2, 2, 3, 4))):
                choose.choice(_WEIGHTED)(parts, choose)
            data: bytes = parts.encode()
        except (IndexError, KeyError, ValueError, ArtifactError):  # a change needs what an earlier one removed
            return choose.choice(self._modules)
        kind = choose.randrange(20)
        if kind == 0:
            return data + choose.choice(self._modules)
        if kind == 1:
            return damaged([data], choose)
        return data

    def _artifact(self, choose: random.Random) -> bytes:
        """Return the bytes of an artifact whose module is a mutant, or the module of one of its derivatives."""
        envelope = choose.choice(self._envelopes)
        assert envelope is not None
        data = self._module(choose)
        return encode(_with_module(envelope, ByteSpan(data, 0, len(data)), choose))


def _with_module(envelope: Envelope, module: ByteSpan, choose: random.Random) -> Envelope:
    if envelope.vjp is not None and choose.random() < 0.6:
        return envelope._replace(vjp=_with_module(envelope.vjp, module, choose))
    return envelope._replace(module_source=module)
