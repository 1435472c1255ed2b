"""The negative corpus: artifacts with a single defect, each made by a function from an artifact without defects.

`corpus(writer)` makes them from artifacts that a jax release wrote (tests/artifact/data). It returns the same bytes
every time. An artifact that ends or stops a release of jax, or passes a check of other software, is left out: the page
says which releases it was, but not how.
"""

from __future__ import annotations

import gzip
import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from forge import section, varint
from stored_artifacts import DATA

from export_core.artifact import Aval, Tree, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan, Envelope
from studies.artifact.taken_apart import Operation, TakenApart, take_apart

CONTROLS = ("nothing changed", "custom call, nothing changed")
"""Artifacts without a defect, which must be accepted everywhere. So the others are refused for their defects."""
DEPTH = 100


class Seed(NamedTuple):
    """An artifact without defects: its bytes, its envelope, its module, and the index at which the module begins."""

    data: bytes
    envelope: Envelope
    module: bytes
    start: int

    def with_fields(self, **fields: Any) -> bytes:
        return encode(self.envelope._replace(**fields))

    def with_module(self, module: bytes) -> bytes:
        return self.with_fields(module_source=ByteSpan(module, 0, len(module)))


Make = Callable[[Seed], bytes]


def corpus(writer: str) -> dict[str, bytes]:
    """Return the bytes of all artifacts of the corpus by name, made from two artifacts by this writer."""
    seeds = {False: _seed(writer, "tree"), True: _seed(writer, "cholesky")}
    return {name: make(seeds[calls(name)]) for name, make in ARTIFACTS.items()}


def calls(name: str) -> bool:
    """Return whether the artifact of this name is made from the writer's artifact with custom calls."""
    return name.startswith("custom call")


def _seed(writer: str, name: str) -> Seed:
    data = (DATA / writer / f"{name}.jaxexport").read_bytes()
    artifact = read_bytes(data)
    assert artifact.envelope is not None
    module = artifact.module.serialized()
    return Seed(data, artifact.envelope, module, data.index(module))


def _patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _apart(change: Callable[[TakenApart], None]) -> Make:
    """Return a function that makes an artifact whose module `change` has changed."""

    def make(seed: Seed) -> bytes:
        parts = take_apart(seed.module)
        change(parts)
        return seed.with_module(parts.encode())

    return make


def _named(parts: TakenApart, name: bytes) -> Operation:
    return next(op for op in parts.operations() if parts.name_of(op).startswith(name))


def _rename(old: bytes, dialect: bytes, new: bytes) -> Callable[[TakenApart], None]:
    def change(parts: TakenApart) -> None:
        _named(parts, old).name = parts.name(dialect, new)

    return change


def _string(old: bytes, new: bytes) -> Callable[[TakenApart], None]:
    def change(parts: TakenApart) -> None:
        place = next(number for number, text in enumerate(parts.strings) if text.startswith(old))
        parts.strings[place] = new

    return change


def _version(number: int) -> Callable[[TakenApart], None]:
    def change(parts: TakenApart) -> None:
        parts.version = number

    return change


def _producer(text: bytes) -> Callable[[TakenApart], None]:
    def change(parts: TakenApart) -> None:
        parts.producer = text

    return change


def _unknown_attribute(parts: TakenApart) -> None:
    entry = next(each for each in parts.attributes if each.custom)
    entry.content = varint(99) + entry.content[1:]


def _unknown_type(parts: TakenApart) -> None:
    parts.types[0].content = varint(99) + parts.types[0].content[1:]


def _no_operation(parts: TakenApart) -> None:
    _named(parts, b"vhlo.func").regions[0][0].operations.clear()


def _two_mains(parts: TakenApart) -> None:
    function = _named(parts, b"vhlo.func")
    block = parts.block.operations[0].regions[0][0]
    block.operations.append(pickle.loads(pickle.dumps(function)))


def _nested(seed: Seed) -> bytes:
    envelope = seed.envelope._replace(vjp=None)
    for _ in range(DEPTH):
        envelope = seed.envelope._replace(vjp=envelope)
    return encode(envelope)


def _aval(index: int, **fields: Any) -> Make:
    def make(seed: Seed) -> bytes:
        avals = list(seed.envelope.in_avals)
        avals[index] = avals[index]._replace(**fields)
        return seed.with_fields(in_avals=tuple(avals))

    return make


def _fields(**fields: object) -> Make:
    return lambda seed: seed.with_fields(**fields)


def _wide_tree(seed: Seed) -> bytes:
    tree = seed.envelope.out_tree
    return seed.with_fields(out_tree=tree._replace(children=(*tree.children[:1], Tree("tuple", (Tree("leaf"),) * 2))))


