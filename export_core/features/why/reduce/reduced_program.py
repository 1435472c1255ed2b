"""The program that is reduced: a module in the simplest envelope that holds it, with the arrays that it is called with.

Its arguments and results are flat, only those that the module uses, and without derivatives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import Aval, ByteSpan, Tree
from export_core.features.why.errors import WhyError
from export_core.features.why.reduce.editing.element_types import dtype_of
from export_core.features.why.reduce.editor import ModuleParts
from export_core.goldens.arrays import Leaf, to_npz

if TYPE_CHECKING:
    from export_core.artifact import Artifact, Envelope
    from export_core.artifact.envelope.fields import Sharding
    from export_core.features.why.reduce.editor import ModuleSummary, Source


@dataclass(frozen=True)
class ReducedProgram:
    """A program. `names` are those of its operations, `text` its module as MLIR prints it: bytes, not always UTF-8."""

    envelope: Envelope
    module: ModuleParts
    inputs: tuple[Leaf, ...]
    names: tuple[str, ...] = ()
    text: bytes = b""

    @property
    def operations(self) -> int:
        """How many operations it has, in all functions and regions, without those that return."""
        return len(self.names)

    @cached_property
    def artifact(self) -> bytes:
        """The serialized `jax.export.Exported`."""
        code = self.module.code
        return encode(self.envelope._replace(module_source=ByteSpan(code, 0, len(code))))

    @cached_property
    def arrays(self) -> bytes:
        """Its inputs as an .npz."""
        return to_npz(self.inputs)

    @property
    def key(self) -> bytes:
        """A digest of what is run: equal for equal programs."""
        return hashlib.sha256(self.artifact + self.arrays).digest()

    def edited(
        self, summary: ModuleSummary, code: bytes, text: bytes, values: Mapping[tuple[int, int], Leaf]
    ) -> ReducedProgram:
        """The program with a changed module. `values` are those of operations that became arguments."""
        envelope = self.envelope
        taken: list[tuple[Leaf, Aval, Sharding]] = [
            (values[one.operation, one.result], self._aval_of(one), None)
            if one.was is None
            else (self.inputs[one.was], envelope.in_avals[one.was], envelope.in_shardings[one.was])
            for one in summary.arguments
        ]
        given: list[tuple[Aval, Sharding]] = [
            (self._aval_of(one), None)
            if one.was is None
            else (envelope.out_avals[one.was], envelope.out_shardings[one.was])
            for one in summary.results
        ]
        changed = _flat(envelope, [aval for _, aval, _ in taken], [aval for aval, _ in given])._replace(
            in_shardings=tuple(sharding for *_, sharding in taken),
            out_shardings=tuple(sharding for _, sharding in given),
        )
        return ReducedProgram(
            changed, replace(self.module, code=code), tuple(leaf for leaf, *_ in taken), summary.names, text
        )

    def with_size(self, summary: ModuleSummary, code: bytes, text: bytes, size: int, to: int) -> ReducedProgram:
        """The program after every dimension of one size got a smaller one: arrays lose their last elements."""

        def shape(dims: Sequence[int | str]) -> tuple[int | str, ...]:
            return tuple(to if dim == size else dim for dim in dims)

        def cut(leaf: Leaf) -> Leaf:
            return Leaf(leaf.dtype, leaf.data[tuple(slice(to if dim == size else None) for dim in leaf.shape)].copy())

        smaller = self.envelope._replace(
            in_avals=tuple(aval._replace(shape=shape(aval.shape)) for aval in self.envelope.in_avals),
            out_avals=tuple(aval._replace(shape=shape(aval.shape)) for aval in self.envelope.out_avals),
        )
        cut_program = replace(self, envelope=smaller, inputs=tuple(map(cut, self.inputs)))
        return cut_program.edited(summary, code, text, {})

    def _aval_of(self, source: Source) -> Aval:
        assert source.type is not None
        shape, element = source.type
        spaces = {aval.memory_space for aval in (*self.envelope.in_avals, *self.envelope.out_avals)}
        return Aval(dtype_of(element), shape, "device" if spaces - {None} else None)


def flat_program(artifact: Artifact, order: int, inputs: Sequence[Leaf]) -> ReducedProgram:
    """The program of an artifact, or of its derivative of an order, which is called with these flat arguments.

    Raises:
        WhyError: it is a bare module, or its main is not as its envelope says.
        ArtifactError: it cannot be read.
    """
    envelope = artifact.envelope
    for _ in range(order):
        envelope = envelope.vjp if envelope else None
    if envelope is None:
        raise WhyError(f"{artifact.name}: expected an artifact of jax.export, found none, or none of that derivative.")
    module = artifact.modules[order]
    main, version = module.main, module.stablehlo_version
    if main is None or version is None:
        raise WhyError(f"{artifact.name}: expected a StableHLO module with a function main, found none.")
    kept = envelope.module_kept_var_idx
    if len(inputs) != len(envelope.in_avals) or (kept and max(kept) >= len(inputs)):
        raise WhyError(f"{artifact.name}: expected {len(envelope.in_avals)} inputs, found {len(inputs)}.")
    leading, tokens = len(main.inputs) - len(kept), len(main.outputs) - len(envelope.out_avals)
    if leading < 0 or tokens < 0:
        raise WhyError(f"{artifact.name}: the arguments and results of its main are not those that it declares.")
    flat = _flat(envelope, [envelope.in_avals[number] for number in kept], envelope.out_avals)._replace(
        in_shardings=tuple(envelope.in_shardings[number] for number in kept), vjp=None
    )
    parts = ModuleParts(module.serialized(), version, leading, tokens)
    return ReducedProgram(flat, parts, tuple(inputs[number] for number in kept))


def read_program(data: bytes, name: str, inputs: Sequence[Leaf], text: bytes) -> ReducedProgram:
    """A program that an earlier reduction has written. Raises as `flat_program` does."""
    return replace(flat_program(read_bytes(data, name), 0, inputs), text=text)


def _flat(envelope: Envelope, in_avals: Sequence[Aval], out_avals: Sequence[Aval]) -> Envelope:
    """The envelope of a function that takes and returns a tuple of these."""
    leaf = Tree("leaf")
    return envelope._replace(
        in_tree=Tree("tuple", (Tree("tuple", (leaf,) * len(in_avals)), Tree("dict"))),
        in_avals=tuple(in_avals),
        out_tree=Tree("tuple", (leaf,) * len(out_avals)),
        out_avals=tuple(out_avals),
        module_kept_var_idx=tuple(range(len(in_avals))),
    )