ARTIFACTS: dict[str, Make] = {
    CONTROLS[0]: lambda seed: encode(seed.envelope),
    # Not an artifact.
    "no bytes": lambda _: b"",
    "random bytes": lambda _: random.Random(22).randbytes(1000),
    "compressed by gzip": lambda seed: gzip.compress(seed.data, mtime=0),
    "a pickle of it": lambda seed: pickle.dumps(seed.data, protocol=4),
    "a Git LFS pointer": lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    "StableHLO as text": lambda _: b"module @jit_f {\n  func.func public @main() { return }\n}\n",
    # Cut, or too long.
    "cut after 1 byte": lambda seed: seed.data[:1],
    "cut after 6 bytes": lambda seed: seed.data[:6],
    "cut in the first table": lambda seed: seed.data[:64],
    "cut in the module": lambda seed: seed.data[: seed.start + len(seed.module) // 2],
    "cut in half": lambda seed: seed.data[: len(seed.data) // 2],
    "64 bytes of nothing behind it": lambda seed: seed.data + bytes(64),
    "itself once more behind it": lambda seed: seed.data * 2,
    # The flatbuffer.
    "root behind the end": lambda seed: _patched(seed.data, 0, b"\xff\xff\xff\x7f"),
    "root at 0": lambda seed: _patched(seed.data, 0, bytes(4)),
    "no table at the root": lambda seed: _patched(
        seed.data, int.from_bytes(seed.data[:4], "little"), b"\xff\xff\xff\x7f"
    ),
    "a name of the function not UTF-8": lambda seed: seed.data.replace(
        b"\x08\0\0\0<lambda>", b"\x08\0\0\0\xff\xfeambda>", 1
    ),
    "all zeros after 16 bytes": lambda seed: seed.data[:16] + bytes(len(seed.data) - 16),
    # Versions.
    "serialization version 0": _fields(serialization_version=0),
    "serialization version 99": _fields(serialization_version=99),
    "calling convention 0": _fields(calling_convention_version=0),
    "calling convention 99": _fields(calling_convention_version=99),
    # Fields of the envelope.
    "another platform": _fields(platforms=("tpu",)),
    "a platform that is none": _fields(platforms=("abacus",)),
    "no platform": _fields(platforms=()),
    "no device": _fields(nr_devices=0),
    "two devices": _fields(nr_devices=2),
    "32,767 devices": _fields(nr_devices=32_767),
    "an argument too many": lambda seed: seed.with_fields(in_avals=(*seed.envelope.in_avals, Aval("float32", (1,)))),
    "an argument too few": lambda seed: seed.with_fields(in_avals=seed.envelope.in_avals[:1]),
    "an argument of another dtype": _aval(0, dtype="int32"),
    "an argument of another shape": _aval(0, shape=(8, 4)),
    "an argument of a negative size": _aval(0, shape=(-4, 8)),
    "an argument of 2 ** 62 elements": _aval(0, shape=(1 << 31, 1 << 31)),
    "a size that is no expression": _aval(0, shape=("b +", 8)),
    "a result of another dtype": lambda seed: seed.with_fields(
        out_avals=(seed.envelope.out_avals[0]._replace(dtype="int32"), *seed.envelope.out_avals[1:])
    ),
    "a result too many": lambda seed: seed.with_fields(out_avals=(*seed.envelope.out_avals, Aval("float32", (1,)))),
    "a tree with a leaf too many": _wide_tree,
    "a sharding too few": lambda seed: seed.with_fields(in_shardings=seed.envelope.in_shardings[:1]),
    "an argument kept that is none": _fields(module_kept_var_idx=(0, 7)),
    "an argument kept twice": _fields(module_kept_var_idx=(0, 0)),
    "an argument dropped": _fields(module_kept_var_idx=(0,)),
    "an effect that nobody knows": _fields(ordered_effects=("nobody.Effect",)),
    "derivatives nested 100 deep": _nested,
    # The module.
    "no module": lambda seed: seed.with_module(b""),
    "a module of random bytes": lambda seed: seed.with_module(random.Random(23).randbytes(500)),
    "a module as text": lambda seed: seed.with_module(b"module @jit_f {\n}\n"),
    "the module of its derivative": lambda seed: seed.with_fields(
        module_source=seed.envelope.vjp.module_source if seed.envelope.vjp else None
    ),
    "half a module": lambda seed: seed.with_module(seed.module[: len(seed.module) // 2]),
    "a module without its last byte": lambda seed: seed.with_module(seed.module[:-1]),
    "a byte behind the module": lambda seed: seed.with_module(seed.module + b"\0"),
    "bytecode version 99": _apart(_version(99)),
    "StableHLO 99.0.0": _apart(_producer(b"StableHLO_v99.0.0")),
    "StableHLO 0.0.1": _apart(_producer(b"StableHLO_v0.0.1")),
    "a producer that is none": _apart(_producer(b"nobody")),
    "an operation that is none": _apart(_rename(b"vhlo.add", b"vhlo", b"frobnicate_v1")),
    "an operation to come": _apart(_rename(b"vhlo.add", b"vhlo", b"add_v99")),
    "an operation of another dialect": _apart(_rename(b"vhlo.add", b"nobody", b"add")),
    "an attribute that is none": _apart(_unknown_attribute),
    "a type that is none": _apart(_unknown_type),
    "a function name not UTF-8": _apart(_string(b"main", b"m\xff\xfen")),
    "no main": _apart(_string(b"main", b"mine")),
    "two mains": _apart(_two_mains),
    "a function without operations": _apart(_no_operation),
    "2 ** 56 strings": lambda seed: seed.with_module(seed.module[:24] + section(0, b"\0" + b"\xff" * 7 + b"\0")),
    # Custom calls.
    CONTROLS[1]: lambda seed: encode(seed.envelope),
    "custom call of nobody": _apart(_string(b"lapack_", b"nobody_knows")),
    "custom call not UTF-8": _apart(_string(b"lapack_", b"lapack_\xff\xfe")),
}
